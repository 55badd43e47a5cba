//! CreateTopics and blocks of producer ids as claims.

use acked_wire::api::create_topics::CreatableTopic;
use acked_wire::{
    AllocateProducerIdsRequest, AllocateProducerIdsResponse, CreateTopicsRequest, ResponseBody, Str,
    error_code,
};

use crate::controller::*;
use crate::types::NodeId;

use super::cluster::*;

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
