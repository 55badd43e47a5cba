//! What a node may state when a committed record reaches its image.
//!
//! The shell calls [`MetadataImage::replay_committed`] for every committed record on every node, and hands the
//! observations on where the node is a controller. A restarted controller states the records of its log again, and
//! several controllers state the same ones: the metadata offset says which is which.

use acked_wire::{MetadataRecord, Str};

use super::image::{ImageError, MetadataImage, TOPIC_RESOURCE};
use crate::observation::Observation;
use crate::types::{NodeId, TopicPartition};

impl MetadataImage {
    /// Applies a committed record and states what it changed.
    ///
    /// `BrokerRegistered.clean_shutdown` is what the log says: the broker has no earlier registration, or the earlier
    /// one ended fenced after a controlled shutdown, or it is the same incarnation.
    ///
    /// # Errors
    /// As [`MetadataImage::replay`]; nothing is stated then.
    pub fn replay_committed(
        &mut self,
        offset: i64,
        record: &MetadataRecord,
        observations: &mut Vec<Observation>,
    ) -> Result<(), ImageError> {
        let before = touched_broker(record).and_then(|id| self.broker(id)).cloned();
        self.replay(offset, record)?;
        let after = touched_broker(record).and_then(|id| self.broker(id));
        match record {
            MetadataRecord::RegisterBroker(registration) => {
                observations.push(Observation::BrokerRegistered {
                    broker: NodeId(registration.broker_id),
                    broker_epoch: registration.broker_epoch,
                    incarnation: registration.incarnation_id,
                    clean_shutdown: before.as_ref().is_none_or(|earlier| {
                        earlier.incarnation == registration.incarnation_id
                            || (earlier.fenced && earlier.in_controlled_shutdown)
                    }),
                });
            }
            MetadataRecord::Topic(topic) => observations
                .push(Observation::TopicCreated { name: topic.name.to_string(), topic: topic.topic_id }),
            MetadataRecord::RemoveTopic(topic) => {
                observations.push(Observation::TopicDeleted { topic: topic.topic_id });
            }
            MetadataRecord::Config(config) => {
                let is_topic = config.resource_type == TOPIC_RESOURCE;
                // Settings of a single broker change nothing that is promised.
                if is_topic || config.resource_name.as_str().is_empty() {
                    observations.push(Observation::ConfigChanged {
                        metadata_offset: offset,
                        topic: is_topic.then(|| config.resource_name.to_string()),
                        name: config.name.to_string(),
                        value: config.value.as_ref().map(Str::to_string),
                    });
                }
            }
            MetadataRecord::Partition(partition) => {
                self.state_partition(offset, partition.topic_id, partition.partition_id, observations);
            }
            MetadataRecord::PartitionChange(partition) => {
                self.state_partition(offset, partition.topic_id, partition.partition_id, observations);
            }
            _ => {
                if let (Some(before), Some(after)) = (before, after) {
                    let broker = after.id;
                    if after.in_controlled_shutdown && !before.in_controlled_shutdown {
                        observations.push(Observation::BrokerInControlledShutdown { broker });
                    }
                    match (before.fenced, after.fenced) {
                        (false, true) => observations.push(Observation::BrokerFenced { broker }),
                        (true, false) => observations.push(Observation::BrokerUnfenced { broker }),
                        _ => {}
                    }
                }
            }
        }
        Ok(())
    }

    fn state_partition(
        &self,
        metadata_offset: i64,
        topic: acked_wire::Uuid,
        index: i32,
        observations: &mut Vec<Observation>,
    ) {
        let partition = self.partition(TopicPartition { topic, index }).expect("replayed just now");
        observations
            .push(Observation::PartitionCommitted { state: partition.state.clone(), metadata_offset });
    }
}

fn touched_broker(record: &MetadataRecord) -> Option<NodeId> {
    match record {
        MetadataRecord::RegisterBroker(record) => Some(NodeId(record.broker_id)),
        MetadataRecord::BrokerRegistrationChange(record) => Some(NodeId(record.broker_id)),
        MetadataRecord::FenceBroker(record) => Some(NodeId(record.id)),
        MetadataRecord::UnfenceBroker(record) => Some(NodeId(record.id)),
        _ => None,
    }
}
