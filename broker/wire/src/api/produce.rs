//! Produce (key 0): record batches for the leader of each partition to append.
//!
//! Topics go by name up to version 12 and by id from 13 (KIP-516). Only version 2 record batches are allowed.

use bytes::Bytes;

use crate::schema::messages;
use crate::{Str, Uuid};

messages! {
    /// Asks leaders to append.
    pub struct ProduceRequest [versions 3..=13, flexible 9..] {
        transactional_id: Option<Str> [0.., nullable 0..],
        /// How many replicas must have the records: 0, 1 (the leader) or -1 (all in sync).
        acks: i16 [0..],
        /// How long the leader may wait for the replicas.
        timeout_ms: i32 [0..],
        topic_data: Vec<TopicProduceData> [0..],
    }

    /// See [`ProduceRequest`].
    pub struct TopicProduceData {
        name: Str [0..=12; ignorable],
        topic_id: Uuid [13..; ignorable],
        partition_data: Vec<PartitionProduceData> [0..],
    }

    /// See [`TopicProduceData`].
    pub struct PartitionProduceData {
        index: i32 [0..],
        /// Exactly one version 2 batch.
        records: Option<Bytes> [0.., nullable 0..],
    }

    /// Answer to [`ProduceRequest`]; with `acks=0` there is none.
    pub struct ProduceResponse [versions 3..=13, flexible 9..] {
        responses: Vec<TopicProduceResponse> [0..],
        throttle_time_ms: i32 [0..],
        node_endpoints: Vec<NodeEndpoint> [10.., tag 0],
    }

    /// See [`ProduceResponse`].
    pub struct TopicProduceResponse {
        name: Str [0..=12; ignorable],
        topic_id: Uuid [13..; ignorable],
        partition_responses: Vec<PartitionProduceResponse> [0..],
    }

    /// See [`TopicProduceResponse`].
    pub struct PartitionProduceResponse {
        index: i32 [0..],
        error_code: i16 [0..],
        /// Offset of the first record, -1 with an error.
        base_offset: i64 [0..],
        /// The append time where the topic has it; the largest timestamp of a repeated batch; else -1.
        log_append_time_ms: i64 [0.., default = -1],
        log_start_offset: i64 [5.., default = -1; ignorable],
        /// Which records caused an error, by their place in the batch.
        record_errors: Vec<BatchIndexAndErrorMessage> [8..; ignorable],
        error_message: Option<Str> [8.., nullable 8..; ignorable],
        /// Said with NOT_LEADER_OR_FOLLOWER, together with `node_endpoints` (KIP-951).
        current_leader: LeaderIdAndEpoch [10.., tag 0],
    }

    /// See [`PartitionProduceResponse`].
    pub struct BatchIndexAndErrorMessage {
        batch_index: i32 [8..],
        batch_index_error_message: Option<Str> [8.., nullable 8..],
    }

    /// See [`PartitionProduceResponse`].
    pub struct LeaderIdAndEpoch {
        leader_id: i32 [10.., default = -1],
        leader_epoch: i32 [10.., default = -1],
    }

    /// See [`ProduceResponse`].
    pub struct NodeEndpoint {
        node_id: i32 [10..],
        host: Str [10..],
        port: i32 [10..],
        rack: Option<Str> [10.., nullable 10..],
    }
}
