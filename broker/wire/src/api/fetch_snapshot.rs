//! FetchSnapshot (key 59): a snapshot of the metadata log, piece by piece (KIP-630).

pub use request::FetchSnapshotRequest;
pub use response::FetchSnapshotResponse;

pub mod request {
    use crate::schema::messages;
    use crate::{Str, Uuid};

    messages! {
        /// Asks for bytes of a snapshot from a position on.
        pub struct FetchSnapshotRequest [versions 0..=1, flexible 0..] {
            cluster_id: Option<Str> [0.., nullable 0.., tag 0],
            replica_id: i32 [0.., default = -1],
            /// Bound of all pieces together.
            max_bytes: i32 [0.., default = i32::MAX],
            topics: Vec<TopicSnapshot> [0..],
        }

        /// See [`FetchSnapshotRequest`].
        pub struct TopicSnapshot {
            name: Str [0..],
            partitions: Vec<PartitionSnapshot> [0..],
        }

        /// See [`TopicSnapshot`].
        pub struct PartitionSnapshot {
            partition: i32 [0..],
            /// -1 when not known.
            current_leader_epoch: i32 [0..],
            snapshot_id: SnapshotId [0..],
            /// Byte of the snapshot to begin with.
            position: i64 [0..],
            replica_directory_id: Uuid [1.., tag 0; ignorable],
        }

        /// See [`PartitionSnapshot`].
        pub struct SnapshotId {
            end_offset: i64 [0..],
            epoch: i32 [0..],
        }
    }
}

pub mod response {
    use bytes::Bytes;

    use crate::Str;
    use crate::schema::messages;

    messages! {
        /// Answer to [`FetchSnapshotRequest`](super::FetchSnapshotRequest).
        pub struct FetchSnapshotResponse [versions 0..=1, flexible 0..] {
            throttle_time_ms: i32 [0..; ignorable],
            error_code: i16 [0..],
            topics: Vec<TopicSnapshot> [0..],
            /// Where the leaders named in the partitions are.
            node_endpoints: Vec<NodeEndpoint> [1.., tag 0],
        }

        /// See [`FetchSnapshotResponse`].
        pub struct TopicSnapshot {
            name: Str [0..],
            partitions: Vec<PartitionSnapshot> [0..],
        }

        /// See [`TopicSnapshot`].
        pub struct PartitionSnapshot {
            index: i32 [0..],
            error_code: i16 [0..],
            snapshot_id: SnapshotId [0..],
            current_leader: LeaderIdAndEpoch [0.., tag 0],
            /// Bytes of the whole snapshot.
            size: i64 [0..],
            /// Byte of the snapshot with which the piece begins.
            position: i64 [0..],
            /// The piece: it may begin and end inside a batch.
            unaligned_records: Bytes [0..],
        }

        /// See [`PartitionSnapshot`].
        pub struct SnapshotId {
            end_offset: i64 [0..],
            epoch: i32 [0..],
        }

        /// See [`PartitionSnapshot`].
        pub struct LeaderIdAndEpoch {
            /// -1 when not known.
            leader_id: i32 [0..],
            leader_epoch: i32 [0..],
        }

        /// See [`FetchSnapshotResponse`].
        pub struct NodeEndpoint {
            node_id: i32 [1..],
            host: Str [1..],
            port: u16 [1..],
        }
    }
}
