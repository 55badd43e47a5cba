//! A fetch request as it is worked on.

use std::time::Duration;

use acked_wire::{FetchRequest, FetchResponse, ResponseBody, Str, Uuid, error_code};

use crate::observation::Fetcher;
use crate::replica::broker::Broker;
use crate::replica::interface::ReplicaEffect;
use crate::types::{NodeId, Output, RequestId, Time, TopicPartition};

const READ_COMMITTED: i8 = 1;

/// One partition of a fetch.
#[derive(Clone, Copy, Debug)]
pub(in crate::replica) struct Part {
    pub partition: TopicPartition,
    pub offset: i64,
    /// -1 when the fetcher does not say.
    pub leader_epoch: i32,
    /// -1 when the fetcher does not say.
    pub last_fetched_epoch: i32,
    pub max_bytes: usize,
    /// Set when the topic could not be resolved or the follower was refused.
    pub refused: Option<i16>,
}

/// A fetch that was checked and waits, or is about to be answered.
#[derive(Debug)]
pub(in crate::replica) struct Pending {
    pub request: RequestId,
    pub fetcher: Fetcher,
    pub parts: Vec<Part>,
    pub deadline: Time,
    /// Broker epoch of a follower, -1 unknown.
    pub broker_epoch: i64,
    /// Each topic as it was asked for, and how many of the parts are its own.
    pub topics: Vec<(Str, Uuid, usize)>,
    pub min_bytes: usize,
    pub max_bytes: usize,
    pub is_read_committed: bool,
    pub version: i16,
}

/// Why a fetch is answered at once with one error for the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::replica) struct RefusedWhole(i16);

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
