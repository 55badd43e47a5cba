//! A broker's answer to Metadata, from its own image: it may be behind, never wrong about what it replayed.
//! Source: KIP-516 (topic ids), KIP-320 (leader epochs), KIP-112 (offline replicas). Topics are not created by asking.

use acked_wire::api::metadata::{
    MetadataRequestTopic, MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use acked_wire::{MetadataRequest, MetadataResponse, Str, Uuid, error_code};

use super::create_topics::name_fault;
use super::image::ids;
use super::image::{Broker, Endpoint, MetadataImage, Partition};
use crate::types::NodeId;

/// Topics of the brokers' own, by name.
const INTERNAL_TOPICS: [&str; 3] = ["__consumer_offsets", "__transaction_state", "__share_group_state"];

/// Who answers, and on which listener it was asked.
#[derive(Clone, Debug)]
pub struct MetadataView<'a> {
    pub node: NodeId,
    pub cluster_id: &'a Str,
    /// Brokers are given by their endpoint of this name.
    pub listener: &'a str,
}

/// Answers a Metadata request. Clients are told that some live broker is the controller, as controllers do not speak to
/// clients: this one if it is unfenced, else the first that is.
pub fn metadata_response(
    image: &MetadataImage,
    request: &MetadataRequest,
    view: &MetadataView<'_>,
) -> MetadataResponse {
    let alive: Vec<(&Broker, &Endpoint)> = image
        .brokers()
        .filter(|broker| !broker.fenced)
        .filter_map(|broker| Some((broker, endpoint(broker, view.listener)?)))
        .collect();
    let own = alive.iter().find(|(broker, _)| broker.id == view.node);
    let controller_id = own.or(alive.first()).map_or(-1, |(broker, _)| broker.id.0);
    let brokers = alive.into_iter().map(|(broker, endpoint)| MetadataResponseBroker {
        node_id: broker.id.0,
        host: endpoint.host.clone(),
        port: i32::from(endpoint.port),
        rack: broker.rack.clone(),
        ..MetadataResponseBroker::default()
    });
    let topics = match &request.topics {
        None => image.topic_names().map(|(name, id)| known(image, name, id, view)).collect(),
        Some(asked) => asked.iter().map(|topic| answer(image, topic, view)).collect(),
    };
    MetadataResponse {
        brokers: brokers.collect(),
        cluster_id: Some(view.cluster_id.clone()),
        controller_id,
        topics,
        ..MetadataResponse::default()
    }
}

fn endpoint<'a>(broker: &'a Broker, listener: &str) -> Option<&'a Endpoint> {
    broker.endpoints.iter().find(|endpoint| endpoint.listener == *listener)
}

fn answer(
    image: &MetadataImage,
    asked: &MetadataRequestTopic,
    view: &MetadataView<'_>,
) -> MetadataResponseTopic {
    let unknown = |error_code| MetadataResponseTopic {
        error_code,
        name: asked.name.clone(),
        topic_id: asked.topic_id,
        ..MetadataResponseTopic::default()
    };
    if asked.topic_id != Uuid::ZERO {
        return match image.topic(asked.topic_id) {
            Some(topic) => known(image, &topic.name, asked.topic_id, view),
            None => unknown(error_code::UNKNOWN_TOPIC_ID),
        };
    }
    let Some(name) = &asked.name else { return unknown(error_code::INVALID_TOPIC_EXCEPTION) };
    match image.topic_id(name) {
        Some(id) => known(image, name, id, view),
        None if name_fault(name).is_some() => unknown(error_code::INVALID_TOPIC_EXCEPTION),
        None => unknown(error_code::UNKNOWN_TOPIC_OR_PARTITION),
    }
}

fn known(image: &MetadataImage, name: &Str, id: Uuid, view: &MetadataView<'_>) -> MetadataResponseTopic {
    let topic = image.topic(id).expect("the caller looked the topic up");
    MetadataResponseTopic {
        error_code: error_code::NONE,
        name: Some(name.clone()),
        topic_id: id,
        is_internal: INTERNAL_TOPICS.contains(&name.as_str()),
        partitions: topic.partitions.values().map(|partition| place(image, partition, view)).collect(),
        ..MetadataResponseTopic::default()
    }
}

fn place(image: &MetadataImage, partition: &Partition, view: &MetadataView<'_>) -> MetadataResponsePartition {
    let state = &partition.state;
    let leader = state.leader.and_then(|leader| image.broker(leader)).filter(|broker| !broker.fenced);
    let error_code = match leader {
        None => error_code::LEADER_NOT_AVAILABLE,
        Some(broker) if endpoint(broker, view.listener).is_none() => error_code::LISTENER_NOT_FOUND,
        Some(_) => error_code::NONE,
    };
    let offline = state.replicas.iter().filter(|id| image.broker(**id).is_none_or(|broker| broker.fenced));
    MetadataResponsePartition {
        error_code,
        partition_index: state.partition.index,
        leader_id: leader.filter(|_| error_code == error_code::NONE).map_or(-1, |broker| broker.id.0),
        leader_epoch: state.leader_epoch,
        replica_nodes: ids(&state.replicas),
        isr_nodes: ids(&state.isr),
        offline_replicas: offline.map(|id| id.0).collect(),
        ..MetadataResponsePartition::default()
    }
}
