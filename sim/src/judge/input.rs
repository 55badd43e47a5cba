//! What the judge is told besides observations and disk changes: its configuration, client operations, faults, and
//! the state in which the run ended. Plain values; nothing is decided here.

use std::collections::BTreeMap;

use acked_core::{NodeId, Time};
pub use acked_reports::history::{ReadPurpose, ResetReason};

use super::checks::Checks;

/// What a topic promises, as the run configured it: the judge believes this, not the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicContract {
    pub replication_factor: i32,
    /// `min.insync.replicas` as configured; what counts is the smaller of this and the replication factor.
    pub min_insync: i32,
    /// `unclean.leader.election.enable`.
    pub unclean: bool,
}

impl TopicContract {
    /// The number of in-sync replicas without which acks=all is refused.
    pub fn effective_min_insync(&self) -> i32 {
        self.min_insync.min(self.replication_factor)
    }
}

/// How one run is judged.
#[derive(Clone, Debug)]
pub struct JudgeConfig {
    pub brokers: Vec<NodeId>,
    pub controllers: Vec<NodeId>,
    /// By topic name.
    pub topics: BTreeMap<String, TopicContract>,
    /// For topics that `topics` does not name.
    pub default_topic: TopicContract,
    /// Eligible leader replicas (KIP-966) are on.
    pub elr: bool,
    pub checks: Checks,
}

impl JudgeConfig {
    /// The contract of a topic.
    pub fn contract(&self, topic: &str) -> TopicContract {
        self.topics.get(topic).copied().unwrap_or(self.default_topic)
    }
}

/// One event of a client. Operation numbers are unique in a run. `content` is [`super::content_hash`] of the
/// record's key, value and headers.
#[derive(Clone, Copy, Debug)]
pub enum ClientEvent<'a> {
    /// A client begins to send one record. Must be told before its bytes can reach a broker.
    SendInvoked {
        client: u32,
        operation: u64,
        topic: &'a str,
        index: i32,
        content: u64,
        /// 0, 1 or -1 (all).
        acks: i16,
        idempotent: bool,
        /// Order is promised: idempotent, or one request in flight.
        ordered: bool,
    },
    /// Success; `offset` is -1 when no position was told (acks=0).
    SendOk {
        operation: u64,
        offset: i64,
    },
    /// Definitely without effect. `code` is Kafka's error code, or -1 for the client's own.
    SendFailed {
        operation: u64,
        code: i16,
    },
    /// The outcome is unknown: time-out, disconnect, NOT_ENOUGH_REPLICAS_AFTER_APPEND, ….
    SendInfo {
        operation: u64,
        code: i16,
    },
    PollInvoked {
        client: u32,
        operation: u64,
        purpose: ReadPurpose,
    },
    /// Records of one partition that the poll gives to its application; any number of times before it ends.
    /// `position` is the next offset that the client would read.
    Records {
        operation: u64,
        topic: &'a str,
        index: i32,
        records: &'a [(i64, u64)],
        position: i64,
    },
    /// The application was told that the position of its reader no longer holds: `from` was the next offset, `to` is
    /// (`None` while a leader has to be asked for it; it is told again then). Told before the records that follow.
    PositionReset {
        client: u32,
        topic: &'a str,
        index: i32,
        from: i64,
        to: Option<i64>,
        reason: ResetReason,
    },
    /// The poll is over; `code` is 0 or Kafka's error code.
    PollEnded {
        operation: u64,
        code: i16,
    },
    /// Any other call (metadata, create topic, elect leaders, …), so that its end is watched too (L5).
    CallInvoked {
        client: u32,
        operation: u64,
        name: &'static str,
    },
    CallEnded {
        operation: u64,
        code: i16,
    },
}

/// One end of a fault as it really fired.
#[derive(Clone, Copy, Debug)]
pub struct FaultEvent<'a> {
    /// The fault's identifier in its scenario.
    pub id: &'a str,
    /// `crash`, `power-loss`, `split`, ….
    pub kind: &'a str,
    /// The nodes that it touches, roles already resolved.
    pub nodes: &'a [NodeId],
    /// True when it begins, false when it is healed.
    pub injected: bool,
    /// The nodes lose what was not synced.
    pub loses_power: bool,
    /// The nodes lose their disks.
    pub wipes_disk: bool,
}

/// Whether the acks=all write that follows the heal of one partition succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// It was acknowledged this long after the heal.
    Acked(Time),
    /// It was not acknowledged within the bound; Kafka's error code of the last attempt, 0 when none came.
    Refused(i16),
    NotTried,
}

/// One partition after heal, liveness and validation.
#[derive(Clone, Debug)]
pub struct FinalPartition {
    pub topic: String,
    pub index: i32,
    /// The live broker that leads it.
    pub leader: Option<NodeId>,
    /// Some member of ISR or ELR is alive and reaches a majority of the controllers: a leader is due (L1).
    pub electable: bool,
    /// At least `min.insync.replicas` of those are alive and connected: writes are due (L2).
    pub writable: bool,
    pub probe: Probe,
    /// Where the final read of this partition ended: the next offset it would have read; `None` when there was none.
    pub read_to: Option<i64>,
}

/// The state in which a run ended.
#[derive(Clone, Debug)]
pub struct FinalState {
    /// In the order of topic name and index.
    pub partitions: Vec<FinalPartition>,
    /// The controller that leads the metadata quorum.
    pub quorum_leader: Option<NodeId>,
    /// A majority of the controllers is alive and connected: a leader is due (L7).
    pub quorum_majority: bool,
    /// Longest time that any client call may take.
    pub call_bound: Time,
    /// The bounds of the liveness phase, printed with findings.
    pub elect_bound: Time,
    pub write_bound: Time,
    pub quorum_bound: Time,
}

impl FinalState {
    /// Of a run that was broken off: nothing is known, and nothing is due.
    pub fn nothing() -> FinalState {
        FinalState {
            partitions: Vec::new(),
            quorum_leader: None,
            quorum_majority: false,
            call_bound: Time::MAX,
            elect_bound: Time::ZERO,
            write_bound: Time::ZERO,
            quorum_bound: Time::ZERO,
        }
    }
}
