//! One broker on a small disk. Effects on files wait until the disk is told to do them; everything else is kept to be
//! looked at.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use acked_wire::api::fetch::{
    EpochEndOffset, FetchPartition, FetchTopic, FetchableTopicResponse, PartitionData, ReplicaState,
};
use acked_wire::api::produce::{PartitionProduceData, PartitionProduceResponse, TopicProduceData};
use acked_wire::batch::{BatchBuilder, batches};
use acked_wire::{FetchRequest, FetchResponse, ProduceRequest, ResponseBody, Str, Uuid};
use bytes::Bytes;

use crate::log::recovery::{FoundLog, RecoveryPlan, recover};
use crate::observation::{Observation, PartitionState};
use crate::replica::{
    BrokerView, FetchId, MetadataUpdate, PartitionAssignment, ReplicaConfig, ReplicaEffect, ReplicaInput,
    ReplicaManager,
};
use crate::rules::Rules;
use crate::settings::TopicSettings;
use crate::types::{NodeId, Output, RequestId, Time, TopicPartition};

pub const B1: NodeId = NodeId(1);
pub const B2: NodeId = NodeId(2);
pub const B3: NodeId = NodeId(3);
pub const PRODUCE_VERSION: i16 = 13;
pub const FETCH_VERSION: i16 = 18;
pub const LAG: Duration = Duration::from_secs(2);
pub const NOW_MS: i64 = 1_700_000_000_000;

pub const T0: TopicPartition = TopicPartition { topic: Uuid([7; 16]), index: 0 };

pub fn topic_name() -> Str {
    Str::from_static("orders")
}

/// Partition 0 with replicas 1, 2 and 3.
pub fn state(
    leader: Option<NodeId>,
    leader_epoch: i32,
    partition_epoch: i32,
    isr: &[NodeId],
) -> PartitionState {
    PartitionState {
        partition: T0,
        replicas: vec![B1, B2, B3],
        isr: isr.to_vec(),
        elr: Vec::new(),
        leader,
        leader_epoch,
        partition_epoch,
        recovering: false,
    }
}

pub fn settings(min_insync_replicas: i32) -> TopicSettings {
    TopicSettings { min_insync_replicas, ..TopicSettings::default() }
}

/// The epoch under which a broker is registered unless a test says otherwise.
pub fn broker_epoch(broker: NodeId) -> i64 {
    100 + i64::from(broker.0)
}

pub fn view(broker: NodeId) -> BrokerView {
    BrokerView { broker_epoch: broker_epoch(broker), fenced: false, in_controlled_shutdown: false }
}

/// One state of partition 0, with three live brokers and m = 2.
pub fn update(node: NodeId, state: PartitionState) -> MetadataUpdate {
    MetadataUpdate {
        broker_epoch: Some(broker_epoch(node)),
        brokers: [B1, B2, B3].into_iter().map(|broker| (broker, view(broker))).collect(),
        partitions: vec![PartitionAssignment { topic_name: topic_name(), state, settings: settings(2) }],
        removed: Vec::new(),
    }
}

/// A batch of one record, as a client sends it.
pub fn record(value: u64) -> Bytes {
    records(&[value])
}

pub fn records(values: &[u64]) -> Bytes {
    builder(values).build().freeze()
}

pub fn builder(values: &[u64]) -> BatchBuilder {
    let mut builder = BatchBuilder::new(NOW_MS);
    for value in values {
        builder.push(NOW_MS, None, Some(&value.to_be_bytes()), &[]);
    }
    builder
}

pub fn idempotent(base_sequence: i32, value: u64) -> Bytes {
    builder(&[value]).producer(5, 0, base_sequence).build().freeze()
}

/// A batch as it lies in a log.
pub fn stored(base_offset: i64, leader_epoch: i32, value: u64) -> Bytes {
    builder(&[value]).base_offset(base_offset).leader_epoch(leader_epoch).build().freeze()
}

/// `offset -> (leader epoch, value)` of a log.
pub type Contents = BTreeMap<i64, (i32, u64)>;

pub fn contents(log: &[u8]) -> Contents {
    let mut contents = BTreeMap::new();
    for batch in batches(log) {
        let batch = batch.expect("a log holds whole good batches");
        for record in batch.records().expect("a log holds plain batches") {
            let record = record.expect("a log holds good records");
            let value = record.value.expect("test records have a value").try_into().expect("of eight bytes");
            let epoch = batch.header.partition_leader_epoch;
            contents.insert(record.offset, (epoch, u64::from_be_bytes(value)));
        }
    }
    contents
}

/// What one partition has on disk.
#[derive(Clone, Debug, Default)]
pub struct Files {
    pub log: Vec<u8>,
    pub epochs: Vec<(i32, i64)>,
}

impl Files {
    /// Carries out an effect on them; anything else changes nothing.
    pub fn run(&mut self, effect: &ReplicaEffect) {
        match effect {
            ReplicaEffect::Append { position, bytes, .. } => {
                assert_eq!(*position, self.log.len() as u64, "an append leaves no gap");
                self.log.extend_from_slice(bytes);
            }
            ReplicaEffect::Truncate { size, .. } => {
                self.log.truncate(usize::try_from(*size).expect("a test log is small"));
            }
            ReplicaEffect::SaveEpochs { epochs, .. } => self.epochs.clone_from(epochs),
            _ => {}
        }
    }
}

/// One incarnation of a broker.
pub struct Node {
    pub id: NodeId,
    pub manager: ReplicaManager,
    pub now: Time,
    pub files: BTreeMap<TopicPartition, Files>,
    pub marks: BTreeMap<TopicPartition, i64>,
    /// Effects on files that are not done, in order.
    pub disk: VecDeque<ReplicaEffect>,
    /// Every other effect, in order; tests take from it.
    pub effects: Vec<ReplicaEffect>,
    pub observations: Vec<Observation>,
    next_request: u64,
}

impl Node {
    pub fn new(id: NodeId) -> Node {
        Node::with_rules(id, Rules::KAFKA)
    }

    pub fn with_rules(id: NodeId, rules: Rules) -> Node {
        Node::started(id, rules, Duration::ZERO, BTreeMap::new(), BTreeMap::new())
    }

    /// A broker that starts with these files after a process crash: what was handed to the disk is still there.
    pub fn started(
        id: NodeId,
        rules: Rules,
        now: Time,
        files: BTreeMap<TopicPartition, Files>,
        marks: BTreeMap<TopicPartition, i64>,
    ) -> Node {
        let config = ReplicaConfig {
            node: id,
            replica_lag_time_max: LAG,
            replica_fetch_backoff: Duration::from_millis(100),
            ..ReplicaConfig::default()
        };
        let mut recovered = BTreeMap::new();
        for (partition, files) in &files {
            let found = FoundLog {
                bytes: Bytes::copy_from_slice(&files.log),
                epochs: Some(files.epochs.clone()),
                high_watermark: marks.get(partition).copied(),
                ..FoundLog::default()
            };
            let RecoveryPlan::Serve { log, high_watermark, truncate_to: None, .. } = recover(found) else {
                panic!("a process crash damages nothing")
            };
            recovered.insert(*partition, (log, high_watermark));
        }
        let manager = ReplicaManager::new(config, rules, recovered);
        let (disk, effects, observations) = (VecDeque::new(), Vec::new(), Vec::new());
        Node { id, manager, now, files, marks, disk, effects, observations, next_request: 0 }
    }

    pub fn input(&mut self, input: ReplicaInput) {
        let mut out = Output::default();
        self.manager.handle(self.now, input, &mut out);
        self.observations.extend(out.observations);
        for effect in out.effects {
            match effect {
                ReplicaEffect::SaveHighWatermarks { marks } => self.marks = marks.into_iter().collect(),
                ReplicaEffect::CreateLog { .. }
                | ReplicaEffect::DeleteLog { .. }
                | ReplicaEffect::Append { .. }
                | ReplicaEffect::Truncate { .. }
                | ReplicaEffect::SaveEpochs { .. }
                | ReplicaEffect::Read { .. } => self.disk.push_back(effect),
                _ => self.effects.push(effect),
            }
        }
    }

    pub fn advance(&mut self, by: Duration) {
        self.now += by;
        self.input(ReplicaInput::Tick);
    }

    // ---- the disk

    /// Does the oldest effect on files. Gives whether there was one.
    pub fn step_disk(&mut self) -> bool {
        let Some(effect) = self.disk.pop_front() else { return false };
        match effect {
            ReplicaEffect::CreateLog { partition, write, .. } => {
                self.files.insert(partition, Files::default());
                self.input(ReplicaInput::Written { partition, write });
            }
            ReplicaEffect::DeleteLog { partition } => {
                self.files.remove(&partition);
            }
            ReplicaEffect::Append { partition, write, .. }
            | ReplicaEffect::Truncate { partition, write, .. }
            | ReplicaEffect::SaveEpochs { partition, write, .. } => {
                self.files.get_mut(&partition).expect("the log was created").run(&effect);
                self.input(ReplicaInput::Written { partition, write });
            }
            ReplicaEffect::Read { partition, read, position, length } => {
                let log = &self.files[&partition].log;
                let from = usize::try_from(position).expect("a test log is small");
                let bytes = Bytes::copy_from_slice(&log[from..from + length]);
                self.input(ReplicaInput::ReadDone { read, result: Ok(bytes) });
            }
            other => unreachable!("{other:?} is no disk effect"),
        }
        true
    }

    pub fn run_disk(&mut self) {
        while self.step_disk() {}
    }

    /// What the log will hold once everything queued is done.
    pub fn log(&self) -> Contents {
        let mut files = self.files.get(&T0).cloned().unwrap_or_default();
        for effect in &self.disk {
            files.run(effect);
        }
        contents(&files.log)
    }

    // ---- metadata

    pub fn learn(&mut self, state: PartitionState) {
        self.input(ReplicaInput::Metadata(update(self.id, state)));
    }

    /// Leads epoch `leader_epoch` with everybody in sync, all writes done.
    pub fn lead(&mut self, leader_epoch: i32) {
        self.learn(state(Some(self.id), leader_epoch, leader_epoch, &[B1, B2, B3]));
        self.run_disk();
    }

    /// Follows `leader` in epoch `leader_epoch`, all writes done.
    pub fn follow(&mut self, leader: NodeId, leader_epoch: i32) {
        self.learn(state(Some(leader), leader_epoch, leader_epoch, &[B1, B2, B3]));
        self.run_disk();
    }

    // ---- requests

    pub fn next_request(&mut self) -> RequestId {
        self.next_request += 1;
        RequestId(self.next_request)
    }

    pub fn produce(&mut self, acks: i16, records: Bytes) -> RequestId {
        let request = self.next_request();
        let body = produce_request(acks, records);
        self.input(ReplicaInput::Produce { request, version: PRODUCE_VERSION, body, wall_clock_ms: NOW_MS });
        request
    }

    /// A follower's fetch, as it would send it now.
    pub fn fetched_by(
        &mut self,
        follower: NodeId,
        leader_epoch: i32,
        offset: i64,
        last_epoch: i32,
    ) -> RequestId {
        let body = follower_fetch(follower, broker_epoch(follower), leader_epoch, offset, last_epoch);
        self.fetch(body)
    }

    pub fn fetch(&mut self, body: FetchRequest) -> RequestId {
        let request = self.next_request();
        self.input(ReplicaInput::Fetch { request, version: FETCH_VERSION, body });
        request
    }

    /// Both followers fetch at `offset`, written in `leader_epoch`.
    pub fn caught_up(&mut self, leader_epoch: i32, offset: i64) {
        let leader = self.id;
        for follower in [B1, B2, B3].into_iter().filter(|broker| *broker != leader) {
            self.fetched_by(follower, leader_epoch, offset, if offset == 0 { -1 } else { leader_epoch });
        }
    }

    /// Takes the answer to a request out of the effects.
    pub fn reply(&mut self, request: RequestId) -> Option<ResponseBody> {
        let is_reply = |effect: &ReplicaEffect| matches!(effect, ReplicaEffect::Reply { request: r, .. } if *r == request);
        let place = self.effects.iter().position(is_reply)?;
        match self.effects.remove(place) {
            ReplicaEffect::Reply { body, .. } => Some(body),
            _ => None,
        }
    }

    /// The one partition of a produce answer.
    pub fn produced(&mut self, request: RequestId) -> Option<PartitionProduceResponse> {
        match self.reply(request)? {
            ResponseBody::Produce(body) => Some(body.responses[0].partition_responses[0].clone()),
            other => panic!("{other:?} answers a produce"),
        }
    }

    /// The code of a produce answer.
    pub fn code(&mut self, request: RequestId) -> Option<i16> {
        self.produced(request).map(|answer| answer.error_code)
    }

    /// The one partition of a fetch answer.
    pub fn served(&mut self, request: RequestId) -> Option<PartitionData> {
        match self.reply(request)? {
            ResponseBody::Fetch(body) => Some(body.responses[0].partitions[0].clone()),
            other => panic!("{other:?} answers a fetch"),
        }
    }

    pub fn high_watermark(&self) -> i64 {
        let marks = self.manager.high_watermarks();
        marks.iter().find(|(partition, _)| *partition == T0).expect("the replica is online").1
    }

    // ---- as a follower

    /// Takes the fetch that was sent last out of the effects.
    pub fn sent_fetch(&mut self) -> Option<(NodeId, FetchId, FetchRequest)> {
        let place =
            self.effects.iter().rposition(|effect| matches!(effect, ReplicaEffect::SendFetch { .. }))?;
        match self.effects.remove(place) {
            ReplicaEffect::SendFetch { to, fetch, body } => Some((to, fetch, body)),
            _ => None,
        }
    }

    /// Answers the fetch that was sent last.
    pub fn answer_fetch(&mut self, data: PartitionData) {
        let (from, fetch, _) = self.sent_fetch().expect("a fetch is in flight");
        self.input(ReplicaInput::FetchResponse { from, fetch, result: Ok(fetch_response(data)) });
    }

    pub fn has_observed(&self, is_it: impl Fn(&Observation) -> bool) -> bool {
        self.observations.iter().any(is_it)
    }
}

pub fn produce_request(acks: i16, records: Bytes) -> ProduceRequest {
    let partition =
        PartitionProduceData { index: 0, records: Some(records), ..PartitionProduceData::default() };
    let topic =
        TopicProduceData { topic_id: T0.topic, partition_data: vec![partition], ..Default::default() };
    ProduceRequest { acks, timeout_ms: 5_000, topic_data: vec![topic], ..ProduceRequest::default() }
}

/// A fetch of partition 0 that waits up to half a second for one byte.
pub fn consumer_fetch(offset: i64) -> FetchRequest {
    let partition = FetchPartition {
        partition: 0,
        fetch_offset: offset,
        partition_max_bytes: 1 << 20,
        ..FetchPartition::default()
    };
    let topic = FetchTopic { topic_id: T0.topic, partitions: vec![partition], ..FetchTopic::default() };
    FetchRequest { max_wait_ms: 500, min_bytes: 1, topics: vec![topic], ..FetchRequest::default() }
}

pub fn follower_fetch(
    follower: NodeId,
    broker_epoch: i64,
    leader_epoch: i32,
    offset: i64,
    last_epoch: i32,
) -> FetchRequest {
    let mut body = consumer_fetch(offset);
    body.replica_state =
        ReplicaState { replica_id: follower.0, replica_epoch: broker_epoch, ..ReplicaState::default() };
    let partition = &mut body.topics[0].partitions[0];
    partition.current_leader_epoch = leader_epoch;
    partition.last_fetched_epoch = last_epoch;
    body
}

pub fn fetch_response(data: PartitionData) -> FetchResponse {
    let topic = FetchableTopicResponse { topic_id: T0.topic, partitions: vec![data], ..Default::default() };
    FetchResponse { responses: vec![topic], ..FetchResponse::default() }
}

/// What a leader answers to a follower.
pub fn told(high_watermark: i64, records: Bytes) -> PartitionData {
    PartitionData { high_watermark, log_start_offset: 0, records: Some(records), ..PartitionData::default() }
}

pub fn told_error(error_code: i16) -> PartitionData {
    PartitionData { error_code, ..told(-1, Bytes::new()) }
}

pub fn told_diverging(epoch: i32, end_offset: i64) -> PartitionData {
    let diverging_epoch = EpochEndOffset { epoch, end_offset, ..EpochEndOffset::default() };
    PartitionData { diverging_epoch, ..told(99, Bytes::new()) }
}
