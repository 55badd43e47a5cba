//! The handle of a consumer of assigned partitions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use acked_core::consumer::{
    Consumer as Machine, ConsumerCounters, ConsumerEffect, ConsumerInput, OffsetEnd, Polled, Start,
};
use acked_core::settings::ConsumerSettings;
use acked_core::{Output, Time};
use acked_env::Env;
use acked_wire::error_code;
use tokio::sync::{mpsc, oneshot};

use crate::driver::{self, Client, Event, Flow};
use crate::transport::Transport;

/// Why a question to the brokers was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("ask brokers: {} ({code})", error_code::name(*.code))]
pub struct ConsumerError {
    /// Kafka's error code; 7 (REQUEST_TIMED_OUT) when the time was up.
    pub code: i16,
}

/// Reads assigned partitions. Dropping it ends its task.
#[derive(Debug)]
pub struct Consumer {
    mailbox: mpsc::UnboundedSender<Command>,
}

impl Consumer {
    /// Starts the consumer's task. `bootstrap` lists host and port of brokers to ask first, in order of preference.
    ///
    /// # Panics
    /// When `bootstrap` is empty.
    pub fn new<E: Env>(
        env: &E,
        client_id: &str,
        settings: ConsumerSettings,
        bootstrap: Vec<(String, u16)>,
    ) -> Consumer {
        let rng = env.rng(&format!("consumer {client_id}"));
        let task = Task {
            machine: Machine::new(settings, bootstrap, rng),
            out: Output::default(),
            polls: 0,
            poller: None,
            undelivered: Polled::default(),
            questions: BTreeMap::new(),
            next_question: 0,
        };
        Consumer { mailbox: driver::start(env, "consumer", client_id, task) }
    }

    /// Reads `partition` of `topic` from `start` on, besides those assigned before; assigning again moves it there.
    pub fn assign(&self, topic: impl Into<Arc<str>>, partition: i32, start: Start) {
        self.tell(Command::Assign { topic: topic.into(), partition, start });
    }

    /// Stops reading a partition; what was fetched of it and not handed out is dropped.
    pub fn unassign(&self, topic: impl Into<Arc<str>>, partition: i32) {
        self.tell(Command::Unassign { topic: topic.into(), partition });
    }

    /// Moves a partition to `offset`; the next poll starts there. `leader_epoch` is that of the record before it, when
    /// known: the leader then finds out whether the log was truncated in between.
    pub fn seek(&self, topic: impl Into<Arc<str>>, partition: i32, offset: i64, leader_epoch: Option<i32>) {
        self.assign(topic, partition, Start::At { offset, leader_epoch });
    }

    /// Records and events as soon as there are any, at most `max.poll.records`; empty after `max_wait`. When the future
    /// is dropped, the next poll gives what it would have given.
    pub async fn poll(&mut self, max_wait: Duration) -> Polled {
        let (sender, receiver) = oneshot::channel();
        self.tell(Command::Poll { max_wait, answer: sender });
        receiver.await.unwrap_or_default()
    }

    /// The offset of the next record that a poll gives; `None` while it is not known, or the partition not assigned.
    pub async fn position(&self, topic: impl Into<Arc<str>>, partition: i32) -> Option<i64> {
        let (sender, receiver) = oneshot::channel();
        self.tell(Command::Position { topic: topic.into(), partition, answer: sender });
        receiver.await.ok().flatten()
    }

    /// The first retained offset of each partition, in the order asked; gives up after `max_wait`. The partitions need
    /// not be assigned.
    ///
    /// # Errors
    /// The code of the first partition that could not be answered.
    pub async fn beginning_offsets(
        &self,
        partitions: &[(&str, i32)],
        max_wait: Duration,
    ) -> Result<Vec<i64>, ConsumerError> {
        self.offsets(partitions, OffsetEnd::First, max_wait).await
    }

    /// The offset after the last one that a consumer may read (the high watermark) of each partition, in the order
    /// asked; gives up after `max_wait`. The partitions need not be assigned.
    ///
    /// # Errors
    /// The code of the first partition that could not be answered.
    pub async fn end_offsets(
        &self,
        partitions: &[(&str, i32)],
        max_wait: Duration,
    ) -> Result<Vec<i64>, ConsumerError> {
        self.offsets(partitions, OffsetEnd::Last, max_wait).await
    }

    /// What happened so far; `None` when the task has ended.
    pub async fn counters(&self) -> Option<ConsumerCounters> {
        let (sender, receiver) = oneshot::channel();
        self.tell(Command::Counters(sender));
        receiver.await.ok()
    }

    async fn offsets(
        &self,
        partitions: &[(&str, i32)],
        end: OffsetEnd,
        max_wait: Duration,
    ) -> Result<Vec<i64>, ConsumerError> {
        let ask = |(topic, partition): &(&str, i32)| {
            let (answer, receiver) = oneshot::channel();
            let (topic, partition) = (Arc::from(*topic), *partition);
            self.tell(Command::ListOffset { topic, partition, end, max_wait, answer });
            receiver
        };
        let asked: Vec<_> = partitions.iter().map(ask).collect();
        let mut offsets = Vec::with_capacity(asked.len());
        for receiver in asked {
            let answer = receiver.await.unwrap_or(Err(error_code::UNKNOWN_SERVER_ERROR));
            offsets.push(answer.map_err(|code| ConsumerError { code })?);
        }
        Ok(offsets)
    }

    fn tell(&self, command: Command) {
        // The task only ends before the handle when its node dies, and then nobody waits for the answer.
        let _ = self.mailbox.send(command);
    }
}

enum Command {
    Assign {
        topic: Arc<str>,
        partition: i32,
        start: Start,
    },
    Unassign {
        topic: Arc<str>,
        partition: i32,
    },
    Poll {
        max_wait: Duration,
        answer: oneshot::Sender<Polled>,
    },
    Position {
        topic: Arc<str>,
        partition: i32,
        answer: oneshot::Sender<Option<i64>>,
    },
    ListOffset {
        topic: Arc<str>,
        partition: i32,
        end: OffsetEnd,
        max_wait: Duration,
        answer: oneshot::Sender<Result<i64, i16>>,
    },
    Counters(oneshot::Sender<ConsumerCounters>),
}

struct Task {
    machine: Machine,
    out: Output<ConsumerEffect>,
    /// Polls so far; the last one is the one that waits.
    polls: u64,
    poller: Option<oneshot::Sender<Polled>>,
    /// What a poll gave whose future was gone.
    undelivered: Polled,
    questions: BTreeMap<u64, oneshot::Sender<Result<i64, i16>>>,
    next_question: u64,
}

impl Client for Task {
    type Command = Command;

    fn handle<E: Env>(&mut self, now: Time, event: Event<Command>, transport: &mut Transport<E>) -> Flow {
        let input = match event {
            Event::Network(input) => ConsumerInput::Network(input),
            Event::Deadline => ConsumerInput::Tick,
            Event::Dropped => unreachable!("the driver ends then"),
            Event::Command(Command::Assign { topic, partition, start }) => {
                self.forget_undelivered(&topic, partition);
                ConsumerInput::Assign { topic, partition, start }
            }
            Event::Command(Command::Unassign { topic, partition }) => {
                self.forget_undelivered(&topic, partition);
                ConsumerInput::Unassign { topic, partition }
            }
            Event::Command(Command::Poll { max_wait, answer }) => {
                match self.poll(max_wait, answer, transport.wall_clock_ms()) {
                    Some(input) => input,
                    None => return Flow::Continue,
                }
            }
            Event::Command(Command::Position { topic, partition, answer }) => {
                let _ = answer.send(self.position(&topic, partition));
                return Flow::Continue;
            }
            Event::Command(Command::ListOffset { topic, partition, end, max_wait, answer }) => {
                self.next_question += 1;
                let question = self.next_question;
                self.questions.insert(question, answer);
                ConsumerInput::ListOffset { question, topic, partition, end, max_wait }
            }
            Event::Command(Command::Counters(answer)) => {
                let _ = answer.send(self.machine.counters().clone());
                return Flow::Continue;
            }
        };
        self.machine.handle(now, input, &mut self.out);
        self.carry_out(transport);
        Flow::Continue
    }

    fn next_deadline(&self) -> Option<Time> {
        self.machine.next_deadline()
    }
}

impl Task {
    fn poll(
        &mut self,
        max_wait: Duration,
        answer: oneshot::Sender<Polled>,
        wall_clock_ms: i64,
    ) -> Option<ConsumerInput> {
        if self.undelivered != Polled::default() {
            self.deliver(answer, Polled::default());
            return None;
        }
        self.polls += 1;
        self.poller = Some(answer);
        Some(ConsumerInput::Poll { poll: self.polls, max_wait, wall_clock_ms })
    }

    fn position(&self, topic: &Arc<str>, partition: i32) -> Option<i64> {
        let mut undelivered = self.undelivered.records.iter();
        let first = undelivered.find(|record| record.topic == *topic && record.partition == partition);
        first.map(|record| record.offset).or_else(|| self.machine.position(topic, partition))
    }

    /// Hands `polled` out after what could not be handed out before; keeps all of it when nobody waits.
    fn deliver(&mut self, answer: oneshot::Sender<Polled>, polled: Polled) {
        let mut all = std::mem::take(&mut self.undelivered);
        all.records.extend(polled.records);
        all.events.extend(polled.events);
        if let Err(all) = answer.send(all) {
            self.undelivered = all;
        }
    }

    fn forget_undelivered(&mut self, topic: &Arc<str>, partition: i32) {
        self.undelivered.records.retain(|record| record.topic != *topic || record.partition != partition);
    }

    fn carry_out<E: Env>(&mut self, transport: &mut Transport<E>) {
        let mut effects = std::mem::take(&mut self.out.effects);
        for effect in effects.drain(..) {
            match effect {
                ConsumerEffect::Network(effect) => transport.carry_out(effect),
                ConsumerEffect::Polled { poll, polled } => {
                    assert_eq!(poll, self.polls, "only the last poll waits");
                    let answer = self.poller.take().expect("a poll is answered once");
                    self.deliver(answer, polled);
                }
                ConsumerEffect::Listed { question, offset } => {
                    let answer = self.questions.remove(&question).expect("a question is answered once");
                    let _ = answer.send(offset);
                }
            }
        }
        self.out.effects = effects;
    }
}
