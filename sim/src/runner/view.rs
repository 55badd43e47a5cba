//! What the runner and the nemesis know of the cluster: committed partition states and quorum leadership as the
//! observations tell them. Serves to find the node that plays a role now; judges nothing.

use std::collections::{BTreeMap, BTreeSet};

use acked_core::observation::PartitionState;
use acked_core::{NodeId, Observation, TopicPartition};
use acked_wire::Uuid;

#[derive(Clone, Debug, Default)]
pub struct View {
    topics: BTreeMap<String, Uuid>,
    partitions: BTreeMap<TopicPartition, PartitionState>,
    /// The newest quorum epoch in which a leader was elected, and that leader.
    quorum: Option<(i32, NodeId)>,
    /// Brokers that are registered and unfenced.
    serving: BTreeSet<NodeId>,
    leader_changes: BTreeMap<TopicPartition, u64>,
}

impl View {
    pub fn observe(&mut self, node: NodeId, observation: &Observation) {
        match observation {
            Observation::TopicCreated { name, topic } => {
                self.topics.insert(name.clone(), *topic);
            }
            Observation::PartitionCommitted { state, .. } => {
                let known = self.partitions.get(&state.partition);
                // Every controller states every committed record; the newest by partition epoch counts, once.
                if known.is_some_and(|known| known.partition_epoch >= state.partition_epoch) {
                    return;
                }
                if known.is_some_and(|known| known.leader != state.leader) {
                    *self.leader_changes.entry(state.partition).or_default() += 1;
                }
                self.partitions.insert(state.partition, state.clone());
            }
            Observation::BrokerUnfenced { broker } => {
                self.serving.insert(*broker);
            }
            Observation::BrokerFenced { broker } => {
                self.serving.remove(broker);
            }
            Observation::QuorumLeaderElected { epoch, .. } => {
                let newest = self.quorum.filter(|(known, _)| known >= epoch);
                self.quorum = newest.or(Some((*epoch, node)));
            }
            _ => {}
        }
    }

    /// How many brokers are unfenced, as far as the controllers' logs were replayed.
    pub fn unfenced(&self) -> usize {
        self.serving.len()
    }

    pub fn topic(&self, name: &str) -> Option<Uuid> {
        self.topics.get(name).copied()
    }

    pub fn partition(&self, topic: &str, index: i32) -> Option<&PartitionState> {
        self.partitions.get(&TopicPartition { topic: self.topic(topic)?, index })
    }

    /// How often the partition's leader changed since the topic was created.
    pub fn leader_changes(&self, topic: &str, index: i32) -> u64 {
        let partition = self.topic(topic).map(|topic| TopicPartition { topic, index });
        partition.and_then(|partition| self.leader_changes.get(&partition).copied()).unwrap_or(0)
    }

    pub fn partitions(&self) -> impl Iterator<Item = &PartitionState> {
        self.partitions.values()
    }

    /// The controller that was elected last.
    pub fn controller(&self) -> Option<NodeId> {
        self.quorum.map(|(_, leader)| leader)
    }

    pub fn quorum_epoch(&self) -> Option<i32> {
        self.quorum.map(|(epoch, _)| epoch)
    }
}
