//! Fetch (key 1): records for consumers, followers and quorum observers.
//!
//! Topics go by name up to version 12 and by id from 13 (KIP-516). A follower says who it is in `replica_id` up to
//! version 14 and in `replica_state` from 15 (KIP-903).

use bytes::Bytes;

use crate::schema::messages;
use crate::{Str, Uuid};

messages! {
    /// Asks for records from given offsets on.
    pub struct FetchRequest [versions 4..=18, flexible 12..] {
        cluster_id: Option<Str> [12.., nullable 12.., tag 0; ignorable],
        replica_id: i32 [0..=14, default = -1],
        replica_state: ReplicaState [15.., tag 1],
        max_wait_ms: i32 [0..],
        min_bytes: i32 [0..],
        max_bytes: i32 [0.., default = i32::MAX],
        isolation_level: i8 [0..],
        session_id: i32 [7..; ignorable],
        session_epoch: i32 [7.., default = -1; ignorable],
        topics: Vec<FetchTopic> [0..],
        forgotten_topics_data: Vec<ForgottenTopic> [7..],
        rack_id: Str [11..; ignorable],
    }

    /// See [`FetchRequest`].
    pub struct ReplicaState {
        replica_id: i32 [15.., default = -1],
        replica_epoch: i64 [15.., default = -1],
    }

    /// See [`FetchRequest`].
    pub struct FetchTopic {
        topic: Str [0..=12; ignorable],
        topic_id: Uuid [13..; ignorable],
        partitions: Vec<FetchPartition> [0..],
    }

    /// See [`FetchTopic`].
    pub struct FetchPartition {
        partition: i32 [0..],
        current_leader_epoch: i32 [9.., default = -1; ignorable],
        fetch_offset: i64 [0..],
        last_fetched_epoch: i32 [12.., default = -1],
        log_start_offset: i64 [5.., default = -1; ignorable],
        partition_max_bytes: i32 [0..],
        replica_directory_id: Uuid [17.., tag 0; ignorable],
        high_watermark: i64 [18.., tag 1, default = i64::MAX; ignorable],
    }

    /// See [`FetchRequest`].
    pub struct ForgottenTopic {
        topic: Str [7..=12; ignorable],
        topic_id: Uuid [13..; ignorable],
        partitions: Vec<i32> [7..],
    }

    /// Answer to [`FetchRequest`]. Records may end in a cut batch.
    pub struct FetchResponse [versions 4..=18, flexible 12..] {
        throttle_time_ms: i32 [0..],
        error_code: i16 [7..; ignorable],
        session_id: i32 [7..],
        responses: Vec<FetchableTopicResponse> [0..],
        node_endpoints: Vec<NodeEndpoint> [16.., tag 0],
    }

    /// See [`FetchResponse`].
    pub struct FetchableTopicResponse {
        topic: Str [0..=12; ignorable],
        topic_id: Uuid [13..; ignorable],
        partitions: Vec<PartitionData> [0..],
    }

    /// See [`FetchableTopicResponse`].
    pub struct PartitionData {
        partition_index: i32 [0..],
        error_code: i16 [0..],
        high_watermark: i64 [0..],
        last_stable_offset: i64 [0.., default = -1],
        log_start_offset: i64 [5.., default = -1; ignorable],
        diverging_epoch: EpochEndOffset [12.., tag 0],
        current_leader: LeaderIdAndEpoch [12.., tag 1],
        snapshot_id: SnapshotId [12.., tag 2],
        aborted_transactions: Option<Vec<AbortedTransaction>> [0.., nullable 0.., default = Some(Vec::new())],
        preferred_read_replica: i32 [11.., default = -1],
        records: Option<Bytes> [0.., nullable 0..],
    }

    /// See [`PartitionData`].
    pub struct EpochEndOffset {
        epoch: i32 [12.., default = -1],
        end_offset: i64 [12.., default = -1],
    }

    /// See [`PartitionData`].
    pub struct LeaderIdAndEpoch {
        leader_id: i32 [12.., default = -1],
        leader_epoch: i32 [12.., default = -1],
    }

    /// See [`PartitionData`].
    pub struct SnapshotId {
        end_offset: i64 [0.., default = -1],
        epoch: i32 [0.., default = -1],
    }

    /// See [`PartitionData`].
    pub struct AbortedTransaction {
        producer_id: i64 [0..],
        first_offset: i64 [0..],
    }

    /// See [`FetchResponse`].
    pub struct NodeEndpoint {
        node_id: i32 [16..],
        host: Str [16..],
        port: i32 [16..],
        rack: Option<Str> [16.., nullable 16..],
    }
}
