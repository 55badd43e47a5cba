//! EndQuorumEpoch (key 54): a leader of the metadata quorum resigns (KIP-595).

pub use request::EndQuorumEpochRequest;
pub use response::EndQuorumEpochResponse;

pub mod request {
    use crate::schema::messages;
    use crate::{Str, Uuid};

    messages! {
        /// Tells voters that the leader resigns, and whom it would like to follow it.
        pub struct EndQuorumEpochRequest [versions 0..=1, flexible 1..] {
            cluster_id: Option<Str> [0.., nullable 0..],
            topics: Vec<TopicData> [0..],
            leader_endpoints: Vec<LeaderEndpoint> [1..; ignorable],
        }

        /// See [`EndQuorumEpochRequest`].
        pub struct TopicData {
            topic_name: Str [0..],
            partitions: Vec<PartitionData> [0..],
        }

        /// See [`TopicData`].
        pub struct PartitionData {
            partition_index: i32 [0..],
            leader_id: i32 [0..],
            leader_epoch: i32 [0..],
            /// Voters by how much of the log they have, most first (version 0).
            preferred_successors: Vec<i32> [0..=0; ignorable],
            /// Voters by how much of the log they have, most first (version 1).
            preferred_candidates: Vec<ReplicaInfo> [1..; ignorable],
        }

        /// See [`PartitionData`].
        pub struct ReplicaInfo {
            candidate_id: i32 [1..],
            candidate_directory_id: Uuid [1..],
        }

        /// See [`EndQuorumEpochRequest`].
        pub struct LeaderEndpoint {
            name: Str [1..],
            host: Str [1..],
            port: u16 [1..],
        }
    }
}

pub mod response {
    use crate::Str;
    use crate::schema::messages;

    messages! {
        /// Answer to [`EndQuorumEpochRequest`](super::EndQuorumEpochRequest).
        pub struct EndQuorumEpochResponse [versions 0..=1, flexible 1..] {
            error_code: i16 [0..],
            topics: Vec<TopicData> [0..],
            node_endpoints: Vec<NodeEndpoint> [1.., tag 0],
        }

        /// See [`EndQuorumEpochResponse`].
        pub struct TopicData {
            topic_name: Str [0..],
            partitions: Vec<PartitionData> [0..],
        }

        /// See [`TopicData`].
        pub struct PartitionData {
            partition_index: i32 [0..],
            error_code: i16 [0..],
            leader_id: i32 [0..],
            leader_epoch: i32 [0..],
        }

        /// See [`EndQuorumEpochResponse`].
        pub struct NodeEndpoint {
            node_id: i32 [1..],
            host: Str [1..],
            port: u16 [1..],
        }
    }
}
