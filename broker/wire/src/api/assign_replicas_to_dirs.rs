//! AssignReplicasToDirs (key 73): a broker tells which of its directories hold which replicas (KIP-858).

pub use request::AssignReplicasToDirsRequest;
pub use response::AssignReplicasToDirsResponse;

pub mod request {
    use crate::Uuid;
    use crate::schema::messages;

    messages! {
        /// Tells the controller where replicas lie.
        pub struct AssignReplicasToDirsRequest [versions 0..=0, flexible 0..] {
            broker_id: i32 [0..],
            broker_epoch: i64 [0.., default = -1],
            directories: Vec<DirectoryData> [0..],
        }

        /// See [`AssignReplicasToDirsRequest`].
        pub struct DirectoryData {
            id: Uuid [0..],
            topics: Vec<TopicData> [0..],
        }

        /// See [`DirectoryData`].
        pub struct TopicData {
            topic_id: Uuid [0..],
            partitions: Vec<PartitionData> [0..],
        }

        /// See [`TopicData`].
        pub struct PartitionData {
            partition_index: i32 [0..],
        }
    }
}

pub mod response {
    use crate::Uuid;
    use crate::schema::messages;

    messages! {
        /// Answer to [`AssignReplicasToDirsRequest`](super::AssignReplicasToDirsRequest).
        pub struct AssignReplicasToDirsResponse [versions 0..=0, flexible 0..] {
            throttle_time_ms: i32 [0..],
            error_code: i16 [0..],
            directories: Vec<DirectoryData> [0..],
        }

        /// See [`AssignReplicasToDirsResponse`].
        pub struct DirectoryData {
            id: Uuid [0..],
            topics: Vec<TopicData> [0..],
        }

        /// See [`DirectoryData`].
        pub struct TopicData {
            topic_id: Uuid [0..],
            partitions: Vec<PartitionData> [0..],
        }

        /// See [`TopicData`].
        pub struct PartitionData {
            partition_index: i32 [0..],
            error_code: i16 [0..],
        }
    }
}
