//! The mirror of one node's metadata log: which batches its files really hold, and up to where they are really synced,
//! kept up to date from every change of the files. Several segments, a log that begins behind offset 0 and files that
//! a fault left are all the same to it. Believes nothing that a node says, and reads no record.

use std::collections::BTreeMap;

use acked_wire::batch::batches;

use crate::world::tap::DiskChange;

/// Folder of the metadata log, in every node's data directory.
const FOLDER: &str = "__cluster_metadata-0";

/// What tells two batches apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    pub base_offset: i64,
    /// Inclusive.
    pub last_offset: i64,
    /// Of the leader that wrote it.
    pub epoch: i32,
    pub checksum: u32,
}

/// One file.
#[derive(Debug, Default)]
struct Segment {
    /// With the byte position behind each.
    batches: Vec<(u64, Batch)>,
    /// Bytes behind the last batch that do not make a whole one yet.
    tail: Vec<u8>,
    /// What lies behind the batches is none.
    broken: bool,
    /// Bytes that a sync has covered since they were written.
    synced: u64,
}

/// What a change did to the log.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Batches that the node itself cut off.
    pub removed: Vec<Batch>,
    /// New batches, each with the one before it, if the log has one.
    pub appended: Vec<(Option<Batch>, Batch)>,
}

/// The log of one node.
#[derive(Debug, Default)]
pub struct MetadataLog {
    /// By base offset.
    segments: BTreeMap<i64, Segment>,
}

/// Base offset of the segment whose file this is, if it is one of the metadata log.
pub fn segment_of(path: &str) -> Option<i64> {
    let (folder, file) = path.rsplit_once('/')?;
    let name = folder.rsplit_once('/').map_or(folder, |(_, name)| name);
    if name != FOLDER {
        return None;
    }
    file.strip_suffix(".log")?.parse().ok()
}

impl Segment {
    fn parsed_end(&self) -> u64 {
        self.batches.last().map_or(0, |(end, _)| *end)
    }

    /// Forgets everything from this byte on; batches go whole. Gives those that went.
    fn cut(&mut self, position: u64) -> Vec<Batch> {
        self.synced = self.synced.min(position);
        if position >= self.parsed_end() {
            let keep = usize::try_from(position - self.parsed_end()).unwrap_or(usize::MAX);
            self.tail.truncate(keep);
            self.broken &= position > self.parsed_end();
            return Vec::new();
        }
        let kept = self.batches.partition_point(|(end, _)| *end <= position);
        let removed = self.batches.split_off(kept);
        self.tail.clear();
        self.broken = position > self.parsed_end();
        removed.into_iter().map(|(_, batch)| batch).collect()
    }

    /// Takes bytes that lie at the end. `trusted`: the node wrote them just now; else a checksum must be right.
    fn extend(&mut self, bytes: &[u8], trusted: bool) -> Vec<Batch> {
        let mut added = Vec::new();
        if self.broken {
            return added;
        }
        let mut whole = std::mem::take(&mut self.tail);
        whole.extend_from_slice(bytes);
        let mut taken = 0;
        for batch in batches(&whole) {
            let Ok(batch) = batch else {
                self.broken = true;
                break;
            };
            let header = &batch.header;
            let next = self.batches.last().map_or(i64::MIN, |(_, before)| before.last_offset + 1);
            if header.base_offset < next || (!trusted && !batch.verify_crc()) {
                self.broken = true;
                break;
            }
            taken += batch.bytes.len();
            let batch_of_log = Batch {
                base_offset: header.base_offset,
                last_offset: header.last_offset(),
                epoch: header.partition_leader_epoch,
                checksum: header.crc,
            };
            self.batches.push((self.parsed_end() + batch.bytes.len() as u64, batch_of_log));
            added.push(batch_of_log);
        }
        if !self.broken {
            whole.drain(..taken);
            self.tail = whole;
        }
        added
    }
}

impl MetadataLog {
    /// Takes a change of the segment that begins at `base`.
    pub fn changed(&mut self, base: i64, change: &DiskChange<'_>) -> Change {
        let segment = self.segments.entry(base).or_default();
        let mut done = Change::default();
        let mut added = Vec::new();
        match *change {
            DiskChange::Written { position, bytes, .. } => {
                let end = segment.parsed_end() + segment.tail.len() as u64;
                if position > end {
                    segment.broken = true;
                } else {
                    done.removed = segment.cut(position);
                    added = segment.extend(bytes, true);
                }
            }
            DiskChange::Truncated { size, .. } => done.removed = segment.cut(size),
            DiskChange::Synced { .. } => {
                segment.synced = segment.parsed_end() + segment.tail.len() as u64;
            }
            DiskChange::Removed { .. } | DiskChange::Replaced { content: None, .. } => {
                self.segments.remove(&base);
            }
            DiskChange::Replaced { content: Some(content), first_difference, .. } => {
                if let Some(position) = first_difference {
                    segment.cut(position);
                    let from = segment.parsed_end();
                    segment.tail.clear();
                    segment.broken = false;
                    let rest = usize::try_from(from).ok().and_then(|from| content.get(from..));
                    segment.extend(rest.unwrap_or(&[]), false);
                }
                // Whatever a power loss left is on the platter.
                segment.synced = content.len() as u64;
            }
            DiskChange::Renamed { .. } => {}
        }
        if let Some(first) = added.first() {
            let mut before = self.before(first.base_offset);
            for batch in added {
                done.appended.push((before, batch));
                before = Some(batch);
            }
        }
        done
    }

    /// The last batch that ends at or before this offset.
    pub fn before(&self, offset: i64) -> Option<Batch> {
        for segment in self.segments.range(..=offset).rev().map(|(_, segment)| segment) {
            let count = segment.batches.partition_point(|(_, batch)| batch.last_offset < offset);
            if let Some(last) = count.checked_sub(1) {
                return Some(segment.batches[last].1);
            }
        }
        None
    }

    /// The batch that begins at this offset.
    pub fn get(&self, base_offset: i64) -> Option<Batch> {
        for segment in self.segments.range(..=base_offset).rev().map(|(_, segment)| segment) {
            let found = segment.batches.binary_search_by_key(&base_offset, |(_, batch)| batch.base_offset);
            if let Ok(found) = found {
                return Some(segment.batches[found].1);
            }
        }
        None
    }

    /// The batches that begin in a range of offsets, in order.
    pub fn between(&self, from: i64, to: i64) -> Vec<Batch> {
        let first = self.segments.range(..=from).next_back().map_or(from, |(base, _)| *base);
        let mut found = Vec::new();
        if first >= to {
            return found;
        }
        for (_, segment) in self.segments.range(first..to) {
            let start = segment.batches.partition_point(|(_, batch)| batch.base_offset < from);
            let inside = segment.batches[start..].iter().map(|(_, batch)| *batch);
            found.extend(inside.take_while(|batch| batch.base_offset < to));
        }
        found
    }

    /// The last batch, in any segment.
    pub fn last(&self) -> Option<Batch> {
        self.before(i64::MAX)
    }

    /// The first batch.
    pub fn first(&self) -> Option<Batch> {
        self.segments.values().find_map(|segment| segment.batches.first()).map(|(_, batch)| *batch)
    }

    /// The offset up to which (exclusive) everything in the log is synced.
    pub fn synced_end(&self) -> i64 {
        let mut end = self.first().map_or(0, |first| first.base_offset);
        for segment in self.segments.values() {
            let count = segment.batches.partition_point(|(end, _)| *end <= segment.synced);
            if let Some(last) = count.checked_sub(1) {
                end = segment.batches[last].1.last_offset + 1;
            }
            if count < segment.batches.len() {
                break;
            }
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use acked_wire::batch::BatchBuilder;

    use super::*;

    const FIRST: &str = "data/__cluster_metadata-0/00000000000000000000.log";

    fn batch(base_offset: i64, epoch: i32, values: &[&str]) -> Vec<u8> {
        let mut builder = BatchBuilder::new(0).base_offset(base_offset).leader_epoch(epoch);
        for value in values {
            builder.push(0, None, Some(value.as_bytes()), &[]);
        }
        builder.build().to_vec()
    }

    fn write(log: &mut MetadataLog, base: i64, position: u64, bytes: &[u8]) -> Change {
        log.changed(base, &DiskChange::Written { path: FIRST, position, bytes })
    }

    fn bases(log: &MetadataLog) -> Vec<i64> {
        log.between(0, i64::MAX).iter().map(|batch| batch.base_offset).collect()
    }

    #[test]
    fn files_of_the_metadata_log_are_known_by_their_place() {
        assert_eq!(segment_of(FIRST), Some(0));
        assert_eq!(segment_of("data/__cluster_metadata-0/00000000000000000120.log"), Some(120));
        assert_eq!(segment_of("data/__cluster_metadata-0/00000000000000000120-0000000003.checkpoint"), None);
        assert_eq!(segment_of("data/orders-0/00000000000000000000.log"), None);
    }

    #[test]
    fn batch_counts_when_it_is_whole_and_is_synced_when_a_sync_came_after() {
        let mut log = MetadataLog::default();
        let bytes = batch(0, 1, &["a", "b"]);
        assert_eq!(write(&mut log, 0, 0, &bytes[..50]), Change::default());
        let change = write(&mut log, 0, 50, &bytes[50..]);
        assert_eq!(change.appended.len(), 1);
        assert_eq!((log.last().map(|batch| batch.last_offset), log.synced_end()), (Some(1), 0));
        log.changed(0, &DiskChange::Synced { path: FIRST });
        assert_eq!(log.synced_end(), 2);
        write(&mut log, 0, bytes.len() as u64, &batch(2, 1, &["c"]));
        assert_eq!(log.synced_end(), 2);
    }

    #[test]
    fn cut_takes_batches_and_what_was_synced_of_them() {
        let mut log = MetadataLog::default();
        let first = batch(0, 1, &["a"]);
        write(&mut log, 0, 0, &first);
        write(&mut log, 0, first.len() as u64, &batch(1, 1, &["b"]));
        log.changed(0, &DiskChange::Synced { path: FIRST });
        let size = first.len() as u64;
        let change = log.changed(0, &DiskChange::Truncated { path: FIRST, size });
        assert_eq!(change.removed.iter().map(|batch| batch.base_offset).collect::<Vec<_>>(), [1]);
        assert_eq!((bases(&log), log.synced_end()), (vec![0], 1));
        let change = write(&mut log, 0, size, &batch(1, 2, &["c"]));
        assert_eq!(change.appended[0].0.map(|before| before.epoch), Some(1));
        assert_eq!(log.get(1).map(|batch| batch.epoch), Some(2));
        assert_eq!(log.synced_end(), 1);
    }

    #[test]
    fn segments_follow_each_other_and_the_first_may_go() {
        let mut log = MetadataLog::default();
        write(&mut log, 0, 0, &batch(0, 1, &["a"]));
        let change = write(&mut log, 1, 0, &batch(1, 1, &["b"]));
        assert_eq!(change.appended[0].0.map(|before| before.base_offset), Some(0));
        log.changed(1, &DiskChange::Synced { path: FIRST });
        assert_eq!(log.synced_end(), 0, "the first segment is not synced");
        log.changed(0, &DiskChange::Removed { path: FIRST });
        assert_eq!((bases(&log), log.synced_end()), (vec![1], 2));
        assert_eq!(log.first().map(|batch| batch.base_offset), Some(1));
    }

    #[test]
    fn power_loss_leaves_what_it_leaves_and_that_is_synced() {
        let mut log = MetadataLog::default();
        let (first, second) = (batch(0, 1, &["a"]), batch(1, 1, &["b"]));
        write(&mut log, 0, 0, &first);
        write(&mut log, 0, first.len() as u64, &second);
        let mut content = [first.clone(), second].concat();
        let end = content.len();
        content[end - 3..].fill(0);
        let position = Some(end as u64 - 3);
        let change =
            DiskChange::Replaced { path: FIRST, content: Some(&content), first_difference: position };
        log.changed(0, &change);
        assert_eq!((bases(&log), log.synced_end()), (vec![0], 1));
    }
}
