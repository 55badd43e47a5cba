//! An answer while its bytes are read, and what of it may still leave then.

use std::collections::BTreeMap;

use acked_wire::api::fetch::{EpochEndOffset, LeaderIdAndEpoch, PartitionData};
use acked_wire::{FetchResponse, ResponseBody, error_code};
use bytes::Bytes;

use super::request::Pending;
use crate::observation::{Fetcher, Observation};
use crate::replica::interface::ReplicaEffect;
use crate::replica::partition::Replica;
use crate::types::{Output, RequestId, TopicPartition};

/// From this version on an answer says who leads.
const CURRENT_LEADER_VERSION: i16 = 12;

/// One answered partition whose bytes, if any, are being read.
#[derive(Debug)]
pub(super) struct Served {
    pub partition: TopicPartition,
    pub leader_epoch: i32,
    pub cuts: u64,
    pub fetch_offset: i64,
    pub end_offset: i64,
    pub diverging: Option<(i32, i64)>,
    pub topic: usize,
    pub slot: usize,
}

/// An answer whose reads are under way.
#[derive(Debug)]
pub(super) struct Answer {
    pub version: i16,
    pub fetcher: Fetcher,
    pub response: FetchResponse,
    pub served: Vec<Served>,
    /// Reads that are not done.
    pub reads: usize,
}

/// Sends the answer. What was read under a leader epoch that has ended, or from a log that was cut meanwhile, does not
/// leave: the bytes may be those of another branch.
pub(super) fn leave(
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

pub(super) fn answered(index: i32, served: &Served, replica: &Replica, pending: &Pending) -> PartitionData {
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

pub(super) fn refusal(index: i32, code: i16, replica: Option<&Replica>, version: i16) -> PartitionData {
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
