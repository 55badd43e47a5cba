//! DeleteRecords (key 21): the beginning of a log is deleted on purpose (KIP-107).

use crate::Str;
use crate::schema::messages;

messages! {
    /// Asks leaders to delete what lies before an offset.
    pub struct DeleteRecordsRequest [versions 0..=2, flexible 2..] {
        topics: Vec<DeleteRecordsTopic> [0..],
        timeout_ms: i32 [0..],
    }

    /// See [`DeleteRecordsRequest`].
    pub struct DeleteRecordsTopic {
        name: Str [0..],
        partitions: Vec<DeleteRecordsPartition> [0..],
    }

    /// See [`DeleteRecordsTopic`].
    pub struct DeleteRecordsPartition {
        partition_index: i32 [0..],
        /// The first offset to stay; -1 for the high watermark.
        offset: i64 [0..],
    }

    /// Answer to [`DeleteRecordsRequest`].
    pub struct DeleteRecordsResponse [versions 0..=2, flexible 2..] {
        throttle_time_ms: i32 [0..],
        topics: Vec<DeleteRecordsTopicResult> [0..],
    }

    /// See [`DeleteRecordsResponse`].
    pub struct DeleteRecordsTopicResult {
        name: Str [0..],
        partitions: Vec<DeleteRecordsPartitionResult> [0..],
    }

    /// See [`DeleteRecordsTopicResult`].
    pub struct DeleteRecordsPartitionResult {
        partition_index: i32 [0..],
        /// The smallest log start offset of all live replicas.
        low_watermark: i64 [0..],
        error_code: i16 [0..],
    }
}
