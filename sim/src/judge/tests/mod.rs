//! Hand-made and random streams for the judge. A stage plays brokers, controllers, disks and one producer by hand: it
//! does what a test tells it, right or wrong, and the judge sees only what it would see of a real run.

mod invariants;
mod oracle;
mod random;
mod removal;

use std::collections::BTreeMap;

use acked_core::observation::{Election as Claim, Fetcher, PartitionState};
use acked_core::{NodeId, Observation, Time, TopicPartition};
use acked_wire::Uuid;
use acked_wire::batch::BatchBuilder;

use super::*;
use crate::world::tap::DiskChange;

pub const TOPIC: Uuid = Uuid([9; 16]);
pub const PARTITION: TopicPartition = TopicPartition { topic: TOPIC, index: 0 };
pub const B1: NodeId = NodeId(1);
pub const B2: NodeId = NodeId(2);
pub const B3: NodeId = NodeId(3);
const LOG: &str = "data/orders-0/00000000000000000000.log";

/// One record in one broker's log; every batch has one.
#[derive(Clone, Debug)]
struct Held {
    value: String,
    bytes: Vec<u8>,
}

/// A cluster played by hand.
pub struct Stage {
    pub judge: Judge,
    pub state: PartitionState,
    now: Time,
    logs: BTreeMap<NodeId, Vec<Held>>,
    /// First offset of a broker's log, where that is not 0.
    starts: BTreeMap<NodeId, i64>,
    high_watermarks: BTreeMap<NodeId, i64>,
    sequences: i32,
    operation: u64,
    /// Operation and content by value.
    sent: BTreeMap<String, (u64, u64)>,
    /// Producer id and sequence by value: a retry has the same.
    identities: BTreeMap<String, i32>,
    acks: i16,
}

/// What a stage begins with.
pub struct Setting {
    pub unclean: bool,
    pub elr: bool,
    pub min_insync: i32,
    pub acks: i16,
    pub replicas: &'static [NodeId],
}

impl Default for Setting {
    fn default() -> Self {
        Setting { unclean: false, elr: false, min_insync: 1, acks: -1, replicas: &[B1, B2, B3] }
    }
}

impl Stage {
    /// Topic `orders` with one partition, led by the first replica in epoch 0, everybody in sync.
    pub fn new(setting: &Setting) -> Stage {
        let contract = TopicContract {
            replication_factor: setting.replicas.len() as i32,
            min_insync: setting.min_insync,
            unclean: setting.unclean,
        };
        let judge = Judge::new(JudgeConfig {
            brokers: setting.replicas.to_vec(),
            controllers: vec![NodeId(101)],
            topics: BTreeMap::from([("orders".to_owned(), contract)]),
            default_topic: TopicContract { min_insync: 99, ..contract },
            elr: setting.elr,
            checks: Checks::ALL,
        });
        let state = PartitionState {
            partition: PARTITION,
            replicas: setting.replicas.to_vec(),
            isr: setting.replicas.to_vec(),
            elr: Vec::new(),
            leader: None,
            leader_epoch: -1,
            partition_epoch: -1,
            recovering: false,
        };
        let mut stage = Stage {
            judge,
            state,
            now: Time::ZERO,
            logs: BTreeMap::new(),
            starts: BTreeMap::new(),
            high_watermarks: BTreeMap::new(),
            sequences: 0,
            operation: 0,
            sent: BTreeMap::new(),
            identities: BTreeMap::new(),
            acks: setting.acks,
        };
        for node in setting.replicas {
            stage.observe(*node, Observation::NodeStarted { incarnation: Uuid([0; 16]) });
        }
        stage.create();
        stage
    }

    fn create(&mut self) {
        let topic = self.state.partition.topic;
        let replicas = self.state.replicas.clone();
        self.observe(NodeId(101), Observation::TopicCreated { name: "orders".to_owned(), topic });
        for node in &replicas {
            self.logs.insert(*node, Vec::new());
            let text = format!("version: 0\ntopic_id: {topic}\n");
            let path = "data/orders-0/partition.metadata";
            self.disk(*node, &DiskChange::Written { path, position: 0, bytes: text.as_bytes() });
        }
        self.elect(replicas[0], &replicas, Claim::Created);
        self.leads(replicas[0]);
    }

    /// The topic is deleted, as both controllers state.
    pub fn delete(&mut self) {
        let topic = self.state.partition.topic;
        for controller in [101, 102] {
            self.observe(NodeId(controller), Observation::TopicDeleted { topic });
        }
    }

    /// A topic of the same name is created, led by its first replica in epoch 0.
    pub fn create_again(&mut self, topic: Uuid) {
        self.starts.clear();
        self.high_watermarks.clear();
        self.state.partition.topic = topic;
        self.state.isr = self.state.replicas.clone();
        (self.state.leader_epoch, self.state.partition_epoch) = (-1, -1);
        self.create();
    }

    fn tick(&mut self) -> Time {
        self.now += Time::from_millis(1);
        self.now
    }

    pub fn observe(&mut self, node: NodeId, observation: Observation) {
        let now = self.tick();
        self.judge.on_observation(node, now, &observation);
    }

    pub fn disk(&mut self, node: NodeId, change: &DiskChange<'_>) {
        let now = self.tick();
        self.judge.on_disk(node, now, change);
    }

    fn client(&mut self, event: &ClientEvent<'_>) {
        let now = self.tick();
        self.judge.on_client(now, event);
    }

    // ---- controllers

    /// Commits a new leader, in a new leader epoch, out of `isr`. Nobody but the members of `isr` is acceptable.
    pub fn elect(&mut self, leader: NodeId, isr: &[NodeId], claim: Claim) {
        self.change(Some(leader), isr, &[], claim, isr, true);
    }

    /// Commits that nobody leads.
    pub fn leaderless(&mut self, isr: &[NodeId]) {
        self.change(None, isr, &[], Claim::Leaderless, &[], true);
    }

    /// Commits a new in-sync set under the same leader.
    pub fn set_isr(&mut self, isr: &[NodeId]) {
        let leader = self.state.leader;
        self.change(leader, isr, &[], Claim::Clean, isr, false);
    }

    /// Commits any change.
    pub fn change(
        &mut self,
        leader: Option<NodeId>,
        isr: &[NodeId],
        elr: &[NodeId],
        claim: Claim,
        acceptable: &[NodeId],
        new_leader_epoch: bool,
    ) {
        self.state.leader = leader;
        self.state.isr = isr.to_vec();
        self.state.elr = elr.to_vec();
        self.state.partition_epoch += 1;
        self.state.leader_epoch += i32::from(new_leader_epoch);
        let state = self.state.clone();
        self.observe(
            NodeId(101),
            Observation::PartitionDecided {
                controller_epoch: 1,
                state: state.clone(),
                election: new_leader_epoch.then_some(claim),
                acceptable: acceptable.to_vec(),
                unclean_allowed: true,
            },
        );
        let metadata_offset = i64::from(state.partition_epoch);
        for controller in [101, 102] {
            let state = state.clone();
            self.observe(NodeId(controller), Observation::PartitionCommitted { state, metadata_offset });
        }
    }

    // ---- brokers

    /// The broker learns that it leads the newest epoch.
    pub fn leads(&mut self, node: NodeId) {
        let leader_epoch = self.state.leader_epoch;
        let log_end_offset = self.end(node);
        let high_watermark = self.high_watermark(node);
        self.observe(
            node,
            Observation::BecameLeader {
                partition: self.state.partition,
                leader_epoch,
                log_end_offset,
                high_watermark,
            },
        );
    }

    /// The broker learns that it follows in the newest epoch.
    pub fn follows(&mut self, node: NodeId) {
        let (leader_epoch, leader) = (self.state.leader_epoch, self.state.leader);
        let log_end_offset = self.end(node);
        self.observe(
            node,
            Observation::BecameFollower {
                partition: self.state.partition,
                leader_epoch,
                leader,
                log_end_offset,
            },
        );
    }

    pub fn end(&self, node: NodeId) -> i64 {
        self.start(node) + self.logs[&node].len() as i64
    }

    fn start(&self, node: NodeId) -> i64 {
        self.starts.get(&node).copied().unwrap_or(0)
    }

    /// Index of an offset in the broker's log.
    fn index(&self, node: NodeId, offset: i64) -> usize {
        usize::try_from(offset - self.start(node)).expect("the log reaches down to that offset")
    }

    /// The leader raises its log start. No byte is removed by that.
    pub fn raise_log_start(&mut self, leader: NodeId, leader_epoch: i32, to: i64) {
        let observation =
            Observation::LogStartAdvanced { partition: self.state.partition, leader_epoch, from: 0, to };
        self.observe(leader, observation);
    }

    /// The broker begins a new log at this offset; its high watermark is no lower.
    pub fn begin_at(&mut self, node: NodeId, log_start: i64) {
        self.logs.insert(node, Vec::new());
        self.starts.insert(node, log_start);
        self.high_watermarks.insert(node, log_start);
        self.disk(node, &DiskChange::Removed { path: LOG });
    }

    pub fn high_watermark(&self, node: NodeId) -> i64 {
        self.high_watermarks.get(&node).copied().unwrap_or(0)
    }

    /// The broker begins again at this high watermark, as from an old checkpoint or after a cut.
    pub fn lower_high_watermark(&mut self, node: NodeId, to: i64) {
        let lowered = self.high_watermark(node).min(to);
        self.high_watermarks.insert(node, lowered);
    }

    /// The producer invokes the send of a value, unless it did before.
    pub fn send(&mut self, value: &str) -> u64 {
        let content = content_hash(None, Some(value.as_bytes()), []);
        if !self.sent.contains_key(value) {
            self.operation += 1;
            let (operation, acks) = (self.operation, self.acks);
            self.sent.insert(value.to_owned(), (operation, content));
            self.client(&ClientEvent::SendInvoked {
                client: 1,
                operation,
                topic: "orders",
                index: 0,
                content,
                acks,
                idempotent: acks == -1,
                ordered: acks == -1,
            });
        }
        content
    }

    /// The leader appends a value, sent by a producer. A value that was appended before keeps its sequence.
    pub fn append(&mut self, leader: NodeId, leader_epoch: i32, value: &str) {
        self.send(value);
        self.append_unsent(leader, leader_epoch, value);
    }

    pub fn append_unsent(&mut self, leader: NodeId, leader_epoch: i32, value: &str) {
        let sequence = *self.identities.entry(value.to_owned()).or_insert_with(|| {
            self.sequences += 1;
            self.sequences - 1
        });
        let base_offset = self.end(leader);
        self.observe(
            leader,
            Observation::AppendedAsLeader {
                partition: self.state.partition,
                leader_epoch,
                base_offset,
                last_offset: base_offset,
                producer_id: 7,
                producer_epoch: 0,
                base_sequence: sequence,
            },
        );
        let mut batch =
            BatchBuilder::new(0).base_offset(base_offset).leader_epoch(leader_epoch).producer(7, 0, sequence);
        batch.push(0, None, Some(value.as_bytes()), &[]);
        self.write(leader, Held { value: value.to_owned(), bytes: batch.build().to_vec() });
    }

    fn write(&mut self, node: NodeId, held: Held) {
        let position = self.position(node, self.end(node));
        self.disk(node, &DiskChange::Written { path: LOG, position, bytes: &held.bytes });
        self.logs.get_mut(&node).expect("a replica").push(held);
    }

    /// The values in a broker's log.
    pub fn values_of(&self, node: NodeId) -> Vec<String> {
        self.logs[&node].iter().map(|held| held.value.clone()).collect()
    }

    fn position(&self, node: NodeId, offset: i64) -> u64 {
        self.logs[&node][..self.index(node, offset)].iter().map(|held| held.bytes.len() as u64).sum()
    }

    /// The follower fetches everything that it lacks at its end from the leader of this epoch.
    pub fn replicate(&mut self, leader: NodeId, leader_epoch: i32, follower: NodeId) {
        let fetch_offset = self.end(follower);
        self.served(leader, leader_epoch, Fetcher::Follower(follower), fetch_offset);
        let missing: Vec<Held> =
            self.logs[&leader].get(self.index(leader, fetch_offset)..).unwrap_or(&[]).to_vec();
        for held in missing {
            self.write(follower, held);
        }
    }

    /// The broker answers a consumer as leader of this epoch.
    pub fn act(&mut self, leader: NodeId, leader_epoch: i32) {
        self.served(leader, leader_epoch, Fetcher::Consumer, 0);
    }

    fn served(&mut self, leader: NodeId, leader_epoch: i32, fetcher: Fetcher, fetch_offset: i64) {
        let (end_offset, high_watermark) = (self.end(leader), self.high_watermark(leader));
        self.observe(
            leader,
            Observation::FetchServed {
                partition: self.state.partition,
                leader_epoch,
                fetcher,
                fetch_offset,
                end_offset,
                high_watermark,
                diverging: None,
            },
        );
    }

    /// The broker cuts its log.
    pub fn cut(&mut self, node: NodeId, log_end_offset: i64) {
        let size = self.position(node, log_end_offset);
        let keep = self.index(node, log_end_offset);
        self.lower_high_watermark(node, log_end_offset);
        self.logs.get_mut(&node).expect("a replica").truncate(keep);
        self.disk(node, &DiskChange::Truncated { path: LOG, size });
    }

    /// The node loses power; its disk keeps the log up to this offset. Its process is back, and believes nothing.
    pub fn power_loss(&mut self, node: NodeId, kept: i64) {
        let at = self.position(node, kept);
        let keep = self.index(node, kept);
        self.lower_high_watermark(node, kept);
        let differs = kept < self.end(node);
        self.now += Time::from_millis(1);
        let now = self.now;
        self.judge.on_fault(
            now,
            &FaultEvent {
                id: "dark",
                kind: "power-loss",
                nodes: &[node],
                injected: true,
                loses_power: true,
                wipes_disk: false,
            },
        );
        self.logs.get_mut(&node).expect("a replica").truncate(keep);
        let content: Vec<u8> = self.logs[&node].iter().flat_map(|held| held.bytes.clone()).collect();
        let change = DiskChange::Replaced {
            path: LOG,
            content: Some(&content),
            first_difference: differs.then_some(at),
        };
        self.disk(node, &change);
        self.observe(node, Observation::NodeStarted { incarnation: Uuid([1; 16]) });
    }

    /// The node's process begins, and says up to where it recovered its log.
    pub fn restart(&mut self, node: NodeId, recovered_to: i64) {
        self.begins(node);
        self.observe(node, Observation::NodeStarted { incarnation: Uuid([5; 16]) });
        self.recovers(node, recovered_to);
    }

    /// The node's process begins; it has not looked at its disk yet.
    pub fn begins(&mut self, node: NodeId) {
        let now = self.tick();
        self.judge.on_start(now, node);
    }

    pub fn recovers(&mut self, node: NodeId, log_end_offset: i64) {
        let partition = self.state.partition;
        self.observe(
            node,
            Observation::LogRecovered {
                partition,
                found_bytes: 0,
                kept_bytes: 0,
                log_start_offset: 0,
                log_end_offset,
                high_watermark: 0,
                recovery_point: None,
                epochs_found: None,
                epochs: Vec::new(),
                clean: false,
            },
        );
    }

    /// The follower takes over this high watermark.
    pub fn told_high_watermark(&mut self, node: NodeId, from: i64, to: i64) {
        let (partition, leader_epoch) = (self.state.partition, self.state.leader_epoch);
        self.observe(node, Observation::FollowerHighWatermark { partition, leader_epoch, from, to });
    }

    /// Consumer 8 is given a record; `told` is said to it before.
    pub fn given(&mut self, told: Option<(i64, i64)>, offset: i64, value: &str) {
        if let Some((from, to)) = told {
            self.client(&ClientEvent::PositionReset {
                client: 8,
                topic: "orders",
                index: 0,
                from,
                to: Some(to),
                reason: ResetReason::Truncation,
            });
        }
        let content = content_hash(None, Some(value.as_bytes()), []);
        self.operation += 1;
        let operation = self.operation;
        self.client(&ClientEvent::PollInvoked { client: 8, operation, purpose: ReadPurpose::Workload });
        let records: &[(i64, u64)] = &[(offset, content)];
        let (topic, position) = ("orders", offset + 1);
        self.client(&ClientEvent::Records { operation, topic, index: 0, records, position });
        self.client(&ClientEvent::PollEnded { operation, code: 0 });
    }

    /// Bytes of the record at an offset, and where they lie.
    pub fn bytes_at(&self, node: NodeId, offset: i64) -> (u64, usize) {
        (self.position(node, offset), self.logs[&node][self.index(node, offset)].bytes.len())
    }

    pub fn file(&self, node: NodeId) -> Vec<u8> {
        self.logs[&node].iter().flat_map(|held| held.bytes.clone()).collect()
    }

    /// The leader raises its high watermark; both sets are `isr`.
    pub fn commit(&mut self, leader: NodeId, leader_epoch: i32, to: i64, isr: &[NodeId]) {
        let from = self.high_watermark(leader);
        self.high_watermarks.insert(leader, to);
        self.observe(
            leader,
            Observation::HighWatermarkAdvanced {
                partition: self.state.partition,
                leader_epoch,
                from,
                to,
                isr: isr.to_vec(),
                maximal_isr: isr.to_vec(),
                min_insync: 1,
            },
        );
    }

    /// The broker's high watermark goes up, and it does not say so.
    pub fn raise_unstated(&mut self, node: NodeId, to: i64) {
        self.high_watermarks.insert(node, to);
    }

    /// The leader takes the newest committed in-sync set over.
    pub fn adopts(&mut self, leader: NodeId) {
        let (leader_epoch, partition_epoch) = (self.state.leader_epoch, self.state.partition_epoch);
        let (partition, isr) = (self.state.partition, self.state.isr.clone());
        self.observe(leader, Observation::IsrAdopted { partition, leader_epoch, partition_epoch, isr });
    }

    /// The leader sends success for a value at an offset.
    pub fn ack_sent(&mut self, leader: NodeId, leader_epoch: i32, offset: i64, value: &str, isr: &[NodeId]) {
        let base_sequence = self.identities.get(value).copied().unwrap_or(99);
        let acks = self.acks;
        self.observe(
            leader,
            Observation::AckSent {
                partition: self.state.partition,
                leader_epoch,
                acks,
                base_offset: offset,
                last_offset: offset,
                producer_id: 7,
                producer_epoch: 0,
                base_sequence,
                maximal_isr: isr.to_vec(),
                min_insync: 1,
                duplicate: false,
            },
        );
    }

    /// The leader sends success, and the producer hears it.
    pub fn ack(&mut self, leader: NodeId, leader_epoch: i32, offset: i64, value: &str, isr: &[NodeId]) {
        self.ack_sent(leader, leader_epoch, offset, value, isr);
        self.told(offset, value);
    }

    /// The producer hears success.
    pub fn told(&mut self, offset: i64, value: &str) {
        let (operation, _) = self.sent[value];
        self.client(&ClientEvent::SendOk { operation, offset });
    }

    /// Appends a value, replicates it to the rest of `isr`, commits and acknowledges it: a whole correct write.
    pub fn write_through(&mut self, leader: NodeId, leader_epoch: i32, value: &str, isr: &[NodeId]) {
        let offset = self.end(leader);
        self.append(leader, leader_epoch, value);
        for follower in isr.iter().filter(|node| **node != leader) {
            self.replicate(leader, leader_epoch, *follower);
        }
        self.commit(leader, leader_epoch, offset + 1, isr);
        self.ack(leader, leader_epoch, offset, value, isr);
    }

    /// A consumer reads the whole log of the broker.
    pub fn consume(&mut self, node: NodeId) {
        let log = self.judge.replica_log(self.state.partition, node).expect("a replica");
        let records: Vec<(i64, u64)> =
            log.entries().iter().map(|entry| (entry.offset, entry.content)).collect();
        self.operation += 1;
        let (operation, position) = (self.operation, self.end(node));
        self.client(&ClientEvent::PollInvoked { client: 8, operation, purpose: ReadPurpose::Workload });
        let (topic, records) = ("orders", records.as_slice());
        self.client(&ClientEvent::Records { operation, topic, index: 0, records, position });
        self.client(&ClientEvent::PollEnded { operation, code: 0 });
    }

    /// Some reader gets these records of the final pass, and the run ends with this leader.
    pub fn end_with(mut self, leader: Option<NodeId>) -> Judgement {
        let mut records = Vec::new();
        let position = leader.map_or(0, |leader| self.end(leader));
        if let Some(log) = leader.and_then(|leader| self.judge.replica_log(self.state.partition, leader)) {
            records = log.entries().iter().map(|entry| (entry.offset, entry.content)).collect();
        }
        let operation = 1_000_000;
        self.client(&ClientEvent::PollInvoked { client: 9, operation, purpose: ReadPurpose::ReadBack });
        self.client(&ClientEvent::Records {
            operation,
            topic: "orders",
            index: 0,
            records: &records,
            position,
        });
        self.client(&ClientEvent::PollEnded { operation, code: 0 });
        for (operation, _) in self.sent.clone().into_values() {
            if self.judge_is_open(operation) {
                self.client(&ClientEvent::SendInfo { operation, code: 7 });
            }
        }
        let now = self.tick();
        let bound = Time::from_secs(10);
        self.judge.finish(
            now,
            &FinalState {
                partitions: vec![FinalPartition {
                    topic: "orders".to_owned(),
                    index: 0,
                    leader,
                    electable: true,
                    writable: true,
                    probe: Probe::Acked(Time::from_secs(1)),
                    read_to: leader.map(|_| position),
                }],
                quorum_leader: Some(NodeId(101)),
                quorum_majority: true,
                call_bound: bound,
                elect_bound: bound,
                write_bound: bound,
                quorum_bound: bound,
            },
        )
    }

    fn judge_is_open(&self, operation: u64) -> bool {
        self.judge.has_open_call(operation)
    }

    /// Identifiers of what was found so far, without repetition, in order.
    pub fn found(&self) -> Vec<&'static str> {
        identifiers(self.judge.findings())
    }
}

/// Identifiers without repetition, in the order of first occurrence.
pub fn identifiers<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Vec<&'static str> {
    let mut found = Vec::new();
    for finding in findings {
        if !found.contains(&finding.invariant) {
            found.push(finding.invariant);
        }
    }
    found
}

/// Nothing is wrong, and nothing acknowledged is gone.
#[track_caller]
pub fn assert_clean(judgement: &Judgement) {
    assert_eq!(judgement.findings, [], "nothing is wrong");
    assert_eq!(judgement.lost, [], "nothing is lost");
}

/// Nothing is wrong, and exactly these offsets are gone by this rule.
#[track_caller]
pub fn assert_licensed(judgement: &Judgement, offsets: &[i64], rule: Rule) {
    assert_eq!(judgement.findings, [], "nothing is wrong");
    let lost: Vec<i64> = judgement.lost.iter().map(|lost| lost.key.offset).collect();
    assert_eq!(lost, offsets);
    for lost in &judgement.lost {
        assert_eq!(lost.licensed_by, Some(rule));
    }
}
