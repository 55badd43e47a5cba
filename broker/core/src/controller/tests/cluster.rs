//! An active controller with its log, and brokers that say what a test wants.

use std::collections::BTreeMap;

use acked_wire::api::alter_partition::request::{BrokerState, PartitionData, TopicData};
use acked_wire::api::broker_registration::Listener;
use acked_wire::api::create_topics::{CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig};
use acked_wire::api::elect_leaders::TopicPartitions;
use acked_wire::{
    AlterPartitionRequest, AlterPartitionResponse, BrokerHeartbeatRequest, BrokerHeartbeatResponse,
    BrokerRegistrationRequest, BrokerRegistrationResponse, CreateTopicsRequest, CreateTopicsResponse,
    ElectLeadersRequest, ElectLeadersResponse, MetadataRecord, ResponseBody, Str, Uuid, error_code,
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::controller::*;
use crate::observation::{Election, Observation, PartitionState};
use crate::settings::BrokerSettings;
use crate::types::{NodeId, Output, RequestId, Time, TopicPartition};

pub(super) const SESSION: Time = Time::from_secs(9);

/// An active controller with its log, and brokers that say what a test wants.
pub(super) struct Cluster {
    pub(super) controller: Controller,
    pub(super) now: Time,
    pub(super) log: Vec<(i64, MetadataRecord)>,
    pub(super) next_offset: i64,
    pub(super) observations: Vec<Observation>,
    incarnations: u8,
    pub(super) epochs: BTreeMap<i32, i64>,
}

pub(super) fn config(unclean: bool) -> ControllerConfig {
    let settings = BrokerSettings { unclean_leader_election_enable: unclean, ..BrokerSettings::default() };
    ControllerConfig::new(NodeId(101), Str::from("cluster"), &settings)
}

impl Cluster {
    /// The log begins with the quorum's own leader change at offset 0.
    pub(super) fn new(unclean: bool) -> Cluster {
        let mut out = Output::default();
        let rng = ChaCha8Rng::seed_from_u64(7);
        let controller =
            Controller::activate(config(unclean), 1, MetadataImage::default(), 1, Time::ZERO, rng, &mut out);
        let mut cluster = Cluster {
            controller,
            now: Time::ZERO,
            log: Vec::new(),
            next_offset: 1,
            observations: Vec::new(),
            incarnations: 0,
            epochs: BTreeMap::new(),
        };
        cluster.take(out);
        cluster
    }

    /// `brokers` registered and unfenced, one topic per entry of `topics` with these replicas.
    pub(super) fn with(unclean: bool, brokers: i32, topics: &[(&str, &[i32])]) -> Cluster {
        let mut cluster = Cluster::new(unclean);
        for id in 1..=brokers {
            cluster.boot(id);
        }
        for (name, replicas) in topics {
            cluster.create(name, replicas);
        }
        cluster
    }

    pub(super) fn take(&mut self, out: Output<ControllerEffect>) -> Option<ResponseBody> {
        self.observations.extend(out.observations);
        let mut reply = None;
        for effect in out.effects {
            match effect {
                ControllerEffect::Propose { base_offset, records } => {
                    assert_eq!(base_offset, self.next_offset, "proposals follow one another");
                    for record in records {
                        self.log.push((self.next_offset, record));
                        self.next_offset += 1;
                    }
                }
                ControllerEffect::Reply { body, after_offset, .. } => {
                    assert_eq!(after_offset, self.next_offset, "a reply waits for all it could have seen");
                    reply = Some(body);
                }
            }
        }
        reply
    }

    pub(super) fn ask(&mut self, body: ControllerBody) -> ResponseBody {
        let mut out = Output::default();
        let input = ControllerInput::Request { request: RequestId(1), body };
        self.controller.handle(self.now, input, self.next_offset, &mut out);
        self.take(out).expect("a request is answered")
    }

    pub(super) fn tick(&mut self) {
        let mut out = Output::default();
        self.controller.handle(self.now, ControllerInput::Tick, self.next_offset, &mut out);
        assert_eq!(self.take(out), None);
    }

    /// The leadership of the quorum moves: a new controller is made from the log alone.
    pub(super) fn fail_over(&mut self) {
        let mut image = MetadataImage::default();
        for (offset, record) in &self.log {
            image.replay(*offset, record).expect("the log holds together");
        }
        // The new leader's own leader change.
        self.next_offset += 1;
        let (epoch, rng) = (self.controller.epoch() + 1, ChaCha8Rng::seed_from_u64(8));
        let config = self.controller.config().clone();
        let mut out = Output::default();
        self.controller =
            Controller::activate(config, epoch, image, self.next_offset, self.now, rng, &mut out);
        self.take(out);
    }

    pub(super) fn register_as(&mut self, id: i32, incarnation: u8) -> BrokerRegistrationResponse {
        let request = registration(id, incarnation);
        match self.ask(ControllerBody::BrokerRegistration(request)) {
            ResponseBody::BrokerRegistration(response) => {
                if response.error_code == error_code::NONE {
                    self.epochs.insert(id, response.broker_epoch);
                }
                response
            }
            other => panic!("not a registration: {other:?}"),
        }
    }

    pub(super) fn register(&mut self, id: i32) -> BrokerRegistrationResponse {
        self.incarnations += 1;
        self.register_as(id, self.incarnations)
    }

    pub(super) fn epoch(&self, id: i32) -> i64 {
        self.epochs.get(&id).copied().unwrap_or(-1)
    }

    pub(super) fn heartbeat(
        &mut self,
        id: i32,
        offset: i64,
        fence: bool,
        stop: bool,
    ) -> BrokerHeartbeatResponse {
        let request = BrokerHeartbeatRequest {
            broker_id: id,
            broker_epoch: self.epoch(id),
            current_metadata_offset: offset,
            want_fence: fence,
            want_shut_down: stop,
            ..BrokerHeartbeatRequest::default()
        };
        match self.ask(ControllerBody::BrokerHeartbeat(request)) {
            ResponseBody::BrokerHeartbeat(response) => response,
            other => panic!("not a heartbeat: {other:?}"),
        }
    }

    /// A heartbeat of a broker that knows the whole log and wants to serve.
    pub(super) fn serve(&mut self, id: i32) -> BrokerHeartbeatResponse {
        self.heartbeat(id, self.next_offset - 1, false, false)
    }

    pub(super) fn boot(&mut self, id: i32) {
        assert_eq!(self.register(id).error_code, error_code::NONE);
        assert!(!self.serve(id).is_fenced);
    }

    /// `id` falls silent while the others of `1..=3` go on, until its session is over.
    pub(super) fn silence(&mut self, silent: &[i32]) {
        let others: Vec<i32> = self.epochs.keys().copied().filter(|id| !silent.contains(id)).collect();
        self.now += SESSION / 2;
        for id in others {
            if self.broker(id).is_some_and(|broker| !broker.fenced) {
                self.serve(id);
            }
        }
        self.now += SESSION / 2;
        self.tick();
    }

    pub(super) fn broker(&self, id: i32) -> Option<&Broker> {
        self.controller.image().broker(NodeId(id))
    }

    pub(super) fn create_topics(&mut self, topics: Vec<CreatableTopic>) -> CreateTopicsResponse {
        let request = CreateTopicsRequest { topics, ..CreateTopicsRequest::default() };
        match self.ask(ControllerBody::CreateTopics(request)) {
            ResponseBody::CreateTopics(response) => response,
            other => panic!("not a creation: {other:?}"),
        }
    }

    pub(super) fn create(&mut self, name: &str, replicas: &[i32]) {
        let response = self.create_topics(vec![manual(name, &[replicas])]);
        assert_eq!(response.topics[0].error_code, error_code::NONE, "{:?}", response.topics[0].error_message);
    }

    pub(super) fn id(&self, name: &str) -> Uuid {
        self.controller.image().topic_id(&Str::from(name)).expect("the topic exists")
    }

    pub(super) fn state(&self, name: &str) -> PartitionState {
        let partition = TopicPartition { topic: self.id(name), index: 0 };
        self.controller.image().partition(partition).expect("the partition exists").state.clone()
    }

    /// (leader, leader epoch, partition epoch, ISR)
    pub(super) fn brief(&self, name: &str) -> (i32, i32, i32, Vec<i32>) {
        let state = self.state(name);
        let isr = state.isr.iter().map(|node| node.0).collect();
        (state.leader.map_or(-1, |node| node.0), state.leader_epoch, state.partition_epoch, isr)
    }

    /// What the leader of partition 0 would ask for.
    pub(super) fn wish(&self, name: &str, isr: &[i32]) -> AlterPartitionRequest {
        let state = self.state(name);
        let leader = state.leader.map_or(-1, |node| node.0);
        let members = isr.iter().map(|id| BrokerState {
            broker_id: *id,
            broker_epoch: self.epoch(*id),
            ..BrokerState::default()
        });
        let partition = PartitionData {
            partition_index: 0,
            leader_epoch: state.leader_epoch,
            new_isr_with_epochs: members.collect(),
            leader_recovery_state: 0,
            partition_epoch: state.partition_epoch,
            ..PartitionData::default()
        };
        let topic =
            TopicData { topic_id: self.id(name), partitions: vec![partition], ..TopicData::default() };
        AlterPartitionRequest {
            broker_id: leader,
            broker_epoch: self.epoch(leader),
            topics: vec![topic],
            ..AlterPartitionRequest::default()
        }
    }

    pub(super) fn alter(&mut self, request: AlterPartitionRequest) -> AlterPartitionResponse {
        match self.ask(ControllerBody::AlterPartition(request)) {
            ResponseBody::AlterPartition(response) => response,
            other => panic!("not an ISR change: {other:?}"),
        }
    }

    /// The partition's error code.
    pub(super) fn alter_code(&mut self, request: AlterPartitionRequest) -> i16 {
        let response = self.alter(request);
        assert_eq!(response.error_code, error_code::NONE);
        response.topics[0].partitions[0].error_code
    }

    pub(super) fn elect(&mut self, kind: i8, topics: Option<Vec<TopicPartitions>>) -> ElectLeadersResponse {
        let request = ElectLeadersRequest {
            election_type: kind,
            topic_partitions: topics,
            ..ElectLeadersRequest::default()
        };
        match self.ask(ControllerBody::ElectLeaders(request)) {
            ResponseBody::ElectLeaders(response) => response,
            other => panic!("not an election: {other:?}"),
        }
    }

    /// The code for partition 0 of `name`.
    pub(super) fn elect_code(&mut self, kind: i8, name: &str) -> i16 {
        let asked =
            TopicPartitions { topic: Str::from(name), partitions: vec![0], ..TopicPartitions::default() };
        self.elect(kind, Some(vec![asked])).replica_election_results[0].partition_result[0].error_code
    }

    pub(super) fn last_election(&self) -> Option<Election> {
        self.observations.iter().rev().find_map(|observation| match observation {
            Observation::PartitionDecided { election, .. } => Some(*election),
            _ => None,
        })?
    }
}

pub(super) fn registration(id: i32, incarnation: u8) -> BrokerRegistrationRequest {
    let listener =
        Listener { name: Str::from("PLAINTEXT"), host: Str::from("b"), port: 9092, ..Listener::default() };
    BrokerRegistrationRequest {
        broker_id: id,
        cluster_id: Str::from("cluster"),
        incarnation_id: Uuid([incarnation; 16]),
        listeners: vec![listener],
        features: supported_features(),
        rack: None,
        log_dirs: vec![Uuid([200 + u8::try_from(id).expect("few brokers"); 16])],
        ..BrokerRegistrationRequest::default()
    }
}

pub(super) fn manual(name: &str, partitions: &[&[i32]]) -> CreatableTopic {
    let assignments = (0..).zip(partitions).map(|(partition_index, ids)| CreatableReplicaAssignment {
        partition_index,
        broker_ids: ids.to_vec(),
        ..CreatableReplicaAssignment::default()
    });
    CreatableTopic {
        name: Str::from(name),
        num_partitions: -1,
        replication_factor: -1,
        assignments: assignments.collect(),
        ..CreatableTopic::default()
    }
}

pub(super) fn automatic(name: &str, partitions: i32, replicas: i16) -> CreatableTopic {
    CreatableTopic {
        name: Str::from(name),
        num_partitions: partitions,
        replication_factor: replicas,
        ..CreatableTopic::default()
    }
}

pub(super) fn setting(name: &str, value: Option<&str>) -> CreatableTopicConfig {
    CreatableTopicConfig {
        name: Str::from(name),
        value: value.map(Str::from),
        ..CreatableTopicConfig::default()
    }
}
