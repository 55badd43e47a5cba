//! Reassignment, changed settings and deleted topics as claims.

use acked_wire::api::alter_partition_reassignments::{ReassignablePartition, ReassignableTopic};
use acked_wire::api::delete_topics::DeleteTopicState;
use acked_wire::api::incremental_alter_configs::{AlterConfigsResource, AlterableConfig};
use acked_wire::{
    AlterPartitionReassignmentsRequest, DeleteTopicsRequest, IncrementalAlterConfigsRequest,
    ListPartitionReassignmentsRequest, ResponseBody, Str, Uuid, error_code,
};

use super::cluster::*;
use crate::controller::ControllerBody;
use crate::observation::Election;
use crate::types::NodeId;

fn reassign(cluster: &mut Cluster, name: &str, replicas: Option<&[i32]>) -> i16 {
    let wish = ReassignablePartition {
        partition_index: 0,
        replicas: replicas.map(<[i32]>::to_vec),
        ..Default::default()
    };
    let topic = ReassignableTopic { name: Str::from(name), partitions: vec![wish], ..Default::default() };
    let request = AlterPartitionReassignmentsRequest { topics: vec![topic], ..Default::default() };
    match cluster.ask(ControllerBody::AlterPartitionReassignments(request)) {
        ResponseBody::AlterPartitionReassignments(response) => {
            assert_eq!(response.error_code, error_code::NONE);
            response.responses[0].partitions[0].error_code
        }
        other => panic!("not a reassignment: {other:?}"),
    }
}

/// Adding and removing replicas of the only reassignment under way.
fn ongoing(cluster: &mut Cluster) -> Option<(Vec<i32>, Vec<i32>)> {
    let request = ListPartitionReassignmentsRequest { topics: None, ..Default::default() };
    match cluster.ask(ControllerBody::ListPartitionReassignments(request)) {
        ResponseBody::ListPartitionReassignments(response) => {
            let mut all = response.topics.into_iter().flat_map(|topic| topic.partitions);
            all.next().map(|partition| (partition.adding_replicas, partition.removing_replicas))
        }
        other => panic!("not a list: {other:?}"),
    }
}

fn replicas(cluster: &Cluster, name: &str) -> Vec<i32> {
    cluster.state(name).replicas.iter().map(|node| node.0).collect()
}

#[test]
fn reassignment_grows_catches_up_and_completes() {
    let mut cluster = Cluster::with(false, 4, &[("t", &[1, 2, 3])]);
    assert_eq!(reassign(&mut cluster, "t", Some(&[4, 2, 3])), error_code::NONE);
    assert_eq!(replicas(&cluster, "t"), [4, 2, 3, 1]);
    assert_eq!(cluster.brief("t"), (1, 0, 1, vec![1, 2, 3]), "nothing moves before the new one is in sync");
    assert_eq!(ongoing(&mut cluster), Some((vec![4], vec![1])));
    // The leader goes with the change that it asked for, and is told so.
    assert_eq!(cluster.alter_code(cluster.wish("t", &[1, 2, 3, 4])), error_code::NEW_LEADER_ELECTED);
    assert_eq!(replicas(&cluster, "t"), [4, 2, 3]);
    assert_eq!(cluster.brief("t"), (4, 1, 2, vec![2, 3, 4]));
    assert_eq!(ongoing(&mut cluster), None);
}

#[test]
fn reassignment_survives_a_change_of_the_controller() {
    let mut cluster = Cluster::with(false, 4, &[("t", &[1, 2, 3])]);
    reassign(&mut cluster, "t", Some(&[1, 2, 4]));
    cluster.fail_over();
    assert_eq!(ongoing(&mut cluster), Some((vec![4], vec![3])));
    assert_eq!(cluster.alter_code(cluster.wish("t", &[1, 2, 3, 4])), error_code::NONE);
    // The leader stays, in a new epoch: the one that is gone must not count in it.
    assert_eq!(cluster.brief("t"), (1, 1, 2, vec![1, 2, 4]));
}

#[test]
fn cancelled_reassignment_leaves_what_was_there_before() {
    let mut cluster = Cluster::with(false, 4, &[("t", &[1, 2, 3])]);
    assert_eq!(reassign(&mut cluster, "t", None), error_code::NO_REASSIGNMENT_IN_PROGRESS);
    reassign(&mut cluster, "t", Some(&[4, 2]));
    assert_eq!(ongoing(&mut cluster), Some((vec![4], vec![1, 3])));
    assert_eq!(reassign(&mut cluster, "t", None), error_code::NONE);
    assert_eq!(ongoing(&mut cluster), None);
    let mut left = replicas(&cluster, "t");
    left.sort_unstable();
    assert_eq!(left, [1, 2, 3]);
    assert_eq!(cluster.brief("t").3, [1, 2, 3]);
}

#[test]
fn new_order_lets_a_preferred_election_move_the_leader_on_purpose() {
    let mut cluster = Cluster::with(false, 3, &[("t", &[1, 2, 3])]);
    assert_eq!(reassign(&mut cluster, "t", Some(&[2, 1, 3])), error_code::NONE);
    assert_eq!(cluster.brief("t"), (1, 0, 1, vec![1, 2, 3]));
    assert_eq!(cluster.elect_code(0, "t"), error_code::NONE);
    assert_eq!(cluster.brief("t"), (2, 1, 2, vec![1, 2, 3]));
    assert_eq!(cluster.last_election(), Some(Election::Preferred));
}

#[test]
fn reassignment_to_nonsense_is_refused() {
    let mut cluster = Cluster::with(false, 3, &[("t", &[1, 2, 3])]);
    for target in [&[][..], &[1, 1], &[1, 9]] {
        assert_eq!(reassign(&mut cluster, "t", Some(target)), error_code::INVALID_REPLICA_ASSIGNMENT);
    }
    assert_eq!(reassign(&mut cluster, "nothing", Some(&[1])), error_code::UNKNOWN_TOPIC_OR_PARTITION);
    assert_eq!(cluster.brief("t"), (1, 0, 0, vec![1, 2, 3]));
}

#[test]
fn broker_that_fails_during_a_reassignment_does_not_complete_it_without_a_remaining_replica() {
    let mut cluster = Cluster::with(false, 3, &[("t", &[1])]);
    reassign(&mut cluster, "t", Some(&[2, 3]));
    cluster.silence(&[2]);
    assert_eq!(cluster.alter_code(cluster.wish("t", &[1, 3])), error_code::NONE);
    assert!(ongoing(&mut cluster).is_some(), "both that were added must be in sync");
    cluster.boot(2);
    assert_eq!(cluster.alter_code(cluster.wish("t", &[1, 2, 3])), error_code::NEW_LEADER_ELECTED);
    assert_eq!(cluster.state("t").replicas, [2, 3].map(NodeId));
}

fn alter(cluster: &mut Cluster, kind: i8, of: &str, name: &str, operation: i8, value: Option<&str>) -> i16 {
    let config = AlterableConfig {
        name: Str::from(name),
        config_operation: operation,
        value: value.map(Str::from),
        ..Default::default()
    };
    let resource = AlterConfigsResource {
        resource_type: kind,
        resource_name: Str::from(of),
        configs: vec![config],
        ..Default::default()
    };
    let request = IncrementalAlterConfigsRequest { resources: vec![resource], ..Default::default() };
    match cluster.ask(ControllerBody::IncrementalAlterConfigs(request)) {
        ResponseBody::IncrementalAlterConfigs(response) => response.responses[0].error_code,
        other => panic!("not a change of settings: {other:?}"),
    }
}

fn min_insync(cluster: &Cluster) -> i32 {
    cluster.controller.image().min_insync_replicas(&Str::from("t"), 3, 1)
}

#[test]
fn setting_of_the_topic_stands_above_the_brokers_default() {
    let mut cluster = Cluster::with(false, 3, &[("t", &[1, 2, 3])]);
    assert_eq!(alter(&mut cluster, 4, "", "min.insync.replicas", 0, Some("3")), error_code::NONE);
    assert_eq!(min_insync(&cluster), 3);
    assert_eq!(alter(&mut cluster, 2, "t", "min.insync.replicas", 0, Some("2")), error_code::NONE);
    assert_eq!(min_insync(&cluster), 2);
    assert_eq!(alter(&mut cluster, 2, "t", "min.insync.replicas", 1, None), error_code::NONE);
    assert_eq!(min_insync(&cluster), 3);
}

#[test]
fn change_of_min_insync_replicas_fences_what_leaders_ask_with_the_old_value() {
    let mut cluster = Cluster::with(false, 3, &[("t", &[1, 2, 3])]);
    let stale = cluster.wish("t", &[1]);
    assert_eq!(alter(&mut cluster, 2, "t", "min.insync.replicas", 0, Some("2")), error_code::NONE);
    assert_eq!(cluster.brief("t"), (1, 0, 1, vec![1, 2, 3]));
    assert_eq!(cluster.alter_code(stale), error_code::INVALID_UPDATE_VERSION);
}

#[test]
fn bad_settings_are_refused_and_change_nothing() {
    let mut cluster = Cluster::with(false, 3, &[("t", &[1, 2, 3])]);
    let records = cluster.log.len();
    for (kind, of, name, operation, value, code) in [
        (2, "t", "min.insync.replicas", 0, Some("none"), error_code::INVALID_CONFIG),
        (2, "t", "no.such.setting", 0, Some("1"), error_code::INVALID_CONFIG),
        (2, "t", "min.insync.replicas", 0, None, error_code::INVALID_CONFIG),
        (2, "u", "min.insync.replicas", 0, Some("2"), error_code::UNKNOWN_TOPIC_OR_PARTITION),
        (4, "9", "min.insync.replicas", 0, Some("2"), error_code::BROKER_ID_NOT_REGISTERED),
        (4, "x", "min.insync.replicas", 0, Some("2"), error_code::INVALID_REQUEST),
        (3, "t", "min.insync.replicas", 0, Some("2"), error_code::INVALID_REQUEST),
        (2, "t", "min.insync.replicas", 7, Some("2"), error_code::INVALID_REQUEST),
    ] {
        assert_eq!(alter(&mut cluster, kind, of, name, operation, value), code, "{kind} {of} {name}");
    }
    assert_eq!(cluster.log.len(), records);
}

fn delete(cluster: &mut Cluster, names: &[&str], ids: &[Uuid]) -> Vec<i16> {
    let by_name = names.iter().map(|name| (Some(Str::from(*name)), Uuid::ZERO));
    let topics = by_name.chain(ids.iter().map(|id| (None, *id)));
    let topics = topics.map(|(name, topic_id)| DeleteTopicState { name, topic_id, ..Default::default() });
    let request = DeleteTopicsRequest { topics: topics.collect(), ..Default::default() };
    match cluster.ask(ControllerBody::DeleteTopics(request)) {
        ResponseBody::DeleteTopics(response) => {
            response.responses.iter().map(|topic| topic.error_code).collect()
        }
        other => panic!("not a deletion: {other:?}"),
    }
}

#[test]
fn topic_of_a_deleted_name_is_another_topic() {
    let mut cluster = Cluster::with(false, 3, &[("t", &[1, 2, 3]), ("u", &[1])]);
    let (old, other) = (cluster.id("t"), cluster.id("u"));
    let unknown = Uuid([9; 16]);
    let codes = delete(&mut cluster, &["t", "none"], &[other, unknown, old]);
    let expected = [
        error_code::NONE,
        error_code::UNKNOWN_TOPIC_OR_PARTITION,
        error_code::NONE,
        error_code::UNKNOWN_TOPIC_ID,
        error_code::INVALID_REQUEST,
    ];
    assert_eq!(codes, expected);
    assert!(cluster.controller.image().topics().next().is_none());
    cluster.create("t", &[1, 2, 3]);
    assert_ne!(cluster.id("t"), old);
}
