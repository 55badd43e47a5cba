//! What the metadata log says up to one offset, as a value: brokers, topics, partitions, settings, feature levels,
//! the next producer id. Every node keeps one of the committed records; the active controller keeps a second one
//! that is replayed through its own pending records.
//!
//! It decides nothing: `replay` applies what a record says or refuses a record that contradicts the log before it.
//! Not modelled: access control, quotas, delegation tokens, log directories that fail.
//! Source: the metadata record schemas of Kafka 4.3.1.

use std::collections::{BTreeMap, BTreeSet};

use acked_wire::{
    BrokerRegistrationChangeRecord, ConfigRecord, MetadataRecord, PartitionChangeRecord, PartitionRecord,
    RegisterBrokerRecord, Str, Uuid,
};

use super::reassignment::Reassignment;
use crate::observation::PartitionState;
use crate::settings::{Scope, Settings, TopicSettings};
use crate::types::{NodeId, TopicPartition};

/// `resourceType` of a topic's settings in a `ConfigRecord`.
pub(super) const TOPIC_RESOURCE: i8 = 2;
/// `resourceType` of broker settings in a `ConfigRecord`; the empty name is the cluster's default.
pub(super) const BROKER_RESOURCE: i8 = 4;
/// `leader` in records when nobody leads.
pub(super) const NO_LEADER: i32 = -1;
/// `leader` in a change record that keeps the leader and its epoch.
pub(super) const LEADER_UNCHANGED: i32 = -2;

/// One way to reach a broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub listener: Str,
    pub host: Str,
    pub port: u16,
    /// Kafka's number of the security protocol; 0 is PLAINTEXT.
    pub security_protocol: i16,
}

/// A registered broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broker {
    pub id: NodeId,
    /// Offset of the first record of the batch that registered this incarnation.
    pub epoch: i64,
    pub incarnation: Uuid,
    /// Offset of the registration record itself: a broker whose metadata reached it may be unfenced.
    pub registration_offset: i64,
    pub endpoints: Vec<Endpoint>,
    pub rack: Option<Str>,
    pub directories: Vec<Uuid>,
    pub fenced: bool,
    pub in_controlled_shutdown: bool,
}

impl Broker {
    /// Whether it may lead and be in sync: unfenced and not shutting down.
    pub fn is_active(&self) -> bool {
        !self.fenced && !self.in_controlled_shutdown
    }
}

/// A partition as the records say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    pub state: PartitionState,
    /// The log directory of each replica, in the order of `state.replicas`; zero when not assigned.
    pub directories: Vec<Uuid>,
    pub reassignment: Reassignment,
}

/// A topic with its partitions by index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    pub name: Str,
    pub partitions: BTreeMap<i32, Partition>,
}

/// What changed since the last [`MetadataImage::take_changes`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    pub brokers: BTreeSet<NodeId>,
    /// Created, changed, or under a topic or default setting that changed.
    pub partitions: BTreeSet<TopicPartition>,
    /// Partitions of removed topics.
    pub removed: BTreeSet<TopicPartition>,
}

impl Changes {
    pub fn is_empty(&self) -> bool {
        self.brokers.is_empty() && self.partitions.is_empty() && self.removed.is_empty()
    }
}

/// A record that contradicts the log before it, or that this version does not model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    #[error("replay record at {offset}: the log was already replayed through {replayed}")]
    OutOfOrder { offset: i64, replayed: i64 },
    #[error("replay record at {offset}: broker {broker} is not registered in epoch {epoch}")]
    UnknownBroker { offset: i64, broker: i32, epoch: i64 },
    #[error("replay record at {offset}: topic {topic} does not exist")]
    UnknownTopic { offset: i64, topic: Uuid },
    #[error("replay record at {offset}: partition {index} of topic {topic} does not exist")]
    UnknownPartition { offset: i64, topic: Uuid, index: i32 },
    #[error("replay record at {offset}: topic {name} exists")]
    TopicExists { offset: i64, name: String },
    #[error("replay record at {offset}: negative identifier or epoch")]
    Negative { offset: i64 },
    #[error("replay record at {offset}: {what} is not modelled")]
    NotModelled { offset: i64, what: &'static str },
}

/// The metadata of the cluster after every record through `offset`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataImage {
    offset: i64,
    brokers: BTreeMap<NodeId, Broker>,
    topics: BTreeMap<Uuid, Topic>,
    topic_ids: BTreeMap<Str, Uuid>,
    configs: BTreeMap<(i8, Str), BTreeMap<Str, Str>>,
    features: BTreeMap<Str, i16>,
    next_producer_id: i64,
    changes: Changes,
}

impl Default for MetadataImage {
    fn default() -> Self {
        MetadataImage {
            offset: -1,
            brokers: BTreeMap::new(),
            topics: BTreeMap::new(),
            topic_ids: BTreeMap::new(),
            configs: BTreeMap::new(),
            features: BTreeMap::new(),
            next_producer_id: 0,
            changes: Changes::default(),
        }
    }
}

impl MetadataImage {
    /// Applies the record at `offset`. Offsets grow; control records of the quorum leave gaps.
    ///
    /// # Errors
    /// [`ImageError`] when the record contradicts the log before it or is not modelled; the image is then as it
    /// was. A node that meets one cannot follow the log any further.
    pub fn replay(&mut self, offset: i64, record: &MetadataRecord) -> Result<(), ImageError> {
        if offset <= self.offset {
            return Err(ImageError::OutOfOrder { offset, replayed: self.offset });
        }
        match record {
            MetadataRecord::RegisterBroker(record) => self.register_broker(offset, record)?,
            MetadataRecord::UnregisterBroker(record) => {
                self.broker_in_epoch(offset, record.broker_id, record.broker_epoch)?;
                self.brokers.remove(&NodeId(record.broker_id));
                self.changes.brokers.insert(NodeId(record.broker_id));
            }
            MetadataRecord::FenceBroker(record) => {
                self.broker_in_epoch(offset, record.id, record.epoch)?.fenced = true;
                self.changes.brokers.insert(NodeId(record.id));
            }
            MetadataRecord::UnfenceBroker(record) => {
                self.broker_in_epoch(offset, record.id, record.epoch)?.fenced = false;
                self.changes.brokers.insert(NodeId(record.id));
            }
            MetadataRecord::BrokerRegistrationChange(record) => self.change_broker(offset, record)?,
            MetadataRecord::Topic(record) => self.create_topic(offset, record.topic_id, &record.name)?,
            MetadataRecord::RemoveTopic(record) => self.remove_topic(offset, record.topic_id)?,
            MetadataRecord::Partition(record) => self.create_partition(offset, record)?,
            MetadataRecord::PartitionChange(record) => self.change_partition(offset, record)?,
            MetadataRecord::Config(record) => self.change_config(record),
            MetadataRecord::FeatureLevel(record) => {
                if record.feature_level == 0 {
                    self.features.remove(&record.name);
                } else {
                    self.features.insert(record.name.detached(), record.feature_level);
                }
            }
            MetadataRecord::ProducerIds(record) => {
                if record.next_producer_id < 0 {
                    return Err(ImageError::Negative { offset });
                }
                self.next_producer_id = record.next_producer_id;
            }
            MetadataRecord::ClearElr(record) => self.clear_elr(&record.topic_name),
            // The quorum commits a batch as a whole here, so a transaction's bounds carry nothing to apply.
            MetadataRecord::NoOp(_)
            | MetadataRecord::RegisterController(_)
            | MetadataRecord::BeginTransaction(_)
            | MetadataRecord::EndTransaction(_) => {}
            MetadataRecord::AbortTransaction(_) => {
                return Err(ImageError::NotModelled { offset, what: "an aborted metadata transaction" });
            }
            other => return Err(ImageError::NotModelled { offset, what: other.name() }),
        }
        self.offset = offset;
        Ok(())
    }

    fn register_broker(&mut self, offset: i64, record: &RegisterBrokerRecord) -> Result<(), ImageError> {
        if record.broker_id < 0 || record.broker_epoch < 0 {
            return Err(ImageError::Negative { offset });
        }
        let id = NodeId(record.broker_id);
        let endpoints = record.end_points.iter().map(|endpoint| Endpoint {
            listener: endpoint.name.detached(),
            host: endpoint.host.detached(),
            port: endpoint.port,
            security_protocol: endpoint.security_protocol,
        });
        let broker = Broker {
            id,
            epoch: record.broker_epoch,
            incarnation: record.incarnation_id,
            registration_offset: offset,
            endpoints: endpoints.collect(),
            rack: record.rack.as_ref().map(Str::detached),
            directories: record.log_dirs.clone(),
            fenced: record.fenced,
            in_controlled_shutdown: record.in_controlled_shutdown,
        };
        self.brokers.insert(id, broker);
        self.changes.brokers.insert(id);
        Ok(())
    }

    fn change_broker(
        &mut self,
        offset: i64,
        record: &BrokerRegistrationChangeRecord,
    ) -> Result<(), ImageError> {
        let broker = self.broker_in_epoch(offset, record.broker_id, record.broker_epoch)?;
        match record.fenced {
            1 => broker.fenced = true,
            -1 => broker.fenced = false,
            _ => {}
        }
        if record.in_controlled_shutdown == 1 {
            broker.in_controlled_shutdown = true;
        }
        if !record.log_dirs.is_empty() {
            broker.directories.clone_from(&record.log_dirs);
        }
        self.changes.brokers.insert(NodeId(record.broker_id));
        Ok(())
    }

    fn broker_in_epoch(&mut self, offset: i64, broker: i32, epoch: i64) -> Result<&mut Broker, ImageError> {
        self.brokers
            .get_mut(&NodeId(broker))
            .filter(|registered| registered.epoch == epoch)
            .ok_or(ImageError::UnknownBroker { offset, broker, epoch })
    }

    fn create_topic(&mut self, offset: i64, id: Uuid, name: &Str) -> Result<(), ImageError> {
        if self.topics.contains_key(&id) || self.topic_ids.contains_key(name) {
            return Err(ImageError::TopicExists { offset, name: name.to_string() });
        }
        let name = name.detached();
        self.topics.insert(id, Topic { name: name.clone(), partitions: BTreeMap::new() });
        self.topic_ids.insert(name, id);
        Ok(())
    }

    fn remove_topic(&mut self, offset: i64, id: Uuid) -> Result<(), ImageError> {
        let topic = self.topics.remove(&id).ok_or(ImageError::UnknownTopic { offset, topic: id })?;
        self.topic_ids.remove(&topic.name);
        self.configs.remove(&(TOPIC_RESOURCE, topic.name));
        for index in topic.partitions.into_keys() {
            let partition = TopicPartition { topic: id, index };
            self.changes.partitions.remove(&partition);
            self.changes.removed.insert(partition);
        }
        Ok(())
    }

    fn create_partition(&mut self, offset: i64, record: &PartitionRecord) -> Result<(), ImageError> {
        if record.partition_id < 0 {
            return Err(ImageError::Negative { offset });
        }
        let topic = self
            .topics
            .get_mut(&record.topic_id)
            .ok_or(ImageError::UnknownTopic { offset, topic: record.topic_id })?;
        let partition = TopicPartition { topic: record.topic_id, index: record.partition_id };
        let state = PartitionState {
            partition,
            replicas: nodes(&record.replicas),
            isr: nodes(&record.isr),
            elr: record.eligible_leader_replicas.as_deref().map(nodes).unwrap_or_default(),
            leader: leader(record.leader),
            leader_epoch: record.leader_epoch,
            partition_epoch: record.partition_epoch,
            recovering: record.leader_recovery_state == 1,
        };
        let reassignment = Reassignment {
            adding: nodes(&record.adding_replicas),
            removing: nodes(&record.removing_replicas),
        };
        let directories = record.directories.clone();
        topic.partitions.insert(record.partition_id, Partition { state, directories, reassignment });
        self.changes.partitions.insert(partition);
        Ok(())
    }

    fn change_partition(&mut self, offset: i64, record: &PartitionChangeRecord) -> Result<(), ImageError> {
        let unknown =
            ImageError::UnknownPartition { offset, topic: record.topic_id, index: record.partition_id };
        let partition = self
            .topics
            .get_mut(&record.topic_id)
            .and_then(|topic| topic.partitions.get_mut(&record.partition_id))
            .ok_or(unknown)?;
        let before = partition.state.replicas.clone();
        partition.state = merged(&partition.state, record);
        match &record.directories {
            Some(directories) => partition.directories.clone_from(directories),
            None if partition.state.replicas != before => {
                // Replicas that stay keep their directories; the others choose, and report it.
                let known = std::mem::take(&mut partition.directories);
                let directory = |node: &NodeId| {
                    let place = before.iter().position(|other| other == node);
                    place.and_then(|place| known.get(place)).copied().unwrap_or(Uuid::ZERO)
                };
                partition.directories = partition.state.replicas.iter().map(directory).collect();
            }
            None => {}
        }
        if let Some(adding) = &record.adding_replicas {
            partition.reassignment.adding = nodes(adding);
        }
        if let Some(removing) = &record.removing_replicas {
            partition.reassignment.removing = nodes(removing);
        }
        self.changes.partitions.insert(partition.state.partition);
        Ok(())
    }

    /// Forgets the eligible leader replicas of a topic, or of all topics when the name is empty.
    fn clear_elr(&mut self, name: &Str) {
        for topic in self.topics.values_mut().filter(|topic| name.is_empty() || topic.name == *name) {
            for partition in topic.partitions.values_mut().filter(|partition| !partition.state.elr.is_empty())
            {
                partition.state.elr.clear();
                self.changes.partitions.insert(partition.state.partition);
            }
        }
    }

    fn change_config(&mut self, record: &ConfigRecord) {
        let key = (record.resource_type, record.resource_name.detached());
        let settings = self.configs.entry(key.clone()).or_default();
        match &record.value {
            Some(value) => {
                settings.insert(record.name.detached(), value.detached());
            }
            None => {
                settings.remove(&record.name);
            }
        }
        if settings.is_empty() {
            self.configs.remove(&key);
        }
        let touched: Vec<TopicPartition> = match record.resource_type {
            TOPIC_RESOURCE => self
                .topic_id(&record.resource_name)
                .and_then(|id| self.topics.get(&id))
                .into_iter()
                .flat_map(|topic| topic.partitions.values().map(|partition| partition.state.partition))
                .collect(),
            BROKER_RESOURCE => self.partitions().map(|partition| partition.state.partition).collect(),
            _ => Vec::new(),
        };
        self.changes.partitions.extend(touched);
    }

    /// Offset of the last replayed record; −1 before the first.
    pub fn offset(&self) -> i64 {
        self.offset
    }

    /// Whether no record was ever replayed: the log has not been bootstrapped.
    pub fn is_empty(&self) -> bool {
        self.features.is_empty() && self.brokers.is_empty() && self.topics.is_empty()
    }

    pub fn brokers(&self) -> impl Iterator<Item = &Broker> {
        self.brokers.values()
    }

    pub fn broker(&self, id: NodeId) -> Option<&Broker> {
        self.brokers.get(&id)
    }

    /// Whether `id` may lead and be in sync (kafka-rules 5, "acceptable").
    pub fn is_active(&self, id: NodeId) -> bool {
        self.brokers.get(&id).is_some_and(Broker::is_active)
    }

    /// Topics by id.
    pub fn topics(&self) -> impl Iterator<Item = (Uuid, &Topic)> {
        self.topics.iter().map(|(id, topic)| (*id, topic))
    }

    /// Names and ids, sorted by name.
    pub fn topic_names(&self) -> impl Iterator<Item = (&Str, Uuid)> {
        self.topic_ids.iter().map(|(name, id)| (name, *id))
    }

    pub fn topic(&self, id: Uuid) -> Option<&Topic> {
        self.topics.get(&id)
    }

    pub fn topic_id(&self, name: &Str) -> Option<Uuid> {
        self.topic_ids.get(name).copied()
    }

    pub fn partition(&self, partition: TopicPartition) -> Option<&Partition> {
        self.topics.get(&partition.topic)?.partitions.get(&partition.index)
    }

    /// Every partition, by topic id and index.
    pub fn partitions(&self) -> impl Iterator<Item = &Partition> {
        self.topics.values().flat_map(|topic| topic.partitions.values())
    }

    /// Finalized feature levels by name; level 0 is absent.
    pub fn features(&self) -> impl Iterator<Item = (&Str, i16)> {
        self.features.iter().map(|(name, level)| (name, *level))
    }

    /// First id of the next block of producer ids.
    pub fn next_producer_id(&self) -> i64 {
        self.next_producer_id
    }

    /// The settings of a topic that were given for it, by name.
    pub fn topic_overrides(&self, topic: &Str) -> impl Iterator<Item = (&Str, &Str)> {
        self.configs.get(&(TOPIC_RESOURCE, topic.clone())).into_iter().flatten()
    }

    /// The text of a topic's setting: its own, else the cluster's dynamic default under the broker's name of the
    /// setting; `None` leaves the node's static value. (kafka-rules 4, "where min.insync.replicas lives".)
    pub fn topic_config(&self, topic: &Str, name: &str) -> Option<&Str> {
        let own = self.configs.get(&(TOPIC_RESOURCE, topic.clone()));
        if let Some(value) = own.and_then(|settings| settings.get(&Str::from(name))) {
            return Some(value);
        }
        let defaults = self.configs.get(&(BROKER_RESOURCE, Str::default()))?;
        defaults.get(&broker_name(name))
    }

    /// The value that a resource has for itself, without the defaults of others.
    pub fn own_config(&self, resource_type: i8, resource: &Str, name: &Str) -> Option<&Str> {
        self.configs.get(&(resource_type, resource.clone()))?.get(name)
    }

    /// Effective min.insync.replicas of a topic: its setting, or `fallback` (the node's static value), and never
    /// more than `replicas`. At least 1.
    pub fn min_insync_replicas(&self, topic: &Str, replicas: usize, fallback: i32) -> i32 {
        let configured = self.topic_config(topic, "min.insync.replicas");
        let wanted = configured.and_then(|text| text.parse().ok()).unwrap_or(fallback);
        let most = i32::try_from(replicas).unwrap_or(i32::MAX);
        wanted.min(most).max(1)
    }

    /// Whether an unclean election is allowed for a topic; `fallback` is the node's static value.
    pub fn unclean_leader_election(&self, topic: &Str, fallback: bool) -> bool {
        match self.topic_config(topic, "unclean.leader.election.enable") {
            Some(text) => text.eq_ignore_ascii_case("true"),
            None => fallback,
        }
    }

    /// What is in force for a topic on a node with the static settings `broker`.
    pub fn topic_settings(&self, topic: &Str, broker: &Settings) -> TopicSettings {
        let mut own = Settings::default_for(Scope::Topic);
        let mut node = broker.clone();
        // A text out of range can only come from another version's log; the static value then stays in force.
        for (name, value) in self.topic_overrides(topic) {
            let _ = own.set(name, value);
        }
        for (name, value) in self.configs.get(&(BROKER_RESOURCE, Str::default())).into_iter().flatten() {
            let _ = node.set(name, value);
        }
        TopicSettings::new(&own, &node)
    }

    /// Gives what changed since the last call and forgets it.
    pub fn take_changes(&mut self) -> Changes {
        std::mem::take(&mut self.changes)
    }
}

/// The state after a change record: the partition epoch grows with every record, the leader epoch with every
/// record that names a leader or takes it away.
pub(super) fn merged(before: &PartitionState, record: &PartitionChangeRecord) -> PartitionState {
    assert_eq!(before.partition.topic, record.topic_id, "record of another topic");
    assert_eq!(before.partition.index, record.partition_id, "record of another partition");
    let mut after = before.clone();
    if let Some(replicas) = &record.replicas {
        after.replicas = nodes(replicas);
    }
    if let Some(isr) = &record.isr {
        after.isr = nodes(isr);
    }
    if let Some(elr) = &record.eligible_leader_replicas {
        after.elr = nodes(elr);
    }
    if record.leader != LEADER_UNCHANGED {
        after.leader = leader(record.leader);
        after.leader_epoch += 1;
    }
    match record.leader_recovery_state {
        0 => after.recovering = false,
        1 => after.recovering = true,
        _ => {}
    }
    after.partition_epoch += 1;
    assert!(after.leader_epoch >= before.leader_epoch, "leader epoch of {:?} fell", before.partition);
    assert!(
        after.partition_epoch > before.partition_epoch,
        "partition epoch of {:?} stood",
        before.partition
    );
    after
}

pub(super) fn nodes(ids: &[i32]) -> Vec<NodeId> {
    ids.iter().map(|id| NodeId(*id)).collect()
}

pub(super) fn ids(nodes: &[NodeId]) -> Vec<i32> {
    nodes.iter().map(|node| node.0).collect()
}

fn leader(id: i32) -> Option<NodeId> {
    (id >= 0).then_some(NodeId(id))
}

/// The broker's name of a topic setting. Most are the topic's with `log.` in front.
fn broker_name(topic_setting: &str) -> Str {
    match topic_setting {
        "min.insync.replicas" | "unclean.leader.election.enable" | "compression.type" => {
            Str::from(topic_setting)
        }
        "max.message.bytes" => Str::from_static("message.max.bytes"),
        "flush.messages" => Str::from_static("log.flush.interval.messages"),
        "flush.ms" => Str::from_static("log.flush.interval.ms"),
        "file.delete.delay.ms" => Str::from_static("log.segment.delete.delay.ms"),
        "segment.ms" => Str::from_static("log.roll.ms"),
        "segment.jitter.ms" => Str::from_static("log.roll.jitter.ms"),
        other => Str::from(format!("log.{other}")),
    }
}
