//! ListOffsets (key 2): offsets by timestamp, and the earliest and latest ones (negative timestamps).

use crate::Str;
use crate::schema::messages;

messages! {
    /// Asks for one offset of each partition.
    pub struct ListOffsetsRequest [versions 1..=11, flexible 6..] {
        /// -1 for consumers.
        replica_id: i32 [0..],
        isolation_level: i8 [2..],
        topics: Vec<ListOffsetsTopic> [0..],
        timeout_ms: i32 [10..; ignorable],
    }

    /// See [`ListOffsetsRequest`].
    pub struct ListOffsetsTopic {
        name: Str [0..],
        partitions: Vec<ListOffsetsPartition> [0..],
    }

    /// See [`ListOffsetsTopic`].
    pub struct ListOffsetsPartition {
        partition_index: i32 [0..],
        current_leader_epoch: i32 [4.., default = -1; ignorable],
        /// Milliseconds; -1 latest, -2 earliest, -3 largest timestamp, -4 earliest local, -5 latest tiered.
        timestamp: i64 [0..],
    }

    /// Answer to [`ListOffsetsRequest`].
    pub struct ListOffsetsResponse [versions 1..=11, flexible 6..] {
        throttle_time_ms: i32 [2..; ignorable],
        topics: Vec<ListOffsetsTopicResponse> [0..],
    }

    /// See [`ListOffsetsResponse`].
    pub struct ListOffsetsTopicResponse {
        name: Str [0..],
        partitions: Vec<ListOffsetsPartitionResponse> [0..],
    }

    /// See [`ListOffsetsTopicResponse`].
    pub struct ListOffsetsPartitionResponse {
        partition_index: i32 [0..],
        error_code: i16 [0..],
        timestamp: i64 [0.., default = -1],
        /// -1 when no record is as late as asked.
        offset: i64 [0.., default = -1],
        leader_epoch: i32 [4.., default = -1],
    }
}
