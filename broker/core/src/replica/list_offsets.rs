//! ListOffsets requests: where a log starts and ends, and the first offset from a time on.
//!
//! | asked | consumer | follower |
//! |---|---|---|
//! | earliest (-2), earliest local (-4) | log start | log start |
//! | latest (-1) | high watermark, once it has reached the start of the leader epoch | published log end |
//! | a time | the first batch from it on, if below the high watermark | the same, below the log end |
//!
//! Until the high watermark of a new leader has reached the start of its epoch it may lie below offsets that clients
//! were told before: OFFSET_NOT_AVAILABLE.
//!
//! Source: kafka-rules 2; KIP-207; `Partition.fetchOffsetForTimestamp`.

use acked_wire::api::list_offsets::{
    ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use acked_wire::{ListOffsetsRequest, ListOffsetsResponse, Str, Uuid, error_code};

use super::fetch::check_epoch;
use super::partition::Replica;
use crate::types::TopicPartition;

/// `ListOffsetsRequest.LATEST_TIMESTAMP`.
pub(super) const LATEST: i64 = -1;
/// `ListOffsetsRequest.EARLIEST_TIMESTAMP`.
pub(super) const EARLIEST: i64 = -2;
/// `ListOffsetsRequest.MAX_TIMESTAMP` (KIP-734).
const MAX_TIMESTAMP: i64 = -3;
/// `ListOffsetsRequest.EARLIEST_LOCAL_TIMESTAMP` (KIP-405): without tiers the log start.
const EARLIEST_LOCAL: i64 = -4;

const LEADER_EPOCH_VERSION: i16 = 4;
const OFFSET_NOT_AVAILABLE_VERSION: i16 = 5;

/// Answers a request. `find` gives the replica of a partition, or the code that says why there is none.
pub(super) fn answer<'a>(
    version: i16,
    body: ListOffsetsRequest,
    resolve: impl Fn(&Str) -> Option<Uuid>,
    find: impl Fn(TopicPartition) -> Result<&'a Replica, i16>,
) -> ListOffsetsResponse {
    let is_follower = body.replica_id >= 0;
    let mut response = ListOffsetsResponse::default();
    for topic in body.topics {
        let id = resolve(&topic.name);
        let answer = |asked: &ListOffsetsPartition| {
            let replica = match id {
                Some(id) => find(TopicPartition { topic: id, index: asked.partition_index }),
                None => Err(error_code::UNKNOWN_TOPIC_OR_PARTITION),
            };
            answer_partition(version, asked, replica, is_follower)
        };
        let partitions = topic.partitions.iter().map(answer).collect();
        let name = topic.name;
        response.topics.push(ListOffsetsTopicResponse {
            name,
            partitions,
            ..ListOffsetsTopicResponse::default()
        });
    }
    response
}

fn answer_partition(
    version: i16,
    asked: &ListOffsetsPartition,
    replica: Result<&Replica, i16>,
    is_follower: bool,
) -> ListOffsetsPartitionResponse {
    let partition_index = asked.partition_index;
    match replica.and_then(|replica| find_offset(asked, replica, is_follower)) {
        Ok(found) => ListOffsetsPartitionResponse {
            partition_index,
            timestamp: found.timestamp,
            offset: found.offset,
            leader_epoch: if version >= LEADER_EPOCH_VERSION { found.leader_epoch } else { -1 },
            ..ListOffsetsPartitionResponse::default()
        },
        Err(code) => ListOffsetsPartitionResponse {
            partition_index,
            error_code: code_in(version, code),
            ..ListOffsetsPartitionResponse::default()
        },
    }
}

/// Old clients do not know OFFSET_NOT_AVAILABLE (KIP-207).
fn code_in(version: i16, code: i16) -> i16 {
    let is_unknown = code == error_code::OFFSET_NOT_AVAILABLE && version < OFFSET_NOT_AVAILABLE_VERSION;
    if is_unknown { error_code::LEADER_NOT_AVAILABLE } else { code }
}

/// -1 in a field says "none".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Found {
    offset: i64,
    timestamp: i64,
    leader_epoch: i32,
}

const NOTHING: Found = Found { offset: -1, timestamp: -1, leader_epoch: -1 };

fn find_offset(asked: &ListOffsetsPartition, replica: &Replica, is_follower: bool) -> Result<Found, i16> {
    if replica.is_offline() {
        return Err(error_code::KAFKA_STORAGE_ERROR);
    }
    check_epoch(replica, asked.current_leader_epoch)?;
    let Some(leading) = replica.leading() else { return Err(error_code::NOT_LEADER_OR_FOLLOWER) };
    let may_be_stale = !is_follower && replica.high_watermark < leading.epoch_start_offset;
    let end = if is_follower { replica.writes.end() } else { replica.high_watermark };
    match asked.timestamp {
        EARLIEST | EARLIEST_LOCAL => {
            let offset = replica.log.log_start_offset();
            let leader_epoch = replica.log.epochs().epoch_for_offset(offset).unwrap_or(-1);
            Ok(Found { offset, timestamp: -1, leader_epoch })
        }
        LATEST if may_be_stale => Err(error_code::OFFSET_NOT_AVAILABLE),
        LATEST => Ok(Found { offset: end, timestamp: -1, leader_epoch: replica.leader_epoch() }),
        MAX_TIMESTAMP => below(end, may_be_stale, replica.log.offset_of_max_timestamp()),
        // The other negative times ask for tiered storage, which there is none of.
        ..0 => Ok(NOTHING),
        time => below(end, may_be_stale, replica.log.offset_for_timestamp(time)),
    }
}

/// A found `(offset, timestamp, epoch)`, if readers may see it.
fn below(end: i64, may_be_stale: bool, found: Option<(i64, i64, i32)>) -> Result<Found, i16> {
    match found {
        Some((offset, timestamp, leader_epoch)) if offset < end => {
            Ok(Found { offset, timestamp, leader_epoch })
        }
        Some(_) | None if may_be_stale => Err(error_code::OFFSET_NOT_AVAILABLE),
        Some(_) | None => Ok(NOTHING),
    }
}
