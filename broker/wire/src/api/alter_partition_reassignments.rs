//! AlterPartitionReassignments (key 45): partitions move to other replicas, or stop moving (KIP-455).

use crate::Str;
use crate::schema::messages;

messages! {
    /// Asks for reassignments to begin or to be cancelled.
    pub struct AlterPartitionReassignmentsRequest [versions 0..=1, flexible 0..] {
        timeout_ms: i32 [0.., default = 60000],
        /// Whether the number of replicas may change (KIP-860).
        allow_replication_factor_change: bool [1.., default = true],
        topics: Vec<ReassignableTopic> [0..],
    }

    /// See [`AlterPartitionReassignmentsRequest`].
    pub struct ReassignableTopic {
        name: Str [0..],
        partitions: Vec<ReassignablePartition> [0..],
    }

    /// See [`ReassignableTopic`].
    pub struct ReassignablePartition {
        partition_index: i32 [0..],
        /// Null cancels the reassignment in progress.
        replicas: Option<Vec<i32>> [0.., nullable 0..],
    }

    /// Answer to [`AlterPartitionReassignmentsRequest`].
    pub struct AlterPartitionReassignmentsResponse [versions 0..=1, flexible 0..] {
        throttle_time_ms: i32 [0..],
        allow_replication_factor_change: bool [1.., default = true; ignorable],
        error_code: i16 [0..],
        error_message: Option<Str> [0.., nullable 0.., default = Some(Str::default())],
        responses: Vec<ReassignableTopicResponse> [0..],
    }

    /// See [`AlterPartitionReassignmentsResponse`].
    pub struct ReassignableTopicResponse {
        name: Str [0..],
        partitions: Vec<ReassignablePartitionResponse> [0..],
    }

    /// See [`ReassignableTopicResponse`].
    pub struct ReassignablePartitionResponse {
        partition_index: i32 [0..],
        error_code: i16 [0..],
        error_message: Option<Str> [0.., nullable 0.., default = Some(Str::default())],
    }
}
