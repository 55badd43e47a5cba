//! Where every fact of a run arrives: observations, disk changes, client operations and faults. It passes each to the
//! judge and the view in the order in which it happened, and keeps a timeline when one is asked for.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

use madsim::time::{Instant, TimeHandle};

use acked_core::{NodeId, Observation, Observer, Time};

use super::timeline::Timeline;
use super::view::View;
use crate::judge::{ClientEvent, FaultEvent, Judge};
use crate::world::tap::{DiskChange, DiskTap};

/// What the recorder keeps, behind one lock that nobody else holds across anything.
pub struct Recorded {
    /// Gone once the run is judged.
    pub judge: Option<Judge>,
    pub view: View,
    pub timeline: Option<Timeline>,
    /// Nodes that stopped by themselves, each in words.
    pub failures: Vec<String>,
}

pub struct Recorder {
    recorded: Mutex<Recorded>,
    /// Set when the world exists, before anything can happen in it.
    clock: OnceLock<(TimeHandle, Instant)>,
    operations: AtomicU64,
    acked: AtomicU64,
    producers_done: AtomicU64,
    load_is_over: AtomicBool,
}

impl Recorder {
    pub fn new(judge: Judge, timeline: Option<Timeline>) -> Recorder {
        let recorded = Recorded { judge: Some(judge), view: View::default(), timeline, failures: Vec::new() };
        Recorder {
            recorded: Mutex::new(recorded),
            clock: OnceLock::new(),
            operations: AtomicU64::new(1),
            acked: AtomicU64::new(0),
            producers_done: AtomicU64::new(0),
            load_is_over: AtomicBool::new(false),
        }
    }

    /// Begins the time of the run. Must be called in the world, once.
    pub fn begin(&self) {
        let clock = TimeHandle::current();
        let origin = clock.now_instant();
        assert!(self.clock.set((clock, origin)).is_ok(), "a recorder records one run");
    }

    /// Time of the run, the same for everybody.
    pub fn now(&self) -> Time {
        self.clock.get().map_or(Time::ZERO, |(clock, origin)| clock.now_instant().duration_since(*origin))
    }

    pub fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.recorded.lock().expect("nothing panics while it records")
    }

    /// A number for an operation, unique in the run.
    pub fn next_operation(&self) -> u64 {
        self.operations.fetch_add(1, Ordering::Relaxed)
    }

    pub fn client(&self, event: &ClientEvent<'_>) {
        if matches!(event, ClientEvent::SendOk { .. }) {
            self.acked.fetch_add(1, Ordering::Relaxed);
        }
        let now = self.now();
        if let Some(judge) = self.lock().judge() {
            judge.on_client(now, event);
        }
    }

    /// Begins a call other than a send or a poll.
    pub fn call(&self, client: u32, name: &'static str) -> u64 {
        let operation = self.next_operation();
        self.client(&ClientEvent::CallInvoked { client, operation, name });
        operation
    }

    pub fn fault(&self, event: &FaultEvent<'_>, text: &str) {
        let now = self.now();
        let mut recorded = self.lock();
        if let Some(judge) = recorded.judge() {
            judge.on_fault(now, event);
        }
        if let Some(timeline) = &mut recorded.timeline {
            timeline.fault(now, event, text);
        }
    }

    /// Adds what a fault did to the timeline.
    pub fn note(&self, fault: &str, text: &str) {
        let now = self.now();
        if let Some(timeline) = &mut self.lock().timeline {
            timeline.note(now, fault, text);
        }
    }

    /// Sends acknowledged so far.
    pub fn acked(&self) -> u64 {
        self.acked.load(Ordering::Relaxed)
    }

    pub fn producer_done(&self) {
        self.producers_done.fetch_add(1, Ordering::Relaxed);
    }

    pub fn producers_done(&self) -> u64 {
        self.producers_done.load(Ordering::Relaxed)
    }

    pub fn end_load(&self) {
        self.load_is_over.store(true, Ordering::Relaxed);
    }

    pub fn load_is_over(&self) -> bool {
        self.load_is_over.load(Ordering::Relaxed)
    }

    pub fn failed(&self, text: String) {
        self.lock().failures.push(text);
    }
}

impl Recorded {
    /// The judge, until the run is judged.
    fn judge(&mut self) -> Option<&mut Judge> {
        self.judge.as_mut()
    }
}

impl Observer for Recorder {
    fn observe(&self, node: NodeId, _now: Time, observation: &Observation) {
        let now = self.now();
        let mut recorded = self.lock();
        recorded.view.observe(node, observation);
        if let Some(judge) = recorded.judge() {
            judge.on_observation(node, now, observation);
        }
        if let Some(timeline) = &mut recorded.timeline {
            timeline.observe(now, node, observation);
        }
    }
}

impl DiskTap for Recorder {
    fn changed(&self, node: NodeId, change: &DiskChange<'_>) {
        let now = self.now();
        if let Some(judge) = self.lock().judge() {
            judge.on_disk(node, now, change);
        }
    }
}
