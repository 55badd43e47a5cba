//! Vote (key 52): a candidate of the metadata quorum asks for votes (KIP-595), or whether it would get them
//! (KIP-996).

pub use request::VoteRequest;
pub use response::VoteResponse;

pub mod request {
    use crate::schema::messages;
    use crate::{Str, Uuid};

    messages! {
        /// Asks a voter for its vote.
        pub struct VoteRequest [versions 0..=2, flexible 0..] {
            cluster_id: Option<Str> [0.., nullable 0..],
            voter_id: i32 [1.., default = -1; ignorable],
            topics: Vec<TopicData> [0..],
        }

        /// See [`VoteRequest`].
        pub struct TopicData {
            topic_name: Str [0..],
            partitions: Vec<PartitionData> [0..],
        }

        /// See [`TopicData`].
        pub struct PartitionData {
            partition_index: i32 [0..],
            /// The epoch that the candidate stands in.
            replica_epoch: i32 [0..],
            replica_id: i32 [0..],
            replica_directory_id: Uuid [1..; ignorable],
            voter_directory_id: Uuid [1..; ignorable],
            last_offset_epoch: i32 [0..],
            last_offset: i64 [0..],
            /// Asks only whether the vote would be granted; no epoch grows (KIP-996).
            pre_vote: bool [2..],
        }
    }
}

pub mod response {
    use crate::Str;
    use crate::schema::messages;

    messages! {
        /// Answer to [`VoteRequest`](super::VoteRequest).
        pub struct VoteResponse [versions 0..=2, flexible 0..] {
            error_code: i16 [0..],
            topics: Vec<TopicData> [0..],
            node_endpoints: Vec<NodeEndpoint> [1.., tag 0],
        }

        /// See [`VoteResponse`].
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
            vote_granted: bool [0..],
        }

        /// See [`VoteResponse`].
        pub struct NodeEndpoint {
            node_id: i32 [1..],
            host: Str [1..],
            port: u16 [1..],
        }
    }
}
