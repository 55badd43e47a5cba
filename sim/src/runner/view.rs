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
    /// The newest quorum epoch in which a leader was elected, and that leader until it resigned or began anew.
    quorum: Option<(i32, Option<NodeId>)>,
    /// Brokers that are registered and unfenced.
    serving: BTreeSet<NodeId>,
    leader_changes: BTreeMap<TopicPartition, u64>,
    votes_granted: u64,
    /// How often each node came through its recovery.
    starts: BTreeMap<NodeId, u64>,
    /// How often each replica left the in-sync set of a partition.
    departures: BTreeMap<(TopicPartition, NodeId), u64>,
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
                let left =
                    known.into_iter().flat_map(|known| &known.isr).filter(|node| !state.isr.contains(node));
                for node in left {
                    *self.departures.entry((state.partition, *node)).or_default() += 1;
                }
                self.partitions.insert(state.partition, state.clone());
            }
            Observation::BrokerUnfenced { broker } => {
                self.serving.insert(*broker);
            }
            Observation::BrokerFenced { broker } => {
                self.serving.remove(broker);
            }
            Observation::VoteGranted { candidate, .. } if *candidate != node => self.votes_granted += 1,
            Observation::QuorumLeaderElected { epoch, .. } => {
                let newest = self.quorum.filter(|(known, _)| known >= epoch);
                self.quorum = newest.or(Some((*epoch, Some(node))));
            }
            Observation::QuorumLeaderResigned { epoch } => self.vacate(|known, _| known == *epoch),
            Observation::NodeStarted { .. } => {
                *self.starts.entry(node).or_default() += 1;
                self.vacate(|_, leader| leader == Some(node));
            }
            _ => {}
        }
    }

    /// Nobody leads the quorum, if what is known of its leader says so.
    fn vacate(&mut self, is_over: impl Fn(i32, Option<NodeId>) -> bool) {
        if let Some((epoch, leader)) = &mut self.quorum
            && is_over(*epoch, *leader)
        {
            *leader = None;
        }
    }

    /// How many brokers are unfenced, as far as the controllers' logs were replayed.
    pub fn unfenced(&self) -> usize {
        self.serving.len()
    }

    /// How often a replica left the in-sync set of a partition.
    pub fn departures(&self, partition: TopicPartition, node: NodeId) -> u64 {
        self.departures.get(&(partition, node)).copied().unwrap_or(0)
    }

    /// Every replica of every partition is in sync, as far as the committed metadata know.
    pub fn all_in_sync(&self) -> bool {
        self.partitions.values().all(|state| state.isr.len() == state.replicas.len())
    }

    /// How often a node came through its recovery and began to serve.
    pub fn starts(&self, node: NodeId) -> u64 {
        self.starts.get(&node).copied().unwrap_or(0)
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

    /// Votes of the metadata quorum that were granted to others than the voter.
    pub fn votes_granted(&self) -> u64 {
        self.votes_granted
    }

    pub fn partitions(&self) -> impl Iterator<Item = &PartitionState> {
        self.partitions.values()
    }

    /// The controller that was elected last; `None` once it resigned or began anew and nobody followed it.
    pub fn controller(&self) -> Option<NodeId> {
        self.quorum.and_then(|(_, leader)| leader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quorum_is_vacant_once_its_leader_resigned_or_began_anew() {
        let (c1, c2) = (NodeId(101), NodeId(102));
        let elected = |epoch| Observation::QuorumLeaderElected { epoch, log_end_offset: 0 };
        let started = Observation::NodeStarted { incarnation: Uuid::ZERO };
        let mut view = View::default();
        view.observe(c1, &elected(1));
        view.observe(c2, &started);
        assert_eq!(view.controller(), Some(c1), "another node's start changes nothing");
        view.observe(c1, &started);
        assert_eq!(view.controller(), None);
        view.observe(c2, &elected(2));
        view.observe(c1, &Observation::QuorumLeaderResigned { epoch: 1 });
        assert_eq!(view.controller(), Some(c2), "an older epoch's end changes nothing");
        view.observe(c2, &Observation::QuorumLeaderResigned { epoch: 2 });
        assert_eq!(view.controller(), None);
    }
}
