//! One deadline on tokio's clock, made on first use and moved afterwards.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

use crate::Timer;

/// What a deadline too far for the clock becomes.
const FAR: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// See the file's header.
#[derive(Debug)]
pub struct TokioTimer {
    origin: Instant,
    sleep: Option<Pin<Box<Sleep>>>,
    armed: bool,
}

impl TokioTimer {
    pub(super) fn new(origin: Instant) -> TokioTimer {
        TokioTimer { origin, sleep: None, armed: false }
    }
}

impl Timer for TokioTimer {
    fn set(&mut self, deadline: Option<Duration>) {
        self.armed = deadline.is_some();
        let Some(deadline) = deadline else { return };
        let instant = self.origin.checked_add(deadline).unwrap_or_else(|| Instant::now() + FAR);
        match &mut self.sleep {
            Some(sleep) => sleep.as_mut().reset(instant),
            None => self.sleep = Some(Box::pin(sleep_until(instant))),
        }
    }

    fn poll_fired(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match &mut self.sleep {
            Some(sleep) if self.armed => {
                let fired = sleep.as_mut().poll(context);
                self.armed = fired.is_pending();
                fired
            }
            _ => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Waker;

    use tokio::runtime::Builder;

    use super::*;
    use crate::deadline::before;
    use crate::{Env, TokioEnv};

    const SHORT: Duration = Duration::from_millis(20);

    fn is_pending(timer: &mut TokioTimer) -> bool {
        timer.poll_fired(&mut Context::from_waker(Waker::noop())).is_pending()
    }

    fn in_runtime(test: impl AsyncFnOnce(TokioEnv)) {
        let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(test(TokioEnv::new("unused", Some(0)).expect("a seed needs no entropy")));
    }

    #[test]
    fn fires_once_not_before_its_deadline() {
        in_runtime(async |env| {
            let mut timer = env.timer();
            assert!(is_pending(&mut timer), "a timer that was not set never fires");
            let deadline = env.now() + SHORT;
            timer.set(Some(deadline));
            poll_fn(|context| timer.poll_fired(context)).await;
            assert!(env.now() >= deadline);
            assert!(is_pending(&mut timer), "it disarmed itself");
        });
    }

    #[test]
    fn later_deadline_replaces_the_one_before() {
        in_runtime(async |env| {
            let mut timer = env.timer();
            timer.set(Some(env.now()));
            let deadline = env.now() + SHORT;
            timer.set(Some(deadline));
            poll_fn(|context| timer.poll_fired(context)).await;
            assert!(env.now() >= deadline);
            timer.set(Some(env.now()));
            timer.set(None);
            assert!(is_pending(&mut timer), "disarmed");
            timer.set(Some(Duration::MAX));
            assert!(is_pending(&mut timer), "too far for any clock, and no panic");
        });
    }

    #[test]
    fn waiting_ends_at_the_deadline() {
        in_runtime(async |env| {
            let deadline = env.now() + SHORT;
            assert_eq!(before(&mut env.timer(), deadline, std::future::pending::<()>()).await, None);
            assert!(env.now() >= deadline);
            assert_eq!(before(&mut env.timer(), env.now() + SHORT, async { 5 }).await, Some(5));
        });
    }
}
