//! The image, and what committed records state, as claims.

use acked_wire::{CreateTopicsRequest, MetadataRecord, ResponseBody, Str, Uuid, error_code};

use crate::controller::*;
use crate::observation::Observation;
use crate::types::NodeId;

use super::cluster::*;

#[test]
fn committed_records_state_what_they_changed() {
    let mut cluster = Cluster::with(false, 2, &[("t", &[1, 2])]);
    cluster.silence(&[1]);
    let (mut image, mut seen) = (MetadataImage::default(), Vec::new());
    for (offset, record) in &cluster.log {
        image.replay_committed(*offset, record, &mut seen).expect("the log holds together");
    }
    let count = |select: fn(&Observation) -> bool| seen.iter().filter(|one| select(one)).count();
    assert_eq!(count(|one| matches!(one, Observation::BrokerRegistered { clean_shutdown: true, .. })), 2);
    assert_eq!(count(|one| matches!(one, Observation::BrokerUnfenced { .. })), 2);
    assert_eq!(count(|one| matches!(one, Observation::TopicCreated { name, .. } if name == "t")), 1);
    assert_eq!(count(|one| matches!(one, Observation::BrokerFenced { broker: NodeId(1) })), 1);
    let last = seen.iter().rev().find_map(|one| match one {
        Observation::PartitionCommitted { state, .. } => Some(state.clone()),
        _ => None,
    });
    assert_eq!(last, Some(cluster.state("t")));
}

#[test]
fn committed_removal_of_a_topic_is_stated() {
    let cluster = Cluster::with(false, 1, &[("t", &[1])]);
    let (mut image, mut seen) = (cluster.controller.image().clone(), Vec::new());
    let topic = cluster.id("t");
    let record = acked_wire::RemoveTopicRecord { topic_id: topic, ..Default::default() };
    image.replay_committed(cluster.next_offset, &record.into(), &mut seen).expect("the topic is there");
    assert_eq!(seen, [Observation::TopicDeleted { topic }]);
}

#[test]
fn changes_are_told_once() {
    let mut cluster = Cluster::with(false, 2, &[("t", &[1, 2])]);
    let mut image = cluster.controller.image().clone();
    let changes = image.take_changes();
    assert_eq!(changes.brokers, [NodeId(1), NodeId(2)].into());
    assert_eq!(changes.partitions, [cluster.state("t").partition].into());
    assert!(image.take_changes().is_empty());
    let start = cluster.log.len();
    cluster.alter(cluster.wish("t", &[1]));
    for (offset, record) in &cluster.log[start..] {
        image.replay(*offset, record).expect("the log holds together");
    }
    let changes = image.take_changes();
    assert!(changes.brokers.is_empty());
    assert_eq!(changes.partitions, [cluster.state("t").partition].into());
}

#[test]
fn records_that_contradict_the_log_are_refused_and_change_nothing() {
    let cluster = Cluster::with(false, 1, &[("t", &[1])]);
    let mut image = cluster.controller.image().clone();
    let before = image.clone();
    let (offset, topic) = (cluster.next_offset, cluster.id("t"));
    let stale = acked_wire::BrokerRegistrationChangeRecord { broker_id: 1, fenced: 1, ..Default::default() };
    let unknown =
        acked_wire::PartitionChangeRecord { partition_id: 9, topic_id: topic, ..Default::default() };
    let twice =
        acked_wire::TopicRecord { name: Str::from("t"), topic_id: Uuid([3; 16]), ..Default::default() };
    for record in [stale.into(), unknown.into(), twice.into()] {
        let record: MetadataRecord = record;
        assert!(image.replay(offset, &record).is_err(), "{record:?}");
        assert_eq!(image, before);
    }
    let late = MetadataRecord::NoOp(acked_wire::NoOpRecord::default());
    assert!(matches!(image.replay(offset - 1, &late), Err(ImageError::OutOfOrder { .. })));
}

#[test]
fn refusal_answers_every_topic() {
    let request =
        CreateTopicsRequest { topics: vec![automatic("t", 1, 1)], ..CreateTopicsRequest::default() };
    let body = ControllerBody::CreateTopics(request).refusal(error_code::NOT_CONTROLLER);
    let ResponseBody::CreateTopics(response) = body else { panic!("another answer") };
    assert_eq!(response.topics[0].error_code, error_code::NOT_CONTROLLER);
}
