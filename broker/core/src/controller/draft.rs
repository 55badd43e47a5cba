//! One decision in the making: records on top of a borrowed image. Later steps of the decision see what its earlier
//! steps would change, yet nothing durable moves until the records are replayed.

use std::collections::BTreeMap;

use acked_wire::{MetadataRecord, PartitionChangeRecord, Str, Uuid};

use super::image::{MetadataImage, ids, merged};
use super::machine::ControllerConfig;
use super::partition_change::{Intent, change};
use super::reassignment::Reassignment;
use crate::observation::{Election, Observation, PartitionState};
use crate::types::{NodeId, TopicPartition};

/// Records of one decision, replayed as a whole or not at all.
#[derive(Debug)]
pub(super) struct Draft<'a> {
    image: &'a MetadataImage,
    config: &'a ControllerConfig,
    controller_epoch: i32,
    /// Offset that the first record will get.
    base_offset: i64,
    /// Brokers whose acceptance this decision changes.
    active: BTreeMap<NodeId, bool>,
    partitions: BTreeMap<TopicPartition, PartitionState>,
    reassignments: BTreeMap<TopicPartition, Reassignment>,
    records: Vec<MetadataRecord>,
    observations: Vec<Observation>,
}

impl<'a> Draft<'a> {
    pub fn new(
        image: &'a MetadataImage,
        config: &'a ControllerConfig,
        controller_epoch: i32,
        base_offset: i64,
    ) -> Draft<'a> {
        assert!(base_offset > image.offset(), "a new record comes after every replayed one");
        Draft {
            image,
            config,
            controller_epoch,
            base_offset,
            active: BTreeMap::new(),
            partitions: BTreeMap::new(),
            reassignments: BTreeMap::new(),
            records: Vec::new(),
            observations: Vec::new(),
        }
    }

    pub fn image(&self) -> &'a MetadataImage {
        self.image
    }

    pub fn config(&self) -> &'a ControllerConfig {
        self.config
    }

    /// Offset that the next record will get.
    pub fn next_offset(&self) -> i64 {
        self.base_offset + i64::try_from(self.records.len()).expect("a decision has few records")
    }

    pub fn base_offset(&self) -> i64 {
        self.base_offset
    }

    pub fn push(&mut self, record: MetadataRecord) {
        self.records.push(record);
    }

    /// From now on `broker` counts as acceptable or not, whatever the image says.
    pub fn set_active(&mut self, broker: NodeId, active: bool) {
        self.active.insert(broker, active);
    }

    pub fn is_active(&self, broker: NodeId) -> bool {
        self.active.get(&broker).copied().unwrap_or_else(|| self.image.is_active(broker))
    }

    /// The state of a partition after the records so far.
    pub fn partition(&self, partition: TopicPartition) -> Option<&PartitionState> {
        self.partitions
            .get(&partition)
            .or_else(|| self.image.partition(partition).map(|partition| &partition.state))
    }

    /// Partitions whose state after the records so far satisfies `select`.
    pub fn select(&self, select: impl Fn(&PartitionState) -> bool) -> Vec<TopicPartition> {
        self.image
            .partitions()
            .map(|partition| self.partitions.get(&partition.state.partition).unwrap_or(&partition.state))
            .filter(|state| select(state))
            .map(|state| state.partition)
            .collect()
    }

    /// Writes down what `intent` changes of a partition. False when it changes nothing.
    pub fn change(&mut self, partition: TopicPartition, intent: &Intent) -> bool {
        let before = self.partition(partition).expect("the caller looked the partition up").clone();
        let unclean_allowed = self.unclean_allowed(partition.topic);
        let under_way = self.reassignment(partition);
        let Some(change) = change(&before, under_way, intent, unclean_allowed, |node| self.is_active(node))
        else {
            return false;
        };
        self.records.push(MetadataRecord::PartitionChange(change.record));
        self.reassignments.insert(partition, change.reassignment);
        self.decided(change.after, change.election, unclean_allowed);
        true
    }

    /// What is under way on a partition after the records so far.
    ///
    /// # Panics
    /// When there is no such partition.
    pub fn reassignment(&self, partition: TopicPartition) -> &Reassignment {
        self.reassignments
            .get(&partition)
            .or_else(|| self.image.partition(partition).map(|partition| &partition.reassignment))
            .expect("the caller looked the partition up")
    }

    /// Gives a partition a new partition epoch, and leaves it as it is otherwise.
    pub fn touch(&mut self, partition: TopicPartition) {
        let before = self.partition(partition).expect("the caller looked the partition up").clone();
        let record = PartitionChangeRecord {
            partition_id: partition.index,
            topic_id: partition.topic,
            isr: Some(ids(&before.isr)),
            ..PartitionChangeRecord::default()
        };
        let after = merged(&before, &record);
        self.records.push(MetadataRecord::PartitionChange(record));
        let unclean_allowed = self.unclean_allowed(partition.topic);
        self.decided(after, None, unclean_allowed);
    }

    /// States the decision on a partition and keeps the state for later steps.
    pub fn decided(&mut self, state: PartitionState, election: Option<Election>, unclean_allowed: bool) {
        let acceptable = state.replicas.iter().copied().filter(|node| self.is_active(*node)).collect();
        self.observations.push(Observation::PartitionDecided {
            controller_epoch: self.controller_epoch,
            state: state.clone(),
            election,
            acceptable,
            unclean_allowed,
        });
        self.partitions.insert(state.partition, state);
    }

    pub fn observe(&mut self, observation: Observation) {
        self.observations.push(observation);
    }

    fn unclean_allowed(&self, topic: Uuid) -> bool {
        let name: &Str = &self.image.topic(topic).expect("the partition's topic exists").name;
        self.image.unclean_leader_election(name, self.config.unclean_leader_election)
    }

    pub fn finish(self) -> (Vec<MetadataRecord>, Vec<Observation>) {
        (self.records, self.observations)
    }
}
