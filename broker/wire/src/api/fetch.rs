//! Fetch (key 1): records for consumers, followers and quorum observers.
//!
//! Topics go by name up to version 12 and by id from 13 (KIP-516). A follower says who it is in `replica_id`
//! up to version 14 and in `replica_state` from 15 (KIP-903).

use bytes::Bytes;

use crate::schema::messages;
use crate::{Str, Uuid};

messages! {
    /// Asks for records from given offsets on.
    pub struct FetchRequest [versions 4..=18, flexible 12..] {
        cluster_id: Option<Str> [12.., nullable 12.., tag 0; ignorable],
        /// The follower up to version 14; -1 for consumers.
        replica_id: i32 [0..=14, default = -1],
        /// The follower and its broker epoch from version 15 on (KIP-903).
        replica_state: ReplicaState [15.., tag 1],
        /// How long to wait for `min_bytes`.
        max_wait_ms: i32 [0..],
        min_bytes: i32 [0..],
        /// Bound of the whole answer; the first batch is sent whole even above it.
        max_bytes: i32 [0.., default = i32::MAX],
        /// 0 read uncommitted, 1 read committed.
        isolation_level: i8 [0..],
        /// 0 for no session (KIP-227).
        session_id: i32 [7..; ignorable],
        /// -1 asks for a full fetch without a session.
        session_epoch: i32 [7.., default = -1; ignorable],
        topics: Vec<FetchTopic> [0..],
        forgotten_topics_data: Vec<ForgottenTopic> [7..],
        /// Where the consumer is (KIP-392).
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
        /// The leader epoch that the fetcher believes in, -1 to skip the check (KIP-320).
        current_leader_epoch: i32 [9.., default = -1; ignorable],
        fetch_offset: i64 [0..],
        /// Epoch of the last record that the fetcher has, -1 if none: the leader finds divergence by it
        /// (KIP-595).
        last_fetched_epoch: i32 [12.., default = -1],
        /// The follower's own; -1 for consumers.
        log_start_offset: i64 [5.., default = -1; ignorable],
        partition_max_bytes: i32 [0..],
        replica_directory_id: Uuid [17.., tag 0; ignorable],
        /// What the replica knows; `i64::MAX` when it cannot say (KIP-1166).
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
        /// Below it every transaction is decided; -1 when not known.
        last_stable_offset: i64 [0.., default = -1],
        log_start_offset: i64 [5.., default = -1; ignorable],
        /// The largest epoch up to the asked one and its end offset, when the fetcher must truncate
        /// (KIP-595).
        diverging_epoch: EpochEndOffset [12.., tag 0],
        /// Said with NOT_LEADER_OR_FOLLOWER and FENCED_LEADER_EPOCH.
        current_leader: LeaderIdAndEpoch [12.., tag 1],
        /// The snapshot to load instead, for replicas of the metadata log.
        snapshot_id: SnapshotId [12.., tag 2],
        /// Null, or for read committed the aborted transactions in the range.
        aborted_transactions: Option<Vec<AbortedTransaction>> [0.., nullable 0.., default = Some(Vec::new())],
        /// The replica that a consumer should ask instead, or -1.
        preferred_read_replica: i32 [11.., default = -1],
        /// Whole batches, but for the last one, which may be cut anywhere.
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
