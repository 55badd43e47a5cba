//! `rolling-restart`: one process after the other is stopped (in order, or by force) and started again. Without overlap
//! the next one goes down only after the last one is back in the in-sync replicas, or after a bound; with overlap it
//! goes down while the last one still is.

use std::time::Duration;

use tokio::sync::mpsc;

use super::arguments::{self, Range};
use super::{Class, FaultKind, Firing, Occasion, needs_nodes};
use crate::world::CrashKind;

/// How long the next node waits for the last one to be in sync again: longer than any session time-out.
const IN_SYNC_WAIT_MAX: Duration = Duration::from_secs(15);
/// Percent of the time that one node is down in which the next one is down too.
const OVERLAP_MAX: Range = Range { from: 0, to: 50 };

pub const ROLLING_RESTART: FaultKind = FaultKind {
    name: "rolling-restart",
    text: "one after the other, the processes of the `nodes` (clients too) are stopped (`clean = true`: in order; \
           false: killed) and started after `for`; the next one goes down `overlap` percent of that time earlier",
    may_lose: "nothing at acks=all with unclean election off",
    class: Class::TakesDown,
    check: |plan| {
        needs_nodes(plan, &["clean", "overlap"])?;
        arguments::numbers(plan, "overlap", 0, OVERLAP_MAX)?;
        match plan.arguments.get("clean").map(String::as_str) {
            Some("true" | "false") => Ok(()),
            _ => Err("rolling-restart needs clean = true or false".into()),
        }
    },
    fire: |occasion| -> Firing { Box::pin(fire(occasion)) },
};

async fn fire(occasion: Occasion) -> u64 {
    let Occasion { cluster, plan, lasts, mut random } = occasion;
    let clean = plan.arguments["clean"] == "true";
    let overlap =
        arguments::numbers(&plan, "overlap", 0, OVERLAP_MAX).expect("checked when the plan was made");
    let overlap = u32::try_from(overlap.draw(&mut random)).expect("at most one half");
    let (results, mut ended) = mpsc::unbounded_channel();
    let mut restarted = 0;
    for member in cluster.resolve(&plan.nodes) {
        let (own_cluster, own_plan, own, results) =
            (cluster.clone(), plan.clone(), member.clone(), results.clone());
        cluster.world().spawn("restart", async move {
            let down = if clean {
                own_cluster.stop(&own_plan, &own).await
            } else {
                own_cluster.crash(&own_plan, &own, CrashKind::Process)
            };
            if down {
                own_cluster.sleep(lasts).await;
                own_cluster.start_again(&own_plan.id, &own).await;
            }
            let _ = results.send(u64::from(down));
        });
        if overlap == 0 {
            restarted += ended.recv().await.unwrap_or(0);
            cluster.until_back(&member, IN_SYNC_WAIT_MAX).await;
        } else {
            cluster.sleep(lasts * (100 - overlap) / 100).await;
        }
    }
    drop(results);
    while let Some(down) = ended.recv().await {
        restarted += down;
    }
    restarted
}
