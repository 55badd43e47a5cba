//! ListOffsets (kafka-rules 2; KIP-207).

use acked_wire::api::list_offsets::{ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsTopic};
use acked_wire::{ListOffsetsRequest, ResponseBody, error_code};

use super::node::*;
use crate::replica::ReplicaInput;

fn ask(node: &mut Node, replica_id: i32, timestamp: i64) -> ListOffsetsPartitionResponse {
    ask_in_version(node, 10, replica_id, timestamp)
}

fn ask_in_version(
    node: &mut Node,
    version: i16,
    replica_id: i32,
    timestamp: i64,
) -> ListOffsetsPartitionResponse {
    let partition = ListOffsetsPartition { partition_index: 0, timestamp, ..Default::default() };
    let topic = ListOffsetsTopic { name: topic_name(), partitions: vec![partition], ..Default::default() };
    let body = ListOffsetsRequest { replica_id, topics: vec![topic], ..ListOffsetsRequest::default() };
    let request = node.next_request();
    node.input(ReplicaInput::ListOffsets { request, version, body });
    match node.reply(request) {
        Some(ResponseBody::ListOffsets(answer)) => answer.topics[0].partitions[0].clone(),
        other => panic!("{other:?} answers ListOffsets"),
    }
}

fn leader() -> Node {
    let mut node = Node::new(B1);
    node.lead(1);
    node.produce(1, record(1));
    node.produce(1, record(2));
    node.run_disk();
    node.caught_up(1, 1);
    node
}

#[test]
fn ends_of_the_log_depend_on_who_asks() {
    let mut node = leader();
    assert_eq!(ask(&mut node, -1, -2).offset, 0);
    assert_eq!(ask(&mut node, -1, -1).offset, 1, "a consumer's end is the high watermark");
    assert_eq!(ask(&mut node, 2, -1).offset, 2);
}

#[test]
fn latest_is_not_available_before_the_epoch_start_is_committed() {
    let mut node = leader();
    node.lead(2);
    assert_eq!(ask(&mut node, -1, -1).error_code, error_code::OFFSET_NOT_AVAILABLE);
    assert_eq!(ask_in_version(&mut node, 4, -1, -1).error_code, error_code::LEADER_NOT_AVAILABLE);
    assert_eq!(ask(&mut node, -1, NOW_MS + 1).error_code, error_code::OFFSET_NOT_AVAILABLE);
    assert_eq!(ask(&mut node, -1, -2).error_code, error_code::NONE);
    assert_eq!(ask(&mut node, 2, -1).offset, 2, "followers ask for the log end");
    node.caught_up(2, 2);
    let latest = ask(&mut node, -1, -1);
    assert_eq!((latest.error_code, latest.offset, latest.leader_epoch), (error_code::NONE, 2, 2));
}

#[test]
fn time_finds_committed_batches_only() {
    let mut node = leader();
    let found = ask(&mut node, -1, NOW_MS);
    assert_eq!((found.offset, found.timestamp, found.leader_epoch), (0, NOW_MS, 1));
    assert_eq!(ask(&mut node, -1, NOW_MS + 1).offset, -1);
}

#[test]
fn only_the_leader_answers() {
    let mut node = leader();
    node.follow(B2, 2);
    assert_eq!(ask(&mut node, -1, -1).error_code, error_code::NOT_LEADER_OR_FOLLOWER);
}
