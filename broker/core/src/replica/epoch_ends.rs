//! OffsetForLeaderEpoch requests: where a leader epoch ends in this leader's log, so that a reader whose position was
//! reached under another leader learns whether what it read is still there.
//!
//! | asked | answered |
//! |---|---|
//! | the newest epoch of the log | that epoch and the log end |
//! | an older one | the newest epoch at or below it, and where the next one starts |
//! | one before the first | itself, and where the first starts |
//! | a newer one, or none (-1) | -1 and -1, without an error |
//!
//! Only a leader answers, in the leader epoch that the asker believes in.
//!
//! Source: kafka-rules 1.3, 1.4; KIP-101, KIP-279, KIP-320; `Partition.lastOffsetForLeaderEpoch`.

use acked_wire::api::offset_for_leader_epoch::{
    EpochEndOffset, OffsetForLeaderPartition, OffsetForLeaderTopicResult,
};
use acked_wire::{OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse, Str, Uuid, error_code};

use super::fetch::check_epoch;
use super::partition::Replica;
use crate::types::TopicPartition;

/// Answers a request. `find` gives the replica of a partition, or the code that says why there is none.
pub(super) fn answer<'a>(
    body: OffsetForLeaderEpochRequest,
    resolve: impl Fn(&Str) -> Option<Uuid>,
    find: impl Fn(TopicPartition) -> Result<&'a Replica, i16>,
) -> OffsetForLeaderEpochResponse {
    let mut response = OffsetForLeaderEpochResponse::default();
    for topic in body.topics {
        let id = resolve(&topic.topic);
        let answer = |asked: &OffsetForLeaderPartition| {
            let replica = match id {
                Some(id) => find(TopicPartition { topic: id, index: asked.partition }),
                None => Err(error_code::UNKNOWN_TOPIC_OR_PARTITION),
            };
            answer_partition(asked, replica)
        };
        let partitions = topic.partitions.iter().map(answer).collect();
        let topic = topic.topic;
        response.topics.push(OffsetForLeaderTopicResult {
            topic,
            partitions,
            ..OffsetForLeaderTopicResult::default()
        });
    }
    response
}

fn answer_partition(asked: &OffsetForLeaderPartition, replica: Result<&Replica, i16>) -> EpochEndOffset {
    let partition = asked.partition;
    match replica.and_then(|replica| find_end(asked, replica)) {
        Ok(Some((leader_epoch, end_offset))) => {
            EpochEndOffset { partition, leader_epoch, end_offset, ..EpochEndOffset::default() }
        }
        Ok(None) => EpochEndOffset { partition, ..EpochEndOffset::default() },
        Err(error_code) => EpochEndOffset { partition, error_code, ..EpochEndOffset::default() },
    }
}

fn find_end(asked: &OffsetForLeaderPartition, replica: &Replica) -> Result<Option<(i32, i64)>, i16> {
    if replica.is_offline() {
        return Err(error_code::KAFKA_STORAGE_ERROR);
    }
    check_epoch(replica, asked.current_leader_epoch)?;
    if replica.leading().is_none() {
        return Err(error_code::NOT_LEADER_OR_FOLLOWER);
    }
    Ok(replica.log.end_offset_for_epoch(asked.leader_epoch))
}
