//! Defects that are planted on purpose, to prove that the testbed sees such ones: a task that panics, one that goes
//! round for ever, and one that hangs its thread. No scenario of the catalogue has them but those of the self-check.

use std::future::poll_fn;
use std::task::Poll;

use acked_env::Env;

use super::{Class, FaultKind, Firing, Occasion, needs_nodes};
use crate::world::SimEnv;

/// The name of the planted task.
const TASK: &str = "planted defect";

pub const PANIC: FaultKind = FaultKind {
    name: "panic",
    text: "a task of the `nodes` panics: a finding",
    may_lose: "nothing",
    class: Class::SelfCheck,
    check: |plan| needs_nodes(plan, &[]),
    fire: |occasion| -> Firing {
        Box::pin(plant(occasion, |env| env.spawn(TASK, async { panic!("it was planted") })))
    },
};

pub const SPIN: FaultKind = FaultKind {
    name: "spin",
    text: "a task of the `nodes` runs again and again without letting time pass: a finding",
    may_lose: "nothing",
    class: Class::SelfCheck,
    check: |plan| needs_nodes(plan, &[]),
    fire: |occasion| -> Firing {
        let for_ever = || {
            poll_fn(|context| {
                context.waker().wake_by_ref();
                Poll::Pending
            })
        };
        Box::pin(plant(occasion, move |env| env.spawn(TASK, for_ever())))
    },
};

pub const HANG: FaultKind = FaultKind {
    name: "hang",
    text: "a task of the `nodes` never returns: the seed ends with its process, out of budget",
    may_lose: "nothing",
    class: Class::SelfCheck,
    check: |plan| needs_nodes(plan, &[]),
    fire: |occasion| -> Firing {
        Box::pin(plant(occasion, |env| {
            env.spawn(TASK, async {
                loop {
                    std::hint::spin_loop();
                }
            });
        }))
    },
};

async fn plant(occasion: Occasion, defect: impl Fn(SimEnv)) -> u64 {
    let Occasion { cluster, plan, lasts, .. } = occasion;
    let members = cluster.resolve(&plan.nodes);
    let processes: Vec<SimEnv> = members.iter().filter_map(|member| cluster.process(member)).collect();
    cluster.began(&plan, &members, TASK);
    let planted = processes.len() as u64;
    processes.into_iter().for_each(defect);
    cluster.sleep(lasts).await;
    planted
}
