//! One producer, its connections and the model cluster, moved by hand.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use acked_wire::{RequestBody, ResponseBody};
use bytes::Bytes;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::broker::{Cluster, Trouble};
use crate::client::{ConnectionId, NetworkEffect, NetworkInput};
use crate::producer::{Outcome, PendingRecord, Producer, ProducerEffect, ProducerInput, RecordId};
use crate::settings::ProducerSettings;
use crate::{Output, Time};

pub const MS: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub struct Wire {
    pub node: i32,
    up: bool,
    /// Correlation, request, whether it is answered.
    pub requests: VecDeque<(i32, RequestBody, bool)>,
    answers: VecDeque<(i32, Option<ResponseBody>)>,
}

pub struct World {
    pub now: Time,
    pub producer: Producer,
    pub cluster: Cluster,
    pub wires: BTreeMap<ConnectionId, Wire>,
    /// Requests of connections that are gone, which still arrive.
    orphans: VecDeque<(i32, RequestBody)>,
    /// By record: partition and what became of it.
    pub sent: Vec<(i32, Option<Outcome>)>,
    pub flushed: Vec<u64>,
    pub closed: bool,
}

impl World {
    pub fn new(settings: ProducerSettings, cluster: Cluster) -> World {
        let bootstrap = vec![("1".to_string(), 1), ("2".to_string(), 1)];
        World {
            now: Time::ZERO,
            producer: Producer::new(settings, bootstrap, ChaCha8Rng::seed_from_u64(1)),
            cluster,
            wires: BTreeMap::new(),
            orphans: VecDeque::new(),
            sent: Vec::new(),
            flushed: Vec::new(),
            closed: false,
        }
    }

    pub fn tell(&mut self, input: ProducerInput) {
        let mut out = Output::default();
        self.producer.handle(self.now, input, &mut out);
        for effect in out.effects {
            match effect {
                ProducerEffect::Network(effect) => self.on_network(effect),
                ProducerEffect::Complete { record, outcome } => {
                    let (_, before) = &mut self.sent[record.0 as usize];
                    assert_eq!(*before, None, "record {record:?} is answered once");
                    *before = Some(outcome);
                }
                ProducerEffect::Flushed { flush } => self.flushed.push(flush),
                ProducerEffect::Closed => self.closed = true,
            }
        }
    }

    fn on_network(&mut self, effect: NetworkEffect) {
        match effect {
            NetworkEffect::Connect { connection, host, .. } => {
                let node = host.parse().expect("hosts are called by their node");
                let (requests, answers) = (VecDeque::new(), VecDeque::new());
                self.wires.insert(connection, Wire { node, up: false, requests, answers });
            }
            NetworkEffect::Disconnect { connection } => self.drop_wire(connection),
            NetworkEffect::Send { connection, correlation, body, answered } => {
                let wire = self.wires.get_mut(&connection).expect("requests go to open connections");
                assert!(wire.up, "requests go to connections that are up");
                wire.requests.push_back((correlation, body, answered));
            }
        }
    }

    fn drop_wire(&mut self, connection: ConnectionId) {
        let wire = self.wires.remove(&connection).expect("a connection ends once");
        self.orphans.extend(wire.requests.into_iter().map(|(_, body, _)| (wire.node, body)));
    }

    /// Sends the next record: its value is its number.
    pub fn send(&mut self, partition: i32) -> usize {
        let id = self.sent.len();
        self.sent.push((partition, None));
        let record = PendingRecord {
            id: RecordId(id as u64),
            key: None,
            value: Some(Bytes::copy_from_slice(&(id as u64).to_be_bytes())),
            timestamp_ms: 0,
        };
        self.tell(ProducerInput::Send { record, topic: "t".into(), partition });
        id
    }

    /// The n-th connection gets one step further: connected, or its oldest request served, or its oldest answer
    /// delivered. False when there is nothing to do on it.
    pub fn step(&mut self, nth: usize, answer_first: bool, trouble: Trouble) -> bool {
        let Some((&connection, wire)) = self.wires.iter_mut().nth(nth) else { return false };
        if !wire.up {
            wire.up = true;
            self.tell(ProducerInput::Network(NetworkInput::Connected { connection }));
            return true;
        }
        if (answer_first || wire.requests.is_empty())
            && let Some((correlation, body)) = wire.answers.pop_front()
        {
            self.tell(ProducerInput::Network(match body {
                Some(body) => NetworkInput::Answer { connection, correlation, body },
                None => NetworkInput::Written { connection, correlation },
            }));
            return true;
        }
        let node = wire.node;
        let Some((correlation, request, answered)) = wire.requests.pop_front() else { return false };
        let answer = self.cluster.serve(node, &request, trouble);
        assert_eq!(answer.is_some(), answered, "the producer knows what is answered");
        self.wires.get_mut(&connection).expect("still open").answers.push_back((correlation, answer));
        true
    }

    /// As [`World::step`], on the connection to a broker, without trouble.
    pub fn step_node(&mut self, node: i32) -> bool {
        let nth = self.wires.values().position(|wire| wire.node == node).expect("it is connected to");
        self.step(nth, true, Trouble::None)
    }

    /// The n-th connection breaks: what was asked may still arrive, what was answered does not.
    pub fn break_wire(&mut self, nth: usize) {
        let Some(&connection) = self.wires.keys().nth(nth) else { return };
        self.drop_wire(connection);
        self.tell(ProducerInput::Network(NetworkInput::Disconnected { connection }));
    }

    /// The oldest request of a broken connection arrives, or gets lost.
    pub fn orphan(&mut self, arrives: bool) {
        if let Some((node, body)) = self.orphans.pop_front()
            && arrives
        {
            let _ = self.cluster.serve(node, &body, Trouble::None);
        }
    }

    pub fn wait(&mut self, time: Duration) {
        self.now += time;
        self.tell(ProducerInput::Tick);
    }

    /// Everything that can happen without time passing, without trouble.
    pub fn settle(&mut self) {
        for _ in 0..10_000 {
            let wires = self.wires.len();
            if !(0..wires).any(|nth| self.step(nth, true, Trouble::None)) {
                return;
            }
        }
        panic!("a producer comes to rest");
    }

    /// Lets time pass, without trouble, until every record is answered.
    pub fn finish(&mut self) {
        while !self.orphans.is_empty() {
            self.orphan(true);
        }
        self.settle();
        for _ in 0..10_000 {
            if self.sent.iter().all(|(_, outcome)| outcome.is_some()) {
                return;
            }
            let deadline = self.producer.next_deadline().expect("a record without an answer has a deadline");
            assert!(deadline > self.now, "a deadline lies ahead");
            self.now = deadline;
            self.tell(ProducerInput::Tick);
            self.settle();
        }
        panic!("every record is answered in the end");
    }

    pub fn outcome(&self, record: usize) -> Option<Outcome> {
        self.sent[record].1
    }

    pub fn is_ok(&self, record: usize) -> bool {
        matches!(self.outcome(record), Some(Outcome::Ok { .. }))
    }
}
