//! BeginQuorumEpoch (key 53): a new leader of the metadata quorum makes itself known (KIP-595).

pub use request::BeginQuorumEpochRequest;
pub use response::BeginQuorumEpochResponse;

pub mod request {
    use crate::schema::messages;
    use crate::{Str, Uuid};

    messages! {
        /// Tells a voter who leads.
        pub struct BeginQuorumEpochRequest [versions 0..=1, flexible 1..] {
            cluster_id: Option<Str> [0.., nullable 0..],
            voter_id: i32 [1.., default = -1; ignorable],
            topics: Vec<TopicData> [0..],
            leader_endpoints: Vec<LeaderEndpoint> [1..; ignorable],
        }

        /// See [`BeginQuorumEpochRequest`].
        pub struct TopicData {
            topic_name: Str [0..],
            partitions: Vec<PartitionData> [0..],
        }

        /// See [`TopicData`].
        pub struct PartitionData {
            partition_index: i32 [0..],
            voter_directory_id: Uuid [1..; ignorable],
            leader_id: i32 [0..],
            leader_epoch: i32 [0..],
        }

        /// See [`BeginQuorumEpochRequest`].
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
        /// Answer to [`BeginQuorumEpochRequest`](super::BeginQuorumEpochRequest).
        pub struct BeginQuorumEpochResponse [versions 0..=1, flexible 1..] {
            error_code: i16 [0..],
            topics: Vec<TopicData> [0..],
            node_endpoints: Vec<NodeEndpoint> [1.., tag 0],
        }

        /// See [`BeginQuorumEpochResponse`].
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

        /// See [`BeginQuorumEpochResponse`].
        pub struct NodeEndpoint {
            node_id: i32 [1..],
            host: Str [1..],
            port: u16 [1..],
        }
    }
}
