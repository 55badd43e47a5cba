//! Elections that an administrator asks for: `move-leader` (back to the preferred replica) and `unclean-election`.

use acked_client::ElectionKind;

use super::targets::topic_partition;
use super::{Class, FaultKind, Firing, Occasion, only_arguments};
use crate::plan::FaultPlan;

pub const MOVE_LEADER: FaultKind = FaultKind {
    name: "move-leader",
    text: "leadership of the partitions in `nodes` moves to the preferred replica on purpose",
    may_lose: "nothing at acks=all",
    class: Class::Disturbs,
    check,
    fire: |occasion| -> Firing { Box::pin(fire(occasion, ElectionKind::Preferred)) },
};

pub const UNCLEAN_ELECTION: FaultKind = FaultKind {
    name: "unclean-election",
    text: "an administrator asks for an unclean election of the partitions in `nodes`",
    may_lose: "what the elected replica does not hold",
    class: Class::Disturbs,
    check,
    fire: |occasion| -> Firing { Box::pin(fire(occasion, ElectionKind::Unclean)) },
};

fn check(plan: &FaultPlan) -> Result<(), String> {
    if plan.nodes.is_empty() || plan.sides.is_some() {
        return Err(format!("{} needs nodes = […], the partitions, and no sides", plan.kind));
    }
    only_arguments(plan, &[])?;
    match plan.nodes.iter().find(|word| topic_partition(word).is_none()) {
        Some(word) => Err(format!("{} takes partitions such as orders-0, not '{word}'", plan.kind)),
        None => Ok(()),
    }
}

async fn fire(occasion: Occasion, kind: ElectionKind) -> u64 {
    let Occasion { cluster, plan, .. } = occasion;
    let mut elected = 0;
    for word in &plan.nodes {
        let (topic, index) = topic_partition(word).expect("checked when the plan was made");
        if cluster.elect(&plan, &topic, index, kind).await {
            elected += 1;
        }
    }
    elected
}
