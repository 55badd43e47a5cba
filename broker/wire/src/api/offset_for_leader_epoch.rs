//! OffsetForLeaderEpoch (key 23): where a leader epoch ends, for fetchers that look for divergence (KIP-320).

use crate::Str;
use crate::schema::messages;

messages! {
    /// Asks for the end of one leader epoch of each partition.
    pub struct OffsetForLeaderEpochRequest [versions 2..=4, flexible 4..] {
        /// The follower; -1 for consumers, -2 for those that do not say.
        replica_id: i32 [3.., default = -2; ignorable],
        topics: Vec<OffsetForLeaderTopic> [0..],
    }

    /// See [`OffsetForLeaderEpochRequest`].
    pub struct OffsetForLeaderTopic {
        topic: Str [0..],
        partitions: Vec<OffsetForLeaderPartition> [0..],
    }

    /// See [`OffsetForLeaderTopic`].
    pub struct OffsetForLeaderPartition {
        partition: i32 [0..],
        /// The leader epoch that the asker believes in, -1 to skip the check.
        current_leader_epoch: i32 [2.., default = -1; ignorable],
        /// The epoch whose end is asked for.
        leader_epoch: i32 [0..],
    }

    /// Answer to [`OffsetForLeaderEpochRequest`].
    pub struct OffsetForLeaderEpochResponse [versions 2..=4, flexible 4..] {
        throttle_time_ms: i32 [2..; ignorable],
        topics: Vec<OffsetForLeaderTopicResult> [0..],
    }

    /// See [`OffsetForLeaderEpochResponse`].
    pub struct OffsetForLeaderTopicResult {
        topic: Str [0..],
        partitions: Vec<EpochEndOffset> [0..],
    }

    /// See [`OffsetForLeaderTopicResult`].
    pub struct EpochEndOffset {
        error_code: i16 [0..],
        partition: i32 [0..],
        /// The largest epoch up to the asked one, -1 when not known.
        leader_epoch: i32 [1.., default = -1; ignorable],
        /// The first offset after that epoch, -1 when not known.
        end_offset: i64 [0.., default = -1],
    }
}
