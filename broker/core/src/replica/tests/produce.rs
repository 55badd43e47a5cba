//! Acknowledgements (kafka-rules 2, 6; kafka-formats B.6).

use std::time::Duration;

use acked_wire::api::produce::PartitionProduceData;
use acked_wire::batch::Compression;
use acked_wire::{Uuid, error_code};

use super::node::*;
use crate::observation::Observation;
use crate::replica::{ReplicaEffect, ReplicaInput};

fn leader() -> Node {
    let mut node = Node::new(B1);
    node.lead(1);
    node.caught_up(1, 0);
    node
}

#[test]
fn acks_all_is_answered_when_the_high_watermark_passed() {
    let mut node = leader();
    let request = node.produce(-1, record(1));
    node.run_disk();
    assert_eq!(node.code(request), None);
    node.caught_up(1, 1);
    let answer = node.produced(request).expect("committed");
    assert_eq!((answer.error_code, answer.base_offset, answer.log_append_time_ms), (0, 0, -1));
    let ack = Observation::AckSent {
        partition: T0,
        leader_epoch: 1,
        acks: -1,
        base_offset: 0,
        last_offset: 0,
        producer_id: -1,
        producer_epoch: -1,
        base_sequence: -1,
        maximal_isr: vec![B1, B2, B3],
        min_insync: 2,
        duplicate: false,
    };
    assert!(node.has_observed(|fact| *fact == ack));
}

#[test]
fn acks_one_is_answered_when_the_leaders_write_is_done() {
    let mut node = leader();
    let request = node.produce(1, record(1));
    assert_eq!(node.code(request), None);
    node.run_disk();
    assert_eq!(node.code(request), Some(error_code::NONE));
    assert_eq!(node.high_watermark(), 0);
}

#[test]
fn acks_none_frees_the_connection_and_closes_it_on_failure() {
    let mut node = leader();
    let request = node.produce(0, record(1));
    assert!(node.effects.contains(&ReplicaEffect::NoReply { request }));
    node.follow(B2, 2);
    let request = node.produce(0, record(1));
    assert!(node.effects.contains(&ReplicaEffect::CloseConnection { request }));
    assert!(!node.has_observed(|fact| matches!(fact, Observation::AckSent { .. })));
}

#[test]
fn other_acks_are_refused() {
    let mut node = leader();
    let request = node.produce(2, record(1));
    assert_eq!(node.code(request), Some(error_code::INVALID_REQUIRED_ACKS));
    assert!(node.disk.is_empty());
}

#[test]
fn zstd_is_refused_below_version_7() {
    let mut batch = builder(&[1]).codec(Compression::Zstd.into());
    for (version, code) in [
        (3, Some(error_code::UNSUPPORTED_COMPRESSION_TYPE)),
        (6, Some(error_code::UNSUPPORTED_COMPRESSION_TYPE)),
        (7, Some(error_code::NONE)),
    ] {
        let mut node = leader();
        let request = node.next_request();
        let body = produce_request(1, batch.clone().build().freeze());
        node.input(ReplicaInput::Produce { request, version, body, wall_clock_ms: NOW_MS });
        node.run_disk();
        assert_eq!(node.code(request), code, "version {version}");
    }
    // Other codecs are as old as the batches.
    batch = batch.codec(Compression::Lz4.into());
    let mut node = leader();
    let request = node.next_request();
    let body = produce_request(1, batch.build().freeze());
    node.input(ReplicaInput::Produce { request, version: 3, body, wall_clock_ms: NOW_MS });
    node.run_disk();
    assert_eq!(node.code(request), Some(error_code::NONE));
}

#[test]
fn too_few_in_sync_replicas_are_refused_before_the_append() {
    let mut node = Node::new(B1);
    node.learn(state(Some(B1), 1, 1, &[B1]));
    node.run_disk();
    let request = node.produce(-1, record(1));
    assert_eq!(node.code(request), Some(error_code::NOT_ENOUGH_REPLICAS));
    assert!(node.disk.is_empty());
    let refused =
        Observation::ProduceRefused { partition: T0, code: error_code::NOT_ENOUGH_REPLICAS, appended: false };
    assert!(node.has_observed(|fact| *fact == refused));
}

#[test]
fn produce_fails_on_demotion() {
    let mut node = leader();
    let all = node.produce(-1, record(1));
    let one = node.produce(1, record(2));
    node.learn(state(Some(B2), 2, 2, &[B2, B3]));
    let answer = node.produced(all).expect("it fails at once");
    assert_eq!(answer.error_code, error_code::NOT_LEADER_OR_FOLLOWER);
    assert_eq!((answer.current_leader.leader_id, answer.current_leader.leader_epoch), (2, 2));
    assert_eq!(node.code(one), Some(error_code::NOT_LEADER_OR_FOLLOWER));
}

#[test]
fn produce_fails_on_a_new_epoch_of_the_same_leader() {
    let mut node = leader();
    let request = node.produce(-1, record(1));
    node.run_disk();
    node.lead(2);
    assert_eq!(node.code(request), Some(error_code::NOT_LEADER_OR_FOLLOWER));
}

#[test]
fn produce_times_out() {
    let mut node = leader();
    let request = node.produce(-1, record(1));
    node.run_disk();
    node.advance(Duration::from_millis(4_999));
    assert_eq!(node.code(request), None);
    assert!(node.manager.next_deadline().is_some_and(|deadline| deadline <= Duration::from_secs(5)));
    node.advance(Duration::from_millis(1));
    assert_eq!(node.code(request), Some(error_code::REQUEST_TIMED_OUT));
    node.caught_up(1, 1);
    assert_eq!(node.high_watermark(), 1, "its record is committed all the same");
    assert_eq!(node.code(request), None);
}

#[test]
fn duplicate_waits_like_the_original() {
    let mut node = leader();
    let original = node.produce(-1, idempotent(0, 7));
    node.run_disk();
    let again = node.produce(-1, idempotent(0, 7));
    assert_eq!(node.code(again), None, "not committed yet");
    assert!(node.disk.is_empty(), "nothing is appended");
    node.caught_up(1, 1);
    assert_eq!(node.code(original), Some(error_code::NONE));
    let answer = node.produced(again).expect("committed");
    assert_eq!((answer.base_offset, answer.log_append_time_ms), (0, NOW_MS));
    let late = node.produce(-1, idempotent(0, 7));
    assert_eq!(node.code(late), Some(error_code::NONE), "committed already");
    let duplicates =
        node.observations.iter().filter(|fact| matches!(fact, Observation::AckSent { duplicate: true, .. }));
    assert_eq!(duplicates.count(), 2);
}

#[test]
fn duplicate_overtakes_what_waits_behind_it() {
    let mut node = leader();
    node.produce(-1, idempotent(0, 7));
    let second = node.produce(-1, idempotent(1, 8));
    let again = node.produce(-1, idempotent(0, 7));
    node.run_disk();
    node.caught_up(1, 1);
    assert_eq!((node.code(again), node.code(second)), (Some(error_code::NONE), None));
}

#[test]
fn sequence_gap_is_refused_with_the_real_log_start() {
    let mut node = leader();
    node.produce(-1, idempotent(0, 7));
    let request = node.produce(-1, idempotent(5, 8));
    let answer = node.produced(request).expect("at once");
    assert_eq!(answer.error_code, error_code::OUT_OF_ORDER_SEQUENCE_NUMBER);
    assert_eq!((answer.base_offset, answer.log_start_offset), (-1, 0));
}

#[test]
fn records_that_are_none_or_broken_are_refused() {
    let mut node = leader();
    let mut corrupt = record(1).to_vec();
    *corrupt.last_mut().expect("it has bytes") ^= 1;
    let request = node.produce(-1, corrupt.into());
    assert_eq!(node.code(request), Some(error_code::CORRUPT_MESSAGE));
    let request = node.next_request();
    let mut body = produce_request(-1, record(1));
    body.topic_data[0].partition_data[0].records = None;
    node.input(ReplicaInput::Produce { request, version: PRODUCE_VERSION, body, wall_clock_ms: NOW_MS });
    assert_eq!(node.code(request), Some(error_code::INVALID_RECORD));
}

#[test]
fn unknown_topics_and_partitions_are_told_apart() {
    let mut node = leader();
    for (topic_id, index, code) in [
        (Uuid([9; 16]), 0, error_code::UNKNOWN_TOPIC_ID),
        (T0.topic, 4, error_code::UNKNOWN_TOPIC_OR_PARTITION),
        (Uuid::ZERO, 0, error_code::UNKNOWN_TOPIC_OR_PARTITION),
    ] {
        let request = node.next_request();
        let mut body = produce_request(-1, record(1));
        body.topic_data[0].topic_id = topic_id;
        body.topic_data[0].partition_data[0].index = index;
        node.input(ReplicaInput::Produce { request, version: PRODUCE_VERSION, body, wall_clock_ms: NOW_MS });
        assert_eq!(node.code(request), Some(code));
    }
}

#[test]
fn request_of_several_parts_is_answered_with_the_last() {
    let mut node = leader();
    let request = node.next_request();
    let mut body = produce_request(-1, record(1));
    let other =
        PartitionProduceData { index: 0, records: Some(record(2)), ..PartitionProduceData::default() };
    let missing =
        PartitionProduceData { index: 3, records: Some(record(3)), ..PartitionProduceData::default() };
    body.topic_data[0].partition_data.extend([other, missing]);
    node.input(ReplicaInput::Produce { request, version: PRODUCE_VERSION, body, wall_clock_ms: NOW_MS });
    node.run_disk();
    node.caught_up(1, 1);
    assert!(node.reply(request).is_none(), "the second part waits");
    node.caught_up(1, 2);
    let Some(acked_wire::ResponseBody::Produce(answer)) = node.reply(request) else {
        panic!("it is committed")
    };
    let codes = answer.responses[0].partition_responses.iter().map(|part| part.error_code);
    assert_eq!(codes.collect::<Vec<_>>(), [0, 0, error_code::UNKNOWN_TOPIC_OR_PARTITION]);
}

#[test]
fn abandoned_request_is_not_answered() {
    let mut node = leader();
    let request = node.produce(-1, record(1));
    node.input(ReplicaInput::Abandoned { request });
    node.run_disk();
    node.caught_up(1, 1);
    assert_eq!((node.code(request), node.high_watermark()), (None, 1));
    assert!(!node.has_observed(|fact| matches!(fact, Observation::AckSent { .. })));
}

#[test]
fn too_small_an_isr_commits_nothing_and_the_produce_times_out() {
    let mut node = Node::new(B1);
    node.learn(state(Some(B1), 1, 1, &[B1, B2]));
    node.run_disk();
    node.caught_up(1, 0);
    let request = node.produce(-1, record(1));
    node.run_disk();
    node.learn(state(Some(B1), 1, 2, &[B1]));
    node.fetched_by(B2, 1, 1, 1);
    assert_eq!((node.code(request), node.high_watermark()), (None, 0), "one replica commits nothing");
    node.advance(Duration::from_secs(5));
    assert_eq!(node.code(request), Some(error_code::REQUEST_TIMED_OUT));
}
