//! The handle of a producer: sends records, hears what became of each exactly once.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use acked_core::producer::{
    Outcome, PendingRecord, Producer as Machine, ProducerCounters, ProducerEffect, ProducerInput, RecordId,
};
use acked_core::settings::ProducerSettings;
use acked_core::{Output, Time};
use acked_env::Env;
use acked_wire::error_code;
use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use crate::driver::{self, Client, Event, Flow};
use crate::transport::Transport;

/// Where an acknowledged record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordMetadata {
    pub partition: i32,
    /// `None` with acks=0, and when the broker only said that it has the record already.
    pub offset: Option<i64>,
    /// Milliseconds since 1970, as the record carries it.
    pub timestamp_ms: i64,
}

/// Why a record was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("send record: {} ({code}), {}", error_code::name(*.code), effect_text(*.definite))]
pub struct SendError {
    /// Kafka's error code; 7 (REQUEST_TIMED_OUT) when `delivery.timeout.ms` ended it, or `buffer.memory` was full.
    pub code: i16,
    /// True when the record certainly is in no log; false when it may be, or may still get there.
    pub definite: bool,
}

fn effect_text(definite: bool) -> &'static str {
    if definite { "it has no effect" } else { "it may have taken effect" }
}

/// What became of one record.
pub type SendResult = Result<RecordMetadata, SendError>;

/// Resolves when the record is acknowledged or given up.
#[derive(Debug)]
pub struct SendFuture(oneshot::Receiver<SendResult>);

impl Future for SendFuture {
    type Output = SendResult;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<SendResult> {
        Pin::new(&mut self.0).poll(context).map(|answer| answer.unwrap_or(Err(ENDED)))
    }
}

/// The producer ended with the record unanswered.
const ENDED: SendError = SendError { code: error_code::UNKNOWN_SERVER_ERROR, definite: false };

/// What became of a record that was sent with a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    pub tag: u64,
    pub result: SendResult,
}

/// The completions of every tagged record of one producer, in the order in which they happened.
#[derive(Debug)]
pub struct Completions(mpsc::UnboundedReceiver<Completion>);

impl Completions {
    /// The next completion; `None` once the producer is gone and everything was delivered.
    pub async fn next(&mut self) -> Option<Completion> {
        self.0.recv().await
    }

    /// The next completion if it is there already.
    pub fn try_next(&mut self) -> Option<Completion> {
        self.0.try_recv().ok()
    }

    /// As [`Completions::next`].
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Completion>> {
        self.0.poll_recv(context)
    }
}

/// Sends records to named partitions. Dropping it ends its task at once: records without an answer resolve to an
/// indeterminate error, or stay silent if they were tagged. [`Producer::close`] waits for them instead.
#[derive(Debug)]
pub struct Producer {
    mailbox: mpsc::UnboundedSender<Command>,
}

impl Producer {
    /// Starts the producer's task. `bootstrap` lists host and port of brokers to ask first, in order of preference.
    ///
    /// # Panics
    /// When `bootstrap` is empty.
    pub fn new<E: Env>(
        env: &E,
        client_id: &str,
        settings: ProducerSettings,
        bootstrap: Vec<(String, u16)>,
    ) -> (Producer, Completions) {
        let rng = env.rng(&format!("producer {client_id}"));
        let (completed, completions) = mpsc::unbounded_channel();
        let task = Task {
            machine: Machine::new(settings, bootstrap, rng),
            out: Output::default(),
            waiters: Vec::new(),
            free: Vec::new(),
            completed,
            flushes: BTreeMap::new(),
            next_flush: 0,
            closers: Vec::new(),
        };
        let mailbox = driver::start(env, "producer", client_id, task);
        (Producer { mailbox }, Completions(completions))
    }

    /// Sends one record; the future resolves once, whatever happens. Needs no polling to make progress.
    pub fn send(
        &self,
        topic: impl Into<Arc<str>>,
        partition: i32,
        key: Option<Bytes>,
        value: Option<Bytes>,
        timestamp_ms: i64,
    ) -> SendFuture {
        let (sender, receiver) = oneshot::channel();
        let waiter = Waiter::Future(sender);
        self.tell(Command::Send { topic: topic.into(), partition, key, value, timestamp_ms, waiter });
        SendFuture(receiver)
    }

    /// Sends one record; what becomes of it arrives at [`Completions`] under `tag`. Cheaper than [`Producer::send`].
    pub fn send_tagged(
        &self,
        tag: u64,
        topic: impl Into<Arc<str>>,
        partition: i32,
        key: Option<Bytes>,
        value: Option<Bytes>,
        timestamp_ms: i64,
    ) {
        let waiter = Waiter::Tag(tag);
        self.tell(Command::Send { topic: topic.into(), partition, key, value, timestamp_ms, waiter });
    }

    /// Waits until every record sent before is acknowledged or given up; lets nothing linger.
    pub async fn flush(&self) {
        let (sender, receiver) = oneshot::channel();
        self.tell(Command::Flush(sender));
        let _ = receiver.await;
    }

    /// Flushes, then ends the task. Takes `delivery.timeout.ms` at most.
    pub async fn close(self) {
        let (sender, receiver) = oneshot::channel();
        self.tell(Command::Close(sender));
        let _ = receiver.await;
    }

    /// What happened so far; `None` when the task has ended.
    pub async fn counters(&self) -> Option<ProducerCounters> {
        let (sender, receiver) = oneshot::channel();
        self.tell(Command::Counters(sender));
        receiver.await.ok()
    }

    fn tell(&self, command: Command) {
        // The task only ends before the handle when its node dies, and then nobody waits for the answer.
        let _ = self.mailbox.send(command);
    }
}

enum Command {
    Send {
        topic: Arc<str>,
        partition: i32,
        key: Option<Bytes>,
        value: Option<Bytes>,
        timestamp_ms: i64,
        waiter: Waiter,
    },
    Flush(oneshot::Sender<()>),
    Close(oneshot::Sender<()>),
    Counters(oneshot::Sender<ProducerCounters>),
}

enum Waiter {
    Future(oneshot::Sender<SendResult>),
    Tag(u64),
}

struct Task {
    machine: Machine,
    out: Output<ProducerEffect>,
    /// By record id; ids of done records are used again.
    waiters: Vec<Option<Waiter>>,
    free: Vec<u64>,
    completed: mpsc::UnboundedSender<Completion>,
    flushes: BTreeMap<u64, oneshot::Sender<()>>,
    next_flush: u64,
    closers: Vec<oneshot::Sender<()>>,
}

impl Client for Task {
    type Command = Command;

    fn handle<E: Env>(&mut self, now: Time, event: Event<Command>, transport: &mut Transport<E>) -> Flow {
        let input = match event {
            Event::Network(input) => ProducerInput::Network(input),
            Event::Deadline => ProducerInput::Tick,
            Event::Dropped => unreachable!("the driver ends then"),
            Event::Command(Command::Send { topic, partition, key, value, timestamp_ms, waiter }) => {
                let record = PendingRecord { id: self.wait(waiter), key, value, timestamp_ms };
                ProducerInput::Send { record, topic, partition }
            }
            Event::Command(Command::Flush(done)) => {
                self.next_flush += 1;
                self.flushes.insert(self.next_flush, done);
                ProducerInput::Flush { flush: self.next_flush }
            }
            Event::Command(Command::Close(done)) => {
                self.closers.push(done);
                ProducerInput::Close
            }
            Event::Command(Command::Counters(answer)) => {
                let _ = answer.send(self.machine.counters().clone());
                return Flow::Continue;
            }
        };
        self.machine.handle(now, input, &mut self.out);
        self.carry_out(transport)
    }

    fn next_deadline(&self) -> Option<Time> {
        self.machine.next_deadline()
    }
}

impl Task {
    fn wait(&mut self, waiter: Waiter) -> RecordId {
        match self.free.pop() {
            Some(id) => {
                self.waiters[id as usize] = Some(waiter);
                RecordId(id)
            }
            None => {
                self.waiters.push(Some(waiter));
                RecordId(self.waiters.len() as u64 - 1)
            }
        }
    }

    fn carry_out<E: Env>(&mut self, transport: &mut Transport<E>) -> Flow {
        let mut flow = Flow::Continue;
        let mut effects = std::mem::take(&mut self.out.effects);
        for effect in effects.drain(..) {
            match effect {
                ProducerEffect::Network(effect) => transport.carry_out(effect),
                ProducerEffect::Complete { record, outcome } => self.complete(record, outcome),
                ProducerEffect::Flushed { flush } => {
                    let done = self.flushes.remove(&flush).expect("a flush is done once");
                    let _ = done.send(());
                }
                ProducerEffect::Closed => flow = Flow::End,
            }
        }
        self.out.effects = effects;
        if flow == Flow::End {
            for done in self.closers.drain(..) {
                let _ = done.send(());
            }
        }
        flow
    }

    fn complete(&mut self, record: RecordId, outcome: Outcome) {
        let result = match outcome {
            Outcome::Ok { partition, offset, timestamp_ms } => {
                Ok(RecordMetadata { partition, offset, timestamp_ms })
            }
            Outcome::Failed { code, definite } => Err(SendError { code, definite }),
        };
        let waiter = self.waiters[record.0 as usize].take().expect("a record is done once");
        self.free.push(record.0);
        // Whoever stopped waiting does not want to know.
        match waiter {
            Waiter::Future(sender) => {
                let _ = sender.send(result);
            }
            Waiter::Tag(tag) => {
                let _ = self.completed.send(Completion { tag, result });
            }
        }
    }
}
