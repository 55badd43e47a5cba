//! What a broker says about its cluster, in the shape that administrators and tests ask for.

use acked_wire::Uuid;
use acked_wire::api::metadata::{MetadataResponse, MetadataResponsePartition};

use crate::NodeId;

/// One broker's knowledge of the cluster; may be older than another's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterDescription {
    pub cluster_id: Option<String>,
    /// Live brokers, in id order.
    pub brokers: Vec<BrokerDescription>,
    pub topics: Vec<TopicDescription>,
}

/// Where clients reach a live broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerDescription {
    pub node: NodeId,
    pub host: String,
    pub port: u16,
}

/// One topic, or why it cannot be described.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicDescription {
    pub name: String,
    pub topic: Uuid,
    /// Kafka's error code; 0 when the topic is known.
    pub code: i16,
    /// In index order.
    pub partitions: Vec<PartitionDescription>,
}

/// One partition as its controller last said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionDescription {
    pub index: i32,
    pub leader: Option<NodeId>,
    pub leader_epoch: i32,
    pub replicas: Vec<NodeId>,
    pub isr: Vec<NodeId>,
    /// Replicas on brokers that are not live.
    pub offline: Vec<NodeId>,
}

impl From<&MetadataResponse> for ClusterDescription {
    fn from(answer: &MetadataResponse) -> ClusterDescription {
        let mut brokers: Vec<BrokerDescription> = answer
            .brokers
            .iter()
            .filter_map(|broker| {
                let port = u16::try_from(broker.port).ok()?;
                Some(BrokerDescription { node: NodeId(broker.node_id), host: broker.host.to_string(), port })
            })
            .collect();
        brokers.sort_by_key(|broker| broker.node);
        let topics = answer.topics.iter().map(|topic| {
            let mut partitions: Vec<PartitionDescription> = topic.partitions.iter().map(describe).collect();
            partitions.sort_by_key(|partition| partition.index);
            TopicDescription {
                name: topic.name.as_ref().map(|name| name.to_string()).unwrap_or_default(),
                topic: topic.topic_id,
                code: topic.error_code,
                partitions,
            }
        });
        ClusterDescription {
            cluster_id: answer.cluster_id.as_ref().map(|id| id.to_string()),
            brokers,
            topics: topics.collect(),
        }
    }
}

fn describe(partition: &MetadataResponsePartition) -> PartitionDescription {
    let nodes = |ids: &[i32]| ids.iter().copied().map(NodeId).collect();
    PartitionDescription {
        index: partition.partition_index,
        leader: Some(NodeId(partition.leader_id)).filter(|node| node.0 >= 0),
        leader_epoch: partition.leader_epoch,
        replicas: nodes(&partition.replica_nodes),
        isr: nodes(&partition.isr_nodes),
        offline: nodes(&partition.offline_replicas),
    }
}
