//! The metadata log in memory: whole batches, where they lie in the file, which of them are synced. Decides where two
//! logs part (KIP-595, KIP-101) and what is kept of a file after a crash. Does no I/O and knows no high watermark.

use std::collections::VecDeque;

use acked_wire::batch::{BatchError, BatchView, HEADER_SIZE, parse_header};
use bytes::{Bytes, BytesMut};

use super::effect::CommittedBatch;
use crate::observation::Observation;

/// One batch: its bytes, exactly as in the file, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredBatch {
    pub base_offset: i64,
    /// Inclusive.
    pub last_offset: i64,
    pub epoch: i32,
    /// Of its first byte in the file.
    pub position: u64,
    pub bytes: Bytes,
}

impl StoredBatch {
    /// The batch as the state machine sees it: control records are left out, their offsets count.
    pub fn committed(&self) -> CommittedBatch {
        let header = parse_header(&self.bytes).expect("a batch is parsed before it is stored");
        let records = if header.is_control() { Vec::new() } else { self.values() };
        CommittedBatch {
            base_offset: self.base_offset,
            last_offset: self.last_offset,
            epoch: self.epoch,
            timestamp_ms: header.max_timestamp,
            records,
        }
    }

    /// What is stated when it is appended.
    pub fn appended(&self) -> Observation {
        Observation::QuorumAppended {
            base_offset: self.base_offset,
            last_offset: self.last_offset,
            epoch: self.epoch,
            checksum: parse_header(&self.bytes).expect("a batch is parsed before it is stored").crc,
        }
    }

    fn values(&self) -> Vec<Bytes> {
        let view = BatchView::only(&self.bytes).expect("a batch is checked before it is stored");
        let records = view.records().expect("a batch is checked before it is stored");
        records
            .map(|record| record.expect("records are read before a batch is stored").value)
            .map(|value| value.map_or_else(Bytes::new, |value| self.bytes.slice_ref(value)))
            .collect()
    }
}

/// An append or a cut that the disk has not confirmed yet.
#[derive(Debug)]
struct OutstandingWrite {
    write: u64,
    /// How much of the present log is synced once it is.
    synced_end: i64,
}

/// Bytes to be written, as an effect says it.
#[derive(Debug)]
pub(super) struct Append {
    pub write: u64,
    pub position: u64,
    pub bytes: Bytes,
}

/// The log. It begins at offset 0: there are no snapshots.
#[derive(Debug, Default)]
pub(super) struct MetadataLog {
    batches: Vec<StoredBatch>,
    /// `(epoch, first offset)`, both ascending.
    epochs: Vec<(i32, i64)>,
    synced_end: i64,
    outstanding: VecDeque<OutstandingWrite>,
    last_write: u64,
}

impl MetadataLog {
    /// A log that was recovered from disk: all of it counts as synced.
    pub fn recovered(recovered: RecoveredLog) -> MetadataLog {
        let mut log = MetadataLog::default();
        for batch in recovered.batches {
            log.push(batch);
        }
        log.synced_end = log.end_offset();
        log
    }

    /// The next offset to write, synced or not.
    pub fn end_offset(&self) -> i64 {
        self.batches.last().map_or(0, |batch| batch.last_offset + 1)
    }

    /// Everything below is synced.
    pub fn synced_end(&self) -> i64 {
        self.synced_end
    }

    /// Whether the file holds exactly this log, synced.
    pub fn is_synced(&self) -> bool {
        self.outstanding.is_empty()
    }

    /// Bytes of the file once every write is done.
    pub fn size(&self) -> u64 {
        self.batches.last().map_or(0, |batch| batch.position + batch.bytes.len() as u64)
    }

    /// Epoch of the last batch; 0 for an empty log, as Kafka's raft says it.
    pub fn last_epoch(&self) -> i32 {
        self.epochs.last().map_or(0, |(epoch, _)| *epoch)
    }

    /// Whether a log that ends at `(last_epoch, end_offset)` is not behind this one.
    pub fn is_caught_up(&self, last_epoch: i32, end_offset: i64) -> bool {
        (last_epoch, end_offset) >= (self.last_epoch(), self.end_offset())
    }

    /// The largest epoch not above `epoch` and its (exclusive) end; `(epoch, 0)` when every epoch is above.
    pub fn end_offset_for_epoch(&self, epoch: i32) -> (i32, i64) {
        let next = self.epochs.partition_point(|(known, _)| *known <= epoch);
        let end = self.epochs.get(next).map_or(self.end_offset(), |(_, start)| *start);
        match next.checked_sub(1) {
            Some(index) => (self.epochs[index].0, end),
            None => (epoch, 0),
        }
    }

    /// `None` when a log that ends at `offset` with `last_epoch` is a prefix of this one; otherwise where to cut, as
    /// `(epoch, end offset)`.
    pub fn divergence(&self, offset: i64, last_epoch: i32) -> Option<(i32, i64)> {
        if offset == 0 && last_epoch == 0 {
            return None;
        }
        let (epoch, end) = self.end_offset_for_epoch(last_epoch);
        (epoch != last_epoch || end < offset).then_some((epoch, end))
    }

    /// Where this log is cut when its leader says that they part at `end_offset` of `epoch`.
    pub fn truncation_point(&self, epoch: i32, end_offset: i64) -> i64 {
        let (own_epoch, own_end) = self.end_offset_for_epoch(epoch);
        if own_epoch == epoch { own_end.min(end_offset) } else { own_end }
    }

    /// Appends batches that begin at the end of this log.
    pub fn append(&mut self, batches: Vec<StoredBatch>) -> Append {
        let position = self.size();
        assert!(!batches.is_empty(), "an append brings at least one batch");
        let bytes = joined(&batches);
        let mut at = position;
        for mut batch in batches {
            batch.position = at;
            at += batch.bytes.len() as u64;
            self.push(batch);
        }
        assert_eq!(self.size(), position + bytes.len() as u64);
        Append { write: self.start_write(), position, bytes }
    }

    /// Cuts everything from `offset` on, whole batches only (a batch that holds `offset` goes as well). Gives the
    /// write and the new size of the file.
    pub fn truncate_to(&mut self, offset: i64) -> (u64, u64) {
        let keep = self.batches.partition_point(|batch| batch.last_offset < offset);
        self.batches.truncate(keep);
        let end = self.end_offset();
        self.epochs.retain(|(_, start)| *start < end);
        self.synced_end = self.synced_end.min(end);
        for write in &mut self.outstanding {
            write.synced_end = write.synced_end.min(end);
        }
        assert!(self.end_offset() <= offset.max(0));
        (self.start_write(), self.size())
    }

    /// `write` and all before it are synced.
    pub fn synced(&mut self, write: u64) {
        assert!(
            write <= self.last_write,
            "write {write} reported synced, only {} were asked for",
            self.last_write
        );
        while self.outstanding.front().is_some_and(|first| first.write <= write) {
            let done = self.outstanding.pop_front().expect("its front was just looked at");
            self.synced_end = self.synced_end.max(done.synced_end);
        }
        assert!(self.synced_end <= self.end_offset());
    }

    /// Whole batches from `offset` on, at most `max_bytes` but at least one if there is any.
    pub fn read(&self, offset: i64, max_bytes: usize) -> Bytes {
        let first = self.batches.partition_point(|batch| batch.last_offset < offset);
        let mut length = 0;
        let fitting = self.batches[first..]
            .iter()
            .take_while(|batch| {
                length += batch.bytes.len();
                length <= max_bytes || length == batch.bytes.len()
            })
            .count();
        joined(&self.batches[first..first + fitting])
    }

    /// The batches that lie in `from..to`; both are batch boundaries.
    pub fn between(&self, from: i64, to: i64) -> &[StoredBatch] {
        let first = self.batches.partition_point(|batch| batch.last_offset < from);
        let end = self.batches.partition_point(|batch| batch.last_offset < to);
        &self.batches[first..end.max(first)]
    }

    /// The end of the last batch that lies wholly below `offset`.
    pub fn batch_end_at_most(&self, offset: i64) -> i64 {
        let count = self.batches.partition_point(|batch| batch.last_offset < offset);
        count.checked_sub(1).map_or(0, |last| self.batches[last].last_offset + 1)
    }

    fn push(&mut self, batch: StoredBatch) {
        assert_eq!(batch.base_offset, self.end_offset(), "batches of the metadata log are contiguous");
        assert!(batch.epoch >= self.last_epoch(), "epochs of the metadata log never fall");
        assert!(batch.last_offset >= batch.base_offset);
        if batch.epoch > self.last_epoch() || self.epochs.is_empty() {
            self.epochs.push((batch.epoch, batch.base_offset));
        }
        self.batches.push(batch);
    }

    fn start_write(&mut self) -> u64 {
        self.last_write += 1;
        self.outstanding
            .push_back(OutstandingWrite { write: self.last_write, synced_end: self.end_offset() });
        self.last_write
    }
}

/// The bytes of the batches one after the other; one batch is shared, not copied.
fn joined(batches: &[StoredBatch]) -> Bytes {
    match batches {
        [] => Bytes::new(),
        [only] => only.bytes.clone(),
        several => {
            let mut bytes = BytesMut::with_capacity(several.iter().map(|batch| batch.bytes.len()).sum());
            several.iter().for_each(|batch| bytes.extend_from_slice(&batch.bytes));
            bytes.freeze()
        }
    }
}

/// What may stand next in a log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    pub base_offset: i64,
    /// Epochs may not fall below this.
    pub least_epoch: i32,
    pub greatest_epoch: i32,
}

/// The valid batches at the front of `bytes`, and why it ended there (`None`: the bytes were used up). A batch counts
/// when it is whole, its checksum is right, its records can be read, and it continues the log before it.
pub(super) fn valid_batches(
    bytes: &Bytes,
    mut expected: Expected,
) -> (Vec<StoredBatch>, Option<InvalidBatch>) {
    let mut valid = Vec::new();
    let mut position = 0;
    while position < bytes.len() {
        match next_batch(bytes, position, expected) {
            Ok(batch) => {
                position += batch.bytes.len();
                expected.base_offset = batch.last_offset + 1;
                expected.least_epoch = batch.epoch;
                valid.push(batch);
            }
            Err(reason) => return (valid, Some(reason)),
        }
    }
    (valid, None)
}

fn next_batch(bytes: &Bytes, position: usize, expected: Expected) -> Result<StoredBatch, InvalidBatch> {
    let view = BatchView::first(&bytes[position..])?;
    view.validate()?;
    let header = view.header;
    if header.base_offset != expected.base_offset {
        return Err(InvalidBatch::Offset { found: header.base_offset, expected: expected.base_offset });
    }
    let epoch = header.partition_leader_epoch;
    if !(expected.least_epoch..=expected.greatest_epoch).contains(&epoch) {
        return Err(InvalidBatch::Epoch { found: epoch });
    }
    Ok(StoredBatch {
        base_offset: header.base_offset,
        last_offset: header.last_offset(),
        epoch,
        position: position as u64,
        bytes: bytes.slice(position..position + view.bytes.len()),
    })
}

/// Why a batch is not part of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBatch {
    #[error(transparent)]
    Form(#[from] BatchError),
    #[error("read batch: base offset {found}, not {expected}")]
    Offset { found: i64, expected: i64 },
    #[error("read batch: leader epoch {found} does not continue the log")]
    Epoch { found: i32 },
}

impl InvalidBatch {
    /// The bytes end inside the batch: how an answer of limited size, or a torn write, ends.
    pub fn is_cut(self) -> bool {
        matches!(self, InvalidBatch::Form(BatchError::Truncated { .. }))
    }
}

/// What was found in the file of the metadata log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveredLog {
    pub(super) batches: Vec<StoredBatch>,
    found_bytes: u64,
    damage: Option<InvalidBatch>,
}

impl RecoveredLog {
    /// Bytes to keep: the shell cuts the file to this size, and syncs, before the node starts.
    pub fn kept_bytes(&self) -> u64 {
        self.batches.last().map_or(0, |batch| batch.position + batch.bytes.len() as u64)
    }

    pub fn found_bytes(&self) -> u64 {
        self.found_bytes
    }

    /// Why the rest is cut; `None` when nothing is.
    pub fn damage(&self) -> Option<InvalidBatch> {
        self.damage
    }

    pub fn log_end_offset(&self) -> i64 {
        self.batches.last().map_or(0, |batch| batch.last_offset + 1)
    }

    /// Epoch of the last batch; 0 for an empty log.
    pub fn last_epoch(&self) -> i32 {
        self.batches.last().map_or(0, |batch| batch.epoch)
    }
}

/// The file is damaged where it was known to be synced: cutting there would lose what this node has vouched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("recover metadata log: valid only to offset {valid_end}, synced to {recovery_point}: {damage}")]
pub struct LogDamage {
    pub valid_end: i64,
    pub recovery_point: i64,
    pub damage: InvalidBatch,
}

/// Finds the valid prefix of the metadata log's file. `recovery_point` is an offset below which the file is known to
/// have been synced (0 when nothing is known): damage below it is refused, damage above it is a torn tail and cut.
pub fn recover_log(file: &Bytes, recovery_point: i64) -> Result<RecoveredLog, LogDamage> {
    let expected = Expected { base_offset: 0, least_epoch: 0, greatest_epoch: i32::MAX };
    let (batches, damage) = valid_batches(file, expected);
    let recovered = RecoveredLog { batches, found_bytes: file.len() as u64, damage };
    let valid_end = recovered.log_end_offset();
    if valid_end < recovery_point {
        let nothing_left = BatchError::Truncated { wanted: HEADER_SIZE, available: 0 };
        let damage = damage.unwrap_or(InvalidBatch::Form(nothing_left));
        return Err(LogDamage { valid_end, recovery_point, damage });
    }
    assert!(recovered.kept_bytes() <= recovered.found_bytes);
    Ok(recovered)
}

#[cfg(test)]
mod tests {
    use acked_wire::batch::BatchBuilder;
    use proptest::prelude::*;

    use super::*;

    fn batch(epoch: i32, base_offset: i64, records: i64) -> StoredBatch {
        let mut builder = BatchBuilder::new(0).base_offset(base_offset).leader_epoch(epoch);
        (0..records).for_each(|record| builder.push(0, None, Some(&record.to_be_bytes()), &[]));
        let bytes = builder.build().freeze();
        StoredBatch { base_offset, last_offset: base_offset + records - 1, epoch, position: 0, bytes }
    }

    /// A log of batches given as `(epoch, records)`.
    fn log(batches: &[(i32, i64)]) -> MetadataLog {
        let mut log = MetadataLog::default();
        for (epoch, records) in batches {
            log.append(vec![batch(*epoch, log.end_offset(), *records)]);
        }
        log.synced(log.last_write);
        log
    }

    fn file(log: &MetadataLog) -> Bytes {
        log.read(0, usize::MAX)
    }

    /// Epochs never fall.
    fn arbitrary_batches() -> impl Strategy<Value = Vec<(i32, i64)>> {
        prop::collection::vec((0..3_i32, 1..4_i64), 0..8).prop_map(|steps| {
            let mut epoch = 1;
            steps
                .into_iter()
                .map(|(rise, records)| {
                    epoch += rise;
                    (epoch, records)
                })
                .collect()
        })
    }

    /// Epoch of every offset: the obviously right model of a log.
    fn epochs(batches: &[(i32, i64)]) -> Vec<i32> {
        batches.iter().flat_map(|(epoch, records)| std::iter::repeat_n(*epoch, *records as usize)).collect()
    }

    #[test]
    fn truncation_reaches_into_writes_that_are_under_way() {
        let mut log = log(&[(1, 2)]);
        log.append(vec![batch(1, 2, 2)]);
        log.truncate_to(2);
        log.append(vec![batch(2, 2, 5)]);
        log.synced(2);
        assert_eq!(log.synced_end(), 2, "what the first write synced is cut again");
        log.synced(log.last_write);
        assert_eq!((log.synced_end(), log.is_synced()), (7, true));
    }

    #[test]
    fn read_gives_whole_batches_and_at_least_one() {
        let log = log(&[(1, 1), (1, 1), (2, 1)]);
        let one = log.batches[0].bytes.len();
        assert_eq!(log.read(0, 1).len(), one);
        assert_eq!(log.read(0, 2 * one).len(), 2 * one);
        assert_eq!(log.read(2, usize::MAX).len(), one);
        assert_eq!(log.read(3, usize::MAX).len(), 0);
    }

    #[test]
    fn damage_below_the_recovery_point_is_refused() {
        let log = log(&[(1, 2), (2, 2)]);
        let mut file = file(&log).to_vec();
        let at = file.len() - 1;
        file[at] ^= 1;
        let file = Bytes::from(file);
        assert_eq!(recover_log(&file, 2).expect("the tail was not known to be synced").log_end_offset(), 2);
        let damage = recover_log(&file, 3).expect_err("offset 2 was synced");
        assert_eq!((damage.valid_end, damage.recovery_point), (2, 3));
    }

    proptest! {
        #[test]
        fn end_of_an_epoch_agrees_with_the_model(batches in arbitrary_batches(), asked in 0..20_i32) {
            let model = epochs(&batches);
            let end = model.iter().filter(|epoch| **epoch <= asked).count() as i64;
            let epoch = model.iter().copied().filter(|epoch| *epoch <= asked).max().unwrap_or(asked);
            prop_assert_eq!(log(&batches).end_offset_for_epoch(asked), (epoch, end));
        }

        /// A follower that is cut where its leader says, as often as it says so, ends with a prefix of the leader's
        /// log, and loses nothing that both share.
        #[test]
        fn cutting_at_divergence_ends_at_the_longest_shared_prefix(
            shared in arbitrary_batches(),
            leaders in arbitrary_batches(),
            followers in arbitrary_batches(),
        ) {
            // Two leaders never share an epoch, so the branches take odd and even ones.
            let last = shared.last().map_or(1, |(epoch, _)| *epoch);
            let branch = |own: &[(i32, i64)], parity: i32| -> Vec<(i32, i64)> {
                let own = own.iter().map(|(epoch, records)| (last + 2 * epoch + parity, *records));
                shared.iter().copied().chain(own).collect()
            };
            let (leader, mut follower) = (log(&branch(&leaders, 0)), log(&branch(&followers, 1)));
            let mut rounds = 0;
            while let Some((epoch, end)) = leader.divergence(follower.end_offset(), follower.last_epoch()) {
                let to = follower.truncation_point(epoch, end);
                prop_assert!(to < follower.end_offset(), "every answer cuts something");
                follower.truncate_to(to);
                rounds += 1;
                prop_assert!(rounds < 20);
            }
            let kept = follower.between(0, i64::MAX);
            prop_assert_eq!(kept, leader.between(0, follower.end_offset()));
            prop_assert!(follower.end_offset() >= epochs(&shared).len() as i64);
        }

        /// Whatever is cut off or flipped, what is recovered is a prefix of the log in whole batches.
        #[test]
        fn recovery_keeps_a_prefix_of_whole_batches(
            batches in arbitrary_batches(),
            cut in any::<prop::sample::Index>(),
            flip in any::<Option<(prop::sample::Index, u8)>>(),
        ) {
            let log = log(&batches);
            let whole = file(&log);
            let mut damaged = whole[..cut.index(whole.len() + 1)].to_vec();
            if let (Some((at, with)), false) = (flip, damaged.is_empty()) {
                let at = at.index(damaged.len());
                damaged[at] ^= with;
            }
            let damaged = Bytes::from(damaged);
            let recovered = recover_log(&damaged, 0).expect("nothing is known to be synced");
            let kept = recovered.kept_bytes() as usize;
            prop_assert!(kept <= damaged.len());
            prop_assert_eq!(recovered.damage().is_none(), kept == damaged.len());
            let again = MetadataLog::recovered(recovered);
            prop_assert_eq!(again.size() as usize, kept);
            for (found, written) in again.batches.iter().zip(&log.batches) {
                // A flip in the leader epoch is under no checksum; it is caught only where epochs fall.
                prop_assert_eq!(found.base_offset, written.base_offset);
                prop_assert_eq!(found.bytes.slice(21..), written.bytes.slice(21..));
            }
        }
    }
}
