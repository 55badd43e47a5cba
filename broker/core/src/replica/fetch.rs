//! Fetch requests: what a consumer or a follower is given, and how long it waits for it.
//!
//! A fetch is checked and, for a follower, recorded when it arrives. It is answered when a partition has an error or
//! a diverging epoch, when enough bytes are there, or when its time is up; until then it waits for news of its
//! partitions. The answer is planned anew at that moment, its bytes are read, and it leaves when all reads are done.
//!
//! Checks of one partition, in order: topic id, offline log, leader epoch, leadership, assignment, last fetched epoch,
//! offset range. Fetch sessions are refused: the session id of every answer is 0.
//!
//! Source: kafka-rules 1.3, 1.4, 2; kafka-formats B.6; `Partition.fetchRecords`, `DelayedFetch`; KIP-392, KIP-595.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use acked_wire::api::fetch::{EpochEndOffset, FetchableTopicResponse, LeaderIdAndEpoch, PartitionData};
use acked_wire::{FetchRequest, FetchResponse, ResponseBody, Str, Uuid, error_code};
use bytes::Bytes;

use super::broker::Broker;
use super::interface::{ReadFailed, ReadId, ReplicaEffect};
use super::partition::Replica;
use crate::observation::{Fetcher, Observation};
use crate::types::{NodeId, Output, RequestId, Time, TopicPartition};

/// From this version on a consumer may read from a follower (KIP-392).
const FOLLOWER_READ_VERSION: i16 = 11;
/// From this version on an answer says who leads.
const CURRENT_LEADER_VERSION: i16 = 12;
const READ_COMMITTED: i8 = 1;

/// One partition of a fetch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub partition: TopicPartition,
    pub offset: i64,
    /// -1 when the fetcher does not say.
    leader_epoch: i32,
    /// -1 when the fetcher does not say.
    last_fetched_epoch: i32,
    max_bytes: usize,
    /// Set when the topic could not be resolved or the follower was refused.
    refused: Option<i16>,
}

/// A fetch that was checked and waits, or is about to be answered.
#[derive(Debug)]
pub(super) struct Pending {
    pub request: RequestId,
    pub fetcher: Fetcher,
    pub parts: Vec<Part>,
    pub deadline: Time,
    /// Broker epoch of a follower, -1 unknown.
    pub broker_epoch: i64,
    topics: Vec<(Str, Uuid, usize)>,
    min_bytes: usize,
    max_bytes: usize,
    is_read_committed: bool,
    version: i16,
}

/// Why a fetch is answered at once with one error for the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RefusedWhole(i16);

impl RefusedWhole {
    pub fn answer(self, request: RequestId, out: &mut Output<ReplicaEffect>) {
        let body = FetchResponse { error_code: self.0, ..FetchResponse::default() };
        out.effect(ReplicaEffect::Reply { request, body: ResponseBody::Fetch(body) });
    }
}

impl Pending {
    /// Reads a request. `resolve` gives the id of a topic that is asked for by name.
    pub fn from_wire(
        request: RequestId,
        version: i16,
        body: FetchRequest,
        now: Time,
        broker: &Broker,
        resolve: impl Fn(&Str) -> Option<Uuid>,
    ) -> Result<Pending, RefusedWhole> {
        if body.session_id != 0 && body.session_epoch > 0 {
            return Err(RefusedWhole(error_code::FETCH_SESSION_ID_NOT_FOUND));
        }
        let said = body.replica_state.replica_id;
        let replica = if said >= 0 { said } else { body.replica_id };
        let fetcher = if replica >= 0 { Fetcher::Follower(NodeId(replica)) } else { Fetcher::Consumer };
        let mut parts = Vec::with_capacity(body.topics.iter().map(|topic| topic.partitions.len()).sum());
        let mut topics = Vec::with_capacity(body.topics.len());
        for topic in body.topics {
            let (resolved, unknown) = match topic.topic_id {
                Uuid::ZERO => (resolve(&topic.topic), error_code::UNKNOWN_TOPIC_OR_PARTITION),
                id => (Some(id), error_code::UNKNOWN_TOPIC_ID),
            };
            topics.push((topic.topic, topic.topic_id, topic.partitions.len()));
            parts.extend(topic.partitions.iter().map(|asked| Part {
                partition: TopicPartition { topic: resolved.unwrap_or(Uuid::ZERO), index: asked.partition },
                offset: asked.fetch_offset,
                leader_epoch: asked.current_leader_epoch,
                last_fetched_epoch: asked.last_fetched_epoch,
                max_bytes: usize::try_from(asked.partition_max_bytes).unwrap_or(0),
                refused: if resolved.is_none() { Some(unknown) } else { None },
            }));
        }
        let max_bytes = body.max_bytes.min(broker.config.fetch_max_bytes).max(0);
        let max_wait = Duration::from_millis(u64::try_from(body.max_wait_ms).unwrap_or(0));
        Ok(Pending {
            request,
            fetcher,
            parts,
            deadline: now.saturating_add(max_wait),
            broker_epoch: body.replica_state.replica_epoch,
            topics,
            min_bytes: usize::try_from(body.min_bytes.min(max_bytes)).unwrap_or(0),
            max_bytes: usize::try_from(max_bytes).expect("not below zero"),
            is_read_committed: body.isolation_level == READ_COMMITTED,
            version,
        })
    }

    /// Marks parts that the partition map refuses whatever the replica says.
    pub fn refuse_unknown(&mut self, is_known_elsewhere: impl Fn(TopicPartition) -> Option<i16>) {
        for part in self.parts.iter_mut().filter(|part| part.refused.is_none()) {
            part.refused = is_known_elsewhere(part.partition);
        }
    }
}

/// What a replica has for a fetcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Offer {
    Refused(i16),
    /// The fetcher's log left ours: our largest epoch not above its last, and where that ends.
    Diverging(i32, i64),
    /// Records from its offset up to this one (exclusive), perhaps none.
    Below(i64),
}

fn offer(replica: &Replica, part: &Part, pending: &Pending, broker: &Broker) -> Offer {
    if replica.is_offline() {
        return Offer::Refused(error_code::KAFKA_STORAGE_ERROR);
    }
    if let Err(code) = check_epoch(replica, part.leader_epoch) {
        return Offer::Refused(code);
    }
    let must_lead =
        matches!(pending.fetcher, Fetcher::Follower(_)) || pending.version < FOLLOWER_READ_VERSION;
    if must_lead && replica.leading().is_none() {
        return Offer::Refused(error_code::NOT_LEADER_OR_FOLLOWER);
    }
    if let Fetcher::Follower(follower) = pending.fetcher
        && let Err(code) = check_follower(replica, part, follower, pending.broker_epoch, broker)
    {
        return Offer::Refused(code);
    }
    if part.last_fetched_epoch >= 0 {
        let Some((epoch, end)) = replica.log.end_offset_for_epoch(part.last_fetched_epoch) else {
            return Offer::Refused(error_code::OFFSET_OUT_OF_RANGE);
        };
        if epoch < part.last_fetched_epoch || end < part.offset {
            return Offer::Diverging(epoch, end);
        }
    }
    if part.offset < replica.log.log_start_offset() || part.offset > replica.log.log_end_offset() {
        return Offer::Refused(error_code::OFFSET_OUT_OF_RANGE);
    }
    match pending.fetcher {
        Fetcher::Follower(_) => Offer::Below(replica.writes.end()),
        Fetcher::Consumer => Offer::Below(replica.high_watermark),
    }
}

/// A request of another leader epoch is refused, so that it comes back when both sides know the same.
pub(super) fn check_epoch(replica: &Replica, asked: i32) -> Result<(), i16> {
    match asked {
        ..0 => Ok(()),
        _ if asked < replica.leader_epoch() => Err(error_code::FENCED_LEADER_EPOCH),
        _ if asked > replica.leader_epoch() => Err(error_code::UNKNOWN_LEADER_EPOCH),
        _ => Ok(()),
    }
}

fn check_follower(
    replica: &Replica,
    part: &Part,
    follower: NodeId,
    broker_epoch: i64,
    broker: &Broker,
) -> Result<(), i16> {
    let is_assigned = follower != broker.node() && replica.state.replicas.contains(&follower);
    if !is_assigned {
        // With an epoch the assignment may be news that has not come yet: the follower tries again.
        let is_early = part.leader_epoch >= 0;
        let code =
            if is_early { error_code::UNKNOWN_LEADER_EPOCH } else { error_code::NOT_LEADER_OR_FOLLOWER };
        return Err(code);
    }
    let registered = broker.registered.get(&follower).map(|view| view.broker_epoch);
    let is_stale = broker_epoch >= 0 && registered.is_some_and(|registered| broker_epoch < registered);
    if is_stale { Err(error_code::NOT_LEADER_OR_FOLLOWER) } else { Ok(()) }
}

/// Takes down where a follower is, if its fetch is one that its log agrees with. Gives whether it did. A diverging
/// or refused fetch says nothing about what the follower holds.
pub(super) fn record(
    pending: &Pending,
    part: &Part,
    replica: &mut Replica,
    broker: &Broker,
    now: Time,
) -> Option<NodeId> {
    let Fetcher::Follower(follower) = pending.fetcher else { return None };
    if part.refused.is_some() || !matches!(offer(replica, part, pending, broker), Offer::Below(_)) {
        return None;
    }
    let leader_end = replica.writes.end();
    replica.leading_mut()?.record_fetch(follower, part.offset, pending.broker_epoch, leader_end, now);
    Some(follower)
}

/// Whether a fetch has something to be told before its time is up.
pub(super) fn is_ready(
    pending: &Pending,
    replicas: &BTreeMap<TopicPartition, Replica>,
    broker: &Broker,
) -> bool {
    let mut bytes = 0;
    for part in &pending.parts {
        let Some(replica) = replicas.get(&part.partition).filter(|_| part.refused.is_none()) else {
            return true;
        };
        let Offer::Below(end) = offer(replica, part, pending, broker) else { return true };
        if part.offset < end {
            let slice = replica.log.locate(part.offset, end, part.max_bytes, true);
            bytes += slice.map_or(0, |slice| slice.length);
        }
    }
    bytes >= pending.min_bytes
}

/// One answered partition whose bytes, if any, are being read.
#[derive(Debug)]
struct Served {
    partition: TopicPartition,
    leader_epoch: i32,
    cuts: u64,
    fetch_offset: i64,
    end_offset: i64,
    diverging: Option<(i32, i64)>,
    topic: usize,
    slot: usize,
}

/// An answer whose reads are under way.
#[derive(Debug)]
struct Answer {
    version: i16,
    fetcher: Fetcher,
    response: FetchResponse,
    served: Vec<Served>,
    reads: usize,
}

/// Fetches that wait for news, and answers that wait for their reads.
#[derive(Debug, Default)]
pub(super) struct FetchPurgatory {
    waiting: BTreeMap<RequestId, Pending>,
    deadlines: BTreeSet<(Time, RequestId)>,
    answering: BTreeMap<RequestId, Answer>,
    reads: BTreeMap<ReadId, (RequestId, usize)>,
}

impl FetchPurgatory {
    /// Lets a fetch wait for news of its partitions.
    pub fn wait(&mut self, pending: Pending, replicas: &mut BTreeMap<TopicPartition, Replica>) {
        for part in &pending.parts {
            if let Some(replica) = replicas.get_mut(&part.partition) {
                replica.awaiting_news.push(pending.request);
            }
        }
        self.deadlines.insert((pending.deadline, pending.request));
        let before = self.waiting.insert(pending.request, pending);
        assert!(before.is_none(), "a request waits twice");
    }

    pub fn waiting(&self, request: RequestId) -> Option<&Pending> {
        self.waiting.get(&request)
    }

    /// Ends the wait of a fetch.
    pub fn take(
        &mut self,
        request: RequestId,
        replicas: &mut BTreeMap<TopicPartition, Replica>,
    ) -> Option<Pending> {
        let pending = self.waiting.remove(&request)?;
        self.deadlines.remove(&(pending.deadline, request));
        for part in &pending.parts {
            if let Some(replica) = replicas.get_mut(&part.partition) {
                replica.awaiting_news.retain(|waiting| *waiting != request);
            }
        }
        Some(pending)
    }

    pub fn next_deadline(&self) -> Option<Time> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    pub fn next_expired(&self, now: Time) -> Option<RequestId> {
        self.deadlines.first().filter(|(deadline, _)| *deadline <= now).map(|(_, request)| *request)
    }

    /// Forgets a request whose connection is gone; its reads come back to nobody.
    pub fn abandon(&mut self, request: RequestId, replicas: &mut BTreeMap<TopicPartition, Replica>) {
        self.take(request, replicas);
        if self.answering.remove(&request).is_some() {
            self.reads.retain(|_, (reader, _)| *reader != request);
        }
    }

    /// Plans the answer from what the replicas hold now and starts its reads.
    pub fn answer(
        &mut self,
        pending: Pending,
        replicas: &BTreeMap<TopicPartition, Replica>,
        broker: &mut Broker,
        out: &mut Output<ReplicaEffect>,
    ) {
        let mut answer = Answer {
            version: pending.version,
            fetcher: pending.fetcher,
            response: FetchResponse::default(),
            served: Vec::with_capacity(pending.parts.len()),
            reads: 0,
        };
        let mut left = pending.max_bytes;
        let mut parts = pending.parts.iter();
        for (topic, (name, topic_id, count)) in pending.topics.iter().enumerate() {
            let mut partitions = Vec::with_capacity(*count);
            for (slot, part) in parts.by_ref().take(*count).enumerate() {
                let place = (topic, slot);
                partitions.push(self.answer_part(
                    part,
                    place,
                    &pending,
                    &mut answer,
                    &mut left,
                    replicas,
                    broker,
                    out,
                ));
            }
            answer.response.responses.push(FetchableTopicResponse {
                topic: name.clone(),
                topic_id: *topic_id,
                partitions,
                ..FetchableTopicResponse::default()
            });
        }
        if answer.reads == 0 {
            leave(pending.request, answer, replicas, out);
        } else {
            self.answering.insert(pending.request, answer);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one step of a loop, split out to be read alone")]
    fn answer_part(
        &mut self,
        part: &Part,
        (topic, slot): (usize, usize),
        pending: &Pending,
        answer: &mut Answer,
        left: &mut usize,
        replicas: &BTreeMap<TopicPartition, Replica>,
        broker: &mut Broker,
        out: &mut Output<ReplicaEffect>,
    ) -> PartitionData {
        let index = part.partition.index;
        if let Some(code) = part.refused {
            return refusal(index, code, None, pending.version);
        }
        let Some(replica) = replicas.get(&part.partition) else {
            return refusal(index, error_code::NOT_LEADER_OR_FOLLOWER, None, pending.version);
        };
        let mut served = Served {
            partition: part.partition,
            leader_epoch: replica.leader_epoch(),
            cuts: replica.cuts,
            fetch_offset: part.offset,
            end_offset: part.offset,
            diverging: None,
            topic,
            slot,
        };
        match offer(replica, part, pending, broker) {
            Offer::Refused(code) => return refusal(index, code, Some(replica), pending.version),
            Offer::Diverging(epoch, end) => served.diverging = Some((epoch, end)),
            Offer::Below(end) if part.offset < end => {
                let is_first = answer.reads == 0;
                let slice = replica.log.locate(part.offset, end, part.max_bytes.min(*left), is_first);
                if let Some(slice) = slice.filter(|slice| slice.length > 0) {
                    served.end_offset = slice.end_offset;
                    *left = left.saturating_sub(slice.length);
                    let read = broker.next_read();
                    self.reads.insert(read, (pending.request, answer.served.len()));
                    answer.reads += 1;
                    let (position, length) = (slice.position, slice.length);
                    out.effect(ReplicaEffect::Read { partition: part.partition, read, position, length });
                }
            }
            Offer::Below(_) => {}
        }
        let answered = answered(index, &served, replica, pending);
        answer.served.push(served);
        answered
    }

    /// Takes bytes that were read; the answer leaves with the last of them.
    pub fn read_done(
        &mut self,
        read: ReadId,
        result: Result<Bytes, ReadFailed>,
        replicas: &BTreeMap<TopicPartition, Replica>,
        out: &mut Output<ReplicaEffect>,
    ) {
        let Some((request, place)) = self.reads.remove(&read) else { return };
        let answer = self.answering.get_mut(&request).expect("reads of an abandoned answer were forgotten");
        assert!(answer.reads > 0, "{request:?} got more reads than it asked for");
        answer.reads -= 1;
        let served = &answer.served[place];
        let data = &mut answer.response.responses[served.topic].partitions[served.slot];
        match result {
            Ok(bytes) => data.records = Some(bytes),
            Err(ReadFailed) => {
                let version = answer.version;
                *data = refusal(data.partition_index, error_code::KAFKA_STORAGE_ERROR, None, version);
            }
        }
        if answer.reads == 0 {
            let answer = self.answering.remove(&request).expect("it was found above");
            leave(request, answer, replicas, out);
        }
    }
}

/// Sends the answer. What was read under a leader epoch that has ended, or from a log that was cut meanwhile, does not
/// leave: the bytes may be those of another branch.
fn leave(
    request: RequestId,
    mut answer: Answer,
    replicas: &BTreeMap<TopicPartition, Replica>,
    out: &mut Output<ReplicaEffect>,
) {
    for served in &answer.served {
        let data = &mut answer.response.responses[served.topic].partitions[served.slot];
        if data.error_code != error_code::NONE {
            continue;
        }
        let replica = replicas.get(&served.partition);
        let is_same = |replica: &&Replica| {
            replica.leader_epoch() == served.leader_epoch
                && replica.cuts == served.cuts
                && !replica.is_offline()
        };
        if replica.filter(is_same).is_none() {
            let code = error_code::NOT_LEADER_OR_FOLLOWER;
            *data = refusal(data.partition_index, code, replica, answer.version);
            continue;
        }
        out.observe(Observation::FetchServed {
            partition: served.partition,
            leader_epoch: served.leader_epoch,
            fetcher: answer.fetcher,
            fetch_offset: served.fetch_offset,
            end_offset: served.end_offset,
            high_watermark: data.high_watermark,
            diverging: served.diverging,
        });
    }
    out.effect(ReplicaEffect::Reply { request, body: ResponseBody::Fetch(answer.response) });
}

fn answered(index: i32, served: &Served, replica: &Replica, pending: &Pending) -> PartitionData {
    let is_follower = matches!(pending.fetcher, Fetcher::Follower(_));
    let diverging_epoch = match served.diverging {
        Some((epoch, end_offset)) => EpochEndOffset { epoch, end_offset, ..EpochEndOffset::default() },
        None => EpochEndOffset::default(),
    };
    PartitionData {
        partition_index: index,
        high_watermark: replica.high_watermark,
        // There are no transactions, so everything committed is stable; followers are not told.
        last_stable_offset: if is_follower { -1 } else { replica.high_watermark },
        log_start_offset: replica.log.log_start_offset(),
        diverging_epoch,
        aborted_transactions: pending.is_read_committed.then(Vec::new),
        records: Some(Bytes::new()),
        ..PartitionData::default()
    }
}

fn refusal(index: i32, code: i16, replica: Option<&Replica>, version: i16) -> PartitionData {
    let tells_leader = matches!(code, error_code::NOT_LEADER_OR_FOLLOWER | error_code::FENCED_LEADER_EPOCH)
        && version >= CURRENT_LEADER_VERSION;
    let current_leader = match replica.filter(|_| tells_leader) {
        Some(replica) => LeaderIdAndEpoch {
            leader_id: replica.state.leader.map_or(-1, |leader| leader.0),
            leader_epoch: replica.leader_epoch(),
            ..LeaderIdAndEpoch::default()
        },
        None => LeaderIdAndEpoch::default(),
    };
    PartitionData {
        partition_index: index,
        error_code: code,
        high_watermark: -1,
        log_start_offset: -1,
        current_leader,
        aborted_transactions: None,
        records: Some(Bytes::new()),
        ..PartitionData::default()
    }
}
