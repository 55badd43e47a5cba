//! Processes, clocks and tasks: how they start, end, and what is known of it.

use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use acked_env::{Env, Timer};
use rand_chacha::rand_core::Rng;

use super::{idle, in_world};
use crate::world::{
    CrashKind, FailureKind, RunError, SimEnv, WALL_EPOCH_MS, WorldSettings, run_in_fresh_thread,
};

async fn sleep(env: &SimEnv, duration: Duration) {
    let mut timer = env.timer();
    timer.set(Some(env.now() + duration));
    poll_fn(|context| timer.poll_fired(context)).await;
}

#[test]
fn a_panic_in_a_task_is_a_finding_and_the_run_goes_on() {
    let failures = in_world(|world, [b1, b2, _]| async move {
        world.start(b1, |_| async { panic!("the log is poisoned") }).await;
        let env = world.start(b2, idle).await;
        env.spawn("replica", async { assert_eq!(1, 2, "offsets agree") });
        world.sleep(Duration::from_secs(1)).await;
        assert!(world.is_alive(b2) && !world.is_alive(b1));
        world.task_failures()
    });
    assert_eq!(failures.len(), 2);
    let main = failures.iter().find(|failure| failure.task == "main").expect("the main task panicked");
    assert_eq!(main.name.as_deref(), Some("b1"));
    assert!(main.message.starts_with("the log is poisoned ("), "{}", main.message);
    let replica = failures.iter().find(|failure| failure.task == "replica").expect("the task panicked");
    assert!(replica.message.contains("offsets agree"), "{}", replica.message);
}

#[test]
fn a_task_that_goes_round_without_letting_time_pass_is_a_finding_and_ended() {
    let failures = in_world(|world, [b1, b2, _]| async move {
        let env = world.start(b1, idle).await;
        world.start(b2, idle).await;
        env.spawn("replica", async {
            loop {
                let mut woken = false;
                poll_fn(|context| {
                    context.waker().wake_by_ref();
                    if std::mem::replace(&mut woken, true) { Poll::Ready(()) } else { Poll::Pending }
                })
                .await;
            }
        });
        world.sleep(Duration::from_secs(1)).await;
        assert!(world.is_alive(b1) && world.is_alive(b2));
        world.task_failures()
    });
    assert_eq!(failures.len(), 1);
    let failure = &failures[0];
    assert_eq!(
        (failure.kind, failure.task, failure.name.as_deref()),
        (FailureKind::Spin, "replica", Some("b1"))
    );
}

#[test]
fn a_frozen_machine_does_not_see_time_pass() {
    in_world(|world, [b1, _, _]| async move {
        let ticks = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&ticks);
        let env = world.start(b1, idle).await;
        let inner = env.clone();
        env.spawn("ticks", async move {
            loop {
                sleep(&inner, Duration::from_millis(100)).await;
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        world.sleep(Duration::from_millis(1050)).await;
        let (local, wall) = (env.now(), env.wall_clock_ms());
        world.pause(b1);
        world.freeze_clocks(b1, true);
        world.sleep(Duration::from_secs(10)).await;
        assert_eq!((env.now(), env.wall_clock_ms()), (local, wall));
        world.freeze_clocks(b1, false);
        world.resume(b1);
        world.sleep(Duration::from_millis(10)).await;
        assert_eq!(ticks.load(Ordering::Relaxed), 10, "no timer fires early");
        world.sleep(Duration::from_millis(1000)).await;
        assert_eq!(ticks.load(Ordering::Relaxed), 20);
        assert!(env.now() - local < Duration::from_millis(1100));
    });
}

#[test]
fn a_process_exits_when_its_main_task_returns_and_takes_its_tasks_along() {
    in_world(|world, [b1, _, _]| async move {
        let ticks = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&ticks);
        let main = move |env: SimEnv| {
            let counted = Arc::clone(&counted);
            async move {
                let inner = env.clone();
                env.spawn("ticks", async move {
                    loop {
                        sleep(&inner, Duration::from_millis(100)).await;
                        counted.fetch_add(1, Ordering::Relaxed);
                    }
                });
                sleep(&env, Duration::from_millis(1050)).await;
            }
        };
        world.start(b1, main).await;
        world.sleep(Duration::from_secs(5)).await;
        assert!(!world.is_alive(b1));
        assert_eq!(ticks.load(Ordering::Relaxed), 10);
        world.restart(b1).await;
        world.sleep(Duration::from_secs(5)).await;
        assert_eq!(ticks.load(Ordering::Relaxed), 20);
    });
}

#[test]
fn a_paused_process_can_be_killed_and_started_again() {
    in_world(|world, [b1, _, _]| async move {
        let ticks = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&ticks);
        let main = move |env: SimEnv| {
            let counted = Arc::clone(&counted);
            async move {
                loop {
                    sleep(&env, Duration::from_millis(100)).await;
                    counted.fetch_add(1, Ordering::Relaxed);
                }
            }
        };
        world.start(b1, main).await;
        world.sleep(Duration::from_millis(1050)).await;
        world.pause(b1);
        world.sleep(Duration::from_secs(10)).await;
        assert_eq!(ticks.load(Ordering::Relaxed), 10, "a paused process stands still");
        world.crash(b1, CrashKind::Process);
        world.restart(b1).await;
        world.sleep(Duration::from_millis(1050)).await;
        assert_eq!(ticks.load(Ordering::Relaxed), 20);
    });
}

#[test]
fn a_drifting_clock_fires_its_timers_by_itself() {
    in_world(|world, [b1, _, _]| async move {
        let env = world.start(b1, idle).await;
        world.set_clock_drift(b1, 100_000);
        let (before, local, wall) = (world.now(), env.now(), env.wall_clock_ms());
        sleep(&env, Duration::from_secs(11)).await;
        let passed = world.now() - before;
        assert!(passed >= Duration::from_secs(10) && passed < Duration::from_millis(10_001), "{passed:?}");
        assert!(env.now() - local >= Duration::from_secs(11));
        assert!((11_000..=11_001).contains(&(env.wall_clock_ms() - wall)));
    });
}

#[test]
fn a_timer_set_before_its_clock_got_faster_fires_by_the_faster_clock() {
    in_world(|world, [b1, _, _]| async move {
        let env = world.start(b1, idle).await;
        let before = world.now();
        let mut timer = env.timer();
        timer.set(Some(env.now() + Duration::from_secs(20)));
        world.set_clock_drift(b1, 500_000);
        poll_fn(|context| timer.poll_fired(context)).await;
        let passed = world.now() - before;
        assert!(passed < Duration::from_millis(13_400), "{passed:?}");
    });
}

#[test]
fn a_stepped_wall_clock_leaves_deadlines_alone() {
    in_world(|world, [b1, _, _]| async move {
        let env = world.start(b1, idle).await;
        assert!((0..1000).contains(&(env.wall_clock_ms() - WALL_EPOCH_MS)));
        world.step_wall_clock(b1, -60_000);
        assert!((-60_000..-59_000).contains(&(env.wall_clock_ms() - WALL_EPOCH_MS)));
        let before = world.now();
        sleep(&env, Duration::from_secs(1)).await;
        assert!(world.now() - before < Duration::from_millis(1_001));
    });
}

#[test]
fn a_timer_that_is_moved_fires_once_at_its_last_deadline() {
    in_world(|world, [b1, _, _]| async move {
        let env = world.start(b1, idle).await;
        let mut timer = env.timer();
        let start = env.now();
        for seconds in [5, 1, 9, 3] {
            timer.set(Some(start + Duration::from_secs(seconds)));
        }
        poll_fn(|context| timer.poll_fired(context)).await;
        let passed = env.now() - start;
        assert!(passed >= Duration::from_secs(3) && passed < Duration::from_millis(3_001), "{passed:?}");
        timer.set(Some(start + Duration::from_secs(6)));
        timer.set(None);
        assert!(super::still_waits(&world, Duration::from_secs(60), poll_fn(|c| timer.poll_fired(c))).await);
    });
}

#[test]
fn streams_of_a_process_differ_by_purpose_incarnation_and_request() {
    in_world(|world, [b1, b2, _]| async move {
        let first = world.start(b1, idle).await;
        let other = world.start(b2, idle).await;
        let mut draws = vec![
            first.rng("election").next_u64(),
            first.rng("election").next_u64(),
            first.rng("backoff").next_u64(),
            other.rng("election").next_u64(),
        ];
        world.crash(b1, CrashKind::Process);
        draws.push(world.restart(b1).await.rng("election").next_u64());
        let count = draws.len();
        draws.sort_unstable();
        draws.dedup();
        assert_eq!(draws.len(), count);
    });
}

#[test]
fn a_run_in_which_nothing_can_happen_any_more_ends_as_a_deadlock() {
    let ended = run_in_fresh_thread(1, WorldSettings::default(), |_| std::future::pending::<()>());
    assert_eq!(ended, Err(RunError::Deadlock));
}

#[test]
fn a_run_that_reaches_its_time_limit_ends_there() {
    let settings = WorldSettings { time_limit: Some(Duration::from_secs(10)), ..WorldSettings::default() };
    let ended = run_in_fresh_thread(1, settings, |world| async move {
        loop {
            world.sleep(Duration::from_millis(300)).await;
            assert!(world.now() < Duration::from_millis(10_301));
        }
    });
    assert_eq!(ended, Err::<(), _>(RunError::TimeLimit));
}

#[test]
fn a_panic_of_the_supervisor_is_an_error_of_the_run() {
    let ended = run_in_fresh_thread(1, WorldSettings::default(), |world| async move {
        let [b1] = [world.add_client("p1")];
        world.start(b1, idle).await;
        world.sleep(Duration::from_secs(1)).await;
        assert!(!world.is_alive(b1), "a wrong assumption");
    });
    let Err(RunError::Panic(message)) = ended else { panic!("the run ended with {ended:?}") };
    assert!(message.starts_with("a wrong assumption"), "{message}");
}

#[test]
fn nothing_outlives_a_run() {
    let token = Arc::new(());
    let weak: Weak<()> = Arc::downgrade(&token);
    for ending in 0..4 {
        let token = Arc::clone(&token);
        let settings = WorldSettings { time_limit: Some(Duration::from_secs(9)), ..WorldSettings::default() };
        let ended = run_in_fresh_thread(1, settings, move |world| async move {
            let host = world.add_client("p1");
            let kept = Arc::clone(&token);
            world
                .start(host, move |env| {
                    let kept = Arc::clone(&kept);
                    async move {
                        let (inner, held) = (env.clone(), Arc::clone(&kept));
                        env.spawn("child", async move {
                            sleep(&inner, Duration::from_secs(1000)).await;
                            drop(held);
                        });
                        std::future::pending::<()>().await;
                        drop(kept);
                    }
                })
                .await;
            let own = world.clone();
            let held = Arc::clone(&token);
            world.spawn("nemesis", async move {
                own.sleep(Duration::from_secs(1000)).await;
                drop(held);
            });
            world.sleep(Duration::from_secs(1)).await;
            match ending {
                0 => {}
                1 => world.sleep(Duration::from_secs(60)).await,
                2 => world.pause(host),
                _ => panic!("the supervisor ends badly"),
            }
            drop(token);
        });
        assert_eq!(ended.is_ok(), ending == 0 || ending == 2);
    }
    drop(token);
    assert!(weak.upgrade().is_none(), "{} references are left", weak.strong_count());
}
