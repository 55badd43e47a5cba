//! The consumer of assigned partitions: an endpoint machine that turns polls into records in offset order. Decides
//! where to read, whom to ask, and when a log is no longer the one that was read; knows no groups.
//! Source: kafka-clients 4.3 (`Fetcher`, `SubscriptionState`, `OffsetsRequestManager`), KIP-320, KIP-392, KIP-595.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use acked_wire::{Uuid, error_code};
use rand_chacha::ChaCha8Rng;

use super::assigned::{Assigned, Position, Serial};
use super::{ConsumerCounters, Event, Polled, Start};
use crate::client::{
    Backoff, ClusterView, Earliest, LinkSettings, Links, NetworkEffect, NetworkInput, Peer, Refresh,
};
use crate::settings::ConsumerSettings;
use crate::{NodeId, Output, Time};

/// `ListOffsets` asks for the first retained offset with this timestamp.
pub(super) const EARLIEST_TIMESTAMP: i64 = -2;
/// … and for the end of what may be read with this one.
pub(super) const LATEST_TIMESTAMP: i64 = -1;

/// What the consumer is told.
#[derive(Debug)]
pub enum ConsumerInput {
    /// Read a partition from here on; replaces an earlier assignment of it.
    Assign {
        topic: Arc<str>,
        partition: i32,
        start: Start,
    },
    Unassign {
        topic: Arc<str>,
        partition: i32,
    },
    /// Say `Polled` as soon as there is something, or after `max_wait` with nothing. A poll that still waits is
    /// forgotten.
    Poll {
        poll: u64,
        max_wait: Duration,
        /// Milliseconds since 1970 by this client's wall clock.
        wall_clock_ms: i64,
    },
    /// Say `Listed` with the first or the end offset of a partition, assigned or not.
    ListOffset {
        question: u64,
        topic: Arc<str>,
        partition: i32,
        end: OffsetEnd,
        max_wait: Duration,
    },
    Network(NetworkInput),
    /// A deadline passed.
    Tick,
}

/// Which end of a partition is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetEnd {
    /// The first retained offset.
    First,
    /// The offset after the last one that may be read.
    Last,
}

/// What the consumer asks for.
#[derive(Debug)]
pub enum ConsumerEffect {
    Network(NetworkEffect),
    Polled {
        poll: u64,
        polled: Polled,
    },
    /// Kafka's error code when the question was given up; REQUEST_TIMED_OUT (7) when its time was up.
    Listed {
        question: u64,
        offset: Result<i64, i16>,
    },
}

pub(super) type Key = (Arc<str>, i32);

#[derive(Debug)]
pub(super) enum Asked {
    Metadata,
    Fetch { node: NodeId, partitions: Vec<Fetching> },
    Epochs(Vec<Validating>),
    Offsets(Vec<Listing>),
}

#[derive(Debug)]
pub(super) struct Fetching {
    pub(super) key: Key,
    pub(super) topic: Uuid,
    pub(super) serial: Serial,
}

#[derive(Debug)]
pub(super) struct Validating {
    pub(super) key: Key,
    pub(super) serial: Serial,
    /// The leader epoch in which the position is asked about.
    pub(super) leader_epoch: i32,
}

#[derive(Debug)]
pub(super) struct Listing {
    pub(super) key: Key,
    pub(super) purpose: Purpose,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    Position(Serial),
    Question(u64),
}

#[derive(Debug)]
pub(super) struct Question {
    pub(super) key: Key,
    pub(super) timestamp: i64,
    pub(super) deadline: Time,
    pub(super) retry_at: Time,
    pub(super) failures: u32,
    pub(super) pending: bool,
}

#[derive(Debug)]
pub(super) struct Poll {
    pub(super) poll: u64,
    pub(super) deadline: Time,
}

/// See the module.
#[derive(Debug)]
pub struct Consumer {
    pub(super) settings: ConsumerSettings,
    pub(super) retry: Backoff,
    pub(super) rng: ChaCha8Rng,
    pub(super) now: Time,
    pub(super) view: ClusterView,
    pub(super) refresh: Refresh,
    pub(super) links: Links<Asked>,
    pub(super) assigned: BTreeMap<Key, Assigned>,
    pub(super) questions: BTreeMap<u64, Question>,
    pub(super) poll: Option<Poll>,
    /// The wall clock at the last poll, and when that was.
    pub(super) wall_clock: (i64, Time),
    pub(super) events: Vec<Event>,
    /// Brokers with a fetch on its way: one at a time.
    pub(super) fetching: BTreeSet<NodeId>,
    /// The partition served last, so that the others get their turn.
    pub(super) served: Option<Key>,
    pub(super) next_serial: u64,
    pub(super) counters: ConsumerCounters,
    pub(super) network: Vec<NetworkEffect>,
}

impl Consumer {
    /// # Panics
    /// When `bootstrap` is empty.
    pub fn new(settings: ConsumerSettings, bootstrap: Vec<(String, u16)>, rng: ChaCha8Rng) -> Consumer {
        let retry = Backoff { first: settings.retry_backoff, max: settings.retry_backoff_max };
        let links = LinkSettings {
            request_timeout: settings.request_timeout,
            setup_timeout: settings.socket_connection_setup_timeout,
            reconnect: Backoff { first: settings.reconnect_backoff, max: settings.reconnect_backoff_max },
        };
        Consumer {
            retry,
            rng,
            now: Time::ZERO,
            view: ClusterView::default(),
            refresh: Refresh::new(retry, settings.metadata_max_age),
            links: Links::new(links, bootstrap),
            assigned: BTreeMap::new(),
            questions: BTreeMap::new(),
            poll: None,
            wall_clock: (0, Time::ZERO),
            events: Vec::new(),
            fetching: BTreeSet::new(),
            served: None,
            next_serial: 0,
            counters: ConsumerCounters::default(),
            network: Vec::new(),
            settings,
        }
    }

    /// What happened so far.
    pub fn counters(&self) -> &ConsumerCounters {
        &self.counters
    }

    /// The offset of the next record that a poll will hand out; `None` while a leader has to be asked for it, or when
    /// the partition is not assigned.
    pub fn position(&self, topic: &Arc<str>, partition: i32) -> Option<i64> {
        let assigned = self.assigned.get(&(topic.clone(), partition))?;
        match (assigned.records.front(), assigned.position) {
            (Some(record), _) => Some(record.offset),
            (None, Position::At { offset, .. }) => Some(offset),
            (None, Position::Earliest | Position::Latest | Position::NotOlderThan(_)) => None,
        }
    }

    pub fn handle(&mut self, now: Time, input: ConsumerInput, out: &mut Output<ConsumerEffect>) {
        assert!(now >= self.now, "time does not go back");
        assert!(self.network.is_empty(), "every effect of the last call was handed out");
        self.now = now;
        match input {
            ConsumerInput::Assign { topic, partition, start } => self.assign(topic, partition, start),
            ConsumerInput::Unassign { topic, partition } => {
                self.assigned.remove(&(topic, partition));
            }
            ConsumerInput::Poll { poll, max_wait, wall_clock_ms } => {
                self.wall_clock = (wall_clock_ms, now);
                self.poll = Some(Poll { poll, deadline: now.saturating_add(max_wait) });
            }
            ConsumerInput::ListOffset { question, topic, partition, end, max_wait } => {
                self.ask(question, (topic, partition), end, max_wait);
            }
            ConsumerInput::Network(input) => {
                let event = self.links.handle(now, input, &mut self.rng, &mut self.network);
                self.on_link(event, out);
            }
            ConsumerInput::Tick => {}
        }
        while let Some(event) = self.links.expire(now, &mut self.rng, &mut self.network) {
            self.on_link(event, out);
        }
        self.answer_poll(out);
        self.expire_questions(out);
        self.list_offsets();
        self.validate();
        self.fetch();
        self.ask_for_metadata();
        out.effects.extend(self.network.drain(..).map(ConsumerEffect::Network));
    }

    /// When to say [`ConsumerInput::Tick`] if nothing else happens.
    pub fn next_deadline(&self) -> Option<Time> {
        let mut earliest = Earliest::after(self.now);
        earliest.add(self.links.next_deadline());
        earliest.add(self.poll.as_ref().map(|poll| poll.deadline));
        if self.poll.is_some() || !self.questions.is_empty() {
            earliest.add(self.refresh.next_deadline());
            if self.refresh.due(self.now) {
                earliest.add(self.links.any_retry_at());
            }
        }
        if self.poll.is_some() {
            for (key, assigned) in &self.assigned {
                earliest.add(assigned.retry_deadline());
                earliest.add(self.link_retry(key));
            }
        }
        for question in self.questions.values() {
            earliest.add(Some(question.deadline));
            if !question.pending {
                earliest.add(Some(question.retry_at));
                earliest.add(self.link_retry(&question.key));
            }
        }
        earliest.deadline()
    }

    pub(super) fn link_retry(&self, key: &Key) -> Option<Time> {
        let node = self.view.leader_node(&key.0, key.1)?;
        self.links.retry_at(Peer::Node(node))
    }

    pub(super) fn assign(&mut self, topic: Arc<str>, partition: i32, start: Start) {
        let position = match start {
            Start::Earliest => Position::Earliest,
            Start::Latest => Position::Latest,
            Start::At { offset, leader_epoch } => Position::At { offset, leader_epoch },
        };
        if self.view.leader(&topic, partition).is_none() {
            self.refresh.want();
        }
        self.assigned.insert((topic, partition), Assigned::new(position));
    }

    pub(super) fn ask(&mut self, question: u64, key: Key, end: OffsetEnd, max_wait: Duration) {
        let timestamp = match end {
            OffsetEnd::First => EARLIEST_TIMESTAMP,
            OffsetEnd::Last => LATEST_TIMESTAMP,
        };
        let deadline = self.now.saturating_add(max_wait);
        if self.view.leader(&key.0, key.1).is_none() {
            self.refresh.want();
        }
        let asked = Question { key, timestamp, deadline, retry_at: self.now, failures: 0, pending: false };
        let before = self.questions.insert(question, asked);
        assert!(before.is_none(), "a question's number is used once");
    }

    pub(super) fn answer_poll(&mut self, out: &mut Output<ConsumerEffect>) {
        let Some(Poll { poll, deadline }) = self.poll else { return };
        let records = self.take_records();
        if records.is_empty() && self.events.is_empty() && deadline > self.now {
            return;
        }
        self.poll = None;
        self.counters.records += records.len() as u64;
        let polled = Polled { records, events: std::mem::take(&mut self.events) };
        out.effect(ConsumerEffect::Polled { poll, polled });
    }

    /// At most `max.poll.records`, beginning after the partition served last.
    pub(super) fn take_records(&mut self) -> Vec<super::ConsumedRecord> {
        let mut records = Vec::new();
        let start = self.served.take().map_or(Bound::Unbounded, Bound::Excluded);
        let after = self.assigned.range((start.clone(), Bound::Unbounded)).map(|(key, _)| key.clone());
        let mut order: Vec<Key> = after.collect();
        if let Bound::Excluded(served) = start {
            order.extend(self.assigned.range(..=served).map(|(key, _)| key.clone()));
        }
        for key in order {
            let assigned = self.assigned.get_mut(&key).expect("the order lists assigned partitions");
            let room = self.settings.max_poll_records - records.len();
            let count = room.min(assigned.records.len());
            if count > 0 {
                records.extend(assigned.records.drain(..count));
                self.served = Some(key);
            }
        }
        assert!(records.len() <= self.settings.max_poll_records, "a poll is bounded");
        records
    }

    pub(super) fn expire_questions(&mut self, out: &mut Output<ConsumerEffect>) {
        self.questions.retain(|question, asked| {
            let over = asked.deadline <= self.now;
            if over {
                let offset = Err(error_code::REQUEST_TIMED_OUT);
                out.effect(ConsumerEffect::Listed { question: *question, offset });
            }
            !over
        });
    }
}
