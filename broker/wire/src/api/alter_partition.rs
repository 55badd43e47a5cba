//! AlterPartition (key 56): a leader asks the controller to change the in-sync replicas (KIP-497, KIP-903).

pub use request::AlterPartitionRequest;
pub use response::AlterPartitionResponse;

pub mod request {
    use crate::Uuid;
    use crate::schema::messages;

    messages! {
        /// Proposes in-sync replicas for each partition.
        pub struct AlterPartitionRequest [versions 2..=3, flexible 0..] {
            broker_id: i32 [0..],
            broker_epoch: i64 [0.., default = -1],
            topics: Vec<TopicData> [0..],
        }

        /// See [`AlterPartitionRequest`].
        pub struct TopicData {
            topic_id: Uuid [0..],
            partitions: Vec<PartitionData> [0..],
        }

        /// See [`TopicData`].
        pub struct PartitionData {
            partition_index: i32 [0..],
            leader_epoch: i32 [0..],
            new_isr: Vec<i32> [0..=2],
            /// The proposed replicas with the broker epochs that the leader has seen them fetch with.
            new_isr_with_epochs: Vec<BrokerState> [3..],
            /// 1 while the leader recovers from an unclean election, 0 after.
            leader_recovery_state: i8 [0..],
            /// Fences changes made against another state of the partition.
            partition_epoch: i32 [0..],
        }

        /// See [`PartitionData`].
        pub struct BrokerState {
            broker_id: i32 [3..],
            broker_epoch: i64 [3.., default = -1],
        }
    }
}

pub mod response {
    use crate::Uuid;
    use crate::schema::messages;

    messages! {
        /// Answer to [`AlterPartitionRequest`](super::AlterPartitionRequest): the committed state of each
        /// partition.
        pub struct AlterPartitionResponse [versions 2..=3, flexible 0..] {
            throttle_time_ms: i32 [0..],
            error_code: i16 [0..],
            topics: Vec<TopicData> [0..],
        }

        /// See [`AlterPartitionResponse`].
        pub struct TopicData {
            topic_id: Uuid [0..],
            partitions: Vec<PartitionData> [0..],
        }

        /// See [`TopicData`].
        pub struct PartitionData {
            partition_index: i32 [0..],
            error_code: i16 [0..],
            leader_id: i32 [0..],
            leader_epoch: i32 [0..],
            isr: Vec<i32> [0..],
            /// 1 while the leader recovers from an unclean election, 0 after.
            leader_recovery_state: i8 [0..],
            /// That of the committed state.
            partition_epoch: i32 [0..],
        }
    }
}
