//! Changes of the in-sync replicas (kafka-rules 3).

use std::time::Duration;

use acked_wire::api::alter_partition::response::{PartitionData, TopicData};
use acked_wire::{AlterPartitionRequest, AlterPartitionResponse, error_code};

use super::node::*;
use crate::observation::Observation;
use crate::replica::{ReplicaEffect, ReplicaInput};
use crate::types::{NodeId, PeerError};

fn proposed(node: &mut Node) -> Option<AlterPartitionRequest> {
    let is_it = |effect: &ReplicaEffect| matches!(effect, ReplicaEffect::SendAlterPartition { .. });
    let place = node.effects.iter().position(is_it)?;
    match node.effects.remove(place) {
        ReplicaEffect::SendAlterPartition { body } => Some(body),
        _ => None,
    }
}

fn members(request: &AlterPartitionRequest) -> Vec<(i32, i64)> {
    let isr = &request.topics[0].partitions[0].new_isr_with_epochs;
    isr.iter().map(|member| (member.broker_id, member.broker_epoch)).collect()
}

fn answer(node: &mut Node, error_code: i16, leader_epoch: i32, partition_epoch: i32, isr: &[NodeId]) {
    let partition = PartitionData {
        error_code,
        leader_id: node.id.0,
        leader_epoch,
        isr: isr.iter().map(|member| member.0).collect(),
        partition_epoch,
        ..PartitionData::default()
    };
    let topic = TopicData { topic_id: T0.topic, partitions: vec![partition], ..TopicData::default() };
    let result = Ok(AlterPartitionResponse { topics: vec![topic], ..AlterPartitionResponse::default() });
    node.input(ReplicaInput::AlterPartitionResponse { result });
}

/// Leads epoch 1 with one record that B2 holds and B3 does not, and proposes to take B3 out.
fn shrinking() -> (Node, AlterPartitionRequest) {
    let mut node = Node::new(B1);
    node.lead(1);
    node.caught_up(1, 0);
    node.produce(1, record(1));
    node.run_disk();
    for _ in 0..3 {
        node.advance(LAG / 2);
        node.fetched_by(B2, 1, 1, 1);
    }
    node.advance(LAG / 2);
    let request = proposed(&mut node).expect("B3 lags");
    (node, request)
}

/// Leads epoch 1 with {1, 2} and proposes to take B3 in.
fn expanding() -> (Node, AlterPartitionRequest) {
    let mut node = Node::new(B1);
    node.learn(state(Some(B1), 1, 1, &[B1, B2]));
    node.run_disk();
    node.fetched_by(B3, 1, 0, -1);
    let request = proposed(&mut node).expect("B3 caught up");
    (node, request)
}

#[test]
fn lagging_follower_is_proposed_to_leave() {
    let (node, request) = shrinking();
    assert_eq!((request.broker_id, request.broker_epoch), (1, broker_epoch(B1)));
    assert_eq!(members(&request), [(1, broker_epoch(B1)), (2, broker_epoch(B2))]);
    let partition = &request.topics[0].partitions[0];
    assert_eq!((partition.leader_epoch, partition.partition_epoch), (1, 1));
    assert!(
        node.has_observed(|fact| matches!(fact, Observation::IsrProposed { isr, .. } if *isr == [B1, B2]))
    );
}

#[test]
fn silent_follower_that_holds_everything_stays() {
    let mut node = Node::new(B1);
    node.lead(1);
    node.caught_up(1, 0);
    for _ in 0..10 {
        node.advance(LAG);
    }
    assert!(proposed(&mut node).is_none());
}

#[test]
fn follower_that_is_always_one_batch_behind_stays() {
    let mut node = Node::new(B1);
    node.lead(1);
    for offset in 0..20 {
        node.caught_up(1, offset);
        node.produce(1, record(1));
        node.run_disk();
        node.advance(LAG / 3);
    }
    assert!(proposed(&mut node).is_none());
}

#[test]
fn follower_that_falls_behind_ever_further_leaves() {
    let mut node = Node::new(B1);
    node.lead(1);
    for offset in 0..20 {
        for value in 0..3 {
            node.produce(1, record(value));
        }
        node.run_disk();
        node.caught_up(1, offset);
        node.advance(LAG / 3);
    }
    assert_eq!(proposed(&mut node).map(|request| members(&request).len()), Some(1));
}

#[test]
fn shrink_counts_only_when_committed() {
    let (mut node, _) = shrinking();
    assert_eq!(node.high_watermark(), 0, "B3 still counts");
    answer(&mut node, error_code::NONE, 1, 2, &[B1, B2]);
    assert_eq!(node.high_watermark(), 1);
    assert!(node.has_observed(|fact| matches!(
        fact,
        Observation::IsrAdopted { partition_epoch: 2, isr, .. } if *isr == [B1, B2]
    )));
}

#[test]
fn expansion_counts_as_soon_as_it_is_proposed() {
    let (mut node, request) = expanding();
    let expected = [(1, broker_epoch(B1)), (2, -1), (3, broker_epoch(B3))];
    assert_eq!(members(&request), expected, "B2 has not fetched in this epoch");
    node.produce(-1, record(1));
    node.run_disk();
    node.fetched_by(B2, 1, 1, 1);
    assert_eq!(node.high_watermark(), 0, "B3 may be in sync already");
    node.fetched_by(B3, 1, 1, 1);
    assert_eq!(node.high_watermark(), 1);
}

#[test]
fn one_change_is_in_flight() {
    let (mut node, _) = expanding();
    node.fetched_by(B3, 1, 0, -1);
    node.advance(LAG);
    node.advance(LAG);
    assert!(proposed(&mut node).is_none());
}

#[test]
fn follower_joins_only_from_the_start_of_the_leader_epoch_on() {
    let mut node = Node::new(B1);
    node.lead(1);
    node.produce(1, records(&[1, 2]));
    node.learn(state(Some(B1), 2, 2, &[B1, B2]));
    node.run_disk();
    node.fetched_by(B3, 2, 1, 1);
    assert!(proposed(&mut node).is_none(), "offset 1 may be committed and B3 lacks it");
    node.fetched_by(B3, 2, 2, 1);
    assert!(proposed(&mut node).is_some());
}

#[test]
fn fenced_leaving_or_returned_brokers_do_not_join() {
    let wrong: [fn(&mut crate::replica::BrokerView); 3] =
        [|view| view.fenced = true, |view| view.in_controlled_shutdown = true, |view| view.broker_epoch += 1];
    for change in wrong {
        let mut node = Node::new(B1);
        let mut update = update(B1, state(Some(B1), 1, 1, &[B1, B2]));
        change(update.brokers.get_mut(&B3).expect("it is registered"));
        node.input(ReplicaInput::Metadata(update));
        node.run_disk();
        node.fetched_by(B3, 1, 0, -1);
        assert!(proposed(&mut node).is_none());
    }
}

#[test]
fn ineligible_replica_takes_the_change_back() {
    for code in [error_code::INELIGIBLE_REPLICA, error_code::OPERATION_NOT_ATTEMPTED] {
        let (mut node, _) = expanding();
        node.produce(-1, record(1));
        node.run_disk();
        node.fetched_by(B2, 1, 1, 1);
        answer(&mut node, code, 1, 1, &[]);
        assert_eq!(node.high_watermark(), 1, "B3 counts no longer");
        node.fetched_by(B3, 1, 1, 1);
        assert!(proposed(&mut node).is_some(), "it may be proposed again");
    }
}

#[test]
fn outdated_change_stays_pending_until_metadata_comes() {
    for code in [
        error_code::FENCED_LEADER_EPOCH,
        error_code::INVALID_UPDATE_VERSION,
        error_code::INVALID_REQUEST,
        error_code::UNKNOWN_TOPIC_ID,
        error_code::UNKNOWN_TOPIC_OR_PARTITION,
        error_code::NEW_LEADER_ELECTED,
    ] {
        let (mut node, _) = expanding();
        node.produce(-1, record(1));
        node.run_disk();
        node.fetched_by(B2, 1, 1, 1);
        answer(&mut node, code, 1, 1, &[]);
        node.advance(Duration::from_secs(1));
        node.fetched_by(B3, 1, 0, -1);
        assert!(proposed(&mut node).is_none(), "it is not sent again");
        assert_eq!(node.high_watermark(), 0, "B3 goes on counting");
        node.learn(state(Some(B1), 1, 2, &[B1, B2]));
        assert_eq!(node.high_watermark(), 1);
    }
}

#[test]
fn other_failures_send_the_same_request_again() {
    let failures: [fn(&mut Node); 3] = [
        |node| answer(node, error_code::NOT_CONTROLLER, 1, 1, &[]),
        |node| node.input(ReplicaInput::AlterPartitionResponse { result: Err(PeerError::Disconnected) }),
        |node| {
            let error_code = error_code::STALE_BROKER_EPOCH;
            let result = Ok(AlterPartitionResponse { error_code, ..AlterPartitionResponse::default() });
            node.input(ReplicaInput::AlterPartitionResponse { result });
        },
    ];
    for fail in failures {
        let (mut node, first) = expanding();
        fail(&mut node);
        assert!(proposed(&mut node).is_none(), "after a pause");
        node.advance(Duration::from_millis(50));
        assert_eq!(proposed(&mut node), Some(first));
    }
}

#[test]
fn answer_of_an_ended_leader_epoch_changes_nothing() {
    let (mut node, _) = shrinking();
    node.lead(2);
    node.caught_up(2, 0);
    answer(&mut node, error_code::NONE, 1, 5, &[B1, B2]);
    node.fetched_by(B2, 2, 1, 1);
    assert_eq!(node.high_watermark(), 0, "B3 is in sync in epoch 2");
}

#[test]
fn equal_partition_epoch_does_not_end_a_pending_change() {
    let (mut node, _) = expanding();
    node.learn(state(Some(B1), 1, 1, &[B1, B2]));
    node.produce(-1, record(1));
    node.run_disk();
    node.fetched_by(B2, 1, 1, 1);
    assert_eq!(node.high_watermark(), 0, "the controller may have taken B3 in");
}
