//! Elections that an administrator asks for: `move-leader` (back to the preferred replica) and `unclean-election`.

use acked_client::ElectionKind;

use super::targets::topic_partition;
use super::{Class, FaultKind, Firing, Occasion, needs_partitions};

pub const MOVE_LEADER: FaultKind = FaultKind {
    name: "move-leader",
    text: "leadership of the partitions in `nodes` moves to the preferred replica on purpose",
    may_lose: "nothing at acks=all",
    class: Class::Disturbs,
    check: |plan| needs_partitions(plan, &[]),
    fire: |occasion| -> Firing { Box::pin(fire(occasion, ElectionKind::Preferred)) },
};

pub const UNCLEAN_ELECTION: FaultKind = FaultKind {
    name: "unclean-election",
    text: "an administrator asks for an unclean election of the partitions in `nodes`",
    may_lose: "what the elected replica does not hold",
    class: Class::Disturbs,
    check: |plan| needs_partitions(plan, &[]),
    fire: |occasion| -> Firing { Box::pin(fire(occasion, ElectionKind::Unclean)) },
};

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
