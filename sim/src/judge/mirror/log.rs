//! The mirror of one replica's log: which records its file really holds, kept up to date from every change of the
//! file, in time proportional to the new bytes. Also which records a power loss or disk fault took away and that
//! the replica has not replicated again (the oracle's `Lost`). Believes nothing that a broker says.

use std::collections::BTreeMap;

use acked_wire::batch::{BatchView, batches};

use super::super::content::content_hash;

/// One record of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub offset: i64,
    /// [`content_hash`] of what the sender gave.
    pub content: u64,
    /// -1 without a producer id.
    pub producer_id: i64,
    pub leader_epoch: i32,
    /// Sequence number of this very record, -1 without a producer id.
    pub sequence: i32,
    pub producer_epoch: i16,
    pub control: bool,
}

impl Entry {
    /// The same record: offset, epoch and content.
    pub fn same_record(&self, other: &Entry) -> bool {
        self.offset == other.offset
            && self.leader_epoch == other.leader_epoch
            && self.content == other.content
    }
}

/// Where one batch lies and which entry is its first.
#[derive(Clone, Copy, Debug)]
struct BatchMark {
    position: u64,
    first_entry: usize,
}

/// What a change of the file did to the log.
#[derive(Debug, Default)]
pub struct Changed {
    /// Records that were cut off, in order.
    pub removed: Vec<Entry>,
    /// Index of the first entry that is new; the number of entries when none is.
    pub appended_from: usize,
}

/// How far bytes are looked at before they are believed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trust {
    /// The broker wrote them just now.
    Written,
    /// They are what a fault left: a batch counts only when its checksum is right.
    LeftByFault,
}

/// The mirror of one log file.
#[derive(Debug, Default)]
pub struct LogMirror {
    entries: Vec<Entry>,
    batches: Vec<BatchMark>,
    /// Bytes that `batches` cover.
    parsed_end: u64,
    /// Bytes behind them that do not make a whole batch yet.
    tail: Vec<u8>,
    /// What lies behind `parsed_end` is no batch, so nothing behind it counts until the file is cut there.
    broken: bool,
    /// By offset: records held when a power loss or disk fault took them, not replicated again since.
    lost: BTreeMap<i64, Entry>,
}

impl LogMirror {
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Offset after the last record; 0 for an empty log.
    pub fn log_end_offset(&self) -> i64 {
        self.entries.last().map_or(0, |entry| entry.offset + 1)
    }

    /// The record at an offset.
    pub fn get(&self, offset: i64) -> Option<&Entry> {
        let first = self.entries.first()?.offset;
        let guess = usize::try_from(offset.checked_sub(first)?).ok()?;
        match self.entries.get(guess) {
            Some(entry) if entry.offset == offset => Some(entry),
            // Offsets have gaps only after compaction or damage.
            _ => {
                let index = self.entries.partition_point(|entry| entry.offset < offset);
                self.entries.get(index).filter(|entry| entry.offset == offset)
            }
        }
    }

    /// It holds exactly this record.
    pub fn holds(&self, record: &Entry) -> bool {
        self.get(record.offset).is_some_and(|entry| entry.same_record(record))
    }

    /// A fault took exactly this record from it, and it has not replicated it again.
    pub fn lost(&self, record: &Entry) -> bool {
        !self.lost.is_empty() && self.lost.get(&record.offset).is_some_and(|entry| entry.same_record(record))
    }

    /// The record at an offset that a fault took from it, and that it has not replicated again.
    pub fn lost_at(&self, offset: i64) -> Option<&Entry> {
        self.lost.get(&offset)
    }

    /// Number of records that faults took and that are not back.
    pub fn lost_count(&self) -> usize {
        self.lost.len()
    }

    /// Bytes entered the file.
    pub fn written(&mut self, position: u64, bytes: &[u8]) -> Changed {
        let end = self.parsed_end + self.tail.len() as u64;
        let mut changed = Changed { removed: Vec::new(), appended_from: self.entries.len() };
        if position > end {
            self.broken = true;
            return changed;
        }
        if position < end {
            changed = self.cut(position);
        }
        if self.broken {
            return changed;
        }
        if self.tail.is_empty() {
            let taken = self.parse(bytes, Trust::Written);
            self.tail.extend_from_slice(&bytes[taken..]);
        } else {
            let mut whole = std::mem::take(&mut self.tail);
            whole.extend_from_slice(bytes);
            let taken = self.parse(&whole, Trust::Written);
            whole.drain(..taken);
            self.tail = whole;
        }
        if self.broken {
            self.tail.clear();
        }
        changed
    }

    /// The file was cut or extended.
    pub fn truncated(&mut self, size: u64) -> Changed {
        if size > self.parsed_end + self.tail.len() as u64 {
            return Changed { removed: Vec::new(), appended_from: self.entries.len() };
        }
        self.cut(size)
    }

    /// The file is gone because the broker removed it.
    pub fn removed(&mut self) -> Changed {
        self.broken = false;
        self.cut(0)
    }

    /// A fault left this content; the first byte that differs from before is `first_difference`.
    pub fn replaced(&mut self, content: &[u8], first_difference: Option<u64>) {
        let Some(first_difference) = first_difference else { return };
        let before = self.cut(first_difference.min(self.parsed_end)).removed;
        let kept = self.entries.len();
        self.tail.clear();
        self.broken = false;
        let rest =
            usize::try_from(self.parsed_end).ok().and_then(|start| content.get(start..)).unwrap_or(&[]);
        let taken = self.parse(rest, Trust::LeftByFault);
        self.broken |= taken < rest.len();
        let survived = before
            .iter()
            .zip(&self.entries[kept..])
            .take_while(|(before, after)| before.same_record(after))
            .count();
        for entry in &before[survived..] {
            self.lost.insert(entry.offset, *entry);
        }
    }

    /// A fault took the file with its name.
    pub fn lost_file(&mut self) {
        self.replaced(&[], Some(0));
        self.broken = false;
    }

    /// Forgets everything from this byte on. A batch that is cut in its middle goes as a whole.
    fn cut(&mut self, position: u64) -> Changed {
        if position >= self.parsed_end {
            let keep = usize::try_from(position - self.parsed_end).unwrap_or(usize::MAX);
            self.tail.truncate(keep);
            self.broken &= position > self.parsed_end;
            return Changed { removed: Vec::new(), appended_from: self.entries.len() };
        }
        let index = self.batches.partition_point(|batch| batch.position < position);
        // The batch at `index` begins at or behind the cut; the one before it may reach over it.
        let on_boundary = self.batches.get(index).is_some_and(|batch| batch.position == position);
        let index = if on_boundary || position == 0 { index } else { index - 1 };
        let mark = self.batches[index];
        let removed = self.entries.split_off(mark.first_entry);
        self.batches.truncate(index);
        self.parsed_end = mark.position;
        self.tail.clear();
        // The front of a batch that was cut in its middle is still in the file.
        self.broken = position > mark.position;
        Changed { removed, appended_from: self.entries.len() }
    }

    /// Takes whole batches from the front of `bytes`, which lie at `parsed_end`. Gives how many bytes it took.
    fn parse(&mut self, bytes: &[u8], trust: Trust) -> usize {
        let mut walk = batches(bytes);
        let mut taken = 0;
        for batch in &mut walk {
            let Ok(batch) = batch else {
                self.broken = true;
                break;
            };
            if (trust == Trust::LeftByFault && !batch.verify_crc()) || !self.push(&batch) {
                self.broken = true;
                break;
            }
            taken += batch.bytes.len();
            self.parsed_end += batch.bytes.len() as u64;
        }
        taken
    }

    /// Adds one batch. False when its records cannot be read, or do not lie behind what is there.
    fn push(&mut self, batch: &BatchView<'_>) -> bool {
        let header = &batch.header;
        let first_entry = self.entries.len();
        if header.base_offset < self.log_end_offset() {
            return false;
        }
        let Ok(open) = batch.open() else { return false };
        for record in open.records() {
            let Ok(record) = record else {
                self.entries.truncate(first_entry);
                return false;
            };
            let entry = Entry {
                offset: record.offset,
                content: content_hash(
                    record.key,
                    record.value,
                    record.headers().map(|header| (header.key, header.value)),
                ),
                producer_id: header.producer_id,
                leader_epoch: header.partition_leader_epoch,
                sequence: sequence_after(header.base_sequence, record.offset_delta),
                producer_epoch: header.producer_epoch,
                control: header.is_control(),
            };
            if !self.lost.is_empty() && self.lost(&entry) {
                self.lost.remove(&entry.offset);
            }
            self.entries.push(entry);
        }
        self.batches.push(BatchMark { position: self.parsed_end, first_entry });
        true
    }
}

/// Sequence number this many records after `base`; it wraps from 2^31 - 1 to 0.
pub fn sequence_after(base: i32, records: i32) -> i32 {
    if base < 0 {
        return -1;
    }
    ((i64::from(base) + i64::from(records)) & i64::from(i32::MAX)) as i32
}

#[cfg(test)]
mod tests {
    use acked_wire::batch::BatchBuilder;
    use proptest::prelude::*;

    use super::*;

    fn batch(base_offset: i64, leader_epoch: i32, values: &[&str]) -> Vec<u8> {
        let mut builder = BatchBuilder::new(0).base_offset(base_offset).leader_epoch(leader_epoch);
        for value in values {
            builder.push(0, None, Some(value.as_bytes()), &[]);
        }
        builder.build().to_vec()
    }

    fn offsets(log: &LogMirror) -> Vec<i64> {
        log.entries().iter().map(|entry| entry.offset).collect()
    }

    #[test]
    fn batch_counts_once_all_of_it_is_written() {
        let mut log = LogMirror::default();
        let bytes = batch(0, 1, &["a", "b"]);
        log.written(0, &bytes[..70]);
        assert!(log.entries().is_empty());
        let changed = log.written(70, &bytes[70..]);
        assert_eq!((changed.appended_from, offsets(&log)), (0, vec![0, 1]));
        assert_eq!(log.log_end_offset(), 2);
    }

    #[test]
    fn cut_removes_whole_batches_and_a_new_branch_follows() {
        let mut log = LogMirror::default();
        let first = batch(0, 1, &["a"]);
        log.written(0, &first);
        log.written(first.len() as u64, &batch(1, 1, &["b", "c"]));
        let changed = log.truncated(first.len() as u64);
        assert_eq!(changed.removed.iter().map(|entry| entry.offset).collect::<Vec<_>>(), [1, 2]);
        log.written(first.len() as u64, &batch(1, 2, &["d"]));
        assert_eq!(log.get(1).map(|entry| entry.leader_epoch), Some(2));
        assert_eq!(log.lost_count(), 0, "a truncation is no fault");
    }

    #[test]
    fn records_behind_a_lost_one_are_lost_too() {
        let mut log = LogMirror::default();
        let parts = [batch(0, 1, &["x"]), batch(1, 1, &["y"]), batch(2, 1, &["z"])];
        let mut file = parts.concat();
        log.written(0, &file);
        let (from, to) = (parts[0].len(), parts[0].len() + parts[1].len());
        file[from..to].fill(0);
        let entries = log.entries().to_vec();
        log.replaced(&file, Some(from as u64));
        assert_eq!(offsets(&log), [0]);
        assert!(!log.lost(&entries[0]) && log.lost(&entries[1]) && log.lost(&entries[2]));

        log.truncated(from as u64);
        log.written(from as u64, &parts[1]);
        assert!(!log.lost(&entries[1]), "replicated again");
        assert!(log.lost(&entries[2]));
    }

    #[test]
    fn torn_batch_with_right_length_does_not_count() {
        let mut log = LogMirror::default();
        let mut file = batch(0, 1, &["abcdefgh"]);
        log.written(0, &file);
        let end = file.len();
        file[end - 4..].fill(0);
        log.replaced(&file, Some(end as u64 - 4));
        assert_eq!((offsets(&log), log.lost_count()), (vec![], 1));
        log.truncated(0);
        log.written(0, &batch(0, 2, &["new"]));
        assert_eq!(log.get(0).map(|entry| entry.leader_epoch), Some(2));
    }

    #[test]
    fn file_lost_with_its_name_loses_everything() {
        let mut log = LogMirror::default();
        log.written(0, &batch(0, 1, &["x", "y"]));
        log.lost_file();
        assert_eq!((offsets(&log), log.lost_count()), (vec![], 2));
        log.written(0, &batch(0, 1, &["x", "y"]));
        assert_eq!(log.lost_count(), 0);
    }

    #[test]
    fn garbage_ends_the_log_until_it_is_cut_away() {
        let mut log = LogMirror::default();
        let first = batch(0, 1, &["a"]);
        log.written(0, &first);
        log.written(first.len() as u64, &[7; 100]);
        log.written(first.len() as u64 + 100, &batch(1, 1, &["b"]));
        assert_eq!(offsets(&log), [0]);
        log.truncated(first.len() as u64);
        log.written(first.len() as u64, &batch(1, 1, &["b"]));
        assert_eq!(offsets(&log), [0, 1]);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Append(u8),
        Cut(prop::sample::Index),
        PowerLoss(prop::sample::Index),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (1u8..4).prop_map(Step::Append),
            1 => any::<prop::sample::Index>().prop_map(Step::Cut),
            1 => any::<prop::sample::Index>().prop_map(Step::PowerLoss),
        ]
    }

    proptest! {
        /// The model is a list of whole batches; the mirror sees only bytes, in arbitrary pieces.
        #[test]
        fn mirror_equals_a_list_of_batches(steps in proptest::collection::vec(step(), 1..30), piece in 1usize..90) {
            let mut log = LogMirror::default();
            let mut model: Vec<(i64, Vec<u8>, i64)> = Vec::new();
            for (epoch, step) in steps.into_iter().enumerate() {
                let size: usize = model.iter().map(|(_, bytes, _)| bytes.len()).sum();
                match step {
                    Step::Append(count) => {
                        let base = model.last().map_or(0, |(_, _, end)| *end);
                        let bytes = batch(base, epoch as i32, &["value"; 4][..usize::from(count)]);
                        let mut position = size;
                        for part in bytes.chunks(piece) {
                            log.written(position as u64, part);
                            position += part.len();
                        }
                        model.push((base, bytes, base + i64::from(count)));
                    }
                    Step::Cut(index) => {
                        let keep = index.index(model.len() + 1);
                        let at: usize = model[..keep].iter().map(|(_, bytes, _)| bytes.len()).sum();
                        log.truncated(at as u64);
                        model.truncate(keep);
                    }
                    Step::PowerLoss(index) => {
                        let at = index.index(size + 1);
                        let mut content: Vec<u8> = model.iter().flat_map(|(_, bytes, _)| bytes.clone()).collect();
                        content.truncate(at);
                        log.replaced(&content, (at < size).then_some(at as u64));
                        let mut kept = 0;
                        let mut position = 0;
                        for (_, bytes, _) in &model {
                            position += bytes.len();
                            kept += usize::from(position <= at);
                        }
                        model.truncate(kept);
                        let at: usize = model.iter().map(|(_, bytes, _)| bytes.len()).sum();
                        log.truncated(at as u64);
                    }
                }
                let expected: Vec<i64> = model.iter().flat_map(|(base, _, end)| *base..*end).collect();
                prop_assert_eq!(offsets(&log), expected);
            }
        }
    }
}
