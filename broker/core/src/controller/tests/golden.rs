//! A metadata log that a real Apache Kafka 4.3.1 controller wrote: the image follows it to its end, and where a
//! leader went, this controller would have elected the same one.

use acked_wire::batch::batches;
use acked_wire::{MetadataRecord, PartitionChangeRecord, Str};
use bytes::Bytes;

use crate::controller::image::nodes;
use crate::controller::partition_change::{Intent, change};
use crate::controller::{METADATA_VERSION, MetadataImage};
use crate::observation::PartitionState;
use crate::types::{NodeId, TopicPartition};

const LOG: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../wire/tests/golden/disk/__cluster_metadata-0/00000000000000000000.log"
);

fn records() -> Vec<(i64, MetadataRecord)> {
    let bytes = std::fs::read(LOG).expect("the golden log is there");
    let mut records = Vec::new();
    for batch in batches(&bytes) {
        let batch = batch.expect("the golden log holds whole batches");
        if batch.header.is_control() {
            continue;
        }
        for record in batch.records().expect("not compressed") {
            let record = record.expect("a whole record");
            let value = Bytes::copy_from_slice(record.value.expect("a metadata record has a value"));
            records.push((record.offset, MetadataRecord::decode(&value).expect("a known record")));
        }
    }
    records
}

/// The one broker that a record takes out of the ISR.
fn leaver(before: &PartitionState, record: &PartitionChangeRecord) -> Option<NodeId> {
    let isr = nodes(record.isr.as_ref()?);
    let gone: Vec<NodeId> = before.isr.iter().copied().filter(|member| !isr.contains(member)).collect();
    (gone.len() == 1 && isr.iter().all(|member| before.isr.contains(member))).then(|| gone[0])
}

#[test]
fn image_follows_the_log_of_a_real_controller() {
    let mut image = MetadataImage::default();
    for (offset, record) in records() {
        image.replay(offset, &record).expect("the log holds together");
    }
    assert_eq!(image.offset(), 340);
    assert_eq!(image.brokers().count(), 3);
    assert_eq!(image.topic_names().count(), 6);
    assert_eq!(image.partitions().count(), 12);
    assert_eq!(image.next_producer_id(), 3000);
    assert_eq!(image.min_insync_replicas(&Str::from("__transaction_state"), 3, 1), 2);
    assert_eq!(image.min_insync_replicas(&Str::from("compacted"), 3, 3), 1, "the cluster's default");
    let level = image.features().find(|(name, _)| **name == "metadata.version").map(|(_, level)| level);
    assert_eq!(level, Some(METADATA_VERSION));
}

#[test]
fn leaders_follow_as_a_real_controller_elected_them() {
    let mut image = MetadataImage::default();
    let mut departures = 0;
    for (offset, record) in records() {
        if let MetadataRecord::PartitionChange(record) = &record {
            let partition = TopicPartition { topic: record.topic_id, index: record.partition_id };
            let before = &image.partition(partition).expect("it exists").state;
            // A leader left: the broker was fenced or is stopping.
            if let Some(left) = leaver(before, record).filter(|left| before.leader == Some(*left)) {
                let ours = change(
                    before,
                    &crate::controller::Reassignment::default(),
                    &Intent::without(before, left),
                    false,
                    |node| node != left && image.is_active(node),
                );
                let ours = ours.expect("a leader that leaves is a change").record;
                // The real one ran with ELR, which lets the last member go; without it that member stays.
                let theirs = record.isr.as_ref().filter(|isr| !isr.is_empty());
                assert_eq!((ours.isr.as_ref(), ours.leader), (theirs, record.leader), "at {offset}");
                departures += 1;
            }
        }
        image.replay(offset, &record).expect("the log holds together");
    }
    assert_eq!(departures, 32);
}
