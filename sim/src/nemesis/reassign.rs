//! A planned move of leadership without any fault: the replicas get another order, and a preferred election follows.
//! Nobody is fenced by it, so a leader that stands still meanwhile may miss a whole reign.

use super::arguments;
use super::targets::topic_partition;
use super::{Class, FaultKind, Firing, Occasion, needs_partitions};

const ORDERS: [&str; 2] = ["swap", "rotate"];

pub const REASSIGN: FaultKind = FaultKind {
    name: "reassign",
    text: "the replicas of the partitions in `nodes` get another `order` (`swap` the first two, or `rotate` by one), and \
           leadership moves to the one that is now preferred",
    may_lose: "nothing at acks=all",
    class: Class::Disturbs,
    check: |plan| {
        needs_partitions(plan, &["order"])?;
        arguments::word(plan, "order", &ORDERS).map(drop)
    },
    fire: |occasion| -> Firing { Box::pin(fire(occasion)) },
};

async fn fire(occasion: Occasion) -> u64 {
    let Occasion { cluster, plan, .. } = occasion;
    let swaps = arguments::word(&plan, "order", &ORDERS) == Ok("swap");
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
