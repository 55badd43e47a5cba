//! OffsetForLeaderEpoch (kafka-rules 1.3, 1.4; KIP-320).

use acked_wire::api::offset_for_leader_epoch::{
    EpochEndOffset, OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use acked_wire::{OffsetForLeaderEpochRequest, ResponseBody, Str, error_code};

use super::node::*;
use crate::replica::ReplicaInput;

fn ask(node: &mut Node, topic: Str, current_leader_epoch: i32, leader_epoch: i32) -> EpochEndOffset {
    let partition =
        OffsetForLeaderPartition { partition: 0, current_leader_epoch, leader_epoch, ..Default::default() };
    let topic = OffsetForLeaderTopic { topic, partitions: vec![partition], ..Default::default() };
    let body = OffsetForLeaderEpochRequest { topics: vec![topic], ..Default::default() };
    let request = node.next_request();
    node.input(ReplicaInput::OffsetForLeaderEpoch { request, body });
    match node.reply(request) {
        Some(ResponseBody::OffsetForLeaderEpoch(answer)) => answer.topics[0].partitions[0].clone(),
        other => panic!("{other:?} answers OffsetForLeaderEpoch"),
    }
}

/// B1 leads epoch 5; its log has one record of epoch 2 and two of epoch 4.
fn leader() -> Node {
    let mut node = Node::new(B1);
    node.follow(B2, 4);
    node.answer_fetch(told(0, [stored(0, 2, 1), stored(1, 4, 2), stored(2, 4, 3)].concat().into()));
    node.run_disk();
    node.lead(5);
    node
}

#[test]
fn epoch_ends_where_the_next_one_starts_and_the_newest_at_the_log_end() {
    let mut node = leader();
    node.produce(1, record(9));
    node.run_disk();
    for (asked, epoch, end) in
        [(0, 0, 0), (2, 2, 1), (3, 2, 1), (4, 4, 3), (5, 5, 4), (6, -1, -1), (-1, -1, -1)]
    {
        let answer = ask(&mut node, topic_name(), 5, asked);
        assert_eq!(answer.error_code, error_code::NONE);
        assert_eq!((answer.leader_epoch, answer.end_offset), (epoch, end), "epoch {asked}");
    }
}

#[test]
fn another_leader_epoch_another_leader_and_another_topic_are_errors() {
    let mut node = leader();
    let code = |node: &mut Node, topic, current| {
        let answer = ask(node, topic, current, 4);
        assert_eq!((answer.leader_epoch, answer.end_offset), (-1, -1));
        answer.error_code
    };
    assert_eq!(code(&mut node, topic_name(), 4), error_code::FENCED_LEADER_EPOCH);
    assert_eq!(code(&mut node, topic_name(), 6), error_code::UNKNOWN_LEADER_EPOCH);
    assert_eq!(ask(&mut node, topic_name(), -1, 4).error_code, error_code::NONE, "nothing to compare");
    assert_eq!(code(&mut node, Str::from_static("others"), 5), error_code::UNKNOWN_TOPIC_OR_PARTITION);
    node.follow(B2, 6);
    assert_eq!(code(&mut node, topic_name(), 6), error_code::NOT_LEADER_OR_FOLLOWER);
}
