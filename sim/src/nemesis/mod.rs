//! The fault agent. Each fault is a file of its own: what it needs, how it injects and heals, and what it counts as
//! having really changed. Faults act on a [`Cluster`]; targets that are roles are resolved when they fire.
//!
//! A fault whose effect counter stays zero proved nothing: its seed is vacuous, never green.

mod alter_config;
mod arguments;
mod clock;
mod crash;
mod election;
mod freeze;
mod messages;
mod overlapping_majorities;
mod pause;
mod power_loss;
mod reassign;
mod rolling_restart;
mod self_check;
mod split;
mod stop;
pub mod swarm;
pub mod targets;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use rand_chacha::ChaCha8Rng;

use crate::plan::FaultPlan;
use crate::runner::cluster::Cluster;

/// A fault in progress.
pub type Firing = Pin<Box<dyn Future<Output = u64> + Send>>;

/// What a fault is given when its time has come.
pub struct Occasion {
    pub cluster: Arc<Cluster>,
    pub plan: FaultPlan,
    /// How long it lasts, already drawn.
    pub lasts: Duration,
    /// The fault's own stream: taking another fault away does not shift its draws.
    pub random: ChaCha8Rng,
}

/// What the rest of the testbed must know of a fault kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// Its nodes do not run while it lasts.
    TakesDown,
    /// Its nodes run, or stand still.
    Disturbs,
    /// It chooses by what travels: the network has to follow Kafka's frames.
    AsksWhatTravels,
    /// No fault of a world but a planted defect of the code under test.
    SelfCheck,
}

/// One kind of fault.
pub struct FaultKind {
    pub name: &'static str,
    pub text: &'static str,
    /// What it may destroy, as the loss oracle sees it.
    pub may_lose: &'static str,
    class: Class,
    check: fn(&FaultPlan) -> Result<(), String>,
    /// Injects, waits, heals; returns how often it really changed something.
    fire: fn(Occasion) -> Firing,
}

/// Every kind, sorted by name.
pub static FAULTS: &[FaultKind] = &[
    alter_config::ALTER_CONFIG,
    split::CLIENT_CUT_FROM_LEADER,
    messages::CLIENT_DISCONNECT,
    clock::CLOCK_DRIFT,
    clock::CLOCK_OFFSET,
    clock::CLOCK_STEP,
    crash::CRASH,
    messages::DELAY,
    messages::DROP,
    freeze::FREEZE,
    split::HALVES,
    self_check::HANG,
    split::ISOLATED_LEADER,
    split::LEADER_CUT_FROM_CONTROLLERS,
    election::MOVE_LEADER,
    split::ONE_WAY,
    overlapping_majorities::OVERLAPPING_MAJORITIES,
    self_check::PANIC,
    pause::PAUSE,
    power_loss::POWER_LOSS,
    power_loss::POWER_LOSS_IN_RECOVERY,
    reassign::REASSIGN,
    rolling_restart::ROLLING_RESTART,
    self_check::SPIN,
    split::SPLIT,
    stop::STOP,
    swarm::SWARM,
    election::UNCLEAN_ELECTION,
];

impl FaultKind {
    /// It belongs to the catalogue of faults; the others are planted defects, by which the testbed checks itself.
    pub fn is_listed(&self) -> bool {
        self.class != Class::SelfCheck
    }
}

/// Whether this kind plants a defect, rather than doing what a world may do: a scenario with it must fail.
pub fn is_planted(kind: &str) -> bool {
    find(kind).is_some_and(|kind| !kind.is_listed())
}

/// Whether faults of this kind take their nodes down.
pub fn takes_down(kind: &str) -> bool {
    find(kind).is_some_and(|kind| kind.class == Class::TakesDown)
}

/// Whether a planned fault needs a network that follows Kafka's frames.
pub fn follows_frames(plan: &FaultPlan) -> bool {
    find(&plan.kind).is_some_and(|kind| kind.class == Class::AsksWhatTravels)
}

fn find(name: &str) -> Option<&'static FaultKind> {
    FAULTS.iter().find(|kind| kind.name == name)
}

/// Whether the nemesis can carry a planned fault out.
///
/// # Errors
/// An unknown kind, target or argument, or a target that is missing; worded for whoever wrote the scenario.
pub fn check(plan: &FaultPlan) -> Result<(), String> {
    let kind = find(&plan.kind).ok_or_else(|| {
        let known: Vec<&str> = FAULTS.iter().filter(|kind| kind.is_listed()).map(|kind| kind.name).collect();
        format!("there is no fault kind '{}', only {}", plan.kind, known.join(", "))
    })?;
    (kind.check)(plan)
}

/// Fires one fault and reports how often it changed something.
pub async fn fire(occasion: Occasion) -> u64 {
    let kind = find(&occasion.plan.kind).expect("checked when the plan was made");
    (kind.fire)(occasion).await
}

fn needs_nodes(plan: &FaultPlan, arguments: &[&str]) -> Result<(), String> {
    if plan.nodes.is_empty() {
        return Err(format!("{} needs nodes = […]", plan.kind));
    }
    takes_nodes(plan, arguments)
}

/// Names of partitions in `nodes`, and nothing else.
fn needs_partitions(plan: &FaultPlan, arguments: &[&str]) -> Result<(), String> {
    if plan.nodes.is_empty() || plan.sides.is_some() {
        return Err(format!("{} needs nodes = […], the partitions, and no sides", plan.kind));
    }
    only_arguments(plan, arguments)?;
    match plan.nodes.iter().find(|word| targets::topic_partition(word).is_none()) {
        Some(word) => Err(format!("{} takes partitions such as orders-0, not '{word}'", plan.kind)),
        None => Ok(()),
    }
}

fn takes_nodes(plan: &FaultPlan, arguments: &[&str]) -> Result<(), String> {
    if plan.sides.is_some() {
        return Err(format!("{} takes nodes, not sides", plan.kind));
    }
    for word in &plan.nodes {
        targets::parse(word)?;
    }
    only_arguments(plan, arguments)
}

fn only_arguments(plan: &FaultPlan, known: &[&str]) -> Result<(), String> {
    match plan.arguments.keys().find(|name| !known.contains(&name.as_str())) {
        Some(name) if known.is_empty() => Err(format!("{} takes no argument '{name}'", plan.kind)),
        Some(name) => Err(format!("{} takes no argument '{name}', only {}", plan.kind, known.join(", "))),
        None => Ok(()),
    }
}

#[cfg(test)]
pub mod tests {
    use std::collections::BTreeMap;

    use acked_core::Rules;
    use acked_core::settings::{Scope, Settings};

    use super::*;
    use crate::plan::{Expectation, NetworkPlan, Plan, ProducerPlan, TimeRange, TopicPlan};

    /// A fault of a kind with these arguments and nothing else.
    pub fn fault(kind: &str, arguments: &[(&str, &str)]) -> FaultPlan {
        let at = TimeRange { from: Duration::ZERO, to: Duration::ZERO };
        let arguments: BTreeMap<String, String> =
            arguments.iter().map(|(name, value)| ((*name).to_string(), (*value).to_string())).collect();
        let (id, kind) = ("one".to_string(), kind.to_string());
        let (nodes, sides, part_of) = (Vec::new(), None, None);
        FaultPlan { id, kind, at, when: None, lasts: at, nodes, sides, arguments, part_of }
    }

    /// Three brokers and controllers, two producers and a consumer, and no faults.
    pub fn plan() -> Plan {
        let producer = |name: &str| ProducerPlan {
            name: name.to_string(),
            topic: "orders".to_string(),
            records: 100,
            rate: 10,
            value_bytes: 100,
            keys: 0,
            settings: Settings::default_for(Scope::Producer),
        };
        Plan {
            scenario: "test".to_string(),
            configuration: "default".to_string(),
            expect: Expectation::Never,
            gate: Vec::new(),
            rules: Rules::KAFKA,
            brokers: 3,
            controllers: 3,
            topics: vec![TopicPlan {
                name: "orders".to_string(),
                partitions: 2,
                replication_factor: 3,
                settings: Settings::default_for(Scope::Topic),
            }],
            broker: Settings::default_for(Scope::Broker),
            consumer: Settings::default_for(Scope::Consumer),
            producers: vec![producer("p1"), producer("p2")],
            tailing_consumers: 1,
            faults: Vec::new(),
            safety: Duration::from_secs(60),
            acked_min: 1,
            network: NetworkPlan::SameZone,
        }
    }

    #[test]
    fn kinds_are_sorted_and_told_apart() {
        for pair in FAULTS.windows(2) {
            assert!(pair[0].name < pair[1].name, "{} before {}", pair[0].name, pair[1].name);
        }
    }
}
