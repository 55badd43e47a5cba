//! `rolling-restart`: one node after the other is stopped (in order, or by force) and started again, the next one only
//! after the last one is back in the in-sync replicas, or after a bound.

use std::time::Duration;

use super::{FaultKind, Firing, Occasion, needs_nodes};
use crate::world::CrashKind;

/// How long the next node waits for the last one to be in sync again: longer than any session time-out.
const IN_SYNC_WAIT_MAX: Duration = Duration::from_secs(15);

pub const ROLLING_RESTART: FaultKind = FaultKind {
    name: "rolling-restart",
    text: "one node after the other is stopped (`clean = true`: in order; false: killed) and started after `for`",
    may_lose: "nothing at acks=all with unclean election off",
    check: |plan| {
        needs_nodes(plan, &["clean"])?;
        match plan.arguments.get("clean").map(String::as_str) {
            Some("true" | "false") => Ok(()),
            _ => Err("rolling-restart needs clean = true or false".into()),
        }
    },
    fire: |occasion| -> Firing { Box::pin(fire(occasion)) },
};

async fn fire(occasion: Occasion) -> u64 {
    let Occasion { cluster, plan, lasts, .. } = occasion;
    let clean = plan.arguments["clean"] == "true";
    let mut restarted = 0;
    for member in cluster.resolve(&plan.nodes) {
        let down = if clean {
            cluster.stop(&plan, &member).await
        } else {
            cluster.crash(&plan, &member, CrashKind::Process)
        };
        if !down {
            continue;
        }
        cluster.sleep(lasts).await;
        cluster.start_again(&plan.id, &member).await;
        restarted += 1;
        cluster.until_in_sync(&member, IN_SYNC_WAIT_MAX).await;
    }
    restarted
}
