//! Three brokers, one partition, a controller and a network, against one sentence: **a record acknowledged at acks=all
//! is in the log of every broker that becomes leader of a later epoch.** After a run everything is healed, and all
//! replicas must be in sync and equal.
//!
//! The controller commits at once (its log is another machine's matter); ELR and unclean election are off and no disk
//! loses anything, so nothing may ever be lost. Mutated rules must break the sentence within a bounded number of runs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use acked_wire::api::alter_partition::response::{PartitionData, TopicData};
use acked_wire::{
    AlterPartitionRequest, AlterPartitionResponse, FetchRequest, FetchResponse, ListOffsetsRequest,
    ListOffsetsResponse, ResponseBody, error_code,
};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::node::*;
use crate::observation::{Observation, PartitionState};
use crate::replica::{BrokerView, FetchId, MetadataUpdate, PartitionAssignment, ReplicaEffect, ReplicaInput};
use crate::rules::{BecomeFollower, IsrShrink, PendingProduce, PositionsOnNewEpoch, ProduceReply, Rules};
use crate::types::{NodeId, PeerError, RequestId, TopicPartition};

const BROKERS: [NodeId; 3] = [B1, B2, B3];

/// Whom a fault hits.
#[derive(Clone, Copy, Debug)]
enum Target {
    Leader,
    Broker(usize),
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Produce,
    /// The client sends its last record again: with its sequence number, so that it is recognised.
    Retry,
    /// So many rounds in which every message, metadata and queued write that may move does.
    Run(usize),
    /// Cuts or heals the link between two brokers, by the one that is not on it. Messages wait.
    Link(usize),
    /// Cuts or heals the link of a broker to the controller. Its news pile up and come as one.
    Control(Target),
    Crash(Target),
    Restart(usize),
    Fence(Target, usize),
    Unfence(usize),
    /// Moves leadership to a member of the ISR.
    Move(usize),
    Advance(u64),
}

fn target() -> impl Strategy<Value = Target> {
    prop_oneof![Just(Target::Leader), (0..3_usize).prop_map(Target::Broker)]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => Just(Op::Produce),
        4 => Just(Op::Retry),
        12 => (1..5_usize).prop_map(Op::Run),
        3 => (0..3_usize).prop_map(Op::Link),
        3 => target().prop_map(Op::Control),
        2 => target().prop_map(Op::Crash),
        2 => (0..3_usize).prop_map(Op::Restart),
        2 => (target(), 0..3_usize).prop_map(|(target, pick)| Op::Fence(target, pick)),
        2 => (0..3_usize).prop_map(Op::Unfence),
        2 => (0..3_usize).prop_map(Op::Move),
        3 => (50..2_500_u64).prop_map(Op::Advance),
    ]
}

fn script() -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec(op(), 10..80)
}

/// Who asked, in which incarnation.
type Asker = (NodeId, u32);

enum Message {
    Fetch { from: Asker, to: NodeId, fetch: FetchId, body: FetchRequest },
    Fetched { from: NodeId, to: Asker, fetch: FetchId, result: Result<FetchResponse, PeerError> },
    Offsets { from: Asker, to: NodeId, fetch: FetchId, body: ListOffsetsRequest },
    OffsetsTold { from: NodeId, to: Asker, fetch: FetchId, result: Result<ListOffsetsResponse, PeerError> },
    Alter { from: Asker, body: AlterPartitionRequest },
    Altered { to: Asker, response: AlterPartitionResponse },
}

/// The controller: its partition and its brokers, always committed.
struct Controller {
    state: PartitionState,
    brokers: BTreeMap<NodeId, BrokerView>,
    next_broker_epoch: i64,
}

impl Controller {
    fn is_acceptable(&self, broker: NodeId) -> bool {
        !self.brokers[&broker].fenced
    }

    fn elect(&mut self, pick: usize) {
        let valid: Vec<NodeId> =
            self.state.isr.iter().copied().filter(|member| self.is_acceptable(*member)).collect();
        self.state.leader = if valid.is_empty() { None } else { Some(valid[pick % valid.len()]) };
        self.state.leader_epoch += 1;
        self.state.partition_epoch += 1;
    }

    /// Out of the ISR, unless it is the last one there, and out of office.
    fn drop_broker(&mut self, broker: NodeId, pick: usize) {
        if self.state.isr.len() > 1 && self.state.isr.contains(&broker) {
            self.state.isr.retain(|member| *member != broker);
            self.state.partition_epoch += 1;
        }
        if self.state.leader == Some(broker) {
            self.elect(pick);
        }
    }

    fn fence(&mut self, broker: NodeId, pick: usize) {
        self.brokers.get_mut(&broker).expect("registered").fenced = true;
        self.drop_broker(broker, pick);
    }

    fn unfence(&mut self, broker: NodeId) {
        self.brokers.get_mut(&broker).expect("registered").fenced = false;
        if self.state.leader.is_none() {
            self.elect(0);
        }
    }

    fn register(&mut self, broker: NodeId) {
        self.next_broker_epoch += 1;
        let epoch = self.next_broker_epoch;
        self.fence(broker, 0);
        self.brokers.get_mut(&broker).expect("registered").broker_epoch = epoch;
        self.unfence(broker);
    }

    fn alter(&mut self, from: NodeId, body: &AlterPartitionRequest) -> AlterPartitionResponse {
        if self.brokers[&from].broker_epoch != body.broker_epoch {
            let error_code = error_code::STALE_BROKER_EPOCH;
            return AlterPartitionResponse { error_code, ..AlterPartitionResponse::default() };
        }
        let asked = &body.topics[0].partitions[0];
        let is_ineligible = |member: &acked_wire::api::alter_partition::request::BrokerState| {
            let view = &self.brokers[&NodeId(member.broker_id)];
            view.fenced || (member.broker_epoch != -1 && member.broker_epoch != view.broker_epoch)
        };
        let code = if asked.leader_epoch < self.state.leader_epoch {
            error_code::FENCED_LEADER_EPOCH
        } else if asked.partition_epoch < self.state.partition_epoch {
            error_code::INVALID_UPDATE_VERSION
        } else if asked.new_isr_with_epochs.iter().any(is_ineligible) {
            error_code::INELIGIBLE_REPLICA
        } else {
            error_code::NONE
        };
        if code == error_code::NONE {
            let isr = asked.new_isr_with_epochs.iter().map(|member| NodeId(member.broker_id));
            self.state.isr = isr.collect();
            self.state.partition_epoch += 1;
        }
        let partition = PartitionData {
            error_code: code,
            leader_id: self.state.leader.map_or(-1, |leader| leader.0),
            leader_epoch: self.state.leader_epoch,
            isr: self.state.isr.iter().map(|member| member.0).collect(),
            partition_epoch: self.state.partition_epoch,
            ..PartitionData::default()
        };
        let topic = TopicData { topic_id: T0.topic, partitions: vec![partition], ..TopicData::default() };
        AlterPartitionResponse { topics: vec![topic], ..AlterPartitionResponse::default() }
    }
}

struct Acked {
    leader_epoch: i32,
    offset: i64,
    value: u64,
}

/// What a process crash leaves.
struct Crashed {
    files: BTreeMap<TopicPartition, Files>,
    marks: BTreeMap<TopicPartition, i64>,
}

struct World {
    rules: Rules,
    controller: Controller,
    up: BTreeMap<NodeId, Node>,
    down: BTreeMap<NodeId, Crashed>,
    incarnations: BTreeMap<NodeId, u32>,
    messages: VecDeque<Message>,
    asked: BTreeMap<(NodeId, RequestId), (Asker, FetchId)>,
    news: BTreeMap<NodeId, MetadataUpdate>,
    /// By the broker that is not on the link.
    cut_links: BTreeSet<NodeId>,
    cut_control: BTreeSet<NodeId>,
    next_value: u64,
    acked: Vec<Acked>,
    /// What the leader of each epoch held when it took office.
    elected: Vec<(i32, Contents)>,
    violation: Option<String>,
}

impl World {
    fn new(rules: Rules) -> World {
        let brokers = BROKERS.map(|broker| (broker, view(broker))).into();
        let controller =
            Controller { state: state(Some(B1), 0, 0, &BROKERS), brokers, next_broker_epoch: 1_000 };
        let mut world = World {
            rules,
            controller,
            up: BROKERS.map(|broker| (broker, Node::with_rules(broker, rules))).into(),
            down: BTreeMap::new(),
            incarnations: BROKERS.map(|broker| (broker, 0)).into(),
            messages: VecDeque::new(),
            asked: BTreeMap::new(),
            news: BTreeMap::new(),
            cut_links: BTreeSet::new(),
            cut_control: BTreeSet::new(),
            next_value: 0,
            acked: Vec::new(),
            elected: Vec::new(),
            violation: None,
        };
        world.publish();
        world.run(5);
        world
    }

    // ---- the sentence

    fn take_observations(&mut self, broker: NodeId) {
        let node = self.up.get_mut(&broker).expect("it is up");
        for observation in std::mem::take(&mut node.observations) {
            match observation {
                Observation::AckSent { leader_epoch, acks: -1, base_offset: offset, producer_id, .. } => {
                    let value = u64::try_from(producer_id).expect("every record has its own producer");
                    let acked = Acked { leader_epoch, offset, value };
                    let later = self.elected.iter().filter(|(epoch, _)| *epoch > leader_epoch);
                    for (epoch, log) in later {
                        check(&acked, *epoch, log, &mut self.violation);
                    }
                    self.acked.push(acked);
                }
                Observation::BecameLeader { leader_epoch, .. } => {
                    let log = node.log();
                    for acked in self.acked.iter().filter(|acked| acked.leader_epoch < leader_epoch) {
                        check(acked, leader_epoch, &log, &mut self.violation);
                    }
                    self.elected.push((leader_epoch, log));
                }
                _ => {}
            }
        }
    }

    // ---- brokers, network

    fn input(&mut self, broker: NodeId, input: ReplicaInput) {
        self.up.get_mut(&broker).expect("it is up").input(input);
        self.drain(broker);
    }

    fn drain(&mut self, broker: NodeId) {
        self.take_observations(broker);
        let from = (broker, self.incarnations[&broker]);
        let node = self.up.get_mut(&broker).expect("it is up");
        for effect in std::mem::take(&mut node.effects) {
            match effect {
                ReplicaEffect::SendFetch { to, fetch, body } => {
                    self.messages.push_back(Message::Fetch { from, to, fetch, body });
                }
                ReplicaEffect::SendListOffsets { to, fetch, body } => {
                    self.messages.push_back(Message::Offsets { from, to, fetch, body });
                }
                ReplicaEffect::SendAlterPartition { body } => {
                    self.messages.push_back(Message::Alter { from, body });
                }
                ReplicaEffect::Reply { request, body } => {
                    let Some((to, fetch)) = self.asked.remove(&(broker, request)) else { continue };
                    let from = broker;
                    self.messages.push_back(match body {
                        ResponseBody::Fetch(body) => Message::Fetched { from, to, fetch, result: Ok(body) },
                        ResponseBody::ListOffsets(body) => {
                            Message::OffsetsTold { from, to, fetch, result: Ok(body) }
                        }
                        other => unreachable!("{other:?} answers no broker"),
                    });
                }
                _ => {}
            }
        }
    }

    fn is_cut(&self, one: NodeId, other: NodeId) -> bool {
        BROKERS.iter().any(|broker| *broker != one && *broker != other && self.cut_links.contains(broker))
    }

    fn is_held(&self, message: &Message) -> bool {
        match message {
            Message::Fetch { from: (one, _), to: other, .. }
            | Message::Offsets { from: (one, _), to: other, .. }
            | Message::Fetched { from: other, to: (one, _), .. }
            | Message::OffsetsTold { from: other, to: (one, _), .. } => self.is_cut(*one, *other),
            Message::Alter { from: (broker, _), .. } | Message::Altered { to: (broker, _), .. } => {
                self.cut_control.contains(broker)
            }
        }
    }

    fn is_up(&self, (broker, incarnation): Asker) -> bool {
        self.up.contains_key(&broker) && self.incarnations[&broker] == incarnation
    }

    fn deliver(&mut self, message: Message) {
        match message {
            Message::Fetch { from, to, fetch, body } => {
                let Some(node) = self.up.get_mut(&to) else {
                    let result = Err(PeerError::Unreachable);
                    self.messages.push_back(Message::Fetched { from: to, to: from, fetch, result });
                    return;
                };
                let request = node.next_request();
                self.asked.insert((to, request), (from, fetch));
                self.input(to, ReplicaInput::Fetch { request, version: FETCH_VERSION, body });
            }
            Message::Offsets { from, to, fetch, body } => {
                let Some(node) = self.up.get_mut(&to) else {
                    let result = Err(PeerError::Unreachable);
                    self.messages.push_back(Message::OffsetsTold { from: to, to: from, fetch, result });
                    return;
                };
                let request = node.next_request();
                self.asked.insert((to, request), (from, fetch));
                self.input(to, ReplicaInput::ListOffsets { request, version: 10, body });
            }
            Message::Fetched { from, to, fetch, result } if self.is_up(to) => {
                self.input(to.0, ReplicaInput::FetchResponse { from, fetch, result });
            }
            Message::OffsetsTold { from, to, fetch, result } if self.is_up(to) => {
                self.input(to.0, ReplicaInput::ListOffsetsResponse { from, fetch, result });
            }
            Message::Alter { from, body } => {
                let response = self.controller.alter(from.0, &body);
                self.publish();
                self.messages.push_back(Message::Altered { to: from, response });
            }
            Message::Altered { to, response } if self.is_up(to) => {
                self.input(to.0, ReplicaInput::AlterPartitionResponse { result: Ok(response) });
            }
            Message::Fetched { .. } | Message::OffsetsTold { .. } | Message::Altered { .. } => {}
        }
    }

    /// What the controller committed is news for every broker that is up; several pieces of news come as one.
    fn publish(&mut self) {
        for broker in self.up.keys() {
            let assignment = PartitionAssignment {
                topic_name: topic_name(),
                state: self.controller.state.clone(),
                settings: settings(2),
            };
            let update = MetadataUpdate {
                broker_epoch: Some(self.controller.brokers[broker].broker_epoch),
                brokers: self.controller.brokers.clone(),
                partitions: vec![assignment],
                removed: Vec::new(),
            };
            self.news.insert(*broker, update);
        }
    }

    fn run(&mut self, rounds: usize) {
        for _ in 0..rounds {
            for _ in 0..self.messages.len() {
                let message = self.messages.pop_front().expect("counted before");
                if self.is_held(&message) {
                    self.messages.push_back(message);
                } else {
                    self.deliver(message);
                }
            }
            for broker in BROKERS {
                if self.up.contains_key(&broker)
                    && !self.cut_control.contains(&broker)
                    && let Some(update) = self.news.remove(&broker)
                {
                    self.input(broker, ReplicaInput::Metadata(update));
                }
                while self.up.get_mut(&broker).is_some_and(Node::step_disk) {
                    self.drain(broker);
                }
            }
        }
    }

    // ---- faults

    fn resolve(&self, target: Target) -> NodeId {
        match target {
            Target::Leader => self.controller.state.leader.unwrap_or(B1),
            Target::Broker(broker) => BROKERS[broker],
        }
    }

    fn crash(&mut self, broker: NodeId) {
        let Some(node) = self.up.remove(&broker) else { return };
        self.down.insert(broker, Crashed { files: node.files, marks: node.marks });
        *self.incarnations.get_mut(&broker).expect("known") += 1;
        let unanswered: Vec<_> = self.asked.keys().copied().filter(|(asked, _)| *asked == broker).collect();
        for key in unanswered {
            let (to, fetch) = self.asked.remove(&key).expect("listed");
            let result = Err(PeerError::Disconnected);
            self.messages.push_back(Message::Fetched { from: broker, to, fetch, result });
        }
    }

    fn restart(&mut self, broker: NodeId) {
        let Some(Crashed { files, marks }) = self.down.remove(&broker) else { return };
        let now = self.up.values().map(|node| node.now).max().unwrap_or_default();
        self.up.insert(broker, Node::started(broker, self.rules, now, files, marks));
        self.controller.register(broker);
        self.publish();
    }

    fn advance(&mut self, by: Duration) {
        for broker in BROKERS {
            if let Some(node) = self.up.get_mut(&broker) {
                node.advance(by);
                self.drain(broker);
            }
        }
    }

    /// The client sends to whoever believes to lead: a deposed leader may be asked as well as the real one.
    fn send_last_record(&mut self) {
        let value = self.next_value;
        let records = builder(&[value]).producer(value as i64, 0, 0).build().freeze();
        for broker in BROKERS {
            if let Some(node) = self.up.get_mut(&broker) {
                node.produce(-1, records.clone());
                self.drain(broker);
            }
        }
    }

    fn step(&mut self, op: Op) {
        match op {
            Op::Produce => {
                self.next_value += 1;
                self.send_last_record();
            }
            Op::Retry => self.send_last_record(),
            Op::Run(rounds) => self.run(rounds),
            Op::Link(broker) => toggle(&mut self.cut_links, BROKERS[broker]),
            Op::Control(target) => {
                let broker = self.resolve(target);
                toggle(&mut self.cut_control, broker);
            }
            Op::Crash(target) => self.crash(self.resolve(target)),
            Op::Restart(broker) => self.restart(BROKERS[broker]),
            Op::Fence(target, pick) => {
                self.controller.fence(self.resolve(target), pick);
                self.publish();
            }
            Op::Unfence(broker) if self.up.contains_key(&BROKERS[broker]) => {
                self.controller.unfence(BROKERS[broker]);
                self.publish();
            }
            Op::Unfence(_) => {}
            Op::Move(pick) => {
                self.controller.elect(pick);
                self.publish();
            }
            Op::Advance(ms) => self.advance(Duration::from_millis(ms)),
        }
    }

    fn heal(&mut self) {
        self.cut_links.clear();
        self.cut_control.clear();
        for broker in BROKERS {
            self.restart(broker);
            self.controller.unfence(broker);
        }
        self.publish();
        for _ in 0..12 {
            self.run(6);
            self.advance(Duration::from_millis(500));
        }
        self.step(Op::Produce);
        self.run(8);
    }

    fn is_converged(&self) -> bool {
        let logs: Vec<_> = self.up.values().map(Node::log).collect();
        let is_acked = self.acked.iter().any(|acked| acked.value == self.next_value);
        self.controller.state.isr.len() == 3 && logs.iter().all(|log| *log == logs[0]) && is_acked
    }
}

fn check(acked: &Acked, epoch: i32, log: &Contents, violation: &mut Option<String>) {
    let Acked { leader_epoch, offset, value } = acked;
    if log.get(offset).is_none_or(|(_, held)| held != value) {
        let lost = format!(
            "{value} at offset {offset}, acked in epoch {leader_epoch}, is not there in epoch {epoch}"
        );
        violation.get_or_insert(lost);
    }
}

fn toggle(set: &mut BTreeSet<NodeId>, broker: NodeId) {
    if !set.remove(&broker) {
        set.insert(broker);
    }
}

/// Gives what was lost.
fn play(rules: Rules, script: &[Op]) -> (World, Option<String>) {
    let mut world = World::new(rules);
    for op in script {
        world.step(*op);
        if world.violation.is_some() {
            break;
        }
    }
    if world.violation.is_none() {
        world.heal();
    }
    let violation = world.violation.clone();
    (world, violation)
}

proptest! {
    #![proptest_config(Config { cases: 150, failure_persistence: None, ..Config::default() })]

    #[test]
    fn what_is_acked_is_in_the_log_of_every_later_leader(script in script()) {
        let (world, violation) = play(Rules::KAFKA, &script);
        prop_assert_eq!(violation, None);
        prop_assert!(world.is_converged(), "healed, but {:?}", world.controller.state);
    }
}

/// In how many runs, of a fixed random stream, a mutation is caught.
fn runs_until_caught(rules: Rules, bound: usize) -> Option<usize> {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[3; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let script = script();
    (1..=bound).find(|_| {
        let run = script.new_tree(&mut runner).expect("scripts are not filtered").current();
        play(rules, &run).1.is_some()
    })
}

/// A leader that skipped another's reign: B1 leads epoch 0 and its record reaches B3 alone; B2 leads epoch 1 and B3
/// cuts the record; B1, told of epoch 2 only, takes it for committed as soon as B2 has it.
const SKIPPED_REIGN: [Op; 17] = [
    Op::Link(2),
    Op::Run(2),
    Op::Produce,
    Op::Run(3),
    Op::Control(Target::Broker(0)),
    Op::Move(1),
    Op::Run(4),
    Op::Link(1),
    Op::Move(0),
    Op::Control(Target::Broker(0)),
    Op::Link(2),
    Op::Run(5),
    Op::Retry,
    Op::Run(1),
    Op::Crash(Target::Broker(0)),
    Op::Fence(Target::Broker(0), 1),
    Op::Run(3),
];

#[test]
fn skipped_reign_loses_a_record_only_if_positions_are_kept() {
    let kept = Rules { positions_on_new_epoch: PositionsOnNewEpoch::KeepWhenStillLeader, ..Rules::KAFKA };
    assert!(play(kept, &SKIPPED_REIGN).1.is_some());
    assert_eq!(play(Rules::KAFKA, &SKIPPED_REIGN).1, None);
}

#[test]
fn mutations_break_the_sentence() {
    let produce_reply = ProduceReply::OnReceipt;
    let become_follower = BecomeFollower::TruncateToHighWatermark;
    let isr_shrink = IsrShrink::WhenProposed;
    let pending_produce = PendingProduce::CompleteByHighWatermark;
    for (name, bound, rules) in [
        ("ack-before-append", 50, Rules { produce_reply, ..Rules::KAFKA }),
        ("hw-truncate-on-become-follower", 100, Rules { become_follower, ..Rules::KAFKA }),
        ("isr-shrink-applied-eagerly", 800, Rules { isr_shrink, ..Rules::KAFKA }),
        ("produce-acked-after-demotion", 100, Rules { pending_produce, ..Rules::KAFKA }),
    ] {
        assert!(runs_until_caught(rules, bound).is_some(), "{name} is not caught within {bound} runs");
    }
}
