//! Facts that the machines state in program order. One stream feeds invariants, coverage goals and the timeline.
//! An observation says what has happened inside one node; it never asks for anything.

use acked_wire::Uuid;

use crate::types::{NodeId, Time, TopicPartition};

/// Receives every observation synchronously, in the order in which the machines stated them.
pub trait Observer: Send + Sync + 'static {
    fn observe(&self, node: NodeId, now: Time, observation: &Observation);
}

/// Who sent the fetch that was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetcher {
    Consumer,
    Follower(NodeId),
}

/// Why a partition's leader changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Election {
    /// The topic was created; the first leader.
    Created,
    /// Out of the in-sync replicas.
    Clean,
    /// `replicas[0]` was asked for and is in sync.
    Preferred,
    /// Out of the eligible leader replicas.
    CleanElr,
    LastKnownLeader,
    /// `unclean.leader.election.enable`, or an administrator's UNCLEAN request.
    Unclean {
        asked_by_administrator: bool,
    },
    /// Nobody could be elected.
    Leaderless,
}

/// Committed state of a partition as the controller's records say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionState {
    pub partition: TopicPartition,
    pub replicas: Vec<NodeId>,
    pub isr: Vec<NodeId>,
    pub elr: Vec<NodeId>,
    pub leader: Option<NodeId>,
    pub leader_epoch: i32,
    pub partition_epoch: i32,
    pub recovering: bool,
}

/// A stated fact. Offsets are log offsets; `log_end_offset` and `high_watermark` are exclusive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observation {
    // ---- a node
    /// The node is up and has recovered its logs. `incarnation` differs for every start.
    NodeStarted {
        incarnation: Uuid,
    },
    /// The node has closed its logs in order.
    NodeStopped,
    /// A log was recovered at start: its segments held `found_bytes`, `kept_bytes` of them were kept.
    LogRecovered {
        partition: TopicPartition,
        found_bytes: u64,
        kept_bytes: u64,
        log_start_offset: i64,
        log_end_offset: i64,
        /// Between the two: the checkpointed one, clamped.
        high_watermark: i64,
        /// As `recovery-point-offset-checkpoint` had it: everything below was synced once.
        recovery_point: Option<i64>,
        /// As `leader-epoch-checkpoint` had them; `None` when it was missing or unreadable.
        epochs_found: Option<Vec<(i32, i64)>>,
        /// `(epoch, start offset)` as the kept batches say, from the log start on.
        epochs: Vec<(i32, i64)>,
        clean: bool,
    },
    /// A log directory or file went offline after an I/O error.
    LogOffline {
        partition: TopicPartition,
    },

    // ---- a partition replica
    BecameLeader {
        partition: TopicPartition,
        leader_epoch: i32,
        log_end_offset: i64,
        high_watermark: i64,
    },
    BecameFollower {
        partition: TopicPartition,
        leader_epoch: i32,
        leader: Option<NodeId>,
        log_end_offset: i64,
    },
    /// The leader took a batch in; its write may not have completed.
    AppendedAsLeader {
        partition: TopicPartition,
        leader_epoch: i32,
        base_offset: i64,
        last_offset: i64,
        producer_id: i64,
        producer_epoch: i16,
        base_sequence: i32,
    },
    AppendedAsFollower {
        partition: TopicPartition,
        leader_epoch: i32,
        base_offset: i64,
        last_offset: i64,
    },
    /// The write that ends at this offset was handed to the operating system (or synced, with flush.messages=1).
    LogEndAdvanced {
        partition: TopicPartition,
        log_end_offset: i64,
    },
    Truncated {
        partition: TopicPartition,
        leader_epoch: i32,
        from_log_end_offset: i64,
        to_log_end_offset: i64,
    },
    /// The epoch cache changed, by an append, a truncation, a new log start or a taking of office; its checkpoint is
    /// about to be saved. `(epoch, start offset)`, both increasing; the last may start at the log end, of a leader that
    /// has not written yet.
    EpochsChanged {
        partition: TopicPartition,
        log_start_offset: i64,
        log_end_offset: i64,
        epochs: Vec<(i32, i64)>,
    },
    /// A leader raised its high watermark; both sets as they were when it did.
    HighWatermarkAdvanced {
        partition: TopicPartition,
        leader_epoch: i32,
        from: i64,
        to: i64,
        isr: Vec<NodeId>,
        maximal_isr: Vec<NodeId>,
        min_insync: i32,
    },
    /// A follower took over its leader's high watermark, clamped to its own log; may go down.
    FollowerHighWatermark {
        partition: TopicPartition,
        leader_epoch: i32,
        from: i64,
        to: i64,
    },
    /// A replica raised its log start: a leader by retention or DeleteRecords, a follower after its leader. Stated before
    /// any byte below it is removed.
    LogStartAdvanced {
        partition: TopicPartition,
        leader_epoch: i32,
        from: i64,
        to: i64,
    },
    IsrProposed {
        partition: TopicPartition,
        leader_epoch: i32,
        partition_epoch: i32,
        isr: Vec<NodeId>,
    },
    /// A leader adopted a committed ISR.
    IsrAdopted {
        partition: TopicPartition,
        leader_epoch: i32,
        partition_epoch: i32,
        isr: Vec<NodeId>,
    },
    /// A success answer to a produce request leaves now. `acks` is 1 or -1. `duplicate` when nothing was appended.
    AckSent {
        partition: TopicPartition,
        leader_epoch: i32,
        acks: i16,
        base_offset: i64,
        last_offset: i64,
        producer_id: i64,
        producer_epoch: i16,
        base_sequence: i32,
        maximal_isr: Vec<NodeId>,
        min_insync: i32,
        duplicate: bool,
    },
    /// A produce request was refused. `code` is Kafka's error code.
    ProduceRefused {
        partition: TopicPartition,
        code: i16,
        appended: bool,
    },
    /// A fetch answer leaves: what was asked, the end of what is given (exclusive), the high watermark told.
    FetchServed {
        partition: TopicPartition,
        leader_epoch: i32,
        fetcher: Fetcher,
        fetch_offset: i64,
        end_offset: i64,
        high_watermark: i64,
        /// `(epoch, end offset)` when the fetcher was told that its log diverges.
        diverging: Option<(i32, i64)>,
    },

    // ---- the metadata quorum
    /// A vote for `candidate` (possibly itself) was granted and is told from now on; it is durable.
    VoteGranted {
        epoch: i32,
        candidate: NodeId,
    },
    BecameCandidate {
        epoch: i32,
    },
    QuorumLeaderElected {
        epoch: i32,
        log_end_offset: i64,
    },
    QuorumLeaderResigned {
        epoch: i32,
    },
    /// This node follows `leader` in `epoch`.
    QuorumFollowing {
        epoch: i32,
        leader: NodeId,
    },
    /// This node knows that everything below `to` is committed. The leader of `epoch` states it first.
    QuorumHighWatermark {
        epoch: i32,
        to: i64,
    },
    QuorumTruncated {
        to: i64,
    },
    /// The metadata log as it was found at start. Everything in it counts as synced.
    QuorumLogRecovered {
        log_start_offset: i64,
        log_end_offset: i64,
        /// Of the last batch; 0 for an empty log.
        last_epoch: i32,
    },
    /// The node moved to this epoch, and saved it.
    QuorumEpochReached {
        epoch: i32,
    },
    /// A batch was taken into the metadata log, by its leader or from it; it need not be synced yet.
    QuorumAppended {
        base_offset: i64,
        /// Inclusive.
        last_offset: i64,
        /// Of the leader that wrote the batch.
        epoch: i32,
        /// The checksum that the batch carries; with the base offset and the epoch it tells two batches apart.
        checksum: u32,
    },
    /// The node counts its metadata log as synced up to here, and vouches for it.
    QuorumSynced {
        to: i64,
    },
    /// The set of voters in force on this node from now on: by the record at `offset`, or by its configuration (-1).
    /// Voters with static configuration have a zero directory id.
    QuorumVoters {
        offset: i64,
        voters: Vec<(NodeId, Uuid)>,
    },
    /// A snapshot of the committed metadata below `end_offset` is durable; `epoch` is that of its last record.
    QuorumSnapshotCreated {
        end_offset: i64,
        epoch: i32,
    },
    /// The node replaced its metadata by a snapshot's: at start, or because its leader sent it there.
    QuorumSnapshotLoaded {
        end_offset: i64,
        epoch: i32,
    },
    /// The metadata log begins here from now on; what lies below is in a snapshot.
    QuorumLogStartAdvanced {
        to: i64,
    },

    // ---- the controller (stated when the record is committed and replayed by the active controller)
    ControllerActivated {
        epoch: i32,
    },
    ControllerDeactivated {
        epoch: i32,
    },
    BrokerRegistered {
        broker: NodeId,
        broker_epoch: i64,
        incarnation: Uuid,
        clean_shutdown: bool,
    },
    BrokerFenced {
        broker: NodeId,
    },
    BrokerUnfenced {
        broker: NodeId,
    },
    BrokerInControlledShutdown {
        broker: NodeId,
    },
    TopicCreated {
        name: String,
        topic: Uuid,
    },
    /// The removal of a topic is committed. A topic of the same name that is created later has another id.
    TopicDeleted {
        topic: Uuid,
    },
    /// A setting of a topic, or of all brokers, is committed.
    ConfigChanged {
        metadata_offset: i64,
        /// The topic; `None` for the default of all brokers.
        topic: Option<String>,
        /// Kafka's name of the setting.
        name: String,
        /// `None`: no longer set here.
        value: Option<String>,
    },
    /// A partition record was decided (not yet committed) by the active controller in quorum epoch `controller_epoch`;
    /// `acceptable` lists the replicas that were unfenced and not shutting down at that moment, after the batch's
    /// own changes; `unclean_allowed` is the configuration in force.
    PartitionDecided {
        controller_epoch: i32,
        state: PartitionState,
        election: Option<Election>,
        acceptable: Vec<NodeId>,
        unclean_allowed: bool,
    },
    /// The same partition record is committed and replayed on this node's image.
    PartitionCommitted {
        state: PartitionState,
        metadata_offset: i64,
    },
    AlterPartitionRefused {
        partition: TopicPartition,
        code: i16,
    },
}
