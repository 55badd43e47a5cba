//! Produce requests: what is appended, when each part is settled, when the whole is answered.
//!
//! | acks | a part is settled when |
//! |---|---|
//! | 0 | it is appended; the request has no answer |
//! | 1 | the leader's own write completed |
//! | all | the high watermark passed it in the leader epoch of its append and enough replicas are in sync |
//!
//! A part whose replica stops leading that epoch fails with NOT_LEADER_OR_FOLLOWER, one that waits longer than the
//! request's timeout with REQUEST_TIMED_OUT; both may still become committed. A duplicate waits like the original.
//!
//! Source: kafka-rules 2, 6; kafka-formats B.6; `ReplicaManager.appendRecords`, `DelayedProduce`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use acked_wire::api::produce::{LeaderIdAndEpoch, PartitionProduceResponse, TopicProduceResponse};
use acked_wire::batch::parse_header;
use acked_wire::{ProduceRequest, ProduceResponse, ResponseBody, Str, Uuid, error_code};
use bytes::Bytes;

use super::broker::Broker;
use super::interface::ReplicaEffect;
use super::partition::{Leading, Replica, Waiter};
use crate::log::{AppendError, Prepared, PreparedAppend};
use crate::observation::Observation;
use crate::rules::{PendingProduce, ProduceReply};
use crate::settings::TimestampType;
use crate::types::{NodeId, Output, RequestId, Time, TopicPartition};

/// From this version on an answer says who leads (KIP-951).
const CURRENT_LEADER_VERSION: i16 = 10;

/// `acks` of a produce request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Acks {
    None,
    Leader,
    All,
}

impl Acks {
    /// Any other number is INVALID_REQUIRED_ACKS.
    pub fn from_wire(acks: i16) -> Option<Acks> {
        match acks {
            0 => Some(Acks::None),
            1 => Some(Acks::Leader),
            -1 => Some(Acks::All),
            _ => None,
        }
    }

    fn to_wire(self) -> i16 {
        match self {
            Acks::None => 0,
            Acks::Leader => 1,
            Acks::All => -1,
        }
    }
}

/// A batch that the log holds, or will hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    base_offset: i64,
    last_offset: i64,
    producer_id: i64,
    producer_epoch: i16,
    base_sequence: i32,
    pub is_duplicate: bool,
    /// As the answer says it: -1 for an original with CreateTime, its largest timestamp for a duplicate.
    log_append_time_ms: i64,
}

/// A refusal before the append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    code: i16,
    /// The real one where Kafka tells it, else -1.
    log_start_offset: i64,
}

impl Refused {
    pub fn with(code: i16) -> Refused {
        Refused { code, log_start_offset: -1 }
    }
}

/// How a part that was taken ended.
#[derive(Debug)]
pub(super) enum Verdict {
    /// Success, with the replicas that counted when it was reached.
    Acked {
        maximal_isr: Vec<NodeId>,
        min_insync: i32,
    },
    Failed(i16),
}

/// Checks and validates one part without changing anything.
pub(super) fn examine(
    replica: &Replica,
    records: Option<&Bytes>,
    acks: Acks,
    wall_clock_ms: i64,
    broker: &Broker,
) -> Result<Prepared, Refused> {
    if replica.is_offline() {
        return Err(Refused::with(error_code::KAFKA_STORAGE_ERROR));
    }
    let Some(leading) = replica.leading() else {
        return Err(Refused::with(error_code::NOT_LEADER_OR_FOLLOWER));
    };
    let in_sync = leading.committed_isr(broker.rules.isr_shrink, &replica.state.isr).count();
    if acks == Acks::All && in_sync < replica.min_insync() {
        return Err(Refused::with(error_code::NOT_ENOUGH_REPLICAS));
    }
    let Some(records) = records else { return Err(Refused::with(error_code::INVALID_RECORD)) };
    let log = &replica.log;
    log.prepare_append(records, replica.leader_epoch(), &replica.limits, wall_clock_ms)
        .map_err(|error| refused(&error, log.log_start_offset()))
}

fn refused(error: &AppendError, log_start_offset: i64) -> Refused {
    let log_start_offset = if error.tells_log_start_offset() { log_start_offset } else { -1 };
    Refused { code: error.code(), log_start_offset }
}

/// Appends what was examined, or recognises what the log holds already.
pub(super) fn take(
    replica: &mut Replica,
    records: Option<&Bytes>,
    prepared: Prepared,
    broker: &mut Broker,
    out: &mut Output<ReplicaEffect>,
) -> Taken {
    match prepared {
        Prepared::Append(prepared) => {
            let taken = original(replica, &prepared);
            replica.append(prepared, broker, out);
            taken
        }
        Prepared::Duplicate { base_offset, last_offset, timestamp_ms } => {
            let header = records.and_then(|records| parse_header(records).ok());
            let header = header.expect("a batch that was validated has a header");
            Taken {
                base_offset,
                last_offset,
                producer_id: header.producer_id,
                producer_epoch: header.producer_epoch,
                base_sequence: header.base_sequence,
                is_duplicate: true,
                log_append_time_ms: timestamp_ms,
            }
        }
    }
}

fn original(replica: &Replica, prepared: &PreparedAppend) -> Taken {
    let log_append_time_ms = match replica.limits.timestamp_type {
        TimestampType::CreateTime => -1,
        TimestampType::LogAppendTime => prepared.max_timestamp,
    };
    Taken {
        base_offset: prepared.base_offset,
        last_offset: prepared.last_offset,
        producer_id: prepared.producer_id,
        producer_epoch: prepared.producer_epoch,
        base_sequence: prepared.base_sequence,
        is_duplicate: false,
        log_append_time_ms,
    }
}

/// One part that was taken.
#[derive(Debug)]
struct Part {
    partition: TopicPartition,
    leader_epoch: i32,
    taken: Taken,
    /// `None` while it waits.
    verdict: Option<Verdict>,
    /// Where its answer is in the response.
    topic: usize,
    slot: usize,
}

/// A produce request on its way to an answer.
#[derive(Debug)]
pub(super) struct Pending {
    request: RequestId,
    version: i16,
    acks: Acks,
    deadline: Time,
    response: ProduceResponse,
    parts: Vec<Part>,
    waiting: usize,
    is_refused: bool,
}

impl Pending {
    pub fn new(request: RequestId, version: i16, acks: Acks, now: Time, timeout_ms: i32) -> Pending {
        let timeout = Duration::from_millis(u64::try_from(timeout_ms).unwrap_or(0));
        Pending {
            request,
            version,
            acks,
            deadline: now.saturating_add(timeout),
            response: ProduceResponse::default(),
            parts: Vec::new(),
            waiting: 0,
            is_refused: false,
        }
    }

    /// Begins the answers of a topic.
    pub fn topic(&mut self, name: Str, topic_id: Uuid, partitions: usize) {
        let partition_responses = Vec::with_capacity(partitions);
        let topic =
            TopicProduceResponse { name, topic_id, partition_responses, ..TopicProduceResponse::default() };
        self.response.responses.push(topic);
    }

    /// Answers a part that is not taken.
    pub fn refuse(
        &mut self,
        partition: TopicPartition,
        refused: Refused,
        replica: Option<&Replica>,
        out: &mut Output<ReplicaEffect>,
    ) {
        out.observe(Observation::ProduceRefused { partition, code: refused.code, appended: false });
        self.is_refused = true;
        self.answer(PartitionProduceResponse {
            index: partition.index,
            error_code: refused.code,
            base_offset: -1,
            log_start_offset: refused.log_start_offset,
            current_leader: current_leader(refused.code, replica, self.version),
            ..PartitionProduceResponse::default()
        });
    }

    /// Lets a taken part wait for what its acks ask.
    pub fn await_part(&mut self, replica: &mut Replica, taken: Taken) {
        let waiter =
            Waiter { required: taken.last_offset + 1, request: self.request, part: self.parts.len() };
        match self.acks {
            Acks::None => return,
            Acks::Leader => enqueue(&mut replica.awaiting_write, waiter),
            Acks::All => enqueue(&mut replica.awaiting_commit, waiter),
        }
        self.part(replica, taken, None);
        self.waiting += 1;
    }

    /// A part that needs no waiting.
    fn acked_part(&mut self, replica: &Replica, taken: Taken, verdict: Verdict) {
        self.part(replica, taken, Some(verdict));
    }

    fn part(&mut self, replica: &Replica, taken: Taken, verdict: Option<Verdict>) {
        let (topic, slot) = self.answer(PartitionProduceResponse {
            index: replica.id.index,
            error_code: error_code::NONE,
            base_offset: taken.base_offset,
            log_append_time_ms: taken.log_append_time_ms,
            log_start_offset: replica.log.log_start_offset(),
            ..PartitionProduceResponse::default()
        });
        let (partition, leader_epoch) = (replica.id, replica.leader_epoch());
        self.parts.push(Part { partition, leader_epoch, taken, verdict, topic, slot });
    }

    fn answer(&mut self, answer: PartitionProduceResponse) -> (usize, usize) {
        let topic = self.response.responses.len().checked_sub(1).expect("the topic was begun");
        let answers = &mut self.response.responses[topic].partition_responses;
        answers.push(answer);
        (topic, answers.len() - 1)
    }

    pub fn is_settled(&self) -> bool {
        self.waiting == 0
    }

    fn settle(
        &mut self,
        part: usize,
        verdict: Verdict,
        replica: Option<&Replica>,
        out: &mut Output<ReplicaEffect>,
    ) {
        let part = &mut self.parts[part];
        assert!(part.verdict.is_none(), "a part of {:?} was settled twice", self.request);
        assert!(self.waiting > 0, "{:?} was settled to the end before", self.request);
        if let Verdict::Failed(code) = verdict {
            out.observe(Observation::ProduceRefused { partition: part.partition, code, appended: true });
            let answer = &mut self.response.responses[part.topic].partition_responses[part.slot];
            answer.error_code = code;
            answer.base_offset = -1;
            answer.log_append_time_ms = -1;
            answer.log_start_offset = -1;
            answer.current_leader = current_leader(code, replica, self.version);
        }
        part.verdict = Some(verdict);
        self.waiting -= 1;
    }

    /// Answers, once every part is settled: the acknowledgements leave now.
    pub fn finish(self, out: &mut Output<ReplicaEffect>) {
        assert!(self.is_settled(), "{:?} is answered while a part waits", self.request);
        let request = self.request;
        if self.acks == Acks::None {
            // The client cannot be told of an error; closing the connection is Kafka's only sign.
            let is_refused = self.is_refused;
            let (close, done) =
                (ReplicaEffect::CloseConnection { request }, ReplicaEffect::NoReply { request });
            out.effect(if is_refused { close } else { done });
            return;
        }
        for part in self.parts {
            let Some(Verdict::Acked { maximal_isr, min_insync }) = part.verdict else { continue };
            out.observe(Observation::AckSent {
                partition: part.partition,
                leader_epoch: part.leader_epoch,
                acks: self.acks.to_wire(),
                base_offset: part.taken.base_offset,
                last_offset: part.taken.last_offset,
                producer_id: part.taken.producer_id,
                producer_epoch: part.taken.producer_epoch,
                base_sequence: part.taken.base_sequence,
                maximal_isr,
                min_insync,
                duplicate: part.taken.is_duplicate,
            });
        }
        out.effect(ReplicaEffect::Reply { request, body: ResponseBody::Produce(self.response) });
    }
}

/// Whom to ask instead, where the code says that it is not this replica.
fn current_leader(code: i16, replica: Option<&Replica>, version: i16) -> LeaderIdAndEpoch {
    let is_told = code == error_code::NOT_LEADER_OR_FOLLOWER && version >= CURRENT_LEADER_VERSION;
    match replica {
        Some(replica) if is_told => LeaderIdAndEpoch {
            leader_id: replica.state.leader.map_or(-1, |leader| leader.0),
            leader_epoch: replica.leader_epoch(),
            ..LeaderIdAndEpoch::default()
        },
        Some(_) | None => LeaderIdAndEpoch::default(),
    }
}

/// Keeps a queue in order of required offsets. Originals come in that order; only a duplicate may go before others.
fn enqueue(queue: &mut VecDeque<Waiter>, waiter: Waiter) {
    let place = match queue.back() {
        Some(last) if last.required > waiter.required => {
            queue.partition_point(|queued| queued.required <= waiter.required)
        }
        Some(_) | None => queue.len(),
    };
    queue.insert(place, waiter);
}

/// The next waiting part of a replica that is settled by where its log and high watermark now are.
pub(super) fn next_settled(replica: &mut Replica, broker: &Broker) -> Option<(Waiter, Verdict)> {
    let written = replica.writes.end();
    if let Some(waiter) = replica.awaiting_write.pop_front_if(|waiter| waiter.required <= written) {
        return Some((waiter, acked(replica, broker)));
    }
    let committed = replica.high_watermark;
    let waiter = replica.awaiting_commit.pop_front_if(|waiter| waiter.required <= committed)?;
    let in_sync = replica.leading().map(|leading| maximal_isr(leading, replica, broker).count());
    if in_sync.is_some_and(|in_sync| in_sync < replica.min_insync()) {
        return Some((waiter, Verdict::Failed(error_code::NOT_ENOUGH_REPLICAS_AFTER_APPEND)));
    }
    Some((waiter, acked(replica, broker)))
}

fn acked(replica: &Replica, broker: &Broker) -> Verdict {
    let maximal_isr = match replica.leading() {
        Some(leading) => maximal_isr(leading, replica, broker).collect(),
        // Only a rule that lets produces outlive the leadership comes here: nobody's position is known then.
        None => Vec::new(),
    };
    let min_insync = i32::try_from(replica.min_insync()).expect("bounded by the configured value");
    Verdict::Acked { maximal_isr, min_insync }
}

fn maximal_isr<'a>(
    leading: &'a Leading,
    replica: &'a Replica,
    broker: &Broker,
) -> impl Iterator<Item = NodeId> + 'a {
    leading.maximal_isr(broker.rules.isr_shrink, &replica.state.isr)
}

/// Rule seam: the waiting parts that fail because the leader epoch of their append has ended.
pub(super) fn failed_by_new_epoch(rule: PendingProduce, replica: &mut Replica) -> Vec<Waiter> {
    let mut failed: Vec<Waiter> = replica.awaiting_write.drain(..).collect();
    match rule {
        PendingProduce::FailOnDemotion => failed.extend(replica.awaiting_commit.drain(..)),
        PendingProduce::CompleteByHighWatermark => {}
    }
    failed
}

/// Every waiting part, whatever the rules: the replica is gone.
pub(super) fn failed_by_end(replica: &mut Replica) -> Vec<Waiter> {
    replica.awaiting_write.drain(..).chain(replica.awaiting_commit.drain(..)).collect()
}

/// Produce requests that wait.
#[derive(Debug, Default)]
pub(super) struct ProducePurgatory {
    waiting: BTreeMap<RequestId, Pending>,
    deadlines: BTreeSet<(Time, RequestId)>,
}

impl ProducePurgatory {
    pub fn insert(&mut self, pending: Pending) {
        assert!(!pending.is_settled(), "{:?} has nothing to wait for", pending.request);
        self.deadlines.insert((pending.deadline, pending.request));
        let before = self.waiting.insert(pending.request, pending);
        assert!(before.is_none(), "a request waits twice");
    }

    /// Settles one part, and answers when it was the last.
    pub fn settle(
        &mut self,
        waiter: Waiter,
        verdict: Verdict,
        replica: Option<&Replica>,
        out: &mut Output<ReplicaEffect>,
    ) {
        let pending = self.waiting.get_mut(&waiter.request).expect("what waits in a replica waits here");
        pending.settle(waiter.part, verdict, replica, out);
        if pending.is_settled() {
            let pending = self.remove(waiter.request).expect("it was found above");
            pending.finish(out);
        }
    }

    fn remove(&mut self, request: RequestId) -> Option<Pending> {
        let pending = self.waiting.remove(&request)?;
        self.deadlines.remove(&(pending.deadline, request));
        Some(pending)
    }

    pub fn next_deadline(&self) -> Option<Time> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// Answers every request whose timeout passed.
    pub fn expire(
        &mut self,
        replicas: &mut BTreeMap<TopicPartition, Replica>,
        now: Time,
        out: &mut Output<ReplicaEffect>,
    ) {
        while let Some((deadline, request)) = self.deadlines.first().copied() {
            if now < deadline {
                return;
            }
            let mut pending = self.remove(request).expect("every deadline has its request");
            for part in 0..pending.parts.len() {
                if pending.parts[part].verdict.is_none() {
                    let replica = replicas.get_mut(&pending.parts[part].partition);
                    stop_waiting(replica, request);
                    pending.settle(part, Verdict::Failed(error_code::REQUEST_TIMED_OUT), None, out);
                }
            }
            pending.finish(out);
        }
    }

    /// Forgets a request whose connection is gone. What it appended stays.
    pub fn abandon(&mut self, request: RequestId, replicas: &mut BTreeMap<TopicPartition, Replica>) {
        let Some(pending) = self.remove(request) else { return };
        for part in &pending.parts {
            stop_waiting(replicas.get_mut(&part.partition), request);
        }
    }
}

fn stop_waiting(replica: Option<&mut Replica>, request: RequestId) {
    let Some(replica) = replica else { return };
    replica.awaiting_commit.retain(|waiter| waiter.request != request);
    replica.awaiting_write.retain(|waiter| waiter.request != request);
}

/// Appends that were acknowledged before they were made: only the rule `OnReceipt` fills this (museum 0).
#[derive(Debug, Default)]
pub(super) struct AckedBeforeAppend {
    due: Option<Time>,
    requests: Vec<(ProduceRequest, i64)>,
}

impl AckedBeforeAppend {
    /// How long the appends wait for a later event of the node.
    const DELAY: Duration = Duration::from_millis(1);

    pub fn push(&mut self, body: ProduceRequest, wall_clock_ms: i64, now: Time) {
        self.due.get_or_insert(now + Self::DELAY);
        self.requests.push((body, wall_clock_ms));
    }

    pub fn next_deadline(&self) -> Option<Time> {
        self.due
    }

    pub fn take(&mut self) -> Vec<(ProduceRequest, i64)> {
        self.due = None;
        std::mem::take(&mut self.requests)
    }
}

/// Rule seam: whether a request that would be appended whole is answered before that.
pub(super) fn answers_on_receipt(rule: ProduceReply) -> bool {
    match rule {
        ProduceReply::WhenDurable => false,
        ProduceReply::OnReceipt => true,
    }
}

/// Success for a part whose append has not happened: with the offset that it will get.
pub(super) fn promise(pending: &mut Pending, replica: &Replica, prepared: &PreparedAppend, broker: &Broker) {
    pending.acked_part(replica, original(replica, prepared), acked(replica, broker));
}
