//! The rules of the controller as claims, and a random walk against short invariants.

use std::collections::BTreeMap;

use acked_wire::api::alter_partition::request::{BrokerState, PartitionData, TopicData};
use acked_wire::api::broker_registration::{Feature, Listener};
use acked_wire::api::create_topics::{CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig};
use acked_wire::api::elect_leaders::TopicPartitions;
use acked_wire::{
    AllocateProducerIdsRequest, AllocateProducerIdsResponse, AlterPartitionRequest, AlterPartitionResponse,
    BrokerHeartbeatRequest, BrokerHeartbeatResponse, BrokerRegistrationRequest, BrokerRegistrationResponse,
    CreateTopicsRequest, CreateTopicsResponse, ElectLeadersRequest, ElectLeadersResponse, MetadataRecord,
    ResponseBody, Str, Uuid, error_code,
};
use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::observation::{Election, Observation, PartitionState};
use crate::settings::BrokerSettings;
use crate::types::{NodeId, Output, RequestId, Time, TopicPartition};

const SESSION: Time = Time::from_secs(9);

/// An active controller with its log, and brokers that say what a test wants.
struct Cluster {
    controller: Controller,
    now: Time,
    log: Vec<(i64, MetadataRecord)>,
    next_offset: i64,
    observations: Vec<Observation>,
    incarnations: u8,
    epochs: BTreeMap<i32, i64>,
}

fn config(unclean: bool) -> ControllerConfig {
    let settings = BrokerSettings { unclean_leader_election_enable: unclean, ..BrokerSettings::default() };
    ControllerConfig::new(NodeId(101), Str::from("cluster"), &settings)
}

impl Cluster {
    /// The log begins with the quorum's own leader change at offset 0.
    fn new(unclean: bool) -> Cluster {
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
    fn with(unclean: bool, brokers: i32, topics: &[(&str, &[i32])]) -> Cluster {
        let mut cluster = Cluster::new(unclean);
        for id in 1..=brokers {
            cluster.boot(id);
        }
        for (name, replicas) in topics {
            cluster.create(name, replicas);
        }
        cluster
    }

    fn take(&mut self, out: Output<ControllerEffect>) -> Option<ResponseBody> {
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

    fn ask(&mut self, body: ControllerBody) -> ResponseBody {
        let mut out = Output::default();
        let input = ControllerInput::Request { request: RequestId(1), body };
        self.controller.handle(self.now, input, self.next_offset, &mut out);
        self.take(out).expect("a request is answered")
    }

    fn tick(&mut self) {
        let mut out = Output::default();
        self.controller.handle(self.now, ControllerInput::Tick, self.next_offset, &mut out);
        assert_eq!(self.take(out), None);
    }

    /// The leadership of the quorum moves: a new controller is made from the log alone.
    fn fail_over(&mut self) {
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

    fn register_as(&mut self, id: i32, incarnation: u8) -> BrokerRegistrationResponse {
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

    fn register(&mut self, id: i32) -> BrokerRegistrationResponse {
        self.incarnations += 1;
        self.register_as(id, self.incarnations)
    }

    fn epoch(&self, id: i32) -> i64 {
        self.epochs.get(&id).copied().unwrap_or(-1)
    }

    fn heartbeat(&mut self, id: i32, offset: i64, fence: bool, stop: bool) -> BrokerHeartbeatResponse {
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
    fn serve(&mut self, id: i32) -> BrokerHeartbeatResponse {
        self.heartbeat(id, self.next_offset - 1, false, false)
    }

    fn boot(&mut self, id: i32) {
        assert_eq!(self.register(id).error_code, error_code::NONE);
        assert!(!self.serve(id).is_fenced);
    }

    /// `id` falls silent while the others of `1..=3` go on, until its session is over.
    fn silence(&mut self, silent: &[i32]) {
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

    fn broker(&self, id: i32) -> Option<&Broker> {
        self.controller.image().broker(NodeId(id))
    }

    fn create_topics(&mut self, topics: Vec<CreatableTopic>) -> CreateTopicsResponse {
        let request = CreateTopicsRequest { topics, ..CreateTopicsRequest::default() };
        match self.ask(ControllerBody::CreateTopics(request)) {
            ResponseBody::CreateTopics(response) => response,
            other => panic!("not a creation: {other:?}"),
        }
    }

    fn create(&mut self, name: &str, replicas: &[i32]) {
        let response = self.create_topics(vec![manual(name, &[replicas])]);
        assert_eq!(response.topics[0].error_code, error_code::NONE, "{:?}", response.topics[0].error_message);
    }

    fn id(&self, name: &str) -> Uuid {
        self.controller.image().topic_id(&Str::from(name)).expect("the topic exists")
    }

    fn state(&self, name: &str) -> PartitionState {
        let partition = TopicPartition { topic: self.id(name), index: 0 };
        self.controller.image().partition(partition).expect("the partition exists").state.clone()
    }

    /// (leader, leader epoch, partition epoch, ISR)
    fn brief(&self, name: &str) -> (i32, i32, i32, Vec<i32>) {
        let state = self.state(name);
        let isr = state.isr.iter().map(|node| node.0).collect();
        (state.leader.map_or(-1, |node| node.0), state.leader_epoch, state.partition_epoch, isr)
    }

    /// What the leader of partition 0 would ask for.
    fn wish(&self, name: &str, isr: &[i32]) -> AlterPartitionRequest {
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

    fn alter(&mut self, request: AlterPartitionRequest) -> AlterPartitionResponse {
        match self.ask(ControllerBody::AlterPartition(request)) {
            ResponseBody::AlterPartition(response) => response,
            other => panic!("not an ISR change: {other:?}"),
        }
    }

    /// The partition's error code.
    fn alter_code(&mut self, request: AlterPartitionRequest) -> i16 {
        let response = self.alter(request);
        assert_eq!(response.error_code, error_code::NONE);
        response.topics[0].partitions[0].error_code
    }

    fn elect(&mut self, kind: i8, topics: Option<Vec<TopicPartitions>>) -> ElectLeadersResponse {
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
    fn elect_code(&mut self, kind: i8, name: &str) -> i16 {
        let asked =
            TopicPartitions { topic: Str::from(name), partitions: vec![0], ..TopicPartitions::default() };
        self.elect(kind, Some(vec![asked])).replica_election_results[0].partition_result[0].error_code
    }

    fn last_election(&self) -> Option<Election> {
        self.observations.iter().rev().find_map(|observation| match observation {
            Observation::PartitionDecided { election, .. } => Some(*election),
            _ => None,
        })?
    }
}

fn registration(id: i32, incarnation: u8) -> BrokerRegistrationRequest {
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

fn manual(name: &str, partitions: &[&[i32]]) -> CreatableTopic {
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

fn automatic(name: &str, partitions: i32, replicas: i16) -> CreatableTopic {
    CreatableTopic {
        name: Str::from(name),
        num_partitions: partitions,
        replication_factor: replicas,
        ..CreatableTopic::default()
    }
}

fn setting(name: &str, value: Option<&str>) -> CreatableTopicConfig {
    CreatableTopicConfig {
        name: Str::from(name),
        value: value.map(Str::from),
        ..CreatableTopicConfig::default()
    }
}

// ---- activation

#[test]
fn empty_log_gets_the_feature_levels_of_a_new_cluster() {
    let mut cluster = Cluster::new(false);
    assert_eq!(cluster.log.len(), 1);
    assert!(matches!(&cluster.log[0], (1, MetadataRecord::FeatureLevel(record))
        if record.name == "metadata.version" && record.feature_level == METADATA_VERSION));
    cluster.fail_over();
    assert_eq!(cluster.log.len(), 1, "a log that has its features gets none again");
}

#[test]
fn new_controller_gives_every_unfenced_broker_a_fresh_session() {
    let mut cluster = Cluster::with(false, 3, &[("t", &[1, 2, 3])]);
    cluster.now += SESSION - Time::from_millis(1);
    cluster.fail_over();
    cluster.now += SESSION - Time::from_millis(1);
    cluster.tick();
    assert!((1..=3).all(|id| !cluster.broker(id).expect("registered").fenced));
    assert_eq!(cluster.controller.next_deadline(), Some(cluster.now + Time::from_millis(1)));
    cluster.now += Time::from_millis(1);
    cluster.tick();
    assert!((1..=3).all(|id| cluster.broker(id).expect("registered").fenced));
}

// ---- registration

#[test]
fn broker_epoch_is_the_offset_of_its_registration_and_it_starts_fenced() {
    let mut cluster = Cluster::new(false);
    let offset = cluster.next_offset;
    assert_eq!(cluster.register(1).broker_epoch, offset);
    assert!(cluster.broker(1).expect("registered").fenced);
}

#[test]
fn another_incarnation_is_refused_while_the_session_lives() {
    let mut cluster = Cluster::with(false, 1, &[]);
    cluster.now += SESSION - Time::from_millis(1);
    assert_eq!(cluster.register(1).error_code, error_code::DUPLICATE_BROKER_REGISTRATION);
    cluster.now += Time::from_millis(1);
    cluster.tick();
    assert_eq!(cluster.register(1).error_code, error_code::NONE);
}

#[test]
fn new_incarnation_leaves_every_isr_first_and_its_epoch_is_the_first_offset() {
    let mut cluster = Cluster::with(false, 3, &[("t", &[1, 2, 3]), ("u", &[2, 1])]);
    // The session is over, yet no tick has fenced the broker.
    cluster.now += SESSION;
    let (start, base) = (cluster.log.len(), cluster.next_offset);
    assert_eq!(cluster.register(1).broker_epoch, base);
    let names: Vec<&str> = cluster.log[start..].iter().map(|(_, record)| record.name()).collect();
    assert_eq!(names, ["PartitionChangeRecord", "PartitionChangeRecord", "RegisterBrokerRecord"]);
    assert_eq!(cluster.brief("t"), (2, 1, 1, vec![2, 3]));
    assert_eq!(cluster.brief("u"), (2, 0, 1, vec![2]));
    // Unfencing looks at the registration record, not at the epoch.
    assert!(cluster.heartbeat(1, base + 1, false, false).is_fenced);
    assert!(!cluster.heartbeat(1, base + 2, false, false).is_fenced);
}

#[test]
fn same_incarnation_keeps_epoch_fencing_and_shutdown_state() {
    let mut cluster = Cluster::with(false, 2, &[("t", &[1, 2])]);
    let epoch = cluster.epoch(1);
    assert!(!cluster.heartbeat(1, cluster.next_offset - 1, false, true).should_shut_down);
    assert_eq!(cluster.register_as(1, 1).broker_epoch, epoch);
    let broker = cluster.broker(1).expect("registered");
    assert!(!broker.fenced && broker.in_controlled_shutdown);
    assert_eq!(broker.registration_offset, cluster.next_offset - 1);
}

#[test]
fn registration_is_refused_in_this_order() {
    let mut cluster = Cluster::with(false, 2, &[]);
    let other = registration(1, 99);
    let mut code =
        |request: BrokerRegistrationRequest| match cluster.ask(ControllerBody::BrokerRegistration(request)) {
            ResponseBody::BrokerRegistration(response) => response.error_code,
            other => panic!("{other:?}"),
        };
    let mut request = BrokerRegistrationRequest {
        cluster_id: Str::from("other"),
        log_dirs: Vec::new(),
        features: Vec::new(),
        ..other
    };
    assert_eq!(code(request.clone()), error_code::INCONSISTENT_CLUSTER_ID);
    request.cluster_id = Str::from("cluster");
    assert_eq!(code(request.clone()), error_code::DUPLICATE_BROKER_REGISTRATION);
    request.broker_id = 3;
    assert_eq!(code(request.clone()), error_code::INVALID_REGISTRATION);
    // The directory of broker 2.
    request.log_dirs = vec![Uuid([202; 16])];
    assert_eq!(code(request.clone()), error_code::INVALID_REGISTRATION);
    request.log_dirs = vec![Uuid([203; 16])];
    assert_eq!(code(request.clone()), error_code::UNSUPPORTED_VERSION);
    request.features = vec![Feature {
        name: Str::from("metadata.version"),
        min_supported_version: METADATA_VERSION + 1,
        max_supported_version: METADATA_VERSION + 1,
        ..Feature::default()
    }];
    assert_eq!(code(request.clone()), error_code::UNSUPPORTED_VERSION);
    request.features = supported_features();
    assert_eq!(code(request), error_code::NONE);
}

// ---- heartbeats, fencing, controlled shutdown

#[test]
fn stale_broker_epoch_is_refused() {
    let mut cluster = Cluster::with(false, 1, &[]);
    cluster.epochs.insert(1, 0);
    assert_eq!(cluster.serve(1).error_code, error_code::STALE_BROKER_EPOCH);
    assert_eq!(cluster.serve(9).error_code, error_code::STALE_BROKER_EPOCH);
}

#[test]
fn broker_is_unfenced_when_its_metadata_reached_its_registration() {
    let mut cluster = Cluster::new(false);
    let epoch = cluster.register(1).broker_epoch;
    let early = cluster.heartbeat(1, epoch - 1, false, false);
    assert!(early.is_fenced && !early.is_caught_up);
    let unwilling = cluster.heartbeat(1, epoch, true, false);
    assert!(unwilling.is_fenced && unwilling.is_caught_up);
    assert!(!cluster.heartbeat(1, epoch, false, false).is_fenced);
}

#[test]
fn silent_leader_is_fenced_and_the_next_in_sync_replica_leads() {
    let mut cluster = Cluster::with(false, 3, &[("t", &[1, 2, 3])]);
    cluster.silence(&[1]);
    assert!(cluster.broker(1).expect("registered").fenced);
    assert_eq!(cluster.brief("t"), (2, 1, 1, vec![2, 3]));
    assert_eq!(cluster.last_election(), Some(Election::Clean));
}

#[test]
fn brokers_expiring_together_are_fenced_one_after_the_other() {
    let mut cluster = Cluster::with(false, 3, &[("t", &[1, 2, 3])]);
    cluster.silence(&[1, 2, 3]);
    // 1 goes, 2 leads; 2 goes, 3 leads; 3 goes and stays as the last member.
    assert_eq!(cluster.brief("t"), (-1, 3, 3, vec![3]));
    assert_eq!(cluster.last_election(), Some(Election::Leaderless));
}

#[test]
fn last_member_is_retained_and_elected_when_it_returns() {
    let mut cluster = Cluster::with(false, 3, &[("t", &[1, 2, 3])]);
    cluster.silence(&[1, 2, 3]);
    // Replicas that left earlier do not lead, in sync with nobody.
    cluster.boot(1);
    cluster.boot(2);
    assert_eq!(cluster.brief("t"), (-1, 3, 3, vec![3]));
    cluster.boot(3);
    assert_eq!(cluster.brief("t"), (3, 4, 4, vec![3]));
    assert_eq!(cluster.last_election(), Some(Election::Clean));
}

#[test]
fn unclean_election_takes_the_first_acceptable_replica_and_recovers() {
    let mut cluster = Cluster::with(true, 3, &[("t", &[1, 2, 3])]);
    cluster.silence(&[2, 3]);
    assert_eq!(cluster.brief("t"), (1, 0, 2, vec![1]));
    cluster.boot(3);
    cluster.silence(&[1]);
    assert_eq!(cluster.brief("t"), (3, 1, 3, vec![3]));
    assert!(cluster.state("t").recovering);
    assert_eq!(cluster.last_election(), Some(Election::Unclean { asked_by_administrator: false }));
}

#[test]
fn leaderless_partition_is_elected_uncleanly_when_any_replica_is_unfenced() {
    let mut cluster = Cluster::with(true, 3, &[("t", &[1, 2, 3])]);
    cluster.silence(&[1, 2, 3]);
    cluster.boot(2);
    assert_eq!(cluster.brief("t"), (2, 4, 4, vec![2]));
    assert!(cluster.state("t").recovering);
}

#[test]
fn topics_own_setting_decides_on_unclean_elections() {
    let mut cluster = Cluster::with(false, 2, &[]);
    let topic = |name: &str, value: &str| CreatableTopic {
        configs: vec![setting("unclean.leader.election.enable", Some(value))],
        ..manual(name, &[&[1, 2]])
    };
    cluster.create_topics(vec![topic("on", "true"), topic("off", "false")]);
    cluster.silence(&[2]);
    cluster.boot(2);
    cluster.silence(&[1]);
    assert_eq!(cluster.brief("on").0, 2);
    assert_eq!(cluster.brief("off").0, -1);
}

#[test]
fn fenced_broker_that_wants_to_stop_may_stop() {
    let mut cluster = Cluster::new(false);
    let epoch = cluster.register(1).broker_epoch;
    assert!(cluster.heartbeat(1, epoch, true, true).should_shut_down);
}

#[test]
fn broker_that_leads_nothing_leaves_at_once() {
    let mut cluster = Cluster::with(false, 3, &[("t", &[1, 2, 3])]);
    let reply = cluster.heartbeat(3, cluster.next_offset - 1, false, true);
    assert!(reply.should_shut_down && reply.is_fenced);
    assert_eq!(cluster.brief("t"), (1, 0, 1, vec![1, 2]));
}

#[test]
fn controlled_shutdown_moves_leaders_and_waits_until_the_others_know() {
    let mut cluster = Cluster::with(false, 3, &[("t", &[1, 2, 3])]);
    let reply = cluster.heartbeat(1, cluster.next_offset - 1, false, true);
    assert!(!reply.should_shut_down && !reply.is_fenced);
    assert_eq!(cluster.brief("t"), (2, 1, 1, vec![2, 3]));
    let moved = cluster.next_offset - 1;
    cluster.heartbeat(2, moved, false, false);
    cluster.heartbeat(3, moved - 1, false, false);
    assert!(!cluster.heartbeat(1, moved, false, true).should_shut_down, "broker 3 has not heard of it");
    cluster.heartbeat(3, moved, false, false);
    let reply = cluster.heartbeat(1, moved, false, true);
    assert!(reply.should_shut_down && reply.is_fenced);
    assert!(cluster.broker(1).expect("registered").fenced);
}

#[test]
fn last_in_sync_replica_may_leave_and_the_partition_is_offline() {
    let mut cluster = Cluster::with(false, 1, &[("t", &[1])]);
    assert!(!cluster.heartbeat(1, cluster.next_offset - 1, false, true).should_shut_down);
    assert_eq!(cluster.brief("t"), (-1, 1, 1, vec![1]));
    assert!(cluster.heartbeat(1, cluster.next_offset - 1, false, true).should_shut_down);
    cluster.silence(&[1]);
    cluster.boot(1);
    assert_eq!(cluster.brief("t"), (1, 2, 2, vec![1]));
}

// ---- AlterPartition

#[test]
fn isr_change_raises_the_partition_epoch_alone() {
    let mut cluster = Cluster::with(false, 3, &[("t", &[1, 2, 3])]);
    let response = cluster.alter(cluster.wish("t", &[1, 2]));
    let answer = &response.topics[0].partitions[0];
    assert_eq!((answer.error_code, answer.leader_id, answer.leader_epoch), (error_code::NONE, 1, 0));
    assert_eq!((answer.partition_epoch, answer.isr.clone()), (1, vec![1, 2]));
    assert_eq!(cluster.brief("t"), (1, 0, 1, vec![1, 2]));
}

#[test]
fn unchanged_isr_is_answered_without_a_record() {
    let mut cluster = Cluster::with(false, 3, &[("t", &[1, 2, 3])]);
    let records = cluster.log.len();
    assert_eq!(cluster.alter_code(cluster.wish("t", &[1, 2, 3])), error_code::NONE);
    assert_eq!(cluster.log.len(), records);
}

#[test]
fn alter_partition_is_checked_in_order() {
    let mut cluster = Cluster::with(false, 3, &[("t", &[1, 2, 3])]);
    cluster.silence(&[3]);
    cluster.alter(cluster.wish("t", &[1, 2]));
    cluster.boot(3);
    // Leader 2 in leader epoch 1, partition epoch 3, so that every kind of staleness can be had.
    cluster.silence(&[1]);
    cluster.boot(1);
    let (leader, leader_epoch, partition_epoch, _) = cluster.brief("t");
    assert_eq!((leader, leader_epoch, partition_epoch), (2, 1, 2));

    // Everything is wrong at once; repairing one after the other shows the order.
    let mut request = cluster.wish("t", &[3, 3]);
    request.broker_epoch = -1;
    request.topics[0].topic_id = Uuid([1; 16]);
    request.topics[0].partitions[0].partition_index = 7;
    request.topics[0].partitions[0].leader_epoch = 0;
    request.topics[0].partitions[0].partition_epoch = 3;
    assert_eq!(cluster.alter(request.clone()).error_code, error_code::STALE_BROKER_EPOCH);
    request.broker_id = 3;
    request.broker_epoch = cluster.epoch(3);
    assert_eq!(cluster.alter_code(request.clone()), error_code::UNKNOWN_TOPIC_ID);
    request.topics[0].topic_id = cluster.id("t");
    assert_eq!(cluster.alter_code(request.clone()), error_code::UNKNOWN_TOPIC_OR_PARTITION);
    request.topics[0].partitions[0].partition_index = 0;
    assert_eq!(cluster.alter_code(request.clone()), error_code::NOT_CONTROLLER);
    request.topics[0].partitions[0].partition_epoch = 1;
    assert_eq!(cluster.alter_code(request.clone()), error_code::FENCED_LEADER_EPOCH);
    request.topics[0].partitions[0].leader_epoch = 2;
    assert_eq!(cluster.alter_code(request.clone()), error_code::NOT_CONTROLLER);
    request.topics[0].partitions[0].leader_epoch = 1;
    assert_eq!(cluster.alter_code(request.clone()), error_code::INVALID_REQUEST, "the caller does not lead");
    request.broker_id = 2;
    request.broker_epoch = cluster.epoch(2);
    assert_eq!(cluster.alter_code(request.clone()), error_code::INVALID_UPDATE_VERSION);
    request.topics[0].partitions[0].partition_epoch = 2;
    assert_eq!(cluster.alter_code(request.clone()), error_code::INVALID_REQUEST, "the leader is missing");
    request.topics[0].partitions[0] = cluster.wish("t", &[2, 4]).topics[0].partitions[0].clone();
    assert_eq!(cluster.alter_code(request.clone()), error_code::INVALID_REQUEST, "4 is no replica");
    request.topics[0].partitions[0] = cluster.wish("t", &[2, 3]).topics[0].partitions[0].clone();
    request.topics[0].partitions[0].new_isr_with_epochs[1].broker_epoch -= 1;
    request.topics[0].partitions[0].leader_recovery_state = 1;
    assert_eq!(cluster.alter_code(request.clone()), error_code::INVALID_REQUEST, "recovering, two members");
    request.topics[0].partitions[0].leader_recovery_state = 0;
    assert_eq!(cluster.alter_code(request.clone()), error_code::INELIGIBLE_REPLICA, "an old incarnation");
    request.topics[0].partitions[0].new_isr_with_epochs[1].broker_epoch = -1;
    assert_eq!(cluster.alter_code(request), error_code::NONE, "an unknown epoch is not checked");
    let refusals = cluster.observations.iter();
    let refused = refusals.filter(|seen| matches!(seen, Observation::AlterPartitionRefused { .. })).count();
    assert_eq!(refused, 11);
}

#[test]
fn fenced_and_stopping_replicas_do_not_join() {
    let mut cluster = Cluster::with(false, 3, &[("t", &[1, 2, 3])]);
    cluster.silence(&[3]);
    assert_eq!(cluster.alter_code(cluster.wish("t", &[1, 2, 3])), error_code::INELIGIBLE_REPLICA);
    cluster.create("u", &[2]);
    cluster.heartbeat(2, cluster.next_offset - 1, false, true);
    assert!(cluster.broker(2).expect("registered").in_controlled_shutdown);
    assert_eq!(cluster.alter_code(cluster.wish("t", &[1, 2])), error_code::INELIGIBLE_REPLICA);
}

#[test]
fn recovered_leader_says_so_and_cannot_go_back() {
    let mut cluster = Cluster::with(true, 2, &[("t", &[1, 2])]);
    cluster.silence(&[2]);
    cluster.boot(2);
    cluster.silence(&[1]);
    assert!(cluster.state("t").recovering);
    assert_eq!(cluster.alter_code(cluster.wish("t", &[2])), error_code::NONE);
    assert!(!cluster.state("t").recovering);
    let mut back = cluster.wish("t", &[2]);
    back.topics[0].partitions[0].leader_recovery_state = 1;
    assert_eq!(cluster.alter_code(back), error_code::INVALID_REQUEST);
}

#[test]
fn second_change_of_one_request_sees_the_first() {
    let mut cluster = Cluster::with(false, 3, &[("t", &[1, 2, 3])]);
    let mut request = cluster.wish("t", &[1, 2]);
    let again = request.topics[0].partitions[0].clone();
    request.topics[0].partitions.push(again);
    let response = cluster.alter(request);
    let codes: Vec<i16> = response.topics[0].partitions.iter().map(|answer| answer.error_code).collect();
    assert_eq!(codes, [error_code::NONE, error_code::INVALID_UPDATE_VERSION]);
}

// ---- elections on request

#[test]
fn preferred_election_moves_leadership_to_the_first_replica_in_sync() {
    let mut cluster = Cluster::with(false, 2, &[("t", &[1, 2])]);
    assert_eq!(cluster.elect_code(0, "t"), error_code::ELECTION_NOT_NEEDED);
    cluster.silence(&[1]);
    assert_eq!(cluster.elect_code(0, "t"), error_code::PREFERRED_LEADER_NOT_AVAILABLE);
    cluster.boot(1);
    assert_eq!(cluster.elect_code(0, "t"), error_code::PREFERRED_LEADER_NOT_AVAILABLE, "not in sync yet");
    assert_eq!(cluster.alter_code(cluster.wish("t", &[2, 1])), error_code::NONE);
    assert_eq!(cluster.elect_code(0, "t"), error_code::NONE);
    assert_eq!(cluster.brief("t"), (1, 2, 3, vec![2, 1]));
    assert_eq!(cluster.last_election(), Some(Election::Preferred));
}

#[test]
fn administrator_can_ask_for_an_unclean_election() {
    let mut cluster = Cluster::with(false, 2, &[("t", &[1, 2])]);
    assert_eq!(cluster.elect_code(1, "t"), error_code::ELECTION_NOT_NEEDED);
    cluster.silence(&[1, 2]);
    assert_eq!(cluster.elect_code(1, "t"), error_code::ELIGIBLE_LEADERS_NOT_AVAILABLE);
    cluster.boot(1);
    assert_eq!(cluster.brief("t").0, -1);
    assert_eq!(cluster.elect_code(1, "t"), error_code::NONE);
    assert_eq!(cluster.brief("t"), (1, 3, 3, vec![1]));
    assert_eq!(cluster.last_election(), Some(Election::Unclean { asked_by_administrator: true }));
}

#[test]
fn election_of_all_partitions_leaves_out_those_that_need_none() {
    let mut cluster = Cluster::with(false, 3, &[("t", &[1, 2]), ("u", &[3])]);
    cluster.silence(&[1]);
    let response = cluster.elect(0, None);
    let results: Vec<(String, usize)> = response
        .replica_election_results
        .iter()
        .map(|topic| (topic.topic.to_string(), topic.partition_result.len()))
        .collect();
    assert_eq!(results, [("t".to_string(), 1), ("u".to_string(), 0)]);
}

#[test]
fn unknown_elections_are_refused() {
    let mut cluster = Cluster::with(false, 1, &[("t", &[1])]);
    assert_eq!(cluster.elect(2, None).error_code, error_code::INVALID_REQUEST);
    assert_eq!(cluster.elect_code(0, "nowhere"), error_code::UNKNOWN_TOPIC_OR_PARTITION);
}

#[test]
fn leadership_goes_back_by_itself_when_the_interval_is_set() {
    let mut cluster = Cluster::with(false, 2, &[("t", &[1, 2])]);
    cluster.silence(&[1]);
    cluster.boot(1);
    cluster.alter(cluster.wish("t", &[2, 1]));
    let mut config = config(false);
    config.preferred_election_interval = Some(Time::from_secs(3));
    let (image, rng) = (cluster.controller.image().clone(), ChaCha8Rng::seed_from_u64(1));
    let mut out = Output::default();
    cluster.controller =
        Controller::activate(config, 2, image, cluster.next_offset, cluster.now, rng, &mut out);
    cluster.now += Time::from_secs(3);
    assert_eq!(cluster.controller.next_deadline(), Some(cluster.now));
    cluster.tick();
    assert_eq!(cluster.brief("t").0, 1);
    assert_eq!(cluster.last_election(), Some(Election::Preferred));
}

#[test]
fn unclean_pass_elects_what_became_electable_without_an_event() {
    // The setting changes with the controller: nothing but the periodic pass looks at the partition then.
    let mut cluster = Cluster::with(false, 2, &[("t", &[1, 2])]);
    cluster.silence(&[1, 2]);
    cluster.boot(1);
    assert_eq!(cluster.brief("t").0, -1);
    let (image, rng) = (cluster.controller.image().clone(), ChaCha8Rng::seed_from_u64(1));
    let mut out = Output::default();
    cluster.controller =
        Controller::activate(config(true), 2, image, cluster.next_offset, cluster.now, rng, &mut out);
    for _ in 0..100 {
        cluster.now += Time::from_secs(3);
        cluster.serve(1);
        cluster.tick();
    }
    assert_eq!(cluster.brief("t"), (1, 3, 3, vec![1]));
}

// ---- topics and producer ids

#[test]
fn topics_are_refused_one_by_one() {
    let mut cluster = Cluster::with(false, 2, &[("a.b", &[1])]);
    let configured = |value| CreatableTopic { configs: vec![value], ..automatic("config", 1, 1) };
    let cases = [
        (automatic("bad name!", 1, 1), error_code::INVALID_TOPIC_EXCEPTION),
        (automatic("a.b", 1, 1), error_code::TOPIC_ALREADY_EXISTS),
        (automatic("a_b", 1, 1), error_code::INVALID_TOPIC_EXCEPTION),
        (automatic("__cluster_metadata", 1, 1), error_code::TOPIC_AUTHORIZATION_FAILED),
        (automatic("none", 0, 1), error_code::INVALID_PARTITIONS),
        (automatic("none", 1, 0), error_code::INVALID_REPLICATION_FACTOR),
        (automatic("none", 1, 3), error_code::INVALID_REPLICATION_FACTOR),
        (configured(setting("min.insync.replicas", Some("0"))), error_code::INVALID_CONFIG),
        (configured(setting("no.such.setting", Some("0"))), error_code::INVALID_CONFIG),
        (configured(setting("min.insync.replicas", None)), error_code::INVALID_CONFIG),
        (manual("m", &[&[1], &[1, 2]]), error_code::INVALID_REPLICA_ASSIGNMENT),
        (manual("m", &[&[]]), error_code::INVALID_REPLICA_ASSIGNMENT),
        (manual("m", &[&[1, 1]]), error_code::INVALID_REPLICA_ASSIGNMENT),
        (manual("m", &[&[9]]), error_code::INVALID_REPLICA_ASSIGNMENT),
        (CreatableTopic { num_partitions: 1, ..manual("m", &[&[1]]) }, error_code::INVALID_REQUEST),
        (CreatableTopic { replication_factor: 1, ..manual("m", &[&[1]]) }, error_code::INVALID_REQUEST),
        (automatic("good", 2, 2), error_code::NONE),
    ];
    let records = cluster.log.len();
    for (topic, code) in cases {
        let response = cluster.create_topics(vec![topic.clone()]);
        assert_eq!(response.topics[0].error_code, code, "{topic:?}: {:?}", response.topics[0].error_message);
        assert_eq!(cluster.log.len() > records, code == error_code::NONE, "{topic:?}");
    }
}

#[test]
fn partitions_of_a_manual_assignment_are_numbered_without_gaps() {
    let mut cluster = Cluster::with(false, 1, &[]);
    let mut topic = manual("m", &[&[1], &[1]]);
    topic.assignments[1].partition_index = 2;
    let response = cluster.create_topics(vec![topic.clone()]);
    assert_eq!(response.topics[0].error_code, error_code::INVALID_REPLICA_ASSIGNMENT);
    topic.assignments[1].partition_index = 0;
    let response = cluster.create_topics(vec![topic]);
    assert_eq!(response.topics[0].error_code, error_code::INVALID_REPLICA_ASSIGNMENT);
}

#[test]
fn duplicate_names_are_refused_once_and_too_many_partitions_at_all() {
    let mut cluster = Cluster::with(false, 1, &[]);
    let response = cluster.create_topics(vec![automatic("t", 1, 1), automatic("t", 2, 1)]);
    assert_eq!(response.topics.len(), 1);
    assert_eq!(response.topics[0].error_code, error_code::INVALID_REQUEST);
    let response = cluster.create_topics(vec![automatic("t", i32::MAX, 1), automatic("u", i32::MAX, 1)]);
    assert!(response.topics.iter().all(|topic| topic.error_code == error_code::POLICY_VIOLATION));
}

#[test]
fn validate_only_creates_nothing() {
    let mut cluster = Cluster::with(false, 1, &[]);
    let records = cluster.log.len();
    let request = CreateTopicsRequest {
        topics: vec![automatic("t", 3, 1)],
        validate_only: true,
        ..CreateTopicsRequest::default()
    };
    let ResponseBody::CreateTopics(response) = cluster.ask(ControllerBody::CreateTopics(request)) else {
        panic!("not a creation");
    };
    assert_eq!((response.topics[0].error_code, response.topics[0].num_partitions), (error_code::NONE, 3));
    assert_eq!(cluster.log.len(), records);
}

#[test]
fn stopped_brokers_hold_replicas_but_are_not_in_sync() {
    let mut cluster = Cluster::with(false, 3, &[]);
    cluster.silence(&[2]);
    let response = cluster.create_topics(vec![automatic("t", 4, 3)]);
    assert_eq!(response.topics[0].error_code, error_code::NONE, "{:?}", response.topics[0].error_message);
    for partition in cluster.controller.image().partitions() {
        assert_eq!(partition.state.replicas.len(), 3);
        assert_eq!(partition.state.isr.len(), 2);
        assert!(!partition.state.isr.contains(&NodeId(2)));
        assert_eq!(partition.state.leader, partition.state.replicas.first().copied());
    }
}

#[test]
fn settings_of_a_topic_are_kept_and_beat_the_nodes_own() {
    let mut cluster = Cluster::with(false, 2, &[]);
    let topic = CreatableTopic {
        configs: vec![setting("min.insync.replicas", Some("2")), setting("flush.messages", Some("1"))],
        ..automatic("t", 1, 2)
    };
    cluster.create_topics(vec![topic]);
    let (image, name) = (cluster.controller.image(), Str::from("t"));
    assert_eq!(image.min_insync_replicas(&name, 2, 1), 2);
    assert_eq!(image.min_insync_replicas(&name, 1, 1), 1, "never more than there are replicas");
    assert_eq!(image.min_insync_replicas(&Str::from("other"), 3, 3), 3);
    let node = crate::settings::Settings::default_for(crate::settings::Scope::Broker);
    let settings = image.topic_settings(&name, &node);
    assert_eq!((settings.flush_messages, settings.min_insync_replicas), (1, 2));
}

#[test]
fn producer_id_blocks_never_overlap() {
    let mut cluster = Cluster::with(false, 1, &[]);
    let mut allocate = |broker_epoch| {
        let request = AllocateProducerIdsRequest {
            broker_id: 1,
            broker_epoch,
            ..AllocateProducerIdsRequest::default()
        };
        match cluster.ask(ControllerBody::AllocateProducerIds(request)) {
            ResponseBody::AllocateProducerIds(response) => response,
            other => panic!("{other:?}"),
        }
    };
    let block =
        |response: AllocateProducerIdsResponse| (response.producer_id_start, response.producer_id_len);
    assert_eq!(allocate(0).error_code, error_code::STALE_BROKER_EPOCH);
    assert_eq!(block(allocate(2)), (0, 1000));
    assert_eq!(block(allocate(2)), (1000, 1000));
}

// ---- committed records and their statements

#[test]
fn committed_records_state_what_they_changed() {
    let mut cluster = Cluster::with(false, 2, &[("t", &[1, 2])]);
    cluster.silence(&[1]);
    let (mut image, mut seen) = (MetadataImage::default(), Vec::new());
    for (offset, record) in &cluster.log {
        image.replay_committed(*offset, record, &mut seen).expect("the log holds together");
    }
    let count = |select: fn(&Observation) -> bool| seen.iter().filter(|one| select(one)).count();
    assert_eq!(count(|one| matches!(one, Observation::BrokerRegistered { clean_shutdown: true, .. })), 2);
    assert_eq!(count(|one| matches!(one, Observation::BrokerUnfenced { .. })), 2);
    assert_eq!(count(|one| matches!(one, Observation::TopicCreated { name, .. } if name == "t")), 1);
    assert_eq!(count(|one| matches!(one, Observation::BrokerFenced { broker: NodeId(1) })), 1);
    let last = seen.iter().rev().find_map(|one| match one {
        Observation::PartitionCommitted { state, .. } => Some(state.clone()),
        _ => None,
    });
    assert_eq!(last, Some(cluster.state("t")));
}

#[test]
fn changes_are_told_once() {
    let mut cluster = Cluster::with(false, 2, &[("t", &[1, 2])]);
    let mut image = cluster.controller.image().clone();
    let changes = image.take_changes();
    assert_eq!(changes.brokers, [NodeId(1), NodeId(2)].into());
    assert_eq!(changes.partitions, [cluster.state("t").partition].into());
    assert!(image.take_changes().is_empty());
    let start = cluster.log.len();
    cluster.alter(cluster.wish("t", &[1]));
    for (offset, record) in &cluster.log[start..] {
        image.replay(*offset, record).expect("the log holds together");
    }
    let changes = image.take_changes();
    assert!(changes.brokers.is_empty());
    assert_eq!(changes.partitions, [cluster.state("t").partition].into());
}

#[test]
fn records_that_contradict_the_log_are_refused_and_change_nothing() {
    let cluster = Cluster::with(false, 1, &[("t", &[1])]);
    let mut image = cluster.controller.image().clone();
    let before = image.clone();
    let (offset, topic) = (cluster.next_offset, cluster.id("t"));
    let stale = acked_wire::BrokerRegistrationChangeRecord { broker_id: 1, fenced: 1, ..Default::default() };
    let unknown =
        acked_wire::PartitionChangeRecord { partition_id: 9, topic_id: topic, ..Default::default() };
    let twice =
        acked_wire::TopicRecord { name: Str::from("t"), topic_id: Uuid([3; 16]), ..Default::default() };
    let moving = acked_wire::PartitionRecord {
        partition_id: 0,
        topic_id: topic,
        adding_replicas: vec![2],
        ..Default::default()
    };
    for record in [stale.into(), unknown.into(), twice.into(), moving.into()] {
        let record: MetadataRecord = record;
        assert!(image.replay(offset, &record).is_err(), "{record:?}");
        assert_eq!(image, before);
    }
    let late = MetadataRecord::NoOp(acked_wire::NoOpRecord::default());
    assert!(matches!(image.replay(offset - 1, &late), Err(ImageError::OutOfOrder { .. })));
}

#[test]
fn refusal_answers_every_topic() {
    let request =
        CreateTopicsRequest { topics: vec![automatic("t", 1, 1)], ..CreateTopicsRequest::default() };
    let body = ControllerBody::CreateTopics(request).refusal(error_code::NOT_CONTROLLER);
    let ResponseBody::CreateTopics(response) = body else { panic!("another answer") };
    assert_eq!(response.topics[0].error_code, error_code::NOT_CONTROLLER);
}

// ---- a random walk

#[derive(Clone, Debug)]
enum Step {
    /// A new process of the broker registers; refused while the old one's session lives.
    Start(i32),
    Serve(i32),
    /// A heartbeat of a broker whose metadata is behind.
    Behind(i32),
    WantFence(i32),
    Stop(i32),
    /// The leader of a topic asks for these of its replicas, with right or wrong epochs.
    Alter {
        topic: usize,
        members: u8,
        leader_epoch: i32,
        partition_epoch: i32,
        old_member: bool,
    },
    Elect {
        kind: i8,
    },
    Wait {
        milliseconds: u64,
    },
    FailOver,
}

fn step() -> impl Strategy<Value = Step> {
    let broker = 1..=4i32;
    prop_oneof![
        2 => broker.clone().prop_map(Step::Start),
        6 => broker.clone().prop_map(Step::Serve),
        1 => broker.clone().prop_map(Step::Behind),
        1 => broker.clone().prop_map(Step::WantFence),
        1 => broker.prop_map(Step::Stop),
        6 => (0..3usize, 0..16u8, -1..=1i32, -1..=1i32, prop::bool::weighted(0.1)).prop_map(
            |(topic, members, leader_epoch, partition_epoch, old_member)| Step::Alter {
                topic,
                members,
                // Right more often than wrong.
                leader_epoch: if members % 3 == 0 { leader_epoch } else { 0 },
                partition_epoch: if members % 3 == 1 { partition_epoch } else { 0 },
                old_member,
            }
        ),
        1 => (0..2i8).prop_map(|kind| Step::Elect { kind }),
        4 => (1..6000u64).prop_map(|milliseconds| Step::Wait { milliseconds }),
        1 => Just(Step::FailOver),
    ]
}

const TOPICS: [(&str, &[i32], &str); 3] =
    [("careful", &[1, 2, 3], "false"), ("careless", &[3, 4, 1], "true"), ("single", &[2], "true")];

fn walk(cluster: &mut Cluster, step: &Step) {
    match step {
        Step::Start(id) => {
            cluster.register(*id);
        }
        Step::Serve(id) => {
            cluster.serve(*id);
        }
        Step::Behind(id) => {
            cluster.heartbeat(*id, 0, false, false);
        }
        Step::WantFence(id) => {
            cluster.heartbeat(*id, cluster.next_offset - 1, true, false);
        }
        Step::Stop(id) => {
            cluster.heartbeat(*id, cluster.next_offset - 1, false, true);
        }
        Step::Alter { topic, members, leader_epoch, partition_epoch, old_member } => {
            let (name, replicas, _) = TOPICS[*topic];
            let members: Vec<i32> =
                replicas.iter().copied().filter(|id| members & (1 << (id - 1)) != 0).collect();
            let mut request = cluster.wish(name, &members);
            let wish = &mut request.topics[0].partitions[0];
            wish.leader_epoch += leader_epoch;
            wish.partition_epoch += partition_epoch;
            if let Some(member) = wish.new_isr_with_epochs.last_mut().filter(|_| *old_member) {
                member.broker_epoch -= 1;
            }
            cluster.alter(request);
        }
        Step::Elect { kind } => {
            cluster.elect(*kind, None);
        }
        Step::Wait { milliseconds } => {
            cluster.now += Time::from_millis(*milliseconds);
            if cluster.controller.next_deadline().is_some_and(|deadline| deadline <= cluster.now) {
                cluster.tick();
            }
        }
        Step::FailOver => cluster.fail_over(),
    }
}

/// What must hold of every image (invariants S15 and M2 with ELR off).
fn check_image(image: &MetadataImage) {
    for partition in image.partitions() {
        let state = &partition.state;
        assert!(!state.isr.is_empty() && state.elr.is_empty(), "{state:?}");
        assert!(state.isr.iter().all(|member| state.replicas.contains(member)), "{state:?}");
        assert!(state.leader.is_none_or(|leader| state.isr.contains(&leader)), "{state:?}");
        assert!(state.leader.is_none_or(|leader| image.is_active(leader)), "{state:?}");
        let retained = state.isr.len() == 1 && state.leader.is_none();
        assert!(retained || state.isr.iter().all(|member| image.is_active(*member)), "{state:?}");
    }
}

/// What must hold between one image and a later one (M1, S13).
fn check_step(before: &MetadataImage, after: &MetadataImage) {
    for partition in before.partitions() {
        let old = &partition.state;
        let new = &after.partition(old.partition).expect("no topic is removed").state;
        assert!(new.leader_epoch >= old.leader_epoch, "{old:?} {new:?}");
        assert!(old.leader == new.leader || new.leader_epoch > old.leader_epoch, "{old:?} {new:?}");
        assert!(old == new || new.partition_epoch > old.partition_epoch, "{old:?} {new:?}");
    }
    for broker in before.brokers() {
        let new = after.broker(broker.id).expect("no broker is unregistered");
        assert!(new.epoch >= broker.epoch);
        assert_eq!(new.epoch == broker.epoch, new.incarnation == broker.incarnation);
    }
}

/// S22: nobody out of sync leads unless that is allowed and no in-sync replica could.
fn check_elections(seen: &[Observation]) {
    let mut before: BTreeMap<TopicPartition, PartitionState> = BTreeMap::new();
    for observation in seen {
        let Observation::PartitionDecided { state, election, acceptable, unclean_allowed, .. } = observation
        else {
            continue;
        };
        let old = before.insert(state.partition, state.clone());
        let Some(old) = old else {
            assert_eq!(*election, Some(Election::Created));
            continue;
        };
        let in_sync_acceptable = old.isr.iter().any(|member| acceptable.contains(member));
        match election {
            None => assert_eq!(state.leader, old.leader),
            Some(Election::Unclean { asked_by_administrator }) => {
                assert!(*unclean_allowed || *asked_by_administrator, "{old:?} {state:?}");
                assert!(!in_sync_acceptable, "{old:?} {state:?}");
                assert!(state.recovering && state.isr.len() == 1, "{state:?}");
            }
            Some(Election::Leaderless) => {
                assert_eq!(state.leader, None);
                assert!(!in_sync_acceptable, "{old:?} {state:?}");
            }
            Some(Election::Clean | Election::Preferred) => {
                let leader = state.leader.expect("an election that found somebody");
                assert!(old.isr.contains(&leader) && acceptable.contains(&leader), "{old:?} {state:?}");
            }
            Some(other) => panic!("{other:?} with ELR off"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn random_walks_keep_the_invariants(steps in prop::collection::vec(step(), 1..80)) {
        let mut cluster = Cluster::with(false, 4, &[]);
        for (name, replicas, unclean) in TOPICS {
            let configs = vec![setting("unclean.leader.election.enable", Some(unclean))];
            cluster.create_topics(vec![CreatableTopic { configs, ..manual(name, &[replicas]) }]);
        }
        for step in &steps {
            let before = cluster.controller.image().clone();
            walk(&mut cluster, step);
            check_image(cluster.controller.image());
            check_step(&before, cluster.controller.image());
        }
        check_elections(&cluster.observations);
        let mut replayed = MetadataImage::default();
        for (offset, record) in &cluster.log {
            let encoded = record.encode().expect("records encode");
            prop_assert_eq!(&MetadataRecord::decode(&encoded).expect("records decode"), record);
            replayed.replay(*offset, record).expect("the log holds together");
        }
        let mut image = cluster.controller.image().clone();
        let _ = (image.take_changes(), replayed.take_changes());
        prop_assert_eq!(replayed, image);
    }
}
