//! The fault agent. Each fault is a file of its own: what it needs, how it injects and heals, and what it counts as
//! having really changed. Faults act on a [`Cluster`]; targets that are roles are resolved when they fire.
//!
//! A fault whose effect counter stays zero proved nothing: its seed is vacuous, never green.

mod crash;
mod election;
mod pause;
mod power_loss;
mod rolling_restart;
mod split;
mod stop;
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

/// One kind of fault.
pub struct FaultKind {
    pub name: &'static str,
    pub text: &'static str,
    /// What it may destroy, as the loss oracle sees it.
    pub may_lose: &'static str,
    check: fn(&FaultPlan) -> Result<(), String>,
    /// Injects, waits, heals; returns how often it really changed something.
    fire: fn(Occasion) -> Firing,
}

/// Every kind, sorted by name.
pub static FAULTS: &[FaultKind] = &[
    crash::CRASH,
    split::HALVES,
    split::ISOLATED_LEADER,
    split::LEADER_CUT_FROM_CONTROLLERS,
    election::MOVE_LEADER,
    split::ONE_WAY,
    pause::PAUSE,
    power_loss::POWER_LOSS,
    rolling_restart::ROLLING_RESTART,
    split::SPLIT,
    stop::STOP,
    election::UNCLEAN_ELECTION,
];

fn find(name: &str) -> Option<&'static FaultKind> {
    FAULTS.iter().find(|kind| kind.name == name)
}

/// Whether the nemesis can carry a planned fault out.
///
/// # Errors
/// An unknown kind, target or argument, or a target that is missing; worded for whoever wrote the scenario.
pub fn check(plan: &FaultPlan) -> Result<(), String> {
    let kind = find(&plan.kind).ok_or_else(|| {
        let known: Vec<&str> = FAULTS.iter().map(|kind| kind.name).collect();
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
mod tests {
    use super::*;

    #[test]
    fn kinds_are_sorted_and_told_apart() {
        for pair in FAULTS.windows(2) {
            assert!(pair[0].name < pair[1].name, "{} before {}", pair[0].name, pair[1].name);
        }
    }
}
