//! `stop`: the node is asked to stop in order (controlled shutdown), and starts again after the fault's time.

use super::{Class, FaultKind, Firing, Occasion, needs_nodes};

pub const STOP: FaultKind = FaultKind {
    name: "stop",
    text: "the node stops in order (controlled shutdown) and starts again after `for`",
    may_lose: "nothing",
    class: Class::TakesDown,
    check: |plan| needs_nodes(plan, &[]),
    fire: |occasion| -> Firing { Box::pin(fire(occasion)) },
};

async fn fire(occasion: Occasion) -> u64 {
    let Occasion { cluster, plan, lasts, .. } = occasion;
    let mut stopped = 0;
    for member in cluster.resolve(&plan.nodes) {
        if cluster.stop(&plan, &member).await {
            cluster.sleep(lasts).await;
            cluster.start_again(&plan.id, &member).await;
            stopped += 1;
        }
    }
    stopped
}
