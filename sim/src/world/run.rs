//! One world per run, on a thread of its own: thread-local state of any library starts fresh, so that the same seed
//! gives the same run whatever ran before.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use madsim::runtime::Runtime;

use super::control::{World, WorldSettings};
use super::finding;

/// Deep enough for debug builds of the broker's nested futures, in bytes.
const STACK_SIZE: usize = 16 << 20;

/// Why a run has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// Nothing was going to happen any more, and the main future still waited.
    #[error("nothing was left to happen")]
    Deadlock,
    #[error("the time limit was reached")]
    TimeLimit,
    /// The supervisor itself panicked: a bug of the testbed.
    #[error("the supervisor panicked: {0}")]
    Panic(String),
}

/// Makes the world of `seed` on a fresh thread, runs `main` in it to its end, ends every process and returns the
/// result.
///
/// # Errors
/// [`RunError`] when `main` did not come to its end.
pub fn run_in_fresh_thread<R, F, Main>(seed: u64, settings: WorldSettings, main: F) -> Result<R, RunError>
where
    R: Send + 'static,
    F: FnOnce(World) -> Main + Send + 'static,
    Main: Future<Output = R> + 'static,
{
    let thread = std::thread::Builder::new().name(format!("seed {seed}")).stack_size(STACK_SIZE);
    let running = thread.spawn(move || {
        finding::keep_panics_of_this_thread();
        run(seed, settings, main)
    });
    let joined = running.expect("the operating system gives a thread").join();
    joined.unwrap_or_else(|payload| Err(RunError::Panic(finding::panic_message(&*payload))))
}

fn run<R, F, Main>(seed: u64, settings: WorldSettings, main: F) -> Result<R, RunError>
where
    R: 'static,
    F: FnOnce(World) -> Main + 'static,
    Main: Future<Output = R> + 'static,
{
    let runtime = Runtime::with_seed_and_config(seed, madsim::Config::default());
    World::register(&runtime);
    let world = runtime.block_on(async move { World::new(seed, settings) });
    let inside = world.clone();
    let main = async move { until_limit(inside.clone(), main(inside)).await };
    let result = catch_unwind(AssertUnwindSafe(|| runtime.block_on(main)));
    // Tasks that live when the runtime is dropped are leaked with all they own, so they are ended first. This runs
    // after a panic too; the executor keeps no lock across the polls in which panics happen.
    let stopped = catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(async move {
            world.stop();
            madsim::time::sleep(Duration::from_millis(1)).await;
        });
    }));
    match (result, stopped) {
        (Ok(result), Ok(())) => result.ok_or(RunError::TimeLimit),
        (Err(payload), _) | (_, Err(payload)) => {
            let message = finding::panic_message(&*payload);
            let deadlock = message.starts_with("no events, all tasks will block forever");
            Err(if deadlock { RunError::Deadlock } else { RunError::Panic(message) })
        }
    }
}

/// The result of `main`, or `None` when the world reaches its time limit first.
async fn until_limit<R>(world: World, main: impl Future<Output = R>) -> Option<R> {
    let mut main = pin!(main);
    let mut limit = pin!(world.limit_reached());
    poll_fn(|context| match limit.as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(None),
        Poll::Pending => main.as_mut().poll(context).map(Some),
    })
    .await
}
