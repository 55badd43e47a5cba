//! A planned move of leadership without any fault: the replicas get another order, and a preferred election follows.
//! Nobody is fenced by it, so a leader that stands still meanwhile may miss a whole reign.

use super::targets::topic_partition;
use super::{Class, FaultKind, Firing, Occasion, only_arguments};
use crate::plan::FaultPlan;

pub const REASSIGN: FaultKind = FaultKind {
    name: "reassign",
    text: "the replicas of the partitions in `nodes` get another `order` (`swap` the first two, or `rotate` by one), and \
           leadership moves to the one that is now preferred",
    may_lose: "nothing at acks=all",
    class: Class::Disturbs,
    check,
    fire: |occasion| -> Firing { Box::pin(fire(occasion)) },
};

fn check(plan: &FaultPlan) -> Result<(), String> {
    if plan.nodes.is_empty() || plan.sides.is_some() {
        return Err(format!("{} needs nodes = […], the partitions, and no sides", plan.kind));
    }
    only_arguments(plan, &["order"])?;
    match plan.arguments.get("order").map(String::as_str) {
        None | Some("swap" | "rotate") => {}
        Some(other) => return Err(format!("{} order is swap or rotate, not '{other}'", plan.kind)),
    }
    match plan.nodes.iter().find(|word| topic_partition(word).is_none()) {
        Some(word) => Err(format!("{} takes partitions such as orders-0, not '{word}'", plan.kind)),
        None => Ok(()),
    }
}

async fn fire(occasion: Occasion) -> u64 {
    let Occasion { cluster, plan, .. } = occasion;
    let swaps = plan.arguments.get("order").is_none_or(|order| order == "swap");
    let mut moved = 0;
    for word in &plan.nodes {
        let (topic, index) = topic_partition(word).expect("checked when the plan was made");
        let reorder = |replicas: &mut Vec<acked_core::NodeId>| match replicas.as_mut_slice() {
            [first, second, ..] if swaps => std::mem::swap(first, second),
            replicas if replicas.len() > 1 => replicas.rotate_left(1),
            _ => {}
        };
        moved += u64::from(cluster.reassign(&plan, &topic, index, reorder).await);
    }
    moved
}
