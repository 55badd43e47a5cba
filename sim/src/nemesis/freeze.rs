//! `freeze`: the whole machine stands still, as a virtual machine that is suspended: its process, its kernel and its
//! clocks. When it goes on it does not know that time has passed, and its wall clock is behind.

use super::{Class, FaultKind, Firing, Occasion, needs_nodes};

pub const FREEZE: FaultKind = FaultKind {
    name: "freeze",
    text: "the machine stands still for `for` with its kernel and its clocks, which are behind then",
    may_lose: "nothing at acks=all with unclean election off",
    class: Class::Disturbs,
    check: |plan| needs_nodes(plan, &[]),
    fire: |occasion| -> Firing { Box::pin(fire(occasion)) },
};

async fn fire(occasion: Occasion) -> u64 {
    let Occasion { cluster, plan, lasts, .. } = occasion;
    let members = cluster.resolve(&plan.nodes);
    let frozen: Vec<_> = members
        .into_iter()
        .filter_map(|member| cluster.freeze(&plan, &member).map(|block| (member, block)))
        .collect();
    cluster.sleep(lasts).await;
    for (member, block) in &frozen {
        cluster.thaw(&plan, member, *block);
    }
    frozen.len() as u64
}
