//! Waiting for something, but no longer than a deadline.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use crate::Timer;

/// The future's value, or `None` once `deadline` (monotonic) has passed; the future is dropped then.
pub async fn before<F: Future>(timer: &mut impl Timer, deadline: Duration, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    timer.set(Some(deadline));
    let value = poll_fn(|context| {
        if let Poll::Ready(value) = future.as_mut().poll(context) {
            return Poll::Ready(Some(value));
        }
        timer.poll_fired(context).map(|()| None)
    })
    .await;
    timer.set(None);
    value
}
