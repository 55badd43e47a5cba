//! Following: fetching, truncating, taking over the high watermark (kafka-rules 1.2, 1.5, 1.6, 1.7).

use std::time::Duration;

use acked_wire::api::list_offsets::{ListOffsetsPartitionResponse, ListOffsetsTopicResponse};
use acked_wire::{ListOffsetsResponse, error_code};
use bytes::Bytes;

use super::node::*;
use crate::observation::Observation;
use crate::replica::{ReplicaEffect, ReplicaInput};
use crate::types::PeerError;

/// A follower of B1 in epoch 1 that holds offsets 0..count.
fn holding(count: i64) -> Node {
    let mut node = Node::new(B2);
    node.follow(B1, 1);
    for offset in 0..count {
        node.answer_fetch(told(offset, stored(offset, 1, offset as u64)));
        node.run_disk();
    }
    node
}

#[test]
fn follower_fetches_from_its_end_with_its_epochs() {
    let mut node = holding(2);
    let (to, _, body) = node.sent_fetch().expect("it asks for more");
    let asked = &body.topics[0].partitions[0];
    assert_eq!(to, B1);
    assert_eq!((body.replica_state.replica_id, body.replica_state.replica_epoch), (2, broker_epoch(B2)));
    assert_eq!((asked.fetch_offset, asked.last_fetched_epoch, asked.current_leader_epoch), (2, 1, 1));
}

#[test]
fn next_fetch_waits_for_the_writes_of_the_answer_before() {
    let mut node = holding(0);
    node.answer_fetch(told(0, stored(0, 1, 1)));
    assert!(node.sent_fetch().is_none(), "its offset would claim what is not written");
    node.run_disk();
    let (_, _, body) = node.sent_fetch().expect("the write is done");
    assert_eq!(body.topics[0].partitions[0].fetch_offset, 1);
}

#[test]
fn told_high_watermark_is_taken_over_once_its_records_are_written() {
    let mut node = holding(0);
    node.answer_fetch(told(7, stored(0, 1, 1)));
    assert_eq!(node.high_watermark(), 0);
    node.run_disk();
    assert_eq!(node.high_watermark(), 1, "clamped to the own log");
    node.answer_fetch(told(0, Bytes::new()));
    assert_eq!(node.high_watermark(), 0, "it may go down");
}

#[test]
fn follower_truncates_to_end_of_shared_epoch() {
    let mut node = holding(3);
    node.follow(B3, 2);
    node.answer_fetch(told_diverging(1, 1));
    node.run_disk();
    assert_eq!(node.log().keys().copied().collect::<Vec<_>>(), [0]);
    let cut = Observation::Truncated {
        partition: T0,
        leader_epoch: 2,
        from_log_end_offset: 3,
        to_log_end_offset: 1,
    };
    assert!(node.has_observed(|fact| *fact == cut));
    assert_eq!(
        node.high_watermark(),
        1,
        "nothing else of the answer is applied, and it stays inside the log"
    );
    let (_, _, body) = node.sent_fetch().expect("it asks again");
    assert_eq!(body.topics[0].partitions[0].fetch_offset, 1);
}

#[test]
fn follower_that_lacks_the_leaders_epoch_cuts_to_its_own_largest_below() {
    let mut node = Node::new(B2);
    node.follow(B1, 5);
    for (offset, epoch) in [(0, 1), (1, 1), (2, 4)] {
        node.answer_fetch(told(0, stored(offset, epoch, 9)));
        node.run_disk();
    }
    node.follow(B3, 6);
    node.answer_fetch(told_diverging(3, 9));
    node.run_disk();
    assert_eq!(node.log().keys().copied().collect::<Vec<_>>(), [0, 1], "epoch 4 is nothing of the leader's");
}

#[test]
fn follower_does_not_truncate_by_its_high_watermark() {
    let mut node = holding(3);
    assert_eq!(node.high_watermark(), 2);
    node.follow(B3, 2);
    assert_eq!(node.log().len(), 3);
}

#[test]
fn ex_leader_that_wrote_nothing_drops_its_epoch() {
    let mut node = Node::new(B2);
    node.follow(B1, 1);
    node.answer_fetch(told(0, stored(0, 1, 1)));
    node.run_disk();
    node.lead(2);
    assert_eq!(node.files[&T0].epochs, [(1, 0), (2, 1)]);
    node.follow(B1, 3);
    node.answer_fetch(told_diverging(1, 1));
    node.run_disk();
    assert_eq!(node.files[&T0].epochs, [(1, 0)]);
    let (_, _, body) = node.sent_fetch().expect("it asks again");
    assert_eq!(body.topics[0].partitions[0].last_fetched_epoch, 1);
}

#[test]
fn response_of_an_older_epoch_is_dropped() {
    let mut node = holding(1);
    let (from, fetch, _) = node.sent_fetch().expect("in flight");
    node.follow(B1, 2);
    let result = Ok(fetch_response(told(1, stored(1, 1, 66))));
    node.input(ReplicaInput::FetchResponse { from, fetch, result });
    assert_eq!(node.log().len(), 1);
    assert_eq!(node.high_watermark(), 0);
}

#[test]
fn response_for_another_offset_is_dropped() {
    let mut node = holding(3);
    let (from, old, _) = node.sent_fetch().expect("in flight");
    node.follow(B3, 2);
    node.answer_fetch(told_diverging(1, 1));
    node.run_disk();
    let result = Ok(fetch_response(told(3, stored(3, 1, 66))));
    node.input(ReplicaInput::FetchResponse { from, fetch: old, result });
    assert_eq!(node.log().len(), 1);
}

#[test]
fn batches_above_the_followed_epoch_are_left_out() {
    let mut node = holding(1);
    let mut both = stored(1, 1, 1).to_vec();
    both.extend_from_slice(&stored(2, 9, 2));
    node.answer_fetch(told(3, both.into()));
    node.run_disk();
    assert_eq!(node.log().keys().copied().collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn corrupt_records_are_refused_and_asked_for_again_after_a_pause() {
    let mut node = holding(1);
    let mut corrupt = stored(1, 1, 1).to_vec();
    *corrupt.last_mut().expect("it has bytes") ^= 1;
    node.answer_fetch(told(1, corrupt.into()));
    assert!(node.sent_fetch().is_none() && node.disk.is_empty());
    node.advance(Duration::from_millis(100));
    let (_, _, body) = node.sent_fetch().expect("the pause is over");
    assert_eq!(body.topics[0].partitions[0].fetch_offset, 1);
}

#[test]
fn failed_request_is_sent_again_after_a_pause() {
    let mut node = holding(0);
    let (from, fetch, _) = node.sent_fetch().expect("in flight");
    node.input(ReplicaInput::FetchResponse { from, fetch, result: Err(PeerError::TimedOut) });
    assert!(node.sent_fetch().is_none());
    assert!(node.manager.next_deadline().is_some_and(|deadline| deadline <= Duration::from_millis(100)));
    node.advance(Duration::from_millis(100));
    assert!(node.sent_fetch().is_some());
}

#[test]
fn fenced_follower_waits_for_metadata() {
    let mut node = holding(0);
    node.answer_fetch(told_error(error_code::FENCED_LEADER_EPOCH));
    node.advance(Duration::from_secs(60));
    assert!(node.sent_fetch().is_none());
    node.follow(B3, 2);
    assert!(node.sent_fetch().is_some_and(|(to, ..)| to == B3));
}

#[test]
fn follower_without_a_leader_asks_nobody() {
    let mut node = holding(0);
    node.sent_fetch();
    node.learn(state(None, 2, 2, &[B1]));
    node.advance(Duration::from_secs(60));
    assert!(node.sent_fetch().is_none());
}

fn answer_offset(node: &mut Node, offset: i64) {
    let place =
        node.effects.iter().position(|effect| matches!(effect, ReplicaEffect::SendListOffsets { .. }));
    let effect = node.effects.remove(place.expect("it asks for an offset"));
    let ReplicaEffect::SendListOffsets { to, fetch, .. } = effect else { unreachable!("matched above") };
    let partition = ListOffsetsPartitionResponse { offset, ..ListOffsetsPartitionResponse::default() };
    let topic =
        ListOffsetsTopicResponse { name: topic_name(), partitions: vec![partition], ..Default::default() };
    let result = Ok(ListOffsetsResponse { topics: vec![topic], ..ListOffsetsResponse::default() });
    node.input(ReplicaInput::ListOffsetsResponse { from: to, fetch, result });
}

#[test]
fn follower_beyond_the_leaders_end_truncates_to_it() {
    let mut node = holding(3);
    node.answer_fetch(told_error(error_code::OFFSET_OUT_OF_RANGE));
    answer_offset(&mut node, 2);
    node.run_disk();
    assert_eq!(node.log().len(), 2);
    assert!(node.sent_fetch().is_some());
}

#[test]
fn follower_below_the_leaders_start_starts_anew_there() {
    let mut node = holding(3);
    node.answer_fetch(told_error(error_code::OFFSET_OUT_OF_RANGE));
    answer_offset(&mut node, 90);
    answer_offset(&mut node, 50);
    node.run_disk();
    assert!(node.log().is_empty() && node.files[&T0].epochs.is_empty());
    assert_eq!(node.high_watermark(), 50);
    let (_, _, body) = node.sent_fetch().expect("it goes on there");
    assert_eq!(body.topics[0].partitions[0].fetch_offset, 50);
}

#[test]
fn restarted_follower_takes_its_log_over_with_its_clamped_high_watermark() {
    let before = holding(3);
    let marks = [(T0, 2)].into();
    let mut node = Node::started(B2, crate::Rules::KAFKA, before.now, before.files, marks);
    node.follow(B1, 1);
    assert_eq!(node.high_watermark(), 2);
    let (_, _, body) = node.sent_fetch().expect("it goes on");
    assert_eq!(body.topics[0].partitions[0].fetch_offset, 3);
    assert!(node.disk.is_empty(), "its log is there already");
}
