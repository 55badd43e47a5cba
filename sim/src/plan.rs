//! What one campaign asks of the simulator: a scenario in one configuration, resolved to plain values. A plan and a
//! seed fix a run completely. Scenario files are read elsewhere; this knows no scenario by name.

use std::collections::BTreeMap;
use std::time::Duration;

use acked_core::Rules;
use acked_core::settings::Settings;

/// What a configuration promises about acknowledged data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// No acknowledged record may be lost.
    Never,
    /// Loss is allowed by the settings and may be seen.
    May,
    /// A demonstration: a campaign in which no loss is seen is inconclusive.
    MustLose,
}

/// A scenario in one of its configurations.
#[derive(Clone, Debug)]
pub struct Plan {
    pub scenario: String,
    pub configuration: String,
    pub expect: Expectation,
    /// Outcome words and invariant ids that fail the run even where the contract is kept (`[expect] gate`).
    pub gate: Vec<String>,
    pub rules: Rules,
    pub brokers: u16,
    pub controllers: u16,
    pub topics: Vec<TopicPlan>,
    /// Of brokers and controllers alike.
    pub broker: Settings,
    pub consumer: Settings,
    pub producers: Vec<ProducerPlan>,
    /// Consumers that read every partition while the load runs.
    pub tailing_consumers: u16,
    pub faults: Vec<FaultPlan>,
    /// How long faults may start after warm-up; the load runs at least as long.
    pub safety: Duration,
    /// Acknowledged records below which a seed proves nothing.
    pub acked_min: u64,
    pub network: NetworkPlan,
}

#[derive(Clone, Debug)]
pub struct TopicPlan {
    pub name: String,
    pub partitions: i32,
    pub replication_factor: i16,
    pub settings: Settings,
}

/// One producer: `records` records of `value_bytes` bytes, `rate` a second (0: as fast as it may), over all
/// partitions of `topic` in turn.
#[derive(Clone, Debug)]
pub struct ProducerPlan {
    pub name: String,
    pub topic: String,
    pub records: u64,
    pub rate: u32,
    pub value_bytes: usize,
    /// Distinct keys that its records have in turn; 0: none has a key.
    pub keys: u64,
    pub settings: Settings,
}

/// A range from which the seed draws a time, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    pub from: Duration,
    pub to: Duration,
}

/// One fault of the schedule. What `kind` means and which arguments it takes is the nemesis's to say.
#[derive(Clone, Debug)]
pub struct FaultPlan {
    pub id: String,
    pub kind: String,
    /// After the safety phase began.
    pub at: TimeRange,
    /// A state of the cluster that it waits for then, and how long after that it fires: a fault tied to a state does
    /// not hang on luck.
    pub when: Option<(Trigger, TimeRange)>,
    /// How long it lasts, where it lasts.
    pub lasts: TimeRange,
    /// Node names and roles (`b1`, `c2`, `p1`, `leader(orders-0)`, `follower(orders-0)`, `controller`, `brokers`, …).
    pub nodes: Vec<String>,
    /// The two sides of a split.
    pub sides: Option<(Vec<String>, Vec<String>)>,
    /// Further arguments by name.
    pub arguments: BTreeMap<String, String>,
    /// The fault of the scenario that this one is a part of: it is enough that one part changes something.
    pub part_of: Option<String>,
}

/// A state of the cluster, as the committed metadata or the quorum's votes say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The leader of the partition changed so often since the wait began (to nobody included).
    LeaderChanged { topic: String, index: i32, times: u64 },
    /// The partition has exactly so many in-sync replicas.
    IsrSize { topic: String, index: i32, size: usize },
    /// So many votes of the metadata quorum were granted since the wait began, each to another than the voter.
    VotesGranted { times: u64 },
}

/// One-way latency of every link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkPlan {
    /// 0.2–1 ms.
    SameZone,
    /// 1–5 ms.
    CrossZone,
}
