//! A client's view of the cluster: where brokers are, and who leads what. Decides which of two views of a leader is
//! newer; does not decide when to ask.

use std::collections::BTreeMap;
use std::sync::Arc;

use acked_wire::api::metadata::{MetadataRequest, MetadataRequestTopic, MetadataResponse};
use acked_wire::{Str, Uuid, error_code};

use crate::NodeId;

/// Where clients reach a broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub host: Arc<str>,
    pub port: u16,
}

/// Who leads a partition, as far as this client knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leader {
    pub node: Option<NodeId>,
    /// `-1` when the broker did not say.
    pub leader_epoch: i32,
}

#[derive(Debug, Default)]
struct TopicView {
    topic: Uuid,
    code: i16,
    partitions: BTreeMap<i32, Leader>,
}

/// What this client learned last. Empty before the first answer.
#[derive(Debug, Default)]
pub struct ClusterView {
    brokers: BTreeMap<NodeId, Address>,
    topics: BTreeMap<Arc<str>, TopicView>,
    names: BTreeMap<Uuid, Arc<str>>,
}

impl ClusterView {
    pub fn brokers(&self) -> &BTreeMap<NodeId, Address> {
        &self.brokers
    }

    pub fn address(&self, node: NodeId) -> Option<&Address> {
        self.brokers.get(&node)
    }

    /// The id of a topic that exists.
    pub fn topic_id(&self, name: &str) -> Option<Uuid> {
        self.topics.get(name).filter(|topic| topic.code == error_code::NONE).map(|topic| topic.topic)
    }

    pub fn topic_name(&self, topic: Uuid) -> Option<&Arc<str>> {
        self.names.get(&topic)
    }

    /// Why a topic cannot be used, as the last answer said; 0 when it can, or when nothing is known of it.
    pub fn topic_code(&self, name: &str) -> i16 {
        self.topics.get(name).map_or(error_code::NONE, |topic| topic.code)
    }

    /// `None` when the topic or the partition is not known.
    pub fn leader(&self, name: &str, partition: i32) -> Option<Leader> {
        self.topics.get(name).and_then(|topic| topic.partitions.get(&partition)).copied()
    }

    /// The node that leads the partition and where it is, when both are known.
    pub fn leader_node(&self, name: &str, partition: i32) -> Option<NodeId> {
        self.leader(name, partition)?.node.filter(|node| self.brokers.contains_key(node))
    }

    /// A request for the named topics; with none, for the brokers alone.
    pub fn request<'a>(
        names: impl Iterator<Item = &'a Arc<str>>,
        allow_auto_topic_creation: bool,
    ) -> MetadataRequest {
        let topics = names
            .map(|name| MetadataRequestTopic { name: Some(Str::from(&**name)), ..Default::default() })
            .collect();
        MetadataRequest { topics: Some(topics), allow_auto_topic_creation, ..Default::default() }
    }

    /// Takes an answer in. Brokers are replaced, topics merged: a leader of a lower epoch than known, of the same
    /// topic id, comes from a broker that lags and is ignored. False when the answer names no broker: it is then
    /// ignored as a whole, for it comes from a broker that has just started.
    pub fn update(&mut self, answer: &MetadataResponse) -> bool {
        if answer.brokers.is_empty() || answer.error_code != error_code::NONE {
            return false;
        }
        self.brokers.clear();
        for broker in &answer.brokers {
            // A port that is no port makes the broker unreachable for this client, and harms nobody else.
            if let Ok(port) = u16::try_from(broker.port) {
                self.learn_address(NodeId(broker.node_id), &broker.host, port);
            }
        }
        for topic in &answer.topics {
            let Some(name) = &topic.name else { continue };
            let name = self.interned(name.as_str());
            let view = self.topics.entry(name.clone()).or_default();
            view.code = topic.error_code;
            if topic.error_code != error_code::NONE {
                continue;
            }
            if view.topic != topic.topic_id {
                self.names.remove(&view.topic);
                *view = TopicView { topic: topic.topic_id, ..Default::default() };
            }
            self.names.insert(topic.topic_id, name);
            for partition in &topic.partitions {
                let node = Some(NodeId(partition.leader_id)).filter(|node| node.0 >= 0);
                let leader = Leader { node, leader_epoch: partition.leader_epoch };
                learn(view, partition.partition_index, leader);
            }
        }
        true
    }

    /// Takes in what an error answer said about a leader (KIP-951).
    pub fn learn_leader(&mut self, topic: Uuid, partition: i32, leader: NodeId, leader_epoch: i32) -> bool {
        let Some(view) = self.names.get(&topic).and_then(|name| self.topics.get_mut(name)) else {
            return false;
        };
        match view.partitions.get(&partition) {
            Some(known) if known.leader_epoch < leader_epoch && leader.0 >= 0 => {
                learn(view, partition, Leader { node: Some(leader), leader_epoch });
                true
            }
            _ => false,
        }
    }

    pub fn learn_address(&mut self, node: NodeId, host: &str, port: u16) {
        self.brokers.insert(node, Address { host: host.into(), port });
    }

    fn interned(&self, name: &str) -> Arc<str> {
        self.topics.get_key_value(name).map_or_else(|| name.into(), |(name, _)| name.clone())
    }
}

fn learn(view: &mut TopicView, partition: i32, leader: Leader) {
    let known = view.partitions.entry(partition).or_insert(leader);
    if leader.leader_epoch >= known.leader_epoch || leader.leader_epoch < 0 {
        *known = leader;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use acked_wire::api::metadata::{
        MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
    };

    use super::*;

    /// An answer with brokers 1.. at `b<id>:9092` and one topic `t` whose partitions are led as given.
    pub(crate) fn answer(brokers: i32, leaders: &[(i32, i32)]) -> MetadataResponse {
        MetadataResponse {
            brokers: (1..=brokers)
                .map(|node| MetadataResponseBroker {
                    node_id: node,
                    host: Str::from(format!("b{node}").as_str()),
                    port: 9092,
                    ..Default::default()
                })
                .collect(),
            topics: vec![MetadataResponseTopic {
                name: Some(Str::from("t")),
                topic_id: Uuid([7; 16]),
                partitions: leaders
                    .iter()
                    .enumerate()
                    .map(|(index, (leader, epoch))| MetadataResponsePartition {
                        partition_index: i32::try_from(index).expect("few"),
                        leader_id: *leader,
                        leader_epoch: *epoch,
                        ..Default::default()
                    })
                    .collect(),
                ..Default::default()
            }],
            ..Default::default()
        }
    }

    #[test]
    fn leader_of_a_lower_epoch_is_ignored() {
        let mut view = ClusterView::default();
        assert!(view.update(&answer(3, &[(1, 5)])));
        assert!(view.update(&answer(3, &[(2, 4)])));
        assert_eq!(view.leader("t", 0), Some(Leader { node: Some(NodeId(1)), leader_epoch: 5 }));
        assert!(view.update(&answer(3, &[(-1, 6)])));
        assert_eq!(view.leader_node("t", 0), None);
    }

    #[test]
    fn topic_made_anew_starts_over() {
        let mut view = ClusterView::default();
        assert!(view.update(&answer(3, &[(1, 5), (2, 5)])));
        let mut anew = answer(3, &[(3, 0)]);
        anew.topics[0].topic_id = Uuid([8; 16]);
        assert!(view.update(&anew));
        assert_eq!(view.leader_node("t", 0), Some(NodeId(3)));
        assert_eq!(view.leader("t", 1), None);
        assert_eq!(view.topic_name(Uuid([7; 16])), None);
    }

    #[test]
    fn answer_without_brokers_changes_nothing() {
        let mut view = ClusterView::default();
        assert!(view.update(&answer(3, &[(1, 5)])));
        assert!(!view.update(&answer(0, &[(2, 9)])));
        assert_eq!(view.leader_node("t", 0), Some(NodeId(1)));
    }

    #[test]
    fn leader_named_by_an_error_answer_counts_when_newer() {
        let mut view = ClusterView::default();
        assert!(view.update(&answer(3, &[(1, 5)])));
        assert!(!view.learn_leader(Uuid([7; 16]), 0, NodeId(2), 5));
        assert!(view.learn_leader(Uuid([7; 16]), 0, NodeId(2), 6));
        assert_eq!(view.leader_node("t", 0), Some(NodeId(2)));
    }
}
