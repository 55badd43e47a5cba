//! AlterPartition as claims.

use acked_wire::{Uuid, error_code};

use crate::observation::Observation;

use super::cluster::*;

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
