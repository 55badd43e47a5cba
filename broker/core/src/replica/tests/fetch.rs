//! Serving fetches (kafka-rules 1.3, 1.4; kafka-formats B.6).

use std::time::Duration;

use acked_wire::api::fetch::FetchPartition;
use acked_wire::{ResponseBody, Uuid, error_code};

use super::node::*;
use crate::observation::{Fetcher, Observation};
use crate::replica::{ReadFailed, ReplicaEffect, ReplicaInput};
use crate::types::NodeId;

/// Leads epoch 2 with offsets 0 and 1 of epoch 1 and offset 2 of epoch 2, all written.
fn leader() -> Node {
    let mut node = Node::new(B1);
    node.lead(1);
    node.produce(1, record(10));
    node.produce(1, record(11));
    node.lead(2);
    node.produce(1, record(12));
    node.run_disk();
    node.observations.clear();
    node
}

fn code(node: &mut Node, body: acked_wire::FetchRequest) -> i16 {
    let request = node.fetch(body);
    node.run_disk();
    node.served(request).expect("answered at once").error_code
}

#[test]
fn errors_come_in_kafkas_order() {
    let mut node = leader();
    let good = follower_fetch(B2, broker_epoch(B2), 2, 0, -1);
    assert_eq!(code(&mut node, good.clone()), error_code::NONE);

    let mut unknown = follower_fetch(NodeId(9), -1, 1, 99, 1);
    unknown.topics[0].topic_id = Uuid([9; 16]);
    assert_eq!(code(&mut node, unknown), error_code::UNKNOWN_TOPIC_ID);
    let older = follower_fetch(NodeId(9), -1, 1, 99, 1);
    assert_eq!(code(&mut node, older), error_code::FENCED_LEADER_EPOCH);
    let newer = follower_fetch(NodeId(9), -1, 3, 99, 1);
    assert_eq!(code(&mut node, newer), error_code::UNKNOWN_LEADER_EPOCH);
    let unassigned = follower_fetch(NodeId(9), -1, 2, 99, 1);
    assert_eq!(code(&mut node, unassigned), error_code::UNKNOWN_LEADER_EPOCH);
    let unassigned_without_epoch = follower_fetch(NodeId(9), -1, -1, 99, 1);
    assert_eq!(code(&mut node, unassigned_without_epoch), error_code::NOT_LEADER_OR_FOLLOWER);
    let stale_incarnation = follower_fetch(B2, broker_epoch(B2) - 1, 2, 0, -1);
    assert_eq!(code(&mut node, stale_incarnation), error_code::NOT_LEADER_OR_FOLLOWER);
    let epoch_above = follower_fetch(B2, broker_epoch(B2), 2, 0, 7);
    assert_eq!(code(&mut node, epoch_above), error_code::OFFSET_OUT_OF_RANGE);
    let offset_above = follower_fetch(B2, broker_epoch(B2), 2, 99, -1);
    let request = node.fetch(offset_above);
    let refused = node.served(request).expect("at once");
    assert_eq!(refused.error_code, error_code::OFFSET_OUT_OF_RANGE);
    assert_eq!((refused.high_watermark, refused.last_stable_offset, refused.log_start_offset), (-1, -1, -1));

    node.follow(B2, 3);
    let not_leading = follower_fetch(B3, broker_epoch(B3), 3, 0, -1);
    assert_eq!(code(&mut node, not_leading), error_code::NOT_LEADER_OR_FOLLOWER);
}

#[test]
fn diverging_follower_is_told_where_and_its_position_is_not_taken() {
    let mut node = leader();
    // B3 wrote offsets 2 and 3 in epoch 1, which ends at 2 here.
    let request = node.fetched_by(B3, 2, 4, 1);
    let answer = node.served(request).expect("at once");
    assert_eq!((answer.error_code, answer.records.as_deref()), (error_code::NONE, Some(&[][..])));
    assert_eq!((answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset), (1, 2));
    let served = Observation::FetchServed {
        partition: T0,
        leader_epoch: 2,
        fetcher: Fetcher::Follower(B3),
        fetch_offset: 4,
        end_offset: 4,
        high_watermark: 0,
        diverging: Some((1, 2)),
    };
    assert!(node.has_observed(|fact| *fact == served));
    node.fetched_by(B2, 2, 3, 2);
    assert_eq!(node.high_watermark(), 0, "where B3 is stays unknown");
}

#[test]
fn follower_is_given_what_is_written_and_consumers_what_is_committed() {
    let mut node = leader();
    let request = node.fetched_by(B2, 2, 1, 1);
    assert!(node.served(request).is_none(), "the bytes are being read");
    node.run_disk();
    let answer = node.served(request).expect("read");
    let records = contents(&answer.records.expect("there are records"));
    assert_eq!(records, [(1, (1, 11)), (2, (2, 12))].into());
    assert_eq!(answer.last_stable_offset, -1);

    let request = node.fetch(consumer_fetch(0));
    node.run_disk();
    assert!(node.served(request).is_none(), "nothing is committed");
    node.caught_up(2, 3);
    node.run_disk();
    let answer = node.served(request).expect("the high watermark woke it");
    assert_eq!(contents(&answer.records.expect("there are records")).len(), 3);
    assert_eq!((answer.high_watermark, answer.last_stable_offset), (3, 3));
}

#[test]
fn queued_append_is_not_served_before_it_is_written() {
    let mut node = leader();
    node.produce(1, record(13));
    let request = node.fetched_by(B2, 2, 3, 2);
    assert!(node.disk.iter().all(|effect| !matches!(effect, ReplicaEffect::Read { .. })));
    node.run_disk();
    let answer = node.served(request).expect("the write woke it");
    assert_eq!(contents(&answer.records.expect("there are records")), [(3, (2, 13))].into());
}

#[test]
fn fetch_waits_for_its_bytes_no_longer_than_it_said() {
    let mut node = leader();
    let mut body = follower_fetch(B2, broker_epoch(B2), 2, 2, 2);
    body.min_bytes = 1_000;
    let request = node.fetch(body);
    node.run_disk();
    assert!(node.served(request).is_none());
    node.advance(Duration::from_millis(499));
    node.run_disk();
    assert!(node.served(request).is_none());
    node.advance(Duration::from_millis(1));
    node.run_disk();
    let answer = node.served(request).expect("its time is up");
    assert_eq!(contents(&answer.records.expect("there are records")).len(), 1);
}

#[test]
fn first_batch_is_whole_above_every_limit() {
    let mut node = leader();
    let mut body = follower_fetch(B2, broker_epoch(B2), 2, 0, -1);
    body.max_bytes = 1;
    body.topics[0].partitions[0].partition_max_bytes = 1;
    let request = node.fetch(body);
    node.run_disk();
    let answer = node.served(request).expect("read");
    assert_eq!(contents(&answer.records.expect("there are records")).len(), 1);
}

#[test]
fn new_epoch_wakes_waiting_fetches_with_an_error() {
    let mut node = leader();
    let request = node.fetched_by(B2, 2, 3, 2);
    assert!(node.served(request).is_none());
    node.learn(state(Some(B2), 3, 3, &[B1, B2, B3]));
    let answer = node.served(request).expect("at once");
    assert_eq!(answer.error_code, error_code::FENCED_LEADER_EPOCH);
}

#[test]
fn bytes_read_under_an_ended_epoch_do_not_leave() {
    let mut node = leader();
    let request = node.fetched_by(B2, 2, 0, -1);
    node.learn(state(Some(B2), 3, 3, &[B1, B2, B3]));
    node.run_disk();
    let answer = node.served(request).expect("the read is done");
    assert_eq!(answer.error_code, error_code::NOT_LEADER_OR_FOLLOWER);
    assert!(!node.has_observed(|fact| matches!(fact, Observation::FetchServed { leader_epoch: 2, .. })));
}

#[test]
fn unreadable_bytes_are_a_storage_error() {
    let mut node = leader();
    let request = node.fetched_by(B2, 2, 0, -1);
    let Some(ReplicaEffect::Read { read, .. }) = node.disk.pop_front() else { panic!("a read is queued") };
    node.input(ReplicaInput::ReadDone { read, result: Err(ReadFailed) });
    assert_eq!(node.served(request).expect("at once").error_code, error_code::KAFKA_STORAGE_ERROR);
}

#[test]
fn consumer_may_read_from_a_follower_in_new_versions() {
    let mut node = leader();
    node.follow(B2, 3);
    let body = consumer_fetch(0);
    for (version, expected) in [(10, error_code::NOT_LEADER_OR_FOLLOWER), (FETCH_VERSION, error_code::NONE)] {
        let request = node.next_request();
        let mut body = body.clone();
        body.max_wait_ms = 0;
        node.input(ReplicaInput::Fetch { request, version, body });
        assert_eq!(node.served(request).expect("at once").error_code, expected);
    }
}

#[test]
fn fetch_of_nothing_and_unknown_sessions_are_answered_at_once() {
    let mut node = leader();
    let mut nothing = consumer_fetch(0);
    nothing.topics.clear();
    let request = node.fetch(nothing);
    assert!(node.reply(request).is_some());
    let mut session = consumer_fetch(0);
    (session.session_id, session.session_epoch) = (4, 2);
    let request = node.fetch(session);
    let Some(ResponseBody::Fetch(answer)) = node.reply(request) else { panic!("at once") };
    assert_eq!((answer.error_code, answer.session_id), (error_code::FETCH_SESSION_ID_NOT_FOUND, 0));
}

#[test]
fn fetch_that_names_a_partition_twice_is_served() {
    let mut node = leader();
    let mut twice = follower_fetch(B2, broker_epoch(B2), 2, 3, 2);
    let same: FetchPartition = twice.topics[0].partitions[0].clone();
    twice.topics[0].partitions.push(same);
    let request = node.fetch(twice);
    node.produce(1, record(13));
    node.run_disk();
    assert!(node.reply(request).is_some());
}

#[test]
fn abandoned_fetch_is_forgotten() {
    let mut node = leader();
    let waiting = node.fetched_by(B2, 2, 3, 2);
    let reading = node.fetched_by(B3, 2, 0, -1);
    node.input(ReplicaInput::Abandoned { request: waiting });
    node.input(ReplicaInput::Abandoned { request: reading });
    node.produce(1, record(13));
    node.run_disk();
    assert!(node.reply(waiting).is_none() && node.reply(reading).is_none());
}
