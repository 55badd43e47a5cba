//! What readers saw, sorted once for every check: each distinct (offset, content) of each partition.

use std::collections::BTreeMap;

use crate::history::{History, Key, Partition, ReadPurpose};

/// Distinct observations of one partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct PartitionSeen {
    /// Offset and content, sorted, without repetition.
    anyone: Vec<(i64, u64)>,
    read_back: Vec<(i64, u64)>,
    /// Where the final pass ended: it covered every offset below. Zero when there was none.
    read_back_position: i64,
}

/// Everything that the readers of a history saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    partitions: BTreeMap<Partition, PartitionSeen>,
}

impl Seen {
    /// Collects a history's reads.
    pub fn of(history: &History) -> Seen {
        let mut partitions: BTreeMap<Partition, PartitionSeen> = BTreeMap::new();
        for read in &history.reads {
            let partition = partitions.entry(read.partition).or_default();
            match read.purpose {
                ReadPurpose::Workload => partition.anyone.extend_from_slice(&read.records),
                ReadPurpose::ReadBack => {
                    partition.read_back.extend_from_slice(&read.records);
                    partition.read_back_position = partition.read_back_position.max(read.position);
                }
            }
        }
        for partition in partitions.values_mut() {
            partition.read_back.sort_unstable();
            partition.read_back.dedup();
            partition.anyone.extend_from_slice(&partition.read_back);
            partition.anyone.sort_unstable();
            partition.anyone.dedup();
        }
        Seen { partitions }
    }

    /// Every distinct observation, by partition, offset and content.
    pub fn keys(&self) -> impl Iterator<Item = Key> + '_ {
        self.partitions.iter().flat_map(|(partition, seen)| {
            seen.anyone.iter().map(|(offset, content)| Key {
                partition: *partition,
                offset: *offset,
                content: *content,
            })
        })
    }

    /// The distinct observations of each partition, sorted by offset and content.
    pub fn partitions(&self) -> impl Iterator<Item = (Partition, &[(i64, u64)])> {
        self.partitions.iter().map(|(partition, seen)| (*partition, seen.anyone.as_slice()))
    }

    /// The distinct observations of one partition, sorted by offset and content.
    pub fn of_partition(&self, partition: Partition) -> &[(i64, u64)] {
        self.partitions.get(&partition).map_or(&[], |seen| seen.anyone.as_slice())
    }

    /// Somebody read exactly this record.
    pub fn anyone_read(&self, key: &Key) -> bool {
        self.partitions
            .get(&key.partition)
            .is_some_and(|seen| seen.anyone.binary_search(&(key.offset, key.content)).is_ok())
    }

    /// The final pass gave exactly this record back.
    pub fn read_back(&self, key: &Key) -> bool {
        self.partitions
            .get(&key.partition)
            .is_some_and(|seen| seen.read_back.binary_search(&(key.offset, key.content)).is_ok())
    }

    /// The final pass of the partition went past this offset.
    pub fn read_back_passed(&self, partition: Partition, offset: i64) -> bool {
        self.partitions.get(&partition).is_some_and(|seen| seen.read_back_position > offset)
    }

    /// Somebody read a record with a higher offset.
    pub fn anyone_passed(&self, partition: Partition, offset: i64) -> bool {
        self.partitions
            .get(&partition)
            .and_then(|seen| seen.anyone.last())
            .is_some_and(|(highest, _)| *highest > offset)
    }
}
