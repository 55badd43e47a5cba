//! `crash`: the process dies at once, its page cache survives; it starts again after the fault's time.

use super::{Class, FaultKind, Firing, Occasion, needs_nodes};
use crate::runner::cluster::Member;
use crate::world::CrashKind;

pub const CRASH: FaultKind = FaultKind {
    name: "crash",
    text: "the process dies, its page cache survives; it starts again after `for`",
    may_lose: "nothing at acks=all with unclean election off",
    class: Class::TakesDown,
    check: |plan| needs_nodes(plan, &[]),
    fire: |occasion| -> Firing { Box::pin(fire(occasion, CrashKind::Process)) },
};

/// Crashes every target that is up, waits, and starts those that it crashed.
pub async fn fire(occasion: Occasion, kind: CrashKind) -> u64 {
    let Occasion { cluster, plan, lasts, .. } = occasion;
    let members = cluster.resolve(&plan.nodes);
    let crashed: Vec<Member> =
        members.into_iter().filter(|member| cluster.crash(&plan, member, kind)).collect();
    cluster.sleep(lasts).await;
    for member in &crashed {
        cluster.start_again(&plan.id, member).await;
    }
    crashed.len() as u64
}
