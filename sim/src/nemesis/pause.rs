//! `pause`: the process stands still, as under SIGSTOP; its host goes on acknowledging bytes.

use super::{Class, FaultKind, Firing, Occasion, needs_nodes};

pub const PAUSE: FaultKind = FaultKind {
    name: "pause",
    text: "the process stands still for `for`, while its host keeps its connections",
    may_lose: "nothing at acks=all with unclean election off",
    class: Class::Disturbs,
    check: |plan| needs_nodes(plan, &[]),
    fire: |occasion| -> Firing { Box::pin(fire(occasion)) },
};

async fn fire(occasion: Occasion) -> u64 {
    let Occasion { cluster, plan, lasts, .. } = occasion;
    let members = cluster.resolve(&plan.nodes);
    let paused: Vec<_> = members.into_iter().filter(|member| cluster.pause(&plan, member)).collect();
    cluster.sleep(lasts).await;
    for member in &paused {
        cluster.resume(&plan.id, member);
    }
    paused.len() as u64
}
