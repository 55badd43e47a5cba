//! Becoming leader, follower positions and the high watermark (kafka-rules 1.1, 1.4, 2).

use acked_wire::error_code;

use super::node::*;
use crate::observation::Observation;
use crate::replica::{ReplicaEffect, ReplicaInput};
use crate::types::NodeId;

#[test]
fn new_leader_saves_its_epoch_before_anything_else() {
    let mut node = Node::new(B1);
    node.learn(state(Some(B1), 3, 1, &[B1, B2, B3]));
    node.produce(1, record(1));
    assert!(matches!(node.disk[0], ReplicaEffect::CreateLog { .. }));
    assert!(matches!(&node.disk[1], ReplicaEffect::SaveEpochs { epochs, .. } if *epochs == [(3, 0)]));
    assert!(matches!(node.disk[2], ReplicaEffect::Append { .. }));
}

#[test]
fn assignments_wait_for_the_registration_of_this_incarnation() {
    let mut node = Node::new(B1);
    let mut early = update(B1, state(Some(B1), 3, 1, &[B1, B2, B3]));
    early.broker_epoch = None;
    node.input(ReplicaInput::Metadata(early));
    assert!(node.observations.is_empty() && node.disk.is_empty(), "a role out of another incarnation's time");
    let mut registered = update(B1, state(Some(B2), 4, 2, &[B2, B3]));
    registered.partitions.clear();
    node.input(ReplicaInput::Metadata(registered));
    assert!(node.has_observed(|fact| matches!(fact, Observation::BecameLeader { leader_epoch: 3, .. })));
}

#[test]
fn high_watermark_is_the_smallest_end_of_the_maximal_isr() {
    let mut node = Node::new(B1);
    node.lead(1);
    node.produce(-1, records(&[1, 2]));
    node.run_disk();
    node.fetched_by(B2, 1, 2, 1);
    assert_eq!(node.high_watermark(), 0, "B3 is in sync and nobody knows where it is");
    node.fetched_by(B3, 1, 0, -1);
    assert_eq!(node.high_watermark(), 0);
    node.fetched_by(B3, 1, 2, 1);
    assert_eq!(node.high_watermark(), 2);
}

#[test]
fn high_watermark_waits_for_the_leaders_own_write() {
    let mut node = Node::new(B1);
    node.lead(1);
    node.caught_up(1, 0);
    node.produce(-1, record(1));
    node.fetched_by(B2, 1, 1, 1);
    node.fetched_by(B3, 1, 1, 1);
    assert_eq!(node.high_watermark(), 0, "the append is only queued");
    node.run_disk();
    assert_eq!(node.high_watermark(), 1);
}

#[test]
fn high_watermark_stays_below_min_isr() {
    let mut node = Node::new(B1);
    node.learn(state(Some(B1), 1, 1, &[B1]));
    node.run_disk();
    let request = node.produce(1, record(1));
    node.run_disk();
    assert_eq!(node.code(request), Some(error_code::NONE), "acks=1 does not ask for it");
    assert_eq!(node.high_watermark(), 0);
}

#[test]
fn leader_alone_in_the_isr_commits_by_its_own_write() {
    let mut node = Node::new(B1);
    let mut alone = update(B1, state(Some(B1), 1, 1, &[B1]));
    alone.partitions[0].settings = settings(1);
    node.input(ReplicaInput::Metadata(alone));
    node.run_disk();
    let request = node.produce(-1, record(1));
    assert_eq!(node.code(request), None);
    node.run_disk();
    assert_eq!((node.code(request), node.high_watermark()), (Some(error_code::NONE), 1));
}

#[test]
fn min_isr_is_never_more_than_there_are_replicas() {
    let mut node = Node::new(B1);
    let mut alone = update(B1, state(Some(B1), 1, 1, &[B1]));
    alone.partitions[0].state.replicas = vec![B1];
    node.input(ReplicaInput::Metadata(alone));
    node.run_disk();
    let request = node.produce(-1, record(1));
    node.run_disk();
    assert_eq!(node.code(request), Some(error_code::NONE));
}

#[test]
fn leader_forgets_positions_on_every_new_epoch() {
    let mut node = Node::new(B1);
    node.lead(1);
    node.produce(1, record(1));
    node.run_disk();
    node.fetched_by(B2, 1, 1, 1);
    node.fetched_by(B3, 1, 0, -1);
    node.lead(3);
    node.fetched_by(B3, 3, 1, 1);
    assert_eq!(node.high_watermark(), 0, "B2 has not fetched in epoch 3");
    node.fetched_by(B2, 3, 1, 1);
    assert_eq!(node.high_watermark(), 1);
}

#[test]
fn high_watermark_advance_states_both_sets() {
    let mut node = Node::new(B1);
    node.lead(1);
    node.produce(-1, record(1));
    node.run_disk();
    node.caught_up(1, 1);
    let isr = vec![B1, B2, B3];
    let expected = Observation::HighWatermarkAdvanced {
        partition: T0,
        leader_epoch: 1,
        from: 0,
        to: 1,
        isr: isr.clone(),
        maximal_isr: isr,
        min_insync: 2,
    };
    assert!(node.has_observed(|fact| *fact == expected));
}

#[test]
fn metadata_of_an_older_partition_epoch_is_ignored() {
    let mut node = Node::new(B1);
    node.learn(state(Some(B1), 1, 5, &[B1, B2]));
    node.learn(state(Some(B1), 1, 4, &[B1, B2, B3]));
    node.run_disk();
    node.produce(-1, record(1));
    node.run_disk();
    node.fetched_by(B2, 1, 1, 1);
    assert_eq!(node.high_watermark(), 1, "B3 is out since partition epoch 5");
}

#[test]
fn high_watermarks_are_checkpointed_when_they_moved() {
    let mut node = Node::new(B1);
    node.lead(1);
    node.produce(-1, record(1));
    node.run_disk();
    node.caught_up(1, 1);
    node.advance(std::time::Duration::from_secs(6));
    assert_eq!(node.marks.get(&T0), Some(&1));
    node.marks.clear();
    node.advance(std::time::Duration::from_secs(6));
    assert!(node.marks.is_empty(), "nothing moved");
}

#[test]
fn failed_write_takes_the_replica_offline_for_good() {
    let mut node = Node::new(B1);
    node.lead(1);
    node.caught_up(1, 0);
    let request = node.produce(-1, record(1));
    let Some(ReplicaEffect::Append { partition, write, .. }) = node.disk.pop_front() else {
        panic!("an append is queued")
    };
    node.input(ReplicaInput::WriteFailed { partition, write });
    assert_eq!(node.code(request), Some(error_code::KAFKA_STORAGE_ERROR));
    assert!(node.has_observed(|fact| matches!(fact, Observation::LogOffline { .. })));
    node.lead(2);
    let request = node.produce(-1, record(1));
    assert_eq!(node.code(request), Some(error_code::KAFKA_STORAGE_ERROR));
    let request = node.fetched_by(B2, 2, 0, -1);
    assert_eq!(node.served(request).expect("at once").error_code, error_code::KAFKA_STORAGE_ERROR);
    assert!(node.disk.is_empty());
}

#[test]
fn flush_messages_syncs_every_so_many_records() {
    let mut node = Node::new(B1);
    let mut often = update(B1, state(Some(B1), 1, 1, &[B1, B2, B3]));
    often.partitions[0].settings.flush_messages = 2;
    node.input(ReplicaInput::Metadata(often));
    node.run_disk();
    for value in 0..4 {
        node.produce(1, record(value));
    }
    let syncs = node.disk.iter().map(|effect| matches!(effect, ReplicaEffect::Append { sync: true, .. }));
    assert_eq!(syncs.collect::<Vec<_>>(), [false, true, false, true]);
}

#[test]
fn removed_partition_deletes_its_log_and_a_new_one_starts_empty() {
    let mut node = Node::new(B1);
    node.lead(1);
    let request = node.produce(-1, record(1));
    let mut removal = update(B1, state(Some(B1), 1, 1, &[B1]));
    removal.partitions.clear();
    removal.removed = vec![T0];
    node.input(ReplicaInput::Metadata(removal));
    assert_eq!(node.code(request), Some(error_code::NOT_LEADER_OR_FOLLOWER));
    node.lead(1);
    assert!(node.log().is_empty());
}

#[test]
fn replica_assigned_elsewhere_goes() {
    let mut node = Node::new(B1);
    node.follow(B2, 1);
    let mut elsewhere = update(B1, state(Some(B2), 2, 2, &[B2, B3]));
    elsewhere.partitions[0].state.replicas = vec![B2, B3, NodeId(4)];
    node.input(ReplicaInput::Metadata(elsewhere));
    node.run_disk();
    assert!(node.files.is_empty());
    let request = node.produce(1, record(1));
    assert_eq!(node.code(request), Some(error_code::NOT_LEADER_OR_FOLLOWER));
}
