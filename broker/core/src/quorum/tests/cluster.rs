//! A cluster of quorum nodes on a network and disks that lose things: messages are delayed, lost, repeated and cut
//! off; a crash keeps what was synced and a random part of what was being written. Everything follows from one seed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use acked_wire::{
    ApiKey, DECLARED, RequestBody, ResponseBody, Uuid, decode_request_body, decode_response_body,
};
use bytes::{Bytes, BytesMut};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::super::metadata_log::{Expected, StoredBatch, valid_batches};
use super::super::*;
use super::judge::Judge;
use crate::observation::Observation;
use crate::rules::{Rules, VoteReply};
use crate::types::{NodeId, Output, PeerError, RequestId, Time};

#[derive(Clone, Debug)]
enum LogWrite {
    Append { position: u64, bytes: Bytes },
    Truncate { size: u64 },
}

/// The platter, and what is on its way there in order.
#[derive(Debug, Default)]
struct Disk {
    state: Option<QuorumState>,
    log: BytesMut,
    saving: VecDeque<(u64, QuorumState)>,
    writing: VecDeque<(u64, LogWrite)>,
}

impl Disk {
    fn apply(&mut self, write: &LogWrite) {
        match write {
            LogWrite::Append { position, bytes } => {
                assert_eq!(*position, self.log.len() as u64, "appends go to the end of the file");
                self.log.extend_from_slice(bytes);
            }
            LogWrite::Truncate { size } => {
                assert!(*size <= self.log.len() as u64);
                self.log.truncate(*size as usize);
            }
        }
    }

    /// A random part of what was on its way arrives, the last of it possibly torn; the rest is gone.
    fn lose_power(&mut self, rng: &mut ChaCha8Rng) {
        for _ in 0..rng.random_range(0..=self.saving.len()) {
            self.state = self.saving.pop_front().map(|(_, state)| state);
        }
        for _ in 0..rng.random_range(0..=self.writing.len()) {
            if let Some((_, write)) = self.writing.pop_front() {
                self.apply(&write);
            }
        }
        if let Some((_, LogWrite::Append { bytes, .. })) = self.writing.front() {
            let torn = rng.random_range(0..bytes.len());
            self.log.extend_from_slice(&bytes[..torn]);
        }
        self.saving.clear();
        self.writing.clear();
    }

    fn batches(&self) -> Vec<StoredBatch> {
        let expected = Expected { base_offset: 0, least_epoch: 0, greatest_epoch: i32::MAX };
        valid_batches(&Bytes::copy_from_slice(&self.log), expected).0
    }
}

#[derive(Debug)]
struct Node {
    quorum: Option<Quorum>,
    disk: Disk,
    incarnation: u64,
}

#[derive(Clone, Debug)]
enum Event {
    Request {
        from: NodeId,
        incarnation: u64,
        to: NodeId,
        correlation: u64,
        body: RequestBody,
    },
    Response {
        to: NodeId,
        incarnation: u64,
        from: NodeId,
        correlation: u64,
        result: Result<ResponseBody, PeerError>,
    },
    StateWritten {
        node: NodeId,
        incarnation: u64,
    },
    LogWritten {
        node: NodeId,
        incarnation: u64,
    },
    Crash {
        node: NodeId,
    },
    Restart {
        node: NodeId,
    },
}

/// Whom an answer goes to.
#[derive(Clone, Copy, Debug)]
struct Asker {
    node: NodeId,
    incarnation: u64,
    correlation: u64,
}

/// Every message goes through its newest frame and back.
fn survives_the_wire(event: Event) -> Event {
    match event {
        Event::Request { from, incarnation, to, correlation, body } => {
            let version = newest(body.key());
            let mut encoded = BytesMut::new();
            body.encode(version, &mut encoded).expect("the newest version can say it");
            let body =
                decode_request_body(body.key(), version, &mut encoded.freeze()).expect("our own bytes");
            Event::Request { from, incarnation, to, correlation, body }
        }
        Event::Response { to, incarnation, from, correlation, result: Ok(body) } => {
            let version = newest(body.key());
            let mut encoded = BytesMut::new();
            body.encode(version, &mut encoded).expect("the newest version can say it");
            let body =
                decode_response_body(body.key(), version, &mut encoded.freeze()).expect("our own bytes");
            Event::Response { to, incarnation, from, correlation, result: Ok(body) }
        }
        other => other,
    }
}

fn newest(key: ApiKey) -> i16 {
    let declared = DECLARED.iter().find(|(declared, _)| *declared == key);
    *declared.expect("the quorum speaks declared APIs only").1.end()
}

pub struct Cluster {
    rng: ChaCha8Rng,
    rules: Rules,
    /// Q5 sees into disks; without it, only what nodes say and apply is judged.
    checks_disks: bool,
    voters: Vec<NodeId>,
    now: Time,
    nodes: BTreeMap<NodeId, Node>,
    queue: BTreeMap<(Time, u64), Event>,
    events: u64,
    requests: BTreeMap<u64, (NodeId, Asker)>,
    /// `(from, to)` that do not get through.
    cut: BTreeSet<(NodeId, NodeId)>,
    /// Of a thousand messages, so many are lost, and so many come twice.
    trouble_permille: u32,
    proposals: u64,
    pub judge: Judge,
}

impl Cluster {
    pub fn new(seed: u64, voters: usize, observers: usize, rules: Rules, checks_disks: bool) -> Cluster {
        let voters: Vec<NodeId> = (0..voters).map(|index| NodeId(101 + index as i32)).collect();
        let observers = (0..observers).map(|index| NodeId(1 + index as i32));
        let all: Vec<NodeId> = voters.iter().copied().chain(observers).collect();
        let node = || Node { quorum: None, disk: Disk::default(), incarnation: 0 };
        let mut cluster = Cluster {
            rng: ChaCha8Rng::seed_from_u64(seed),
            rules,
            checks_disks,
            voters,
            now: Time::ZERO,
            nodes: all.iter().map(|id| (*id, node())).collect(),
            queue: BTreeMap::new(),
            events: 0,
            requests: BTreeMap::new(),
            cut: BTreeSet::new(),
            trouble_permille: 0,
            proposals: 0,
            judge: Judge::default(),
        };
        all.into_iter().for_each(|id| cluster.start(id));
        cluster
    }

    fn config(&self, node: NodeId) -> QuorumConfig {
        let endpoint = |id: &NodeId| VoterEndpoint { host: format!("c{id}"), port: 9093 };
        let voters = self.voters.iter().map(|id| (*id, endpoint(id))).collect();
        let directory = Uuid([node.0 as u8; 16]);
        QuorumConfig::new("cluster", node, directory, voters)
    }

    // Nodes.

    fn start(&mut self, id: NodeId) {
        let config = self.config(id);
        let rng = ChaCha8Rng::seed_from_u64(self.rng.random());
        let node = self.nodes.get_mut(&id).expect("nodes are never removed");
        if node.quorum.is_some() {
            return;
        }
        let file = node.disk.log.clone().freeze();
        let recovered = recover_log(&file, 0).expect("nothing is known to be synced");
        node.disk.log.truncate(recovered.kept_bytes() as usize);
        node.incarnation += 1;
        let mut out = Output::default();
        node.quorum =
            Some(Quorum::start(config, self.rules, node.disk.state, recovered, rng, self.now, &mut out));
        self.judge.node_started(id);
        self.absorb(id, out);
    }

    pub fn crash(&mut self, id: NodeId) {
        let node = self.nodes.get_mut(&id).expect("nodes are never removed");
        if node.quorum.take().is_some() {
            node.disk.lose_power(&mut self.rng);
            self.requests.retain(|_, (at, _)| *at != id);
        }
    }

    fn handle(&mut self, id: NodeId, input: QuorumInput) {
        let node = self.nodes.get_mut(&id).expect("nodes are never removed");
        let Some(quorum) = &mut node.quorum else { return };
        let mut out = Output::default();
        quorum.handle(self.now, input, &mut out);
        self.absorb(id, out);
    }

    /// Judges what a node said, and carries out what it wants.
    fn absorb(&mut self, id: NodeId, out: Output<QuorumEffect>) {
        let quorum = self.nodes[&id].quorum.as_ref().expect("a node that spoke is up");
        let (epoch, high_watermark) = (quorum.epoch(), quorum.high_watermark());
        let log = quorum.log.between(0, i64::MAX);
        self.judge.epoch(id, epoch);
        out.observations.iter().for_each(|observation| self.judge.observe(id, observation, log));
        out.effects.iter().for_each(|effect| self.judge.effect(id, epoch, effect));
        let raised = out.effects.iter().any(|effect| matches!(effect, QuorumEffect::Committed { .. }));
        if raised && quorum.leader() == Some(id) && self.checks_disks {
            let log = log.to_vec();
            let ends: Vec<i64> = self.voters.iter().map(|voter| self.synced_end(*voter, &log)).collect();
            self.judge.check_synced_majority(id, high_watermark, &ends);
        }
        let voted = out.observations.iter().any(|said| matches!(said, Observation::VoteGranted { .. }));
        out.effects.into_iter().for_each(|effect| self.carry_out(id, effect));
        // The moment at which forgetting hurts most.
        if voted && self.rng.random_range(0..1000) < 5 * self.trouble_permille {
            self.later(1..40, Event::Crash { node: id });
        }
    }

    fn synced_end(&self, voter: NodeId, log: &[StoredBatch]) -> i64 {
        let on_disk = self.nodes[&voter].disk.batches();
        let shared = on_disk.iter().zip(log).take_while(|(a, b)| a.bytes == b.bytes).last();
        shared.map_or(0, |(batch, _)| batch.last_offset + 1)
    }

    fn carry_out(&mut self, id: NodeId, effect: QuorumEffect) {
        let incarnation = self.nodes[&id].incarnation;
        match effect {
            QuorumEffect::SaveState { save, state } => {
                self.disk(id).saving.push_back((save, state));
                // The longer nobody waits for, the more can be forgotten.
                let delay_ms = if self.rules.vote_reply == VoteReply::BeforeSaved { 1..400 } else { 1..30 };
                self.later(delay_ms, Event::StateWritten { node: id, incarnation });
            }
            QuorumEffect::AppendLog { write, position, bytes, sync } => {
                self.write_log(id, write, LogWrite::Append { position, bytes }, sync);
            }
            QuorumEffect::TruncateLog { write, size } => {
                self.write_log(id, write, LogWrite::Truncate { size }, true);
            }
            QuorumEffect::Send { to, correlation, body } => {
                self.transmit(id, to, Event::Request { from: id, incarnation, to, correlation, body });
            }
            QuorumEffect::Reply { request, body } => {
                if let Some((at, asker)) = self.requests.remove(&request.0) {
                    assert_eq!(at, id, "a request is answered where it came");
                    let Asker { node: to, incarnation, correlation } = asker;
                    let answer = Event::Response { to, incarnation, from: id, correlation, result: Ok(body) };
                    self.transmit(id, to, answer);
                }
            }
            QuorumEffect::Halt { .. } => self.crash(id),
            _ => {}
        }
    }

    /// What nobody waits for is written when the operating system pleases.
    fn write_log(&mut self, id: NodeId, write: u64, what: LogWrite, sync: bool) {
        let incarnation = self.nodes[&id].incarnation;
        self.disk(id).writing.push_back((write, what));
        let delay_ms = if sync { 1..30 } else { 1..5000 };
        self.later(delay_ms, Event::LogWritten { node: id, incarnation });
        if !sync {
            self.handle(id, QuorumInput::LogSynced { write });
        }
    }

    fn disk(&mut self, id: NodeId) -> &mut Disk {
        &mut self.nodes.get_mut(&id).expect("nodes are never removed").disk
    }

    // The world.

    fn later(&mut self, delay_ms: std::ops::Range<u64>, event: Event) {
        let delay = Duration::from_millis(self.rng.random_range(delay_ms));
        self.events += 1;
        self.queue.insert((self.now + delay, self.events), event);
    }

    fn transmit(&mut self, from: NodeId, to: NodeId, event: Event) {
        let roll = self.rng.random_range(0..1000);
        if self.cut.contains(&(from, to)) || roll < self.trouble_permille {
            return;
        }
        if roll >= 1000 - self.trouble_permille {
            self.later(1..1500, event.clone());
        }
        self.later(1..20, survives_the_wire(event));
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Request { from, incarnation, to, correlation, body } => {
                let request = RequestId(self.events);
                self.events += 1;
                if self.nodes[&to].quorum.is_some() {
                    self.requests.insert(request.0, (to, Asker { node: from, incarnation, correlation }));
                    self.handle(to, QuorumInput::Request { request, version: 0, body });
                } else {
                    let result = Err(PeerError::Unreachable);
                    self.transmit(
                        to,
                        from,
                        Event::Response { to: from, incarnation, from: to, correlation, result },
                    );
                }
            }
            Event::Response { to, incarnation, from, correlation, result } => {
                if self.nodes[&to].incarnation == incarnation {
                    self.handle(to, QuorumInput::Response { to: from, correlation, result });
                }
            }
            Event::StateWritten { node, incarnation } => {
                if self.is_up(node, incarnation)
                    && let Some((save, state)) = self.disk(node).saving.pop_front()
                {
                    self.disk(node).state = Some(state);
                    self.handle(node, QuorumInput::StateSaved { save });
                }
            }
            Event::LogWritten { node, incarnation } => {
                if self.is_up(node, incarnation)
                    && let Some((write, what)) = self.disk(node).writing.pop_front()
                {
                    self.disk(node).apply(&what);
                    self.handle(node, QuorumInput::LogSynced { write });
                }
            }
            Event::Crash { node } => {
                self.crash(node);
                self.later(1..300, Event::Restart { node });
            }
            Event::Restart { node } => self.start(node),
        }
    }

    fn is_up(&self, id: NodeId, incarnation: u64) -> bool {
        self.nodes[&id].quorum.is_some() && self.nodes[&id].incarnation == incarnation
    }

    pub fn run_for(&mut self, duration: Duration) {
        let end = self.now + duration;
        let mut steps = 0;
        loop {
            let event = self.queue.first_key_value().map(|((at, _), _)| *at);
            let nodes = self.nodes.values().filter_map(|node| node.quorum.as_ref());
            let wake = nodes.filter_map(Quorum::next_deadline).min();
            let Some(next) = event.into_iter().chain(wake).min().filter(|next| *next <= end) else { break };
            assert!(next >= self.now, "deadlines lie in the future");
            steps += 1;
            assert!(
                steps < 2_000 + 500 * duration.as_millis(),
                "the cluster turns in circles at {:?}",
                self.now
            );
            self.now = next;
            if event == Some(next) {
                let (_, event) = self.queue.pop_first().expect("its time was just looked at");
                self.happen(event);
            } else {
                self.tick();
            }
        }
        self.now = end;
    }

    fn tick(&mut self) {
        let due: Vec<NodeId> = self
            .nodes
            .iter()
            .filter(|(_, node)| {
                node.quorum.as_ref().and_then(Quorum::next_deadline).is_some_and(|at| at <= self.now)
            })
            .map(|(id, _)| *id)
            .collect();
        due.into_iter().for_each(|id| self.handle(id, QuorumInput::Tick));
    }

    // Trouble.

    /// Proposals, crashes, restarts and splits for `duration`.
    pub fn trouble(&mut self, duration: Duration) {
        self.trouble_permille = self.rng.random_range(0..60);
        let end = self.now + duration;
        while self.now < end {
            match self.rng.random_range(0..20) {
                0 | 1 => self.crash_and_restart_one(),
                2 if self.rng.random_bool(0.3) => self.crash_and_restart_all(),
                3 => self.split(),
                4 => self.isolate_leader(),
                5 | 6 => self.cut.clear(),
                7 => self.stop_leader(),
                _ => self.propose(),
            }
            let pause = self.rng.random_range(1..600);
            self.run_for(Duration::from_millis(pause));
        }
        let logs = self.logs();
        self.judge.check_log_matching(&logs);
    }

    fn any_node(&mut self) -> NodeId {
        let index = self.rng.random_range(0..self.nodes.len());
        *self.nodes.keys().nth(index).expect("the index is below the count")
    }

    fn crash_and_restart_one(&mut self) {
        let node = match self.active_leader() {
            Some(leader) if self.rng.random_bool(0.5) => leader,
            _ => self.any_node(),
        };
        self.crash(node);
        self.later(1..4000, Event::Restart { node });
    }

    fn crash_and_restart_all(&mut self) {
        for node in self.nodes.keys().copied().collect::<Vec<_>>() {
            self.crash(node);
            self.later(1..1000, Event::Restart { node });
        }
    }

    /// One random side against the other, in one direction or both.
    fn split(&mut self) {
        let all: Vec<NodeId> = self.nodes.keys().copied().collect();
        let side: BTreeSet<NodeId> = all.iter().copied().filter(|_| self.rng.random_bool(0.5)).collect();
        let both_ways = self.rng.random_bool(0.6);
        for from in &all {
            for to in &all {
                let crosses = side.contains(from) && !side.contains(to);
                if crosses {
                    self.cut.insert((*from, *to));
                    if both_ways {
                        self.cut.insert((*to, *from));
                    }
                }
            }
        }
    }

    fn isolate_leader(&mut self) {
        let Some(leader) = self.active_leader() else { return };
        for other in self.nodes.keys().copied().filter(|other| *other != leader) {
            self.cut.insert((leader, other));
            self.cut.insert((other, leader));
        }
    }

    fn stop_leader(&mut self) {
        if let Some(leader) = self.active_leader() {
            let epoch = self.nodes[&leader].quorum.as_ref().map_or(0, Quorum::epoch);
            self.handle(leader, QuorumInput::Resign { epoch });
        }
    }

    pub fn active_leader(&self) -> Option<NodeId> {
        let active = |node: &Node| node.quorum.as_ref().is_some_and(Quorum::is_active_leader);
        self.nodes.iter().filter(|(_, node)| active(node)).map(|(id, _)| *id).next_back()
    }

    pub fn propose(&mut self) {
        let Some(leader) = self.active_leader() else { return };
        self.proposals += 1;
        let count = self.rng.random_range(1..4);
        let records: Vec<Bytes> =
            (0..count).map(|index| format!("{}/{index}", self.proposals).into()).collect();
        let node = self.nodes.get_mut(&leader).expect("nodes are never removed");
        let mut out = Output::default();
        let quorum = node.quorum.as_mut().expect("a leader is up");
        quorum.propose(self.now, &records, &mut out).expect("it said that it leads");
        self.absorb(leader, out);
    }

    fn logs(&self) -> BTreeMap<NodeId, Vec<StoredBatch>> {
        let log = |node: &Node| node.quorum.as_ref().map(|quorum| quorum.log.between(0, i64::MAX).to_vec());
        self.nodes.iter().filter_map(|(id, node)| Some((*id, log(node)?))).collect()
    }

    // Quiet.

    /// Everything works again and every node is up.
    pub fn heal(&mut self) {
        self.cut.clear();
        self.trouble_permille = 0;
        for node in self.nodes.keys().copied().collect::<Vec<_>>() {
            self.start(node);
        }
    }

    /// Whether one leader is followed by all others.
    pub fn has_one_leader(&self) -> bool {
        let leader = self.active_leader();
        leader.is_some()
            && self
                .nodes
                .values()
                .all(|node| node.quorum.as_ref().is_some_and(|quorum| quorum.leader() == leader))
    }

    /// Whether every node has delivered the whole log of the leader.
    pub fn has_converged(&self) -> bool {
        let Some(leader) = self.active_leader() else { return false };
        let quorum = |id: &NodeId| self.nodes[id].quorum.as_ref();
        let end = quorum(&leader).map(Quorum::log_end_offset);
        self.nodes.keys().all(|id| quorum(id).map(Quorum::high_watermark) == end)
    }
}
