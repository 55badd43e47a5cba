//! Where every fact of a run arrives: observations, disk changes, client operations and faults. It passes each to the
//! judge and the view in the order in which it happened, and keeps a timeline when one is asked for.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

use madsim::time::{Instant, TimeHandle};

use acked_core::{NodeId, Observation, Observer, Time};

use super::timeline::Timeline;
use super::view::View;
use crate::judge::{ClientEvent, FaultEvent, Judge};
use crate::world::tap::{ConnectionId, DiskChange, DiskTap, NetworkTap, TaskTap};
use crate::world::{FailureKind, TaskFailure};

/// What the recorder keeps, behind one lock that nobody else holds across anything.
pub struct Recorded {
    /// Gone once the run is judged; `None` from the start when nothing is checked.
    pub judge: Option<Judge>,
    pub view: View,
    pub timeline: Option<Timeline>,
    pub failures: Vec<Failure>,
    /// Clients that have sent all they had to.
    producers_done: BTreeSet<u32>,
}

/// The testbed's own findings: processes and tasks that ended as no correct one does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureCause {
    /// A task panicked.
    Panic,
    /// A task went round for ever without waiting for time to pass.
    Spin,
    /// A node's process ended by itself.
    Exit,
}

impl FailureCause {
    /// The identifier that findings have.
    pub fn id(self) -> &'static str {
        match self {
            FailureCause::Panic => "PANIC",
            FailureCause::Spin => "SPIN",
            FailureCause::Exit => "EXIT",
        }
    }
}

/// One process or task that ended as no correct one does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub cause: FailureCause,
    /// The name of the host; `None` for the testbed itself.
    pub who: Option<String>,
    pub at: Time,
    pub text: String,
}

/// The client's own code for a call that ended with its process.
const CLIENT_GONE: i16 = -1;

pub struct Recorder {
    recorded: Mutex<Recorded>,
    /// Set when the world exists, before anything can happen in it.
    clock: OnceLock<(TimeHandle, Instant)>,
    operations: AtomicU64,
    acked: AtomicU64,
    load_is_over: AtomicBool,
}

impl Recorder {
    pub fn new(judge: Option<Judge>, timeline: Option<Timeline>) -> Recorder {
        let recorded = Recorded {
            judge,
            view: View::default(),
            timeline,
            failures: Vec::new(),
            producers_done: BTreeSet::new(),
        };
        Recorder {
            recorded: Mutex::new(recorded),
            clock: OnceLock::new(),
            operations: AtomicU64::new(1),
            acked: AtomicU64::new(0),
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

    /// The process of a node is about to begin.
    pub fn node_begins(&self, node: NodeId) {
        let now = self.now();
        if let Some(judge) = self.lock().judge() {
            judge.on_start(now, node);
        }
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

    pub fn producer_done(&self, client: u32) {
        self.lock().producers_done.insert(client);
    }

    pub fn producers_done(&self) -> usize {
        self.lock().producers_done.len()
    }

    /// The process of a client ended: nobody will ever hear of its open calls again, and its sends may or may not have
    /// had their effect.
    pub fn client_ended(&self, client: u32) {
        let now = self.now();
        let mut recorded = self.lock();
        let Some(judge) = recorded.judge() else { return };
        for (operation, name) in judge.open_calls(client) {
            let event = match name {
                "send" => ClientEvent::SendInfo { operation, code: CLIENT_GONE },
                "poll" => ClientEvent::PollEnded { operation, code: CLIENT_GONE },
                _ => ClientEvent::CallEnded { operation, code: CLIENT_GONE },
            };
            judge.on_client(now, &event);
        }
    }

    pub fn end_load(&self) {
        self.load_is_over.store(true, Ordering::Relaxed);
    }

    pub fn load_is_over(&self) -> bool {
        self.load_is_over.load(Ordering::Relaxed)
    }

    pub fn failed(&self, cause: FailureCause, who: Option<String>, text: String) {
        let failure = Failure { cause, who, at: self.now(), text };
        self.lock().failures.push(failure);
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

impl NetworkTap for Recorder {
    fn written(&self, connection: ConnectionId, by_client: bool, bytes: &[u8]) {
        let now = self.now();
        if let Some(judge) = self.lock().judge() {
            judge.on_network(now, connection, by_client, bytes);
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

impl TaskTap for Recorder {
    fn failed(&self, failure: &TaskFailure) {
        let cause = match failure.kind {
            FailureKind::Panic => FailureCause::Panic,
            FailureKind::Spin => FailureCause::Spin,
        };
        let verb = match failure.kind {
            FailureKind::Panic => "panicked: ",
            FailureKind::Spin => "",
        };
        let who = failure.name.as_deref().unwrap_or("the testbed");
        let text = format!("{who}, task {}, {verb}{}", failure.task, failure.message);
        Recorder::failed(self, cause, failure.name.clone(), text);
    }
}
