//! What a broker says about its cluster, in the shape that administrators and tests ask for.

use acked_wire::Uuid;

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
