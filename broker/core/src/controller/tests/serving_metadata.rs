//! A broker's answer to Metadata as claims.

use acked_wire::api::metadata::MetadataRequestTopic;
use acked_wire::{MetadataRequest, MetadataResponse, Str, Uuid, error_code};

use super::cluster::Cluster;
use crate::controller::{MetadataView, metadata_response};
use crate::types::NodeId;

fn answer(cluster: &Cluster, topics: Option<Vec<MetadataRequestTopic>>) -> MetadataResponse {
    let request = MetadataRequest { topics, ..MetadataRequest::default() };
    let cluster_id = Str::from("cluster");
    let view = MetadataView { node: NodeId(2), cluster_id: &cluster_id, listener: "PLAINTEXT" };
    metadata_response(cluster.controller.image(), &request, &view)
}

fn named(name: &str) -> MetadataRequestTopic {
    MetadataRequestTopic { name: Some(Str::from(name)), ..MetadataRequestTopic::default() }
}

fn by_id(topic_id: Uuid) -> MetadataRequestTopic {
    MetadataRequestTopic { topic_id, name: None, ..MetadataRequestTopic::default() }
}

#[test]
fn live_brokers_topics_leaders_and_offline_replicas_are_told() {
    let mut cluster = Cluster::with(false, 3, &[("t", &[1, 2, 3]), ("u", &[1])]);
    cluster.silence(&[1]);
    let response = answer(&cluster, None);
    let brokers: Vec<i32> = response.brokers.iter().map(|broker| broker.node_id).collect();
    assert_eq!(brokers, [2, 3]);
    assert_eq!((response.controller_id, response.cluster_id), (2, Some(Str::from("cluster"))));
    let names: Vec<&str> = response.topics.iter().filter_map(|topic| topic.name.as_deref()).collect();
    assert_eq!(names, ["t", "u"]);
    let moved = &response.topics[0].partitions[0];
    assert_eq!((moved.error_code, moved.leader_id, moved.leader_epoch), (error_code::NONE, 2, 1));
    assert_eq!((moved.isr_nodes.clone(), moved.offline_replicas.clone()), (vec![2, 3], vec![1]));
    let leaderless = &response.topics[1].partitions[0];
    assert_eq!((leaderless.error_code, leaderless.leader_id), (error_code::LEADER_NOT_AVAILABLE, -1));
    assert_eq!((leaderless.leader_epoch, leaderless.isr_nodes.clone()), (1, vec![1]));
}

#[test]
fn fenced_broker_names_another_as_controller() {
    let mut cluster = Cluster::with(false, 3, &[]);
    cluster.silence(&[2]);
    assert_eq!(answer(&cluster, None).controller_id, 1);
    cluster.silence(&[1, 3]);
    assert_eq!(answer(&cluster, None).controller_id, -1);
}

#[test]
fn topics_are_found_by_name_and_by_id_and_the_others_have_their_errors() {
    let cluster = Cluster::with(false, 1, &[("t", &[1])]);
    let id = cluster.id("t");
    let nameless = MetadataRequestTopic { name: None, ..MetadataRequestTopic::default() };
    let asked =
        vec![named("t"), by_id(id), named("none"), named("bad name!"), by_id(Uuid([9; 16])), nameless];
    let response = answer(&cluster, Some(asked));
    let told: Vec<(i16, Uuid)> =
        response.topics.iter().map(|topic| (topic.error_code, topic.topic_id)).collect();
    assert_eq!(
        told,
        [
            (error_code::NONE, id),
            (error_code::NONE, id),
            (error_code::UNKNOWN_TOPIC_OR_PARTITION, Uuid::ZERO),
            (error_code::INVALID_TOPIC_EXCEPTION, Uuid::ZERO),
            (error_code::UNKNOWN_TOPIC_ID, Uuid([9; 16])),
            (error_code::INVALID_TOPIC_EXCEPTION, Uuid::ZERO),
        ]
    );
    assert_eq!(answer(&cluster, Some(Vec::new())).topics, []);
}
