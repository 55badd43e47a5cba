//! The consumer of assigned partitions: an endpoint machine that turns polls into records in offset order. Decides
//! where to read, whom to ask, and when a log is no longer the one that was read; knows no groups.
//! Source: kafka-clients 4.3 (`Fetcher`, `SubscriptionState`, `OffsetsRequestManager`), KIP-320, KIP-392, KIP-595.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use acked_wire::api::fetch::{FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData};
use acked_wire::api::list_offsets::{
    ListOffsetsPartition, ListOffsetsRequest, ListOffsetsResponse, ListOffsetsTopic,
};
use acked_wire::api::metadata::MetadataResponse;
use acked_wire::{RequestBody, ResponseBody, Str, Uuid, error_code};
use rand_chacha::ChaCha8Rng;

use super::assigned::{Assigned, Position, Serial};
use super::records::{Reading, read};
use super::{ConsumerCounters, Event, Polled, Start};
use crate::client::{
    Backoff, ClusterView, Earliest, LinkEvent, LinkSettings, Links, NetworkEffect, NetworkInput, Peer,
    Refresh,
};
use crate::settings::{ConsumerSettings, IsolationLevel, OffsetReset};
use crate::{NodeId, Output, Time};

/// `ListOffsets` asks for the first retained offset with this timestamp.
const EARLIEST_TIMESTAMP: i64 = -2;
/// … and for the end of what may be read with this one.
const LATEST_TIMESTAMP: i64 = -1;

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

type Key = (Arc<str>, i32);

#[derive(Debug)]
enum Asked {
    Metadata,
    Fetch { node: NodeId, partitions: Vec<Fetching> },
    Offsets(Vec<Listing>),
}

#[derive(Debug)]
struct Fetching {
    key: Key,
    topic: Uuid,
    serial: Serial,
}

#[derive(Debug)]
struct Listing {
    key: Key,
    purpose: Purpose,
}

#[derive(Clone, Copy, Debug)]
enum Purpose {
    Position(Serial),
    Question(u64),
}

#[derive(Debug)]
struct Question {
    key: Key,
    timestamp: i64,
    deadline: Time,
    retry_at: Time,
    failures: u32,
    pending: bool,
}

#[derive(Debug)]
struct Poll {
    poll: u64,
    deadline: Time,
}

/// See the module.
#[derive(Debug)]
pub struct Consumer {
    settings: ConsumerSettings,
    retry: Backoff,
    rng: ChaCha8Rng,
    now: Time,
    view: ClusterView,
    refresh: Refresh,
    links: Links<Asked>,
    assigned: BTreeMap<Key, Assigned>,
    questions: BTreeMap<u64, Question>,
    poll: Option<Poll>,
    events: Vec<Event>,
    /// Brokers with a fetch on its way: one at a time.
    fetching: BTreeSet<NodeId>,
    /// The partition served last, so that the others get their turn.
    served: Option<Key>,
    next_serial: u64,
    counters: ConsumerCounters,
    network: Vec<NetworkEffect>,
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
            (None, Position::Earliest | Position::Latest) => None,
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
            ConsumerInput::Poll { poll, max_wait } => {
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

    fn link_retry(&self, key: &Key) -> Option<Time> {
        let node = self.view.leader_node(&key.0, key.1)?;
        self.links.retry_at(Peer::Node(node))
    }

    // ---- the application

    fn assign(&mut self, topic: Arc<str>, partition: i32, start: Start) {
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

    fn ask(&mut self, question: u64, key: Key, end: OffsetEnd, max_wait: Duration) {
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

    fn answer_poll(&mut self, out: &mut Output<ConsumerEffect>) {
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
    fn take_records(&mut self) -> Vec<super::ConsumedRecord> {
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

    fn expire_questions(&mut self, out: &mut Output<ConsumerEffect>) {
        self.questions.retain(|question, asked| {
            let over = asked.deadline <= self.now;
            if over {
                let offset = Err(error_code::REQUEST_TIMED_OUT);
                out.effect(ConsumerEffect::Listed { question: *question, offset });
            }
            !over
        });
    }

    // ---- the network

    fn on_link(&mut self, event: LinkEvent<Asked>, out: &mut Output<ConsumerEffect>) {
        match event {
            LinkEvent::Stale | LinkEvent::Up(_) | LinkEvent::Written { .. } => {}
            LinkEvent::Down { lost, .. } => {
                self.counters.disconnects += 1;
                self.refresh.want();
                for asked in lost {
                    self.on_failed(asked, error_code::NETWORK_EXCEPTION, out);
                }
            }
            LinkEvent::Unsupported { what, .. } => {
                self.on_failed(what, error_code::UNSUPPORTED_VERSION, out);
            }
            LinkEvent::Answer { what, body, .. } => match (what, body) {
                (Asked::Metadata, ResponseBody::Metadata(answer)) => self.on_metadata(&answer, out),
                (Asked::Fetch { node, partitions }, ResponseBody::Fetch(answer)) => {
                    self.on_fetched(node, partitions, answer, out);
                }
                (Asked::Offsets(listings), ResponseBody::ListOffsets(answer)) => {
                    self.on_listed(listings, &answer, out);
                }
                // An answer to something else than was asked is as good as none.
                (asked, _) => self.on_failed(asked, error_code::NETWORK_EXCEPTION, out),
            },
        }
    }

    fn on_failed(&mut self, asked: Asked, code: i16, out: &mut Output<ConsumerEffect>) {
        match asked {
            Asked::Metadata => self.refresh.failed(self.now, &mut self.rng),
            Asked::Fetch { node, partitions } => {
                self.fetching.remove(&node);
                for fetching in partitions {
                    self.on_code(&fetching.key, fetching.serial, code);
                }
            }
            Asked::Offsets(listings) => {
                for listing in listings {
                    self.on_offset(listing, Err(code), out);
                }
            }
        }
    }

    fn on_metadata(&mut self, answer: &MetadataResponse, out: &mut Output<ConsumerEffect>) {
        if !self.view.update(answer) {
            self.refresh.failed(self.now, &mut self.rng);
            return;
        }
        self.links.drop_bootstrap(&mut self.network);
        let settled =
            self.keys().all(|(topic, partition)| self.view.leader_node(topic, *partition).is_some());
        self.refresh.answered(self.now, settled, &mut self.rng);
        let hopeless = |view: &ClusterView, key: &Key| {
            let code = view.topic_code(&key.0);
            (code != error_code::NONE && !error_code::retriable(code)).then_some(code)
        };
        for (key, assigned) in self.assigned.iter_mut().filter(|(_, assigned)| !assigned.halted) {
            if let Some(code) = hopeless(&self.view, key) {
                assigned.halted = true;
                assigned.pending = None;
                let (topic, partition) = key.clone();
                self.events.push(Event::Failed { topic, partition, code, halted: true });
            }
        }
        self.questions.retain(|question, asked| {
            let code = hopeless(&self.view, &asked.key);
            if let Some(code) = code {
                out.effect(ConsumerEffect::Listed { question: *question, offset: Err(code) });
            }
            code.is_none()
        });
        self.answer_poll(out);
    }

    fn on_fetched(
        &mut self,
        node: NodeId,
        partitions: Vec<Fetching>,
        answer: FetchResponse,
        out: &mut Output<ConsumerEffect>,
    ) {
        assert!(self.fetching.remove(&node), "an answer follows a fetch");
        self.counters.fetches += 1;
        for endpoint in &answer.node_endpoints {
            if let Ok(port) = u16::try_from(endpoint.port) {
                self.view.learn_address(NodeId(endpoint.node_id), &endpoint.host, port);
            }
        }
        for Fetching { key, topic, serial } in partitions {
            let topics = answer.responses.iter().filter(|response| response.topic_id == topic);
            let mut answers = topics.flat_map(|response| &response.partitions);
            match answers.find(|partition| partition.partition_index == key.1) {
                Some(partition) if answer.error_code == error_code::NONE => {
                    self.on_partition(&key, topic, serial, partition);
                }
                _ => self.on_code(&key, serial, answer.error_code),
            }
        }
        self.answer_poll(out);
    }

    /// The leader answered for one partition.
    fn on_partition(&mut self, key: &Key, topic: Uuid, serial: Serial, answer: &PartitionData) {
        let leader = answer.current_leader.leader_id;
        if leader >= 0 {
            self.view.learn_leader(topic, key.1, NodeId(leader), answer.current_leader.leader_epoch);
        }
        if answer.error_code != error_code::NONE {
            self.on_code(key, serial, answer.error_code);
            return;
        }
        let Some(assigned) = self.assigned.get_mut(key).filter(|assigned| assigned.pending == Some(serial))
        else {
            return;
        };
        assigned.pending = None;
        let Position::At { offset, leader_epoch } = assigned.position else {
            panic!("a partition is fetched at a position")
        };
        let diverging = &answer.diverging_epoch;
        if diverging.epoch >= 0 || diverging.end_offset >= 0 {
            let (epoch, end_offset) = (diverging.epoch, diverging.end_offset);
            self.on_truncated(key, offset, leader_epoch.unwrap_or(-1), epoch, end_offset);
            return;
        }
        assigned.failures = 0;
        let Some(bytes) = &answer.records else { return };
        let committed_only = self.settings.isolation_level == IsolationLevel::ReadCommitted;
        let aborted = answer.aborted_transactions.as_deref().unwrap_or(&[]);
        let reading = Reading {
            topic: &key.0,
            partition: key.1,
            from: offset,
            check_crcs: self.settings.check_crcs,
            aborted: committed_only.then_some(aborted),
        };
        let read = read(bytes, reading);
        assert!(assigned.records.is_empty(), "nothing is fetched while records wait");
        assigned.records.extend(read.records);
        if let Some((next, epoch)) = read.next {
            assert!(next > offset, "reading moves forward");
            assigned.position =
                Position::At { offset: next, leader_epoch: Some(epoch).filter(|epoch| *epoch >= 0) };
        }
        if let Some(code) = read.failure {
            // The batch may be whole on another try, or on the next leader. What is compressed stays so.
            let halted = code == error_code::UNSUPPORTED_COMPRESSION_TYPE;
            self.back_off(key, code, Some(halted));
        }
    }

    /// The leader's log is not the one that was read.
    fn on_truncated(&mut self, key: &Key, offset: i64, leader_epoch: i32, epoch: i32, end_offset: i64) {
        self.counters.truncations += 1;
        let resets = self.settings.auto_offset_reset != OffsetReset::None;
        let common = end_offset.clamp(0, offset);
        let assigned = self.assigned.get_mut(key).expect("the partition was just found");
        if resets {
            let leader_epoch = Some(epoch).filter(|epoch| *epoch >= 0);
            assigned.position = Position::At { offset: common, leader_epoch };
        } else {
            assigned.halted = true;
        }
        let (topic, partition) = key.clone();
        let resumes_at = resets.then_some(common);
        self.events.push(Event::Truncated { topic, partition, offset, leader_epoch, end_offset, resumes_at });
    }

    /// A fetch brought an error instead of records.
    fn on_code(&mut self, key: &Key, serial: Serial, code: i16) {
        *self.counters.errors.entry(code).or_insert(0) += 1;
        let Some(assigned) = self.assigned.get_mut(key).filter(|assigned| assigned.pending == Some(serial))
        else {
            return;
        };
        assigned.pending = None;
        if let (error_code::OFFSET_OUT_OF_RANGE, Position::At { offset, .. }) = (code, assigned.position) {
            self.on_out_of_range(key, offset);
        } else if error_code::retriable(code) || code == error_code::NONE {
            self.back_off(key, code, None);
        } else {
            // A broker in trouble may recover, or its leadership move.
            let halted = code != error_code::UNKNOWN_SERVER_ERROR;
            self.back_off(key, code, Some(halted));
        }
    }

    fn on_out_of_range(&mut self, key: &Key, offset: i64) {
        let assigned = self.assigned.get_mut(key).expect("the partition was just found");
        let resets = match self.settings.auto_offset_reset {
            OffsetReset::Earliest => {
                assigned.position = Position::Earliest;
                true
            }
            OffsetReset::Latest => {
                assigned.position = Position::Latest;
                true
            }
            OffsetReset::None => {
                assigned.halted = true;
                false
            }
        };
        let (topic, partition) = key.clone();
        self.events.push(Event::OutOfRange { topic, partition, offset, resets });
    }

    /// Asks again later, of a leader known anew; or not at all. `reported` says whether, and with which `halted`, the
    /// application hears of it.
    fn back_off(&mut self, key: &Key, code: i16, reported: Option<bool>) {
        self.refresh.want();
        let assigned = self.assigned.get_mut(key).expect("the partition was just found");
        assigned.failures = assigned.failures.saturating_add(1);
        assigned.retry_at = self.now.saturating_add(self.retry.delay(assigned.failures, &mut self.rng));
        if let Some(halted) = reported {
            assigned.halted = halted;
            let (topic, partition) = key.clone();
            self.events.push(Event::Failed { topic, partition, code, halted });
        }
    }

    fn on_listed(
        &mut self,
        listings: Vec<Listing>,
        answer: &ListOffsetsResponse,
        out: &mut Output<ConsumerEffect>,
    ) {
        for listing in listings {
            let topics = answer.topics.iter().filter(|topic| topic.name == *listing.key.0);
            let mut answers = topics.flat_map(|topic| &topic.partitions);
            let offset = match answers.find(|partition| partition.partition_index == listing.key.1) {
                Some(found) if found.error_code != error_code::NONE => Err(found.error_code),
                Some(found) if found.offset >= 0 => Ok(found.offset),
                _ => Err(error_code::NETWORK_EXCEPTION),
            };
            self.on_offset(listing, offset, out);
        }
    }

    fn on_offset(&mut self, listing: Listing, offset: Result<i64, i16>, out: &mut Output<ConsumerEffect>) {
        match listing.purpose {
            Purpose::Question(question) => self.on_question(question, offset, out),
            Purpose::Position(serial) => match offset {
                Err(code) => self.on_code(&listing.key, serial, code),
                Ok(offset) => {
                    let assigned = self.assigned.get_mut(&listing.key);
                    if let Some(assigned) = assigned.filter(|assigned| assigned.pending == Some(serial)) {
                        assigned.pending = None;
                        assigned.failures = 0;
                        // Nothing was read yet, so there is no history to compare.
                        assigned.position = Position::At { offset, leader_epoch: None };
                    }
                }
            },
        }
    }

    fn on_question(&mut self, question: u64, offset: Result<i64, i16>, out: &mut Output<ConsumerEffect>) {
        let Some(asked) = self.questions.get_mut(&question) else { return };
        asked.pending = false;
        match offset {
            Err(code) if error_code::retriable(code) => {
                *self.counters.errors.entry(code).or_insert(0) += 1;
                asked.failures = asked.failures.saturating_add(1);
                asked.retry_at = self.now.saturating_add(self.retry.delay(asked.failures, &mut self.rng));
                self.refresh.want();
            }
            offset => {
                self.questions.remove(&question);
                out.effect(ConsumerEffect::Listed { question, offset });
            }
        }
    }

    // ---- requests out

    /// Asks leaders for the offsets that are missing.
    fn list_offsets(&mut self) {
        let mut drafts: BTreeMap<NodeId, Vec<(Listing, i64)>> = BTreeMap::new();
        if self.poll.is_some() {
            for key in self.asking() {
                let timestamp = match self.assigned[&key].position {
                    Position::Earliest => EARLIEST_TIMESTAMP,
                    Position::Latest => LATEST_TIMESTAMP,
                    Position::At { .. } => continue,
                };
                let Some(node) = self.reachable_leader(&key) else { continue };
                let serial = self.pend(&key);
                let listing = Listing { key, purpose: Purpose::Position(serial) };
                drafts.entry(node).or_default().push((listing, timestamp));
            }
        }
        let due = self.questions.iter().filter(|(_, asked)| !asked.pending && asked.retry_at <= self.now);
        let due: Vec<(u64, Key)> = due.map(|(question, asked)| (*question, asked.key.clone())).collect();
        for (question, key) in due {
            let Some(node) = self.reachable_leader(&key) else { continue };
            let asked = self.questions.get_mut(&question).expect("the question was just found");
            asked.pending = true;
            let listing = Listing { key, purpose: Purpose::Question(question) };
            drafts.entry(node).or_default().push((listing, asked.timestamp));
        }
        for (node, draft) in drafts {
            self.send_offsets(node, draft);
        }
    }

    fn send_offsets(&mut self, node: NodeId, draft: Vec<(Listing, i64)>) {
        let mut topics: Vec<ListOffsetsTopic> = Vec::new();
        for (listing, timestamp) in &draft {
            let (topic, index) = &listing.key;
            let leader = self.view.leader(topic, *index);
            let partition = ListOffsetsPartition {
                partition_index: *index,
                current_leader_epoch: leader.map_or(-1, |leader| leader.leader_epoch),
                timestamp: *timestamp,
                ..Default::default()
            };
            match topics.last_mut() {
                Some(last) if last.name == **topic => last.partitions.push(partition),
                _ => topics.push(ListOffsetsTopic {
                    name: Str::from(&**topic),
                    partitions: vec![partition],
                    ..Default::default()
                }),
            }
        }
        let body = RequestBody::ListOffsets(ListOffsetsRequest {
            replica_id: -1,
            isolation_level: self.settings.isolation_level.code(),
            topics,
            timeout_ms: milliseconds(self.settings.request_timeout),
            ..Default::default()
        });
        let asked = Asked::Offsets(draft.into_iter().map(|(listing, _)| listing).collect());
        self.links.send(self.now, Peer::Node(node), body, true, asked, &mut self.network);
    }

    /// Fetches while a poll waits: one request to each leader, for all of its partitions without records.
    fn fetch(&mut self) {
        if self.poll.is_none() {
            return;
        }
        let mut drafts: BTreeMap<NodeId, Vec<(Fetching, FetchPartition)>> = BTreeMap::new();
        for key in self.asking() {
            let Position::At { offset, leader_epoch } = self.assigned[&key].position else { continue };
            let Some(node) = self.reachable_leader(&key) else { continue };
            let Some(topic) = self.view.topic_id(&key.0) else { continue };
            if self.fetching.contains(&node) {
                continue;
            }
            let leader = self.view.leader(&key.0, key.1);
            let partition = FetchPartition {
                partition: key.1,
                current_leader_epoch: leader.map_or(-1, |leader| leader.leader_epoch),
                fetch_offset: offset,
                last_fetched_epoch: leader_epoch.unwrap_or(-1),
                partition_max_bytes: self.settings.max_partition_fetch_bytes,
                ..Default::default()
            };
            let serial = self.pend(&key);
            drafts.entry(node).or_default().push((Fetching { key, topic, serial }, partition));
        }
        for (node, draft) in drafts {
            self.send_fetch(node, draft);
        }
    }

    fn send_fetch(&mut self, node: NodeId, draft: Vec<(Fetching, FetchPartition)>) {
        let mut topics: Vec<FetchTopic> = Vec::new();
        let mut partitions = Vec::with_capacity(draft.len());
        for (fetching, partition) in draft {
            match topics.last_mut() {
                Some(last) if last.topic_id == fetching.topic => last.partitions.push(partition),
                _ => topics.push(FetchTopic {
                    topic_id: fetching.topic,
                    partitions: vec![partition],
                    ..Default::default()
                }),
            }
            partitions.push(fetching);
        }
        let body = RequestBody::Fetch(FetchRequest {
            max_wait_ms: milliseconds(self.settings.fetch_max_wait),
            min_bytes: self.settings.fetch_min_bytes,
            max_bytes: self.settings.fetch_max_bytes,
            isolation_level: self.settings.isolation_level.code(),
            // No session: every request says all that it wants.
            session_id: 0,
            session_epoch: -1,
            topics,
            ..Default::default()
        });
        self.fetching.insert(node);
        let asked = Asked::Fetch { node, partitions };
        self.links.send(self.now, Peer::Node(node), body, true, asked, &mut self.network);
    }

    fn ask_for_metadata(&mut self) {
        let needed = self.poll.is_some() || !self.questions.is_empty();
        if !needed || !self.refresh.due(self.now) {
            return;
        }
        let Some(peer) = self.links.any(self.now, &self.view, &mut self.network) else { return };
        let topics: BTreeSet<&Arc<str>> = self.keys().map(|(topic, _)| topic).collect();
        let body = RequestBody::Metadata(ClusterView::request(topics.into_iter(), false));
        self.refresh.asked();
        self.links.send(self.now, peer, body, true, Asked::Metadata, &mut self.network);
    }

    // ---- small helpers

    /// Every partition that this consumer has to do with.
    fn keys(&self) -> impl Iterator<Item = &Key> {
        self.assigned.keys().chain(self.questions.values().map(|question| &question.key))
    }

    fn asking(&self) -> Vec<Key> {
        let asking = self.assigned.iter().filter(|(_, assigned)| assigned.asks(self.now));
        asking.map(|(key, _)| key.clone()).collect()
    }

    /// The leader of a partition, if its link is up.
    fn reachable_leader(&mut self, key: &Key) -> Option<NodeId> {
        let Some(node) = self.view.leader_node(&key.0, key.1) else {
            self.refresh.want();
            return None;
        };
        self.links.ensure(self.now, Peer::Node(node), &self.view, &mut self.network).then_some(node)
    }

    fn pend(&mut self, key: &Key) -> Serial {
        let serial = Serial(self.next_serial);
        self.next_serial += 1;
        let assigned = self.assigned.get_mut(key).expect("only assigned partitions ask");
        assigned.pending = Some(serial);
        serial
    }
}

fn milliseconds(duration: Duration) -> i32 {
    i32::try_from(duration.as_millis()).unwrap_or(i32::MAX)
}
