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

/// What becomes of waiting acks=all produces when the replica stops leading their epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PendingProduce {
    /// They fail with NOT_LEADER_OR_FOLLOWER.
    FailOnDemotion,
    /// They wait on, and succeed once the local high watermark passes, whoever advanced it (museum 10).
    CompleteByHighWatermark,
}

/// The rules in force on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    pub produce_reply: ProduceReply,
    pub positions_on_new_epoch: PositionsOnNewEpoch,
    pub become_follower: BecomeFollower,
    pub isr_shrink: IsrShrink,
    pub pending_produce: PendingProduce,
}

impl Rules {
    /// Correct code. The only rules that a real server can be built with.
    pub const KAFKA: Rules = Rules {
        produce_reply: ProduceReply::WhenDurable,
        positions_on_new_epoch: PositionsOnNewEpoch::Forget,
        become_follower: BecomeFollower::TruncateOnDivergence,
        isr_shrink: IsrShrink::WhenCommitted,
        pending_produce: PendingProduce::FailOnDemotion,
    };
}
