//! What is done with a log file found at start (kafka-rules 10). A function of what was found; the shell carries the
//! plan out, in the order of its fields, before the partition is served.
//!
//! The file is walked from its start while batch follows batch: form and checksum good, offsets without a gap, epochs
//! never falling, and no batch older than the epoch checkpoint says of its offset. Below the *floor* everything was
//! synced once, so what is missing or damaged there is a fault of the disk, and the replica is not served: another
//! one may have what this one lost. Above it a power loss explains everything, and the log ends at the first doubt.
//!
//! | stopped | floor | the walk ends | and there | plan |
//! |---|---|---|---|---|
//! | cleanly | end of the file | at the end of the file, at or above the recovery point | – | keep all |
//! | cleanly | end of the file | at the end of the file, below the recovery point | – | refuse: `Missing` |
//! | cleanly | end of the file | before the end of the file | torn, zeros, damaged, stale | refuse |
//! | uncleanly | recovery point, or none | below the floor | nothing | refuse: `Missing` |
//! | uncleanly | recovery point, or none | below the floor | torn, zeros, damaged, stale | refuse |
//! | uncleanly | recovery point, or none | at or above the floor | nothing | keep all, sync |
//! | uncleanly | recovery point, or none | at or above the floor | torn, zeros, damaged, stale | cut there, sync |
//!
//! Of the checkpoints, epochs are written anew when they differ from what the kept batches say (absent, behind, or
//! ahead: an epoch of a leader that wrote nothing goes too, as in Kafka), and the high watermark is clamped into the
//! log. Recovering what was recovered changes nothing.

use acked_wire::batch::{BatchError, BatchView, Compression};
use bytes::Bytes;

use super::{BatchEntry, EpochCache};

/// What the shell found of one partition.
#[derive(Clone, Debug, Default)]
pub struct FoundLog {
    /// The whole log file.
    pub bytes: Bytes,
    /// The marker of a clean stop was there.
    pub clean_shutdown: bool,
    /// From `recovery-point-offset-checkpoint`: everything below was synced. `None` when it has no entry.
    pub recovery_point: Option<i64>,
    /// Offset of the first batch: from `log-start-offset-checkpoint`, else 0.
    pub log_start_offset: i64,
    /// Batches may be missing between others, as after compaction.
    pub has_gaps: bool,
    /// From `leader-epoch-checkpoint`; `None` when it is missing or unreadable.
    pub epochs: Option<Vec<(i32, i64)>>,
    /// From `replication-offset-checkpoint`; `None` when it has no entry.
    pub high_watermark: Option<i64>,
}

/// A log's state as found, without its producers, which follow from the batches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveredLog {
    pub(super) log_start_offset: i64,
    pub(super) log_end_offset: i64,
    pub(super) size: u64,
    pub(super) batches: Vec<BatchEntry>,
    pub(super) epochs: EpochCache,
}

impl RecoveredLog {
    pub fn log_start_offset(&self) -> i64 {
        self.log_start_offset
    }

    /// What the kept batches say.
    pub fn epochs(&self) -> &EpochCache {
        &self.epochs
    }

    pub fn log_end_offset(&self) -> i64 {
        self.log_end_offset
    }

    /// Bytes of the file that were kept.
    pub fn size(&self) -> u64 {
        self.size
    }
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecoveryPlan {
    Serve {
        /// Cut the file to so many bytes first.
        truncate_to: Option<u64>,
        /// Sync the file then: what is counted as written now may never have reached the disk.
        sync: bool,
        /// Then write the epoch checkpoint anew.
        rewrite_epochs: Option<Vec<(i32, i64)>>,
        log: RecoveredLog,
        /// Between log start and log end.
        high_watermark: i64,
        /// Why something was cut.
        cut: Option<Damage>,
    },
    /// Something that was synced is missing or wrong: the replica must not be served.
    Refuse(Damage),
}

/// Where and why the walk over a file ended before its end, or before the floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("recover the log: at byte {position}, offset {offset}: {defect}")]
pub struct Damage {
    pub position: u64,
    /// The offset that should come there.
    pub offset: i64,
    pub defect: Defect,
}

/// What is wrong at a place in a log file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Defect {
    #[error("the file ends, but everything below offset {recovery_point} was synced")]
    Missing { recovery_point: i64 },
    #[error("the last batch is not whole")]
    Torn,
    #[error("{0}")]
    Batch(BatchError),
    #[error("a batch with offset {found}")]
    OffsetOrder { found: i64 },
    #[error("a batch of leader epoch {found} behind one of {last}")]
    EpochOrder { found: i32, last: i32 },
    #[error(
        "a batch of leader epoch {found}, where the checkpoint has {checkpoint}: of a branch that was cut"
    )]
    Stale { found: i32, checkpoint: i32 },
}

/// See the file's header.
pub fn recover(found: FoundLog) -> RecoveryPlan {
    let (log, stopped_by) = walk(&found);
    let damage = |defect| Damage { position: log.size, offset: log.log_end_offset, defect };
    let below_recovery_point =
        found.recovery_point.filter(|recovery_point| log.log_end_offset < *recovery_point);
    let cut = match (found.clean_shutdown, below_recovery_point, stopped_by) {
        (true, _, Some(defect)) => return RecoveryPlan::Refuse(damage(defect)),
        (false, Some(_), Some(defect)) => return RecoveryPlan::Refuse(damage(defect)),
        (_, Some(recovery_point), None) => {
            return RecoveryPlan::Refuse(damage(Defect::Missing { recovery_point }));
        }
        (false, None, Some(defect)) => Some(damage(defect)),
        (_, None, None) => None,
    };
    let epochs = log.epochs.pairs();
    let high_watermark = found.high_watermark.unwrap_or(0).clamp(log.log_start_offset, log.log_end_offset);
    assert!(log.size <= found.bytes.len() as u64, "a log never grows by recovery");
    assert!(found.recovery_point.is_none_or(|point| log.log_end_offset >= point), "what was synced is kept");
    RecoveryPlan::Serve {
        truncate_to: (log.size < found.bytes.len() as u64).then_some(log.size),
        sync: !found.clean_shutdown,
        rewrite_epochs: (found.epochs.as_ref() != Some(&epochs)).then_some(epochs),
        log,
        high_watermark,
        cut,
    }
}

/// The longest good prefix of the file, and what comes behind it if that is not the end of the file.
fn walk(found: &FoundLog) -> (RecoveredLog, Option<Defect>) {
    let mut witness = EpochCache::default();
    for (epoch, start_offset) in found.epochs.iter().flatten() {
        if *epoch >= 0 && *start_offset >= 0 {
            witness.assign(*epoch, *start_offset);
        }
    }
    let log_start_offset = found.log_start_offset.max(0);
    let mut log = RecoveredLog {
        log_start_offset,
        log_end_offset: log_start_offset,
        size: 0,
        batches: Vec::new(),
        epochs: EpochCache::default(),
    };
    loop {
        let rest = &found.bytes[log.size as usize..];
        if rest.is_empty() {
            return (log, None);
        }
        match next_batch(rest, &log, &witness, found.has_gaps) {
            Ok(entry) => {
                log.epochs.assign(entry.leader_epoch, entry.base_offset);
                log.log_end_offset = entry.last_offset() + 1;
                log.size = entry.end_position();
                log.batches.push(entry);
            }
            Err(defect) => return (log, Some(defect)),
        }
    }
}

/// The batch at the front of `rest`, if it may follow what `log` holds.
fn next_batch(
    rest: &[u8],
    log: &RecoveredLog,
    witness: &EpochCache,
    has_gaps: bool,
) -> Result<BatchEntry, Defect> {
    let batch = BatchView::first(rest).map_err(|error| match error {
        BatchError::Truncated { .. } => Defect::Torn,
        other => Defect::Batch(other),
    })?;
    batch.validate_stored().map_err(Defect::Batch)?;
    if batch.header.compression() == Compression::Unknown {
        return Err(Defect::Batch(BatchError::UnknownCodec));
    }
    let offset = batch.header.base_offset;
    let in_order = if has_gaps { offset >= log.log_end_offset } else { offset == log.log_end_offset };
    if !in_order || offset.checked_add(i64::from(batch.header.last_offset_delta) + 1).is_none() {
        return Err(Defect::OffsetOrder { found: offset });
    }
    let epoch = batch.header.partition_leader_epoch;
    let last = log.epochs.latest().unwrap_or(0);
    if epoch < last {
        return Err(Defect::EpochOrder { found: epoch, last });
    }
    if let Some(checkpoint) = witness.epoch_for_offset(offset).filter(|checkpoint| *checkpoint > epoch) {
        return Err(Defect::Stale { found: epoch, checkpoint });
    }
    Ok(BatchEntry::new(&batch.header, log.size))
}
