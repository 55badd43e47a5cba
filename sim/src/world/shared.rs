//! What every handle into the world shares: one lock over everything that the schedule drives, and the disks.
//!
//! Lock order: a disk, then the kernel. Wakers are woken, and the executor is called, with neither held.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use madsim::runtime::Handle;

use super::disk::DiskShared;
use super::finding::{self, FailureKind, TaskFailure};
use super::host::{Host, HostState};
use super::network::fabric::{Network, Surroundings};
use super::schedule::{Event, Schedule};
use super::tap::TaskTap;
use super::timers::Timers;
use super::trace::{Happening, Trace};

const SECOND_NS: u64 = 1_000_000_000;
/// The least time between two moments.
const MOMENT_NS: u64 = 1_000_000;
/// A task that is polled more often than this in one moment (a millisecond in which something happens takes at most a
/// few hundred) goes round without ever waiting for time to pass.
const POLLS_PER_MOMENT_MAX: u64 = 100_000;

pub(super) struct Shared {
    pub(super) seed: u64,
    pub(super) executor: Handle,
    pub(super) disks: Mutex<Vec<Arc<DiskShared>>>,
    kernel: Mutex<Kernel>,
    failures: Mutex<Vec<TaskFailure>>,
    task_tap: Option<Arc<dyn TaskTap>>,
    /// Counts the milliseconds in which something was due. It stands still while tasks only wake each other.
    moment: AtomicU64,
}

/// Everything but the disks, behind one lock.
pub(super) struct Kernel {
    pub schedule: Schedule,
    pub timers: Timers,
    pub network: Network,
    pub trace: Trace,
    pub hosts: Vec<HostState>,
    /// The run ends when the world reaches this time.
    pub limit: Option<u64>,
    pub limit_reached: bool,
    pub limit_waker: Option<Waker>,
    pub wakes: Vec<Waker>,
    pub next_prune: u64,
    pub moment_began: u64,
}

impl Shared {
    pub(super) fn new(
        seed: u64,
        executor: Handle,
        kernel: Kernel,
        task_tap: Option<Arc<dyn TaskTap>>,
    ) -> Shared {
        let (disks, failures) = (Mutex::default(), Mutex::default());
        let moment = AtomicU64::new(0);
        Shared { seed, executor, disks, kernel: Mutex::new(kernel), failures, task_tap, moment }
    }

    /// A panic while the lock is held has become a finding already; the state is as good as it gets.
    pub(super) fn lock(&self) -> MutexGuard<'_, Kernel> {
        lock(&self.kernel)
    }

    /// Runs `act`, lets go of the lock, and then wakes whom it named.
    pub(super) fn with<R>(&self, act: impl FnOnce(&mut Kernel) -> R) -> R {
        let mut kernel = self.lock();
        let result = act(&mut kernel);
        let wakes = std::mem::take(&mut kernel.wakes);
        drop(kernel);
        wakes.into_iter().for_each(Waker::wake);
        result
    }

    pub(super) fn disk(&self, host: Host) -> Arc<DiskShared> {
        Arc::clone(&lock(&self.disks)[usize::from(host.0)])
    }

    /// One round of the task that drives the schedule.
    pub(super) fn drive(&self, waker: &Waker, wakes: &mut Vec<Waker>) {
        let mut kernel = self.lock();
        let now = kernel.schedule.now();
        kernel.schedule.begin(waker, now);
        if now >= kernel.moment_began + MOMENT_NS {
            kernel.moment_began = now;
            self.moment.fetch_add(1, Ordering::Relaxed);
        }
        if kernel.limit.is_some_and(|limit| now >= limit) {
            kernel.limit_reached = true;
            let waiting = kernel.limit_waker.take();
            kernel.wakes.extend(waiting);
        } else {
            while let Some((at, event)) = kernel.schedule.pop_due(now) {
                kernel.happen(at, now, event);
            }
        }
        // Past the limit time stands still: an armed timer would wake this task for ever.
        let goes_on = !kernel.limit_reached;
        kernel.schedule.end(goes_on);
        let prune = kernel.next_prune <= now;
        if prune {
            kernel.next_prune = now + SECOND_NS;
        }
        std::mem::swap(&mut kernel.wakes, wakes);
        drop(kernel);
        wakes.drain(..).for_each(Waker::wake);
        if prune {
            // The executor keeps finished tasks until it is asked for their number.
            self.executor.metrics().num_tasks();
        }
    }

    pub(super) fn report(&self, failure: TaskFailure) {
        if let Some(tap) = &self.task_tap {
            tap.failed(&failure);
        }
        lock(&self.failures).push(failure);
    }

    pub(super) fn task_failures(&self) -> Vec<TaskFailure> {
        lock(&self.failures).clone()
    }

    /// Waits until the world's time is `at` (nanoseconds).
    pub(super) async fn sleep_until(self: &Arc<Shared>, at: u64) {
        let slot = Slot::new(self, None);
        slot.set(Some(at));
        poll_fn(|context| slot.poll(context.waker())).await;
    }
}

impl Kernel {
    pub(super) fn host(&self, host: Host) -> &HostState {
        &self.hosts[usize::from(host.0)]
    }

    pub(super) fn host_mut(&mut self, host: Host) -> &mut HostState {
        &mut self.hosts[usize::from(host.0)]
    }

    /// The network and what it needs of the rest, at the present time.
    pub(super) fn network(&mut self) -> (&mut Network, Surroundings<'_>) {
        let now = self.schedule.now();
        let around = Surroundings {
            now,
            schedule: &mut self.schedule,
            trace: &mut self.trace,
            wakes: &mut self.wakes,
        };
        (&mut self.network, around)
    }

    pub(super) fn record(&mut self, happening: Happening) {
        let now = self.schedule.now();
        self.trace.record(now, happening);
    }

    fn happen(&mut self, at: u64, now: u64, event: Event) {
        let around = &mut Surroundings {
            now,
            schedule: &mut self.schedule,
            trace: &mut self.trace,
            wakes: &mut self.wakes,
        };
        match event {
            Event::Timer { slot, generation } => {
                let due = self.timers.due((slot, generation), at, now, &self.hosts, around.schedule);
                if let Some((host, waker)) = due {
                    around.trace.record(now, Happening::TimerFired { host });
                    around.wakes.extend(waker);
                }
            }
            Event::Arrival { connection, direction, generation } => {
                self.network.items_arrive(connection, usize::from(direction), generation, around);
            }
            Event::Syn { connection, generation } => {
                self.network.syn_arrives(connection, generation, around);
            }
            Event::SynAnswer { connection, generation, accepted } => {
                self.network.syn_answer_arrives(connection, generation, accepted, around);
            }
            Event::GiveUp { connection, direction, generation } => {
                self.network.give_up_due(connection, usize::from(direction), generation, around);
            }
        }
    }
}

/// A deadline in the schedule, freed when dropped.
pub(super) struct Slot {
    shared: Arc<Shared>,
    slot: u32,
    host: Option<Host>,
}

impl Slot {
    /// On the clock of `host`, or on the world's.
    pub(super) fn new(shared: &Arc<Shared>, host: Option<Host>) -> Slot {
        let slot = shared.lock().timers.create(host);
        Slot { shared: Arc::clone(shared), slot, host }
    }

    pub(super) fn set(&self, deadline: Option<u64>) {
        let kernel = &mut *self.shared.lock();
        kernel.timers.set(self.slot, deadline, &kernel.hosts, &mut kernel.schedule);
    }

    pub(super) fn poll(&self, waker: &Waker) -> Poll<()> {
        let kernel = &mut *self.shared.lock();
        let now = kernel.schedule.now();
        let fired = kernel.timers.poll(self.slot, now, &kernel.hosts, waker);
        if fired.is_ready() {
            kernel.trace.record(now, Happening::TimerFired { host: self.host });
        }
        fired
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.shared.lock().timers.remove(self.slot);
    }
}

pub(super) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a task to its end; a panic in it becomes a finding of `host`, and so does going round without waiting, which ends
/// it too.
pub(super) async fn contained(
    shared: Arc<Shared>,
    host: Option<Host>,
    name: &'static str,
    task: impl Future<Output = ()>,
) {
    let mut task = pin!(task);
    let (mut moment, mut polls) = (0, 0);
    let end = poll_fn(|context| {
        let now = shared.moment.load(Ordering::Relaxed);
        polls = if now == moment { polls + 1 } else { 1 };
        moment = now;
        if polls > POLLS_PER_MOMENT_MAX {
            return Poll::Ready(Some(None));
        }
        let polled = catch_unwind(AssertUnwindSafe(|| task.as_mut().poll(context)));
        match polled {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(())) => Poll::Ready(None),
            Err(payload) => Poll::Ready(Some(Some(payload))),
        }
    })
    .await;
    if let Some(ended) = end {
        let (name_of_host, at) = {
            let kernel = shared.lock();
            let name = host.map(|host| kernel.host(host).identity.name.to_string());
            (name, Duration::from_nanos(kernel.schedule.now()))
        };
        let (kind, message) = match ended {
            Some(payload) => (FailureKind::Panic, finding::panic_message(&*payload)),
            None => (
                FailureKind::Spin,
                format!("ran {POLLS_PER_MOMENT_MAX} times while the world's time stood still"),
            ),
        };
        shared.report(TaskFailure { kind, host, name: name_of_host, task: name, at, message });
    }
}
