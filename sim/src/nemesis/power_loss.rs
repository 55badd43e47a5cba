//! `power-loss`: machines lose power at the same moment; of what was not synced a random part is lost.
//! `power-loss-in-recovery`: the same, and again while they recover from it.

use std::time::Duration;

use rand::RngExt;

use super::arguments::{self, Range};
use super::{Class, FaultKind, Firing, Occasion, crash, needs_nodes};
use crate::runner::cluster::Member;
use crate::world::CrashKind;

/// How long a fault that wants to be alone waits for it, and for its nodes to come back.
const ALONE_WAIT_MAX: Duration = Duration::from_secs(60);
/// How often one machine loses power again.
const TIMES_MAX: Range = Range { from: 1, to: 20 };
/// A first guess of how long recovery takes; after that, how long it took.
const RECOVERY_GUESS: Duration = Duration::from_millis(4);
/// How often it is looked whether a node is through with its recovery.
const LOOK_INTERVAL: Duration = Duration::from_micros(50);

pub const POWER_LOSS: FaultKind = FaultKind {
    name: "power-loss",
    text: "the machines lose power at once; of what was not synced a random part is gone when they start after `for`; with \
           `alone = true` only while every replica is in sync and no other such fault is under way",
    may_lose: "what was not synced on the machines hit",
    class: Class::TakesDown,
    check: |plan| {
        needs_nodes(plan, &["alone"])?;
        arguments::word(plan, "alone", &["false", "true"]).map(drop)
    },
    fire: |occasion| -> Firing {
        Box::pin(alone(occasion, |occasion| Box::pin(crash::fire(occasion, CrashKind::Power))))
    },
};

pub const POWER_LOSS_IN_RECOVERY: FaultKind = FaultKind {
    name: "power-loss-in-recovery",
    text: "the machines lose power at once, and when they start after `for`, one after the other, they lose it again, \
           `times` times, while they read and repair their logs",
    may_lose: "what was not synced on the machines hit",
    class: Class::TakesDown,
    check: |plan| {
        needs_nodes(plan, &["times", "alone"])?;
        arguments::word(plan, "alone", &["false", "true"])?;
        arguments::numbers(plan, "times", 1, TIMES_MAX).map(drop)
    },
    fire: |occasion| -> Firing { Box::pin(alone(occasion, |occasion| Box::pin(in_recovery(occasion)))) },
};

/// With `alone`, waits until every replica is in sync and no other fault like this is under way, and lets the next one
/// begin only when the nodes hit have left the in-sync sets and come back to them: what they lost, they hold again.
async fn alone(occasion: Occasion, fire: fn(Occasion) -> Firing) -> u64 {
    if occasion.plan.arguments.get("alone").is_none_or(|alone| alone == "false") {
        return fire(occasion).await;
    }
    let cluster = occasion.cluster.clone();
    if !cluster.until(ALONE_WAIT_MAX, || cluster.take_power()).await {
        return 0;
    }
    let members = cluster.resolve(&occasion.plan.nodes);
    let memberships = cluster.memberships(&members);
    let effect = fire(occasion).await;
    let back = effect == 0 || cluster.until(ALONE_WAIT_MAX, || cluster.came_back(&memberships)).await;
    if back {
        cluster.give_power_back();
    }
    effect
}

/// The number of losses that hit a recovery.
async fn in_recovery(mut occasion: Occasion) -> u64 {
    let cluster = occasion.cluster.clone();
    let times = arguments::numbers(&occasion.plan, "times", 1, TIMES_MAX);
    let times = times.expect("checked when the plan was made").draw(&mut occasion.random);
    let members = cluster.resolve(&occasion.plan.nodes);
    let hit: Vec<Member> = members
        .into_iter()
        .filter(|member| member.node.is_some() && cluster.crash(&occasion.plan, member, CrashKind::Power))
        .collect();
    cluster.sleep(occasion.lasts).await;
    let mut effects = 0;
    for member in &hit {
        let mut guess = RECOVERY_GUESS;
        for _ in 0..times {
            let (hits, took) = relapse(&mut occasion, member, guess).await;
            effects += u64::from(hits);
            guess = took.min(guess);
        }
        cluster.start_again(&occasion.plan.id, member).await;
    }
    effects
}

/// Starts a node and takes its power within `guess`, or when it has recovered if that comes first. Whether it still
/// recovered, and how long it had run.
async fn relapse(occasion: &mut Occasion, member: &Member, guess: Duration) -> (bool, Duration) {
    let Occasion { cluster, plan, random, .. } = occasion;
    let node = member.node.expect("only nodes recover");
    let starts = || cluster.recorder().lock().view.starts(node);
    let before = starts();
    cluster.start_again(&plan.id, member).await;
    let begun = cluster.world().now();
    let micros = u64::try_from(guess.as_micros()).expect("a recovery is short");
    let end = begun + Duration::from_micros(random.random_range(0..=micros));
    while starts() == before && cluster.world().now() < end {
        cluster.sleep(LOOK_INTERVAL).await;
    }
    let recovers = starts() == before;
    let hits = cluster.crash(plan, member, CrashKind::Power) && recovers;
    (hits, cluster.world().now() - begun)
}
