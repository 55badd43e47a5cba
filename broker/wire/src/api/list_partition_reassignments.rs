//! ListPartitionReassignments (key 46): which partitions are moving (KIP-455).

use crate::Str;
use crate::schema::messages;

messages! {
    /// Asks for the reassignments in progress.
    pub struct ListPartitionReassignmentsRequest [versions 0..=0, flexible 0..] {
        timeout_ms: i32 [0.., default = 60000],
        /// Null for all of them.
        topics: Option<Vec<ListPartitionReassignmentsTopics>> [0.., nullable 0..],
    }

    /// See [`ListPartitionReassignmentsRequest`].
    pub struct ListPartitionReassignmentsTopics {
        name: Str [0..],
        partition_indexes: Vec<i32> [0..],
    }

    /// Answer to [`ListPartitionReassignmentsRequest`].
    pub struct ListPartitionReassignmentsResponse [versions 0..=0, flexible 0..] {
        throttle_time_ms: i32 [0..],
        error_code: i16 [0..],
        error_message: Option<Str> [0.., nullable 0.., default = Some(Str::default())],
        topics: Vec<OngoingTopicReassignment> [0..],
    }

    /// See [`ListPartitionReassignmentsResponse`].
    pub struct OngoingTopicReassignment {
        name: Str [0..],
        partitions: Vec<OngoingPartitionReassignment> [0..],
    }

    /// See [`OngoingTopicReassignment`].
    pub struct OngoingPartitionReassignment {
        partition_index: i32 [0..],
        /// All of them, those being added and removed included.
        replicas: Vec<i32> [0..],
        adding_replicas: Vec<i32> [0..],
        removing_replicas: Vec<i32> [0..],
    }
}
