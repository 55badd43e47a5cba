//! Clocks that are wrong. `clock-offset` and `clock-step` touch the wall clock, by which records are stamped and
//! retention is judged; `clock-drift` makes every clock of a machine gain or lose, time-outs included. Nothing that
//! replication promises may depend on any of them.

use std::time::Duration;

use rand::RngExt;

use super::arguments::{self, Range};
use super::{Class, FaultKind, Firing, Occasion, needs_nodes};
use crate::runner::cluster::Member;

/// Millionths by which a clock may gain or lose: one twentieth, a hundred times what quartz does.
const DRIFT_MAX: Range = Range { from: -50_000, to: 50_000 };
const STEPS_MAX: Range = Range { from: 1, to: 1_000 };

pub const CLOCK_OFFSET: FaultKind = FaultKind {
    name: "clock-offset",
    text: "the wall clock of each of the `nodes` is wrong by its own draw from `by` for `for`",
    may_lose: "nothing",
    class: Class::Disturbs,
    check: |plan| {
        needs_nodes(plan, &["by"])?;
        arguments::signed_times(plan, "by").map(drop)
    },
    fire: |occasion| -> Firing { Box::pin(offset(occasion)) },
};

pub const CLOCK_STEP: FaultKind = FaultKind {
    name: "clock-step",
    text: "the wall clocks of the `nodes` jump by `by`, `times` times within `for`, and are set right then",
    may_lose: "nothing",
    class: Class::Disturbs,
    check: |plan| {
        needs_nodes(plan, &["by", "times"])?;
        arguments::numbers(plan, "times", 1, STEPS_MAX)?;
        arguments::signed_times(plan, "by").map(drop)
    },
    fire: |occasion| -> Firing { Box::pin(step(occasion)) },
};

pub const CLOCK_DRIFT: FaultKind = FaultKind {
    name: "clock-drift",
    text: "all clocks of each of the `nodes` gain or lose its own draw from `ppm` millionths for `for`",
    may_lose: "nothing",
    class: Class::Disturbs,
    check: |plan| {
        needs_nodes(plan, &["ppm"])?;
        if !plan.arguments.contains_key("ppm") {
            return Err("clock-drift needs ppm = \"-500..500\" or the like".into());
        }
        arguments::numbers(plan, "ppm", 0, DRIFT_MAX).map(drop)
    },
    fire: |occasion| -> Firing { Box::pin(drift(occasion)) },
};

async fn offset(occasion: Occasion) -> u64 {
    let Occasion { cluster, plan, lasts, mut random } = occasion;
    let range = arguments::signed_times(&plan, "by").expect("checked when the plan was made");
    let wrong: Vec<(Member, i64)> =
        cluster.resolve(&plan.nodes).into_iter().map(|member| (member, range.draw(&mut random))).collect();
    for (member, by) in &wrong {
        cluster.step_clock(&plan, member, *by);
    }
    cluster.sleep(lasts).await;
    for (member, by) in &wrong {
        cluster.step_clock(&plan, member, -by);
    }
    wrong.iter().filter(|(_, by)| *by != 0).count() as u64
}

async fn step(occasion: Occasion) -> u64 {
    let Occasion { cluster, plan, lasts, mut random } = occasion;
    let range = arguments::signed_times(&plan, "by").expect("checked when the plan was made");
    let times = arguments::numbers(&plan, "times", 1, STEPS_MAX).expect("checked when the plan was made");
    let members = cluster.resolve(&plan.nodes);
    let lasts_us = u64::try_from(lasts.as_micros()).expect("bounded by an hour");
    let mut moments: Vec<u64> =
        (0..times.draw(&mut random)).map(|_| random.random_range(0..=lasts_us)).collect();
    moments.sort_unstable();
    let (mut passed, mut sum, mut jumped) = (0, 0, 0);
    for moment in moments {
        cluster.sleep(Duration::from_micros(moment - passed)).await;
        passed = moment;
        let by = range.draw(&mut random);
        sum += by;
        jumped += u64::from(by != 0);
        for member in &members {
            cluster.step_clock(&plan, member, by);
        }
    }
    cluster.sleep(Duration::from_micros(lasts_us - passed)).await;
    for member in &members {
        cluster.step_clock(&plan, member, -sum);
    }
    jumped * members.len() as u64
}

async fn drift(occasion: Occasion) -> u64 {
    let Occasion { cluster, plan, lasts, mut random } = occasion;
    let range = arguments::numbers(&plan, "ppm", 0, DRIFT_MAX).expect("checked when the plan was made");
    let members = cluster.resolve(&plan.nodes);
    let mut drifted = 0;
    for member in &members {
        let ppm = i32::try_from(range.draw(&mut random)).expect("bounded by one twentieth");
        cluster.drift_clock(&plan, member, ppm);
        drifted += u64::from(ppm != 0);
    }
    cluster.sleep(lasts).await;
    for member in &members {
        cluster.drift_clock(&plan, member, 0);
    }
    drifted
}
