//! DescribeQuorum (key 55): leader, voters and observers of the metadata quorum, and how far each one is
//! (KIP-595, KIP-836).

pub use request::DescribeQuorumRequest;
pub use response::DescribeQuorumResponse;

pub mod request {
    use crate::Str;
    use crate::schema::messages;

    messages! {
        /// Asks the quorum's leader about its followers.
        pub struct DescribeQuorumRequest [versions 0..=2, flexible 0..] {
            topics: Vec<TopicData> [0..],
        }

        /// See [`DescribeQuorumRequest`].
        pub struct TopicData {
            topic_name: Str [0..],
            partitions: Vec<PartitionData> [0..],
        }

        /// See [`TopicData`].
        pub struct PartitionData {
            partition_index: i32 [0..],
        }
    }
}

pub mod response {
    use crate::schema::messages;
    use crate::{Str, Uuid};

    messages! {
        /// Answer to [`DescribeQuorumRequest`](super::DescribeQuorumRequest).
        pub struct DescribeQuorumResponse [versions 0..=2, flexible 0..] {
            error_code: i16 [0..],
            error_message: Option<Str> [2.., nullable 2.., default = Some(Str::default()); ignorable],
            topics: Vec<TopicData> [0..],
            nodes: Vec<Node> [2..],
        }

        /// See [`DescribeQuorumResponse`].
        pub struct TopicData {
            topic_name: Str [0..],
            partitions: Vec<PartitionData> [0..],
        }

        /// See [`TopicData`].
        pub struct PartitionData {
            partition_index: i32 [0..],
            error_code: i16 [0..],
            error_message: Option<Str> [2.., nullable 2.., default = Some(Str::default()); ignorable],
            /// -1 when not known.
            leader_id: i32 [0..],
            leader_epoch: i32 [0..],
            high_watermark: i64 [0..],
            current_voters: Vec<ReplicaState> [0..],
            observers: Vec<ReplicaState> [0..],
        }

        /// See [`PartitionData`].
        pub struct ReplicaState {
            replica_id: i32 [0..],
            replica_directory_id: Uuid [2..],
            /// -1 when not known.
            log_end_offset: i64 [0..],
            /// Milliseconds of the leader's wall clock at the last fetch; -1 for the leader or when not
            /// known.
            last_fetch_timestamp: i64 [1.., default = -1; ignorable],
            /// Milliseconds of the leader's wall clock at which what was last fetched had been appended;
            /// now for the leader, -1 when not known.
            last_caught_up_timestamp: i64 [1.., default = -1; ignorable],
        }

        /// See [`DescribeQuorumResponse`].
        pub struct Node {
            node_id: i32 [2..],
            listeners: Vec<Listener> [2..],
        }

        /// See [`Node`].
        pub struct Listener {
            name: Str [2..],
            host: Str [2..],
            port: u16 [2..],
        }
    }
}
