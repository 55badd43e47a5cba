//! The one heap of everything that will happen: arrivals, disk completions, timers, ordered by (time, sequence).
//! One task drives it, woken by one executor timer that is re-armed only for an earlier deadline: the executor's own
//! timers last at least a millisecond and cannot be cancelled.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use madsim::time::{Sleep, TimeHandle};

use super::clock::nanoseconds;

/// Something that is due. Generations tell the users of a reused slot apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    Timer {
        slot: u32,
        generation: u32,
    },
    /// The first item of one direction of a connection arrives.
    Arrival {
        connection: u32,
        direction: u8,
        generation: u32,
    },
    /// A connection attempt reaches its target.
    Syn {
        connection: u32,
        generation: u32,
    },
    /// The target's answer reaches the one who asked.
    SynAnswer {
        connection: u32,
        generation: u32,
        accepted: bool,
    },
    /// The sender of this direction may have waited too long for an acknowledgement.
    GiveUp {
        connection: u32,
        direction: u8,
        generation: u32,
    },
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    at: u64,
    sequence: u64,
    event: Event,
}

pub(super) struct Schedule {
    time: TimeHandle,
    origin: Instant,
    heap: BinaryHeap<Reverse<Entry>>,
    sequence: u64,
    sleep: Pin<Box<Sleep>>,
    driver: Option<Waker>,
    /// The driver runs and re-arms the timer itself when it is done.
    driving: bool,
    /// Deadlines of the executor timers that will still wake the driver; the earliest last.
    armed: Vec<u64>,
}

impl Schedule {
    pub(super) fn new(time: TimeHandle) -> Schedule {
        let origin = time.now_instant() - time.elapsed();
        let sleep = Box::pin(time.sleep(Duration::ZERO));
        let heap = BinaryHeap::new();
        Schedule { time, origin, heap, sequence: 0, sleep, driver: None, driving: false, armed: Vec::new() }
    }

    /// Nanoseconds since the world started.
    pub(super) fn now(&self) -> u64 {
        nanoseconds(self.time.elapsed())
    }

    pub(super) fn push(&mut self, at: u64, event: Event) {
        self.sequence += 1;
        self.heap.push(Reverse(Entry { at, sequence: self.sequence, event }));
        if !self.driving {
            self.arm(at);
        }
    }

    /// The driver starts a round; `waker` wakes it for the next one.
    pub(super) fn begin(&mut self, waker: &Waker, now: u64) {
        assert!(!self.driving, "one task drives the schedule");
        if !self.driver.as_ref().is_some_and(|known| known.will_wake(waker)) {
            self.driver = Some(waker.clone());
        }
        self.driving = true;
        while self.armed.last().is_some_and(|deadline| *deadline <= now) {
            self.armed.pop();
        }
    }

    /// The next event that is due at `now`, with its time.
    pub(super) fn pop_due(&mut self, now: u64) -> Option<(u64, Event)> {
        if self.heap.peek()?.0.at > now {
            return None;
        }
        let Reverse(entry) = self.heap.pop().expect("the heap was just seen not to be empty");
        Some((entry.at, entry.event))
    }

    /// The driver ends its round; another follows if `goes_on` and something is left to happen.
    pub(super) fn end(&mut self, goes_on: bool) {
        assert!(self.driving, "a round ends after it began");
        self.driving = false;
        if let Some(Reverse(entry)) = self.heap.peek().filter(|_| goes_on) {
            let at = entry.at;
            self.arm(at);
        }
    }

    fn arm(&mut self, at: u64) {
        if self.armed.last().is_some_and(|deadline| *deadline <= at) {
            return;
        }
        let Some(driver) = &self.driver else { return };
        self.sleep.as_mut().reset(self.origin + Duration::from_nanos(at));
        match self.sleep.as_mut().poll(&mut Context::from_waker(driver)) {
            Poll::Pending => self.armed.push(at),
            Poll::Ready(()) => driver.wake_by_ref(),
        }
    }
}
