//! What a node is told before it starts.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use acked_core::NodeId;
use acked_core::controller::MetadataImage;
use acked_core::settings::{BrokerSettings, Scope, Settings, TopicSettings};
use acked_wire::Str;

/// `process.roles`: a node is a broker or a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Broker,
    Controller,
}

/// The static configuration of one node.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// `node.id`.
    pub node: NodeId,
    pub role: Role,
    /// Text form of the cluster id; a disk of another cluster is refused.
    pub cluster_id: String,
    /// Where the node listens.
    pub listen: SocketAddr,
    /// What it tells others to connect to.
    pub advertised: (String, u16),
    /// `controller.quorum.voters`.
    pub voters: BTreeMap<NodeId, (String, u16)>,
    pub settings: BrokerSettings,
    /// The settings as they were given: topics fall back to them.
    pub given: Settings,
}

impl NodeConfig {
    /// The settings in force for a topic: its own, over what this node was given, over Kafka's defaults.
    pub fn topic_settings(&self, image: &MetadataImage, topic: &Str) -> TopicSettings {
        let mut own = Settings::default_for(Scope::Topic);
        for (name, value) in image.topic_overrides(topic) {
            // The controller took them in, so they are Kafka's; one that is not modelled has no effect.
            let _ = own.set(name, value);
        }
        TopicSettings::new(&own, &self.given)
    }
}
