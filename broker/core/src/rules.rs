//! Rule seams: decisions that history got wrong, each a named choice. `Rules::KAFKA` is what correct code does;
//! every other value is a mutation of the bug museum. A machine is handed its rules when it is made.

/// When a produce request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProduceReply {
    /// After the append, and for acks=all after the high watermark passed it.
    WhenDurable,
    /// On receipt, with the offset that the append will get; the append follows in a later event (museum 0).
    OnReceipt,
}

/// What becomes of follower positions when a leader learns a newer leader epoch in which it leads again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PositionsOnNewEpoch {
    Forget,
    /// Kafka 4.3.1 keeps them when it never stepped down (museum 0b).
    KeepWhenStillLeader,
}

/// How a follower reconciles its log on a new leader epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BecomeFollower {
    /// Only where the leader's epochs diverge (KIP-595 style fetch).
    TruncateOnDivergence,
    /// To the local high watermark, ignoring epochs (museum 1, KIP-101).
    TruncateToHighWatermark,
}

/// From when a proposed ISR shrink counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsrShrink {
    WhenCommitted,
    /// As soon as it is proposed (museum 5).
    WhenProposed,
}

/// From when a proposed ISR expansion counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsrExpansion {
    /// As soon as it is proposed: the controller may have committed it, and elect the new member, before it answers.
    WhenProposed,
    /// Only when it is known to be committed (museum 4).
    WhenCommitted,
}

/// How far a follower outside the ISR must have come to join it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsrJoin {
    /// To the high watermark and to the start of the leader epoch: the high watermark of a new leader may be stale.
    AtEpochStart,
    /// To the high watermark alone (museum 7, KAFKA-7128).
    AtHighWatermark,
}

/// Which fetches say where a follower's log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FollowerPosition {
    /// Those that the leader's log agrees with.
    FromAgreeingFetches,
    /// Those answered with a diverging epoch too (museum 6, KAFKA-13141).
    FromDivergingFetches,
}

/// Where a new leader's high watermark begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElectedHighWatermark {
    /// Where the replica's own was: behind it nothing is known to be committed.
    Kept,
    /// At the end of its log (museum 11).
    JumpsToEnd,
}

/// When a producer's batch is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProducerState {
    /// Once the log holds it.
    AfterAppend,
    /// Before the in-sync replicas are counted, and it stays when they are too few (museum 15, KAFKA-6683).
    BeforeAppend,
}

/// How many batches of a producer are recognised when they come again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DedupeWindow {
    /// As many as may be in flight: five.
    InFlight,
    /// Only the last (museum 17, KAFKA-5494).
    LastOnly,
}

/// What becomes of waiting acks=all produces when the replica stops leading their epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PendingProduce {
    /// They fail with NOT_LEADER_OR_FOLLOWER.
    FailOnDemotion,
    /// They fail only if another replica leads now, and else wait on in the new epoch: Apache Kafka 4.3.1.
    FailUnlessStillLeader,
    /// They wait on, and succeed once the local high watermark passes, whoever advanced it (museum 10).
    CompleteByHighWatermark,
}

/// When the answer to a granted vote of the metadata quorum leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VoteReply {
    /// Once epoch and vote are synced (KIP-595).
    WhenSaved,
    /// At once, while they are still being saved (museum 13).
    BeforeSaved,
}

/// From when a quorum node vouches for what it appended to its metadata log, as voter by its next fetch and as leader
/// by counting itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuorumAppend {
    /// Once it is synced (KIP-595).
    SyncedBeforeAcknowledged,
    /// Once it is handed to the operating system, which writes it when it likes (museum 14).
    LeftToTheOperatingSystem,
}

/// The rules in force on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    pub produce_reply: ProduceReply,
    pub positions_on_new_epoch: PositionsOnNewEpoch,
    pub become_follower: BecomeFollower,
    pub isr_shrink: IsrShrink,
    pub isr_expansion: IsrExpansion,
    pub isr_join: IsrJoin,
    pub follower_position: FollowerPosition,
    pub elected_high_watermark: ElectedHighWatermark,
    pub producer_state: ProducerState,
    pub dedupe_window: DedupeWindow,
    pub pending_produce: PendingProduce,
    pub vote_reply: VoteReply,
    pub quorum_append: QuorumAppend,
}

impl Rules {
    /// Correct code. The only rules that a real server can be built with.
    pub const KAFKA: Rules = Rules {
        produce_reply: ProduceReply::WhenDurable,
        positions_on_new_epoch: PositionsOnNewEpoch::Forget,
        become_follower: BecomeFollower::TruncateOnDivergence,
        isr_shrink: IsrShrink::WhenCommitted,
        isr_expansion: IsrExpansion::WhenProposed,
        isr_join: IsrJoin::AtEpochStart,
        follower_position: FollowerPosition::FromAgreeingFetches,
        elected_high_watermark: ElectedHighWatermark::Kept,
        producer_state: ProducerState::AfterAppend,
        dedupe_window: DedupeWindow::InFlight,
        pending_produce: PendingProduce::FailOnDemotion,
        vote_reply: VoteReply::WhenSaved,
        quorum_append: QuorumAppend::SyncedBeforeAcknowledged,
    };
}
