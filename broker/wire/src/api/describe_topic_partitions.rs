//! DescribeTopicPartitions (key 75): topics and partitions page by page, eligible leader replicas included
//! (KIP-966).
//!
//! Java clients fail on the default of the two lists of eligible replicas, which is null: answers give lists.

use crate::schema::messages;
use crate::{Str, Uuid};

messages! {
    /// Asks for topics, from a partition on.
    pub struct DescribeTopicPartitionsRequest [versions 0..=0, flexible 0..] {
        /// None for all topics.
        topics: Vec<TopicRequest> [0..],
        /// Most partitions of one answer.
        response_partition_limit: i32 [0.., default = 2000],
        /// Where to begin; null at the first topic.
        cursor: Option<Cursor> [0.., nullable 0..],
    }

    /// See [`DescribeTopicPartitionsRequest`].
    pub struct TopicRequest {
        name: Str [0..],
    }

    /// A place in the list of partitions, in request and answer.
    pub struct Cursor {
        topic_name: Str [0..],
        partition_index: i32 [0..],
    }

    /// Answer to [`DescribeTopicPartitionsRequest`].
    pub struct DescribeTopicPartitionsResponse [versions 0..=0, flexible 0..] {
        throttle_time_ms: i32 [0..; ignorable],
        topics: Vec<DescribeTopicPartitionsResponseTopic> [0..],
        /// Where to go on; null at the end.
        next_cursor: Option<Cursor> [0.., nullable 0..],
    }

    /// See [`DescribeTopicPartitionsResponse`].
    pub struct DescribeTopicPartitionsResponseTopic {
        error_code: i16 [0..],
        name: Option<Str> [0.., nullable 0.., default = Some(Str::default())],
        topic_id: Uuid [0..; ignorable],
        is_internal: bool [0..; ignorable],
        partitions: Vec<DescribeTopicPartitionsResponsePartition> [0..],
        /// Bits; `i32::MIN` when not known.
        topic_authorized_operations: i32 [0.., default = i32::MIN],
    }

    /// See [`DescribeTopicPartitionsResponseTopic`].
    pub struct DescribeTopicPartitionsResponsePartition {
        error_code: i16 [0..],
        partition_index: i32 [0..],
        /// -1 for none.
        leader_id: i32 [0..],
        leader_epoch: i32 [0.., default = -1; ignorable],
        replica_nodes: Vec<i32> [0..],
        isr_nodes: Vec<i32> [0..],
        eligible_leader_replicas: Option<Vec<i32>> [0.., nullable 0..],
        last_known_elr: Option<Vec<i32>> [0.., nullable 0..],
        offline_replicas: Vec<i32> [0..; ignorable],
    }
}
