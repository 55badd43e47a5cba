//! `power-loss`: machines lose power at the same moment; of what was not synced a random part is lost.

use super::{FaultKind, Firing, crash, needs_nodes};
use crate::world::CrashKind;

pub const POWER_LOSS: FaultKind = FaultKind {
    name: "power-loss",
    text: "the machines lose power at once; of what was not synced a random part is gone when they start after `for`",
    may_lose: "what was not synced on the machines hit",
    check: |plan| needs_nodes(plan, &[]),
    fire: |occasion| -> Firing { Box::pin(crash::fire(occasion, CrashKind::Power)) },
};
