//! One replica's log as a state: every batch's place, the epoch cache, the producers. It assigns offsets and file
//! positions; it holds no bytes and does no I/O.
//!
//! The state runs ahead of the disk: an append counts here when it is submitted. Whoever owns the log publishes an
//! end offset only when the write has completed.
//!
//! - leader: `prepare_append` validates on copies, `commit_append` takes the result in; `assign_epoch_start` when it
//!   takes office.
//! - follower: `append_as_follower`, `truncate_to` where its leader's log diverges, `reset_to` when it is behind its
//!   leader's log start.
//! - readers: `locate`, `end_offset_for_epoch`, `offset_for_timestamp`.

use acked_wire::batch::{BatchHeader, batches, patch};
use bytes::Bytes;

use super::append::{AppendError, AppendLimits, Appended, Prepared, PreparedAppend, check_client_batch};
use super::recovery::RecoveredLog;
use super::{BatchEntry, EpochCache, ProducerBatch, ProducerStates, Sequence};
use crate::rules::DedupeWindow;

/// See the file's header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    log_start_offset: i64,
    log_end_offset: i64,
    size: u64,
    batches: Vec<BatchEntry>,
    epochs: EpochCache,
    producers: ProducerStates,
}

/// Whole batches in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    pub position: u64,
    /// Bytes.
    pub length: usize,
    /// Offset behind the last record, exclusive.
    pub end_offset: i64,
}

/// What became of a log that was cut.
///
/// A recovery point above `log_end_offset` must be lowered on disk, durably, before the file is cut: recovery takes
/// everything below it for synced, and refuses a log that ends before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncation {
    /// Bytes of the file that stay.
    pub size: u64,
    pub log_end_offset: i64,
    /// The epoch checkpoint must be saved.
    pub epochs_changed: bool,
}

impl Log {
    pub fn empty() -> Log {
        Log::default()
    }

    pub fn from_recovered(recovered: RecoveredLog) -> Log {
        let RecoveredLog { log_start_offset, log_end_offset, size, batches, epochs } = recovered;
        let mut log = Log {
            log_start_offset,
            log_end_offset,
            size,
            batches,
            epochs,
            producers: ProducerStates::default(),
        };
        log.replay_producers();
        log.assert_consistent();
        log
    }

    pub fn log_start_offset(&self) -> i64 {
        self.log_start_offset
    }

    /// The next offset to assign, writes that have not completed included.
    pub fn log_end_offset(&self) -> i64 {
        self.log_end_offset
    }

    /// Bytes of the file once every submitted write has completed.
    pub fn size(&self) -> u64 {
        self.size
    }

    pub fn batch_count(&self) -> usize {
        self.batches.len()
    }

    pub fn epochs(&self) -> &EpochCache {
        &self.epochs
    }

    pub fn producers(&self) -> &ProducerStates {
        &self.producers
    }

    pub fn latest_epoch(&self) -> Option<i32> {
        self.epochs.latest()
    }

    /// kafka-rules 1.3; see [`EpochCache::end_offset_for`].
    pub fn end_offset_for_epoch(&self, epoch: i32) -> Option<(i32, i64)> {
        self.epochs.end_offset_for(epoch, self.log_end_offset)
    }

    /// Validates a client's records and gives them their offsets; changes nothing. Copies the bytes once.
    ///
    /// # Errors
    /// As [`AppendError`] says; nothing was appended then.
    pub fn prepare_append(
        &self,
        records: &Bytes,
        leader_epoch: i32,
        limits: &AppendLimits,
        window: DedupeWindow,
        now_ms: i64,
    ) -> Result<Prepared, AppendError> {
        assert!(leader_epoch >= 0, "a leader has an epoch");
        let checked = check_client_batch(records, limits, now_ms)?;
        let base_offset = self.log_end_offset;
        let max_timestamp = checked.max_timestamp;
        let header = BatchHeader { base_offset, max_timestamp, ..checked.batch.header };
        if header.has_producer_id()
            && let Sequence::Repeat { base_offset, last_offset, max_timestamp } =
                self.producers.check(&producer_batch(&header), window)?
        {
            return Ok(Prepared::Duplicate { base_offset, last_offset, timestamp_ms: max_timestamp });
        }
        let mut bytes = checked.stored(limits)?;
        patch(&mut bytes, base_offset, leader_epoch);
        Ok(Prepared::Append(PreparedAppend {
            bytes: bytes.freeze(),
            base_offset,
            last_offset: header.last_offset(),
            leader_epoch,
            producer_id: header.producer_id,
            producer_epoch: header.producer_epoch,
            base_sequence: header.base_sequence,
            max_timestamp,
        }))
    }

    /// Takes in what `prepare_append` gave, with nothing appended or cut in between.
    pub fn commit_append(&mut self, prepared: PreparedAppend) -> Appended {
        let PreparedAppend { bytes, base_offset, last_offset, leader_epoch, .. } = prepared;
        assert_eq!(base_offset, self.log_end_offset, "the log has not moved since the batch was prepared");
        let position = self.size;
        let entry = BatchEntry {
            base_offset,
            position,
            max_timestamp: prepared.max_timestamp,
            producer_id: prepared.producer_id,
            size: u32::try_from(bytes.len()).expect("a batch's length has 32 bits"),
            last_offset_delta: i32::try_from(last_offset - base_offset).expect("a delta has 31 bits"),
            leader_epoch,
            base_sequence: prepared.base_sequence,
            producer_epoch: prepared.producer_epoch,
            is_control: false,
        };
        let epochs_changed = self.push(entry);
        assert_eq!(self.log_end_offset, last_offset + 1, "the batch is the end of the log");
        Appended { bytes, position, base_offset, last_offset, epochs_changed }
    }

    /// Remembers a batch of an idempotent producer that is not appended: what only a rule of the bug museum does.
    pub fn remember_unappended(&mut self, prepared: &PreparedAppend) {
        self.producers.apply(&ProducerBatch {
            producer_id: prepared.producer_id,
            producer_epoch: prepared.producer_epoch,
            base_sequence: prepared.base_sequence,
            base_offset: prepared.base_offset,
            last_offset: prepared.last_offset,
            max_timestamp: prepared.max_timestamp,
            is_control: false,
        });
    }

    /// Takes in what a leader sent (kafka-rules 1.5): checksums and increasing offsets are checked, sequences are not.
    /// Batches of epochs above `highest_leader_epoch`, and everything behind them, are left out (KAFKA-18723), and so
    /// is a cut last batch. `None` when nothing is left. Copies no bytes.
    ///
    /// # Errors
    /// The whole of `records` is refused and nothing changes.
    pub fn append_as_follower(
        &mut self,
        records: &Bytes,
        highest_leader_epoch: i32,
    ) -> Result<Option<Appended>, AppendError> {
        let entries = self.check_replicated(records, highest_leader_epoch)?;
        let (Some(first), Some(last)) = (entries.first().copied(), entries.last().copied()) else {
            return Ok(None);
        };
        let position = self.size;
        let mut epochs_changed = false;
        for entry in entries {
            epochs_changed |= self.push(entry);
        }
        let length = usize::try_from(self.size - position).expect("the bytes are in memory");
        Ok(Some(Appended {
            bytes: records.slice(..length),
            position,
            base_offset: first.base_offset,
            last_offset: last.last_offset(),
            epochs_changed,
        }))
    }

    fn check_replicated(
        &self,
        records: &[u8],
        highest_leader_epoch: i32,
    ) -> Result<Vec<BatchEntry>, AppendError> {
        let mut entries = Vec::new();
        let mut expected = self.log_end_offset;
        for batch in batches(records) {
            let batch = batch?;
            let epoch = batch.header.partition_leader_epoch;
            if epoch > highest_leader_epoch {
                break;
            }
            if epoch < 0 {
                return Err(AppendError::LeaderEpoch { epoch });
            }
            batch.validate_stored()?;
            let found = batch.header.base_offset;
            let end = found.checked_add(i64::from(batch.header.last_offset_delta) + 1);
            let Some(end) = end.filter(|_| found >= expected) else {
                return Err(AppendError::OffsetOrder { found, expected });
            };
            expected = end;
            entries.push(BatchEntry::new(&batch.header, self.size + batch.position as u64));
        }
        Ok(entries)
    }

    /// The one place where a batch comes in. Returns whether the epoch cache changed.
    fn push(&mut self, entry: BatchEntry) -> bool {
        assert!(entry.base_offset >= self.log_end_offset, "offsets increase");
        assert_eq!(entry.position, self.size, "batches lie one behind the other");
        let epochs_changed = self.epochs.assign(entry.leader_epoch, entry.base_offset);
        self.producers.apply(&entry.producer_batch());
        self.log_end_offset = entry.last_offset() + 1;
        self.size = entry.end_position();
        self.batches.push(entry);
        epochs_changed
    }

    /// kafka-rules 1.1: this replica leads `leader_epoch` from its log end on. Returns whether the epoch checkpoint
    /// must be saved, before the first append of that epoch.
    pub fn assign_epoch_start(&mut self, leader_epoch: i32) -> bool {
        self.epochs.assign(leader_epoch, self.log_end_offset)
    }

    /// Cuts every batch that reaches `offset` or beyond, whole, with its epochs and producers (kafka-rules 1.6). An
    /// offset at or behind the end cuts no batch, but still the epoch of a leader that wrote nothing.
    pub fn truncate_to(&mut self, offset: i64) -> Truncation {
        let offset = offset.max(0);
        if offset < self.log_end_offset {
            let kept = self.batches.partition_point(|batch| batch.last_offset() < offset);
            self.log_end_offset = offset;
            if let Some(cut) = self.batches.get(kept).copied() {
                self.log_end_offset = offset.min(cut.base_offset);
                self.size = cut.position;
                self.batches.truncate(kept);
                self.replay_producers();
            }
            self.log_start_offset = self.log_start_offset.min(self.log_end_offset);
        }
        let epochs_changed = self.epochs.truncate_from(self.log_end_offset);
        self.assert_consistent();
        Truncation { size: self.size, log_end_offset: self.log_end_offset, epochs_changed }
    }

    /// Drops everything and goes on at `log_start_offset` (kafka-rules 1.7).
    pub fn reset_to(&mut self, log_start_offset: i64) -> Truncation {
        let log_start_offset = log_start_offset.max(0);
        self.batches.clear();
        self.producers.clear();
        let epochs_changed = self.epochs.clear();
        (self.log_start_offset, self.log_end_offset, self.size) = (log_start_offset, log_start_offset, 0);
        self.assert_consistent();
        Truncation { size: 0, log_end_offset: log_start_offset, epochs_changed }
    }

    /// Forgets producers by `producer.id.expiration.ms` (kafka-rules 6).
    pub fn expire_producers(&mut self, now_ms: i64, expiration_ms: i64) {
        self.producers.expire(now_ms, expiration_ms);
    }

    /// Whole batches from the one that holds `from` on, that lie below offset `below` and have `max_bytes` together;
    /// with `first_whole`, the first may be larger. `None` when there is none such.
    pub fn locate(&self, from: i64, below: i64, max_bytes: usize, first_whole: bool) -> Option<Slice> {
        let first = self.batches.partition_point(|batch| batch.last_offset() < from);
        let position = self.batches.get(first)?.position;
        let max_bytes = u64::try_from(max_bytes).unwrap_or(u64::MAX);
        let fits = |batch: &BatchEntry| {
            batch.last_offset() < below
                && (batch.end_position() - position <= max_bytes
                    || (first_whole && batch.position == position))
        };
        let count = self.batches[first..].partition_point(fits);
        let last = self.batches[first..first + count].last()?;
        let length = usize::try_from(last.end_position() - position).ok()?;
        assert!(length > 0, "a batch has bytes");
        Some(Slice { position, length, end_offset: last.last_offset() + 1 })
    }

    /// The first batch with a record of `timestamp` or later: its base offset, largest timestamp and leader epoch.
    /// A batch of several records may begin with earlier ones.
    pub fn offset_for_timestamp(&self, timestamp: i64) -> Option<(i64, i64, i32)> {
        let batch = self.batches.iter().find(|batch| batch.max_timestamp >= timestamp)?;
        Some((batch.base_offset.max(self.log_start_offset), batch.max_timestamp, batch.leader_epoch))
    }

    /// The batch with the largest timestamp, the earliest if there are several: its last offset, that timestamp and
    /// its leader epoch.
    pub fn offset_of_max_timestamp(&self) -> Option<(i64, i64, i32)> {
        let latest = self.batches.iter().map(|batch| batch.max_timestamp).max()?;
        let batch = self.batches.iter().find(|batch| batch.max_timestamp == latest)?;
        Some((batch.last_offset(), latest, batch.leader_epoch))
    }

    /// Snapshot and replay are one thing here: the headers that are left say what each producer did last.
    fn replay_producers(&mut self) {
        self.producers.clear();
        for batch in &self.batches {
            self.producers.apply(&batch.producer_batch());
        }
    }

    fn assert_consistent(&self) {
        assert!(self.log_start_offset <= self.log_end_offset, "the log starts before it ends");
        let end = self.batches.last().map_or(0, BatchEntry::end_position);
        assert_eq!(self.size, end, "the file ends with the last batch");
        if let Some(last) = self.batches.last() {
            assert!(last.last_offset() < self.log_end_offset, "no batch reaches behind the end");
        }
    }
}

fn producer_batch(header: &BatchHeader) -> ProducerBatch {
    BatchEntry::new(header, 0).producer_batch()
}
