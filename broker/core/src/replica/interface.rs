//! What goes into the replica machine and what comes out of it.
//!
//! Every effect that touches a partition's files carries a [`WriteId`] and is answered by `Written` or `WriteFailed`;
//! the effects of one partition run in the order in which they were pushed, those of different partitions in any.

use std::collections::BTreeMap;
use std::time::Duration;

use acked_wire::{
    AlterPartitionRequest, AlterPartitionResponse, FetchRequest, FetchResponse, ListOffsetsRequest,
    ListOffsetsResponse, OffsetForLeaderEpochRequest, ProduceRequest, ResponseBody, Str,
};
use bytes::Bytes;

use crate::observation::PartitionState;
use crate::settings::TopicSettings;
use crate::types::{NodeId, PeerError, RequestId, TopicPartition};

/// One queued change of a partition's files. Never used twice by one incarnation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WriteId(pub u64);

/// One read of a partition's log file. Never used twice by one incarnation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReadId(pub u64);

/// One request that this broker, as a follower, sent to a leader. Never used twice by one incarnation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FetchId(pub u64);

/// Settings of one broker's replicas, by Kafka's names with `.` as `_`; `Default` gives Kafka's defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaConfig {
    /// `node.id`.
    pub node: NodeId,
    /// A follower that has not caught up for this long leaves the ISR; checked every half of it.
    pub replica_lag_time_max: Duration,
    /// How long a leader may hold a follower's fetch that finds too little.
    pub replica_fetch_wait_max: Duration,
    /// Bytes that end the wait of a follower's fetch.
    pub replica_fetch_min_bytes: i32,
    /// Bytes of one partition that a follower asks for.
    pub replica_fetch_max_bytes: i32,
    /// Bytes of one whole response that a follower asks for.
    pub replica_fetch_response_max_bytes: i32,
    /// Pause of a follower after an error.
    pub replica_fetch_backoff: Duration,
    /// `fetch.max.bytes` of the broker: no response is larger, but for one whole first batch.
    pub fetch_max_bytes: i32,
    /// `replica.high.watermark.checkpoint.interval.ms`.
    pub high_watermark_checkpoint_interval: Duration,
    /// Pause before an AlterPartition request is tried again; no setting in Kafka.
    pub alter_partition_backoff: Duration,
}

impl Default for ReplicaConfig {
    fn default() -> Self {
        ReplicaConfig {
            node: NodeId(-1),
            replica_lag_time_max: Duration::from_secs(30),
            replica_fetch_wait_max: Duration::from_millis(500),
            replica_fetch_min_bytes: 1,
            replica_fetch_max_bytes: 1 << 20,
            replica_fetch_response_max_bytes: 10 << 20,
            replica_fetch_backoff: Duration::from_secs(1),
            fetch_max_bytes: 55 << 20,
            high_watermark_checkpoint_interval: Duration::from_secs(5),
            alter_partition_backoff: Duration::from_millis(50),
        }
    }
}

/// What a broker's image of the metadata says of another broker (or of itself).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokerView {
    pub broker_epoch: i64,
    pub fenced: bool,
    pub in_controlled_shutdown: bool,
}

/// A partition as committed metadata and the topic's settings say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionAssignment {
    pub topic_name: Str,
    pub state: PartitionState,
    /// The topic's settings in force.
    pub settings: TopicSettings,
}

/// Committed metadata that is news. The shell hands it over only once its image holds the registration of this
/// incarnation: an earlier image may still name this broker as the leader of what a crash took from it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetadataUpdate {
    /// The broker epoch under which this incarnation is registered. While `None`, partitions only gather.
    pub broker_epoch: Option<i64>,
    /// Every registered broker.
    pub brokers: BTreeMap<NodeId, BrokerView>,
    /// Partitions that changed, all of them in the first update, whether or not this broker has a replica.
    pub partitions: Vec<PartitionAssignment>,
    /// Partitions whose topic is deleted.
    pub removed: Vec<TopicPartition>,
}

/// What the machine is told.
#[derive(Clone, Debug)]
pub enum ReplicaInput {
    Metadata(MetadataUpdate),
    Produce {
        request: RequestId,
        version: i16,
        body: ProduceRequest,
        /// Milliseconds since 1970 by this node's wall clock.
        wall_clock_ms: i64,
    },
    Fetch {
        request: RequestId,
        version: i16,
        body: FetchRequest,
    },
    ListOffsets {
        request: RequestId,
        version: i16,
        body: ListOffsetsRequest,
    },
    OffsetForLeaderEpoch {
        request: RequestId,
        body: OffsetForLeaderEpochRequest,
    },
    /// The connection of a request that has no answer yet is gone: none will be given.
    Abandoned {
        request: RequestId,
    },
    /// The queued change took effect: handed to the operating system, and synced where the effect asked for it.
    Written {
        partition: TopicPartition,
        write: WriteId,
    },
    /// The queued change failed, wholly or in part. Nothing more is written to this partition.
    WriteFailed {
        partition: TopicPartition,
        write: WriteId,
    },
    /// `Err` on an I/O error or a short read.
    ReadDone {
        read: ReadId,
        result: Result<Bytes, ReadFailed>,
    },
    FetchResponse {
        from: NodeId,
        fetch: FetchId,
        result: Result<FetchResponse, PeerError>,
    },
    ListOffsetsResponse {
        from: NodeId,
        fetch: FetchId,
        result: Result<ListOffsetsResponse, PeerError>,
    },
    /// The answer to the one AlterPartition request in flight.
    AlterPartitionResponse {
        result: Result<AlterPartitionResponse, PeerError>,
    },
    /// A deadline passed.
    Tick,
}

/// A log file could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("read log file")]
pub struct ReadFailed;

/// What the machine wants done, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum ReplicaEffect {
    Reply {
        request: RequestId,
        body: ResponseBody,
    },
    /// The request is done and has no answer (acks=0): the connection's next request may be taken.
    NoReply {
        request: RequestId,
    },
    /// The request failed and has no answer (acks=0): the connection is closed.
    CloseConnection {
        request: RequestId,
    },

    /// Makes the partition's directory, an empty log file and `partition.metadata`, names included, durably.
    CreateLog {
        partition: TopicPartition,
        write: WriteId,
        topic_name: Str,
    },
    /// Removes the partition's directory, after what is queued before it. Not answered.
    DeleteLog {
        partition: TopicPartition,
    },
    /// Writes `bytes` at `position` of the log file and, with `sync`, makes them durable before `Written`.
    Append {
        partition: TopicPartition,
        write: WriteId,
        position: u64,
        bytes: Bytes,
        sync: bool,
    },
    /// Cuts the log file to `size` bytes, where the log then ends at `log_end_offset`. A recovery point above that
    /// is lowered durably first.
    Truncate {
        partition: TopicPartition,
        write: WriteId,
        size: u64,
        log_end_offset: i64,
    },
    /// Replaces `leader-epoch-checkpoint` durably.
    SaveEpochs {
        partition: TopicPartition,
        write: WriteId,
        epochs: Vec<(i32, i64)>,
    },
    /// Reads `length` bytes at `position`, in the partition's queue or beside it.
    Read {
        partition: TopicPartition,
        read: ReadId,
        position: u64,
        length: usize,
    },
    /// Replaces `replication-offset-checkpoint` with all of these. Not answered.
    SaveHighWatermarks {
        marks: Vec<(TopicPartition, i64)>,
    },

    SendFetch {
        to: NodeId,
        fetch: FetchId,
        body: FetchRequest,
    },
    /// Asks a leader where its log starts and ends.
    SendListOffsets {
        to: NodeId,
        fetch: FetchId,
        body: ListOffsetsRequest,
    },
    /// To the controller with the highest quorum epoch that this broker knows, never back to an older one. One at
    /// a time: the next is sent after `AlterPartitionResponse`.
    SendAlterPartition {
        body: AlterPartitionRequest,
    },
}
