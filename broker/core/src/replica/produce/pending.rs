//! One produce request from its parts to its answer. Does not know why a part is settled.

use std::time::Duration;

use acked_wire::api::produce::{LeaderIdAndEpoch, PartitionProduceResponse, TopicProduceResponse};
use acked_wire::{ProduceResponse, ResponseBody, Str, Uuid, error_code};

use super::append::{Acks, Refused, Taken};
use super::purgatory::enqueue;
use crate::observation::Observation;
use crate::replica::interface::ReplicaEffect;
use crate::replica::partition::{Replica, Waiter};
use crate::types::{NodeId, Output, RequestId, Time, TopicPartition};

/// From this version on an answer says who leads (KIP-951).
const CURRENT_LEADER_VERSION: i16 = 10;

/// How a part that was taken ended.
#[derive(Debug)]
pub(in crate::replica) enum Verdict {
    /// Success, with the replicas that counted when it was reached.
    Acked {
        maximal_isr: Vec<NodeId>,
        min_insync: i32,
    },
    Failed(i16),
}

/// One part that was taken.
#[derive(Debug)]
pub(super) struct Part {
    pub partition: TopicPartition,
    leader_epoch: i32,
    taken: Taken,
    /// `None` while it waits.
    pub verdict: Option<Verdict>,
    /// Where its answer is in the response.
    topic: usize,
    slot: usize,
}

/// A produce request on its way to an answer.
#[derive(Debug)]
pub(in crate::replica) struct Pending {
    pub request: RequestId,
    version: i16,
    acks: Acks,
    pub deadline: Time,
    response: ProduceResponse,
    pub(super) parts: Vec<Part>,
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
    pub fn acked_part(&mut self, replica: &Replica, taken: Taken, verdict: Verdict) {
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

    pub fn settle(
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
