//! What a leader accepts from a client, and why it refuses. Checks of one batch alone: its form, its size, the rules
//! for clients, its timestamps (Kafka's `ProduceRequest.validateRecords`, `LogValidator`). Sequences are judged by
//! `producers`, offsets are assigned by the log.

use acked_wire::batch::{
    BatchBuilder, BatchError, BatchView, Codec, OpenBatch, batches, patch_append_time, patch_create_time,
};
use acked_wire::error_code;
use bytes::{Bytes, BytesMut};

use super::SequenceError;
use crate::settings::{TimestampType, TopicCompression, TopicSettings};

/// The topic's settings that bound an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendLimits {
    pub compression: TopicCompression,
    /// Bytes of the largest batch, as it came and as it is stored.
    pub max_message_bytes: usize,
    pub timestamp_type: TimestampType,
    /// How far a record may lie in the past and in the future of the broker's clock, in milliseconds.
    pub timestamp_before_max_ms: i64,
    pub timestamp_after_max_ms: i64,
}

impl From<&TopicSettings> for AppendLimits {
    fn from(settings: &TopicSettings) -> AppendLimits {
        let milliseconds =
            |duration: std::time::Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        AppendLimits {
            compression: settings.compression,
            max_message_bytes: usize::try_from(settings.max_message_bytes).unwrap_or(0),
            timestamp_type: settings.message_timestamp_type,
            timestamp_before_max_ms: milliseconds(settings.message_timestamp_before_max),
            timestamp_after_max_ms: milliseconds(settings.message_timestamp_after_max),
        }
    }
}

impl Default for AppendLimits {
    fn default() -> Self {
        AppendLimits::from(&TopicSettings::default())
    }
}

/// Why records were not appended. Worded to follow "failed to".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    #[error("append: {found} batches where exactly one must be")]
    NotOneBatch { found: &'static str },
    #[error("append: {0}")]
    Batch(#[from] BatchError),
    #[error("append: a batch of {size} bytes, at most {max} are allowed")]
    TooLarge { size: usize, max: usize },
    #[error("append: the client set {field}")]
    NotForClients { field: &'static str },
    #[error("append: transactions are not supported")]
    Transactional,
    #[error("append: timestamp {timestamp} is too far from the broker's {now}")]
    Timestamp { timestamp: i64, now: i64 },
    #[error("append: {0}")]
    Sequence(#[from] SequenceError),
    #[error("append: offset {found} where {expected} or more must come")]
    OffsetOrder { found: i64, expected: i64 },
    #[error("append: leader epoch {epoch} is not a real one")]
    LeaderEpoch { epoch: i32 },
}

impl AppendError {
    /// Kafka's error code.
    pub fn code(&self) -> i16 {
        match self {
            AppendError::NotOneBatch { .. } | AppendError::NotForClients { .. } => error_code::INVALID_RECORD,
            AppendError::Batch(BatchError::Checksum { .. } | BatchError::InvalidLength { .. }) => {
                error_code::CORRUPT_MESSAGE
            }
            // Measured, for both.
            AppendError::Batch(BatchError::UnknownCodec | BatchError::MalformedStream) => {
                error_code::UNKNOWN_SERVER_ERROR
            }
            AppendError::TooLarge { .. } | AppendError::Batch(BatchError::TooLarge { .. }) => {
                error_code::MESSAGE_TOO_LARGE
            }
            AppendError::Batch(_) => error_code::INVALID_RECORD,
            AppendError::Transactional => error_code::INVALID_TXN_STATE,
            AppendError::Timestamp { .. } => error_code::INVALID_TIMESTAMP,
            AppendError::Sequence(SequenceError::StaleEpoch { .. }) => error_code::INVALID_PRODUCER_EPOCH,
            AppendError::Sequence(SequenceError::OutOfOrder { .. }) => {
                error_code::OUT_OF_ORDER_SEQUENCE_NUMBER
            }
            AppendError::OffsetOrder { .. } | AppendError::LeaderEpoch { .. } => {
                error_code::UNKNOWN_SERVER_ERROR
            }
        }
    }

    /// Whether an answer to the client carries the log start offset (measured): what a look at the records or their
    /// producer refuses does, what is refused before does not.
    pub fn tells_log_start_offset(&self) -> bool {
        match self {
            AppendError::NotOneBatch { .. } | AppendError::TooLarge { .. } | AppendError::Transactional => {
                false
            }
            AppendError::Batch(error) => !matches!(
                error,
                BatchError::Checksum { .. }
                    | BatchError::InvalidLength { .. }
                    | BatchError::UnsupportedMagic { .. }
                    | BatchError::Truncated { .. }
                    | BatchError::TrailingBytes { .. }
                    | BatchError::TooLarge { .. }
            ),
            AppendError::NotForClients { .. }
            | AppendError::Timestamp { .. }
            | AppendError::Sequence(_)
            | AppendError::OffsetOrder { .. }
            | AppendError::LeaderEpoch { .. } => true,
        }
    }
}

/// A client's batch after validation: append it, or answer with where it already lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prepared {
    Append(PreparedAppend),
    /// One of the producer's last five batches. It may still be on its way to the disk.
    Duplicate {
        base_offset: i64,
        last_offset: i64,
        /// The largest timestamp of the batch: `log_append_time_ms` of the answer, whatever the timestamp type.
        timestamp_ms: i64,
    },
}

/// A validated batch with its offsets and leader epoch set; nothing of the log has changed yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedAppend {
    pub bytes: Bytes,
    pub base_offset: i64,
    pub last_offset: i64,
    pub leader_epoch: i32,
    /// −1 without a producer.
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub base_sequence: i32,
    /// Milliseconds since 1970.
    pub max_timestamp: i64,
}

/// Batches that the log now holds; their bytes must be written at `position`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    pub bytes: Bytes,
    pub position: u64,
    pub base_offset: i64,
    pub last_offset: i64,
    /// The epoch checkpoint must be saved.
    pub epochs_changed: bool,
}

/// A client's batch that a leader may take.
pub(super) struct Checked<'a> {
    pub batch: BatchView<'a>,
    /// Its records, whatever their compression.
    records: OpenBatch<'a>,
    /// What the batch will state: the largest time of its records, or the broker's. Milliseconds since 1970.
    pub max_timestamp: i64,
}

/// The one batch in a client's records, if a leader may take it.
pub(super) fn check_client_batch<'a>(
    records: &'a [u8],
    limits: &AppendLimits,
    now_ms: i64,
) -> Result<Checked<'a>, AppendError> {
    let mut walk = batches(records);
    let batch = walk.next().ok_or(AppendError::NotOneBatch { found: "no whole" })??;
    if walk.incomplete_tail() > 0 {
        return Err(AppendError::NotOneBatch { found: "two" });
    }
    check_size(batch.bytes.len(), limits)?;
    let records = batch.open_validated()?;
    check_client_rules(&batch)?;
    let max_timestamp = match limits.timestamp_type {
        TimestampType::CreateTime => check_timestamps(&records, limits, now_ms)?,
        TimestampType::LogAppendTime => now_ms,
    };
    Ok(Checked { batch, records, max_timestamp })
}

fn check_size(size: usize, limits: &AppendLimits) -> Result<(), AppendError> {
    if size > limits.max_message_bytes {
        return Err(AppendError::TooLarge { size, max: limits.max_message_bytes });
    }
    Ok(())
}

fn check_client_rules(batch: &BatchView<'_>) -> Result<(), AppendError> {
    let header = &batch.header;
    if header.base_offset != 0 {
        return Err(AppendError::NotForClients { field: "a base offset" });
    }
    if header.is_control() {
        return Err(AppendError::NotForClients { field: "control records" });
    }
    if header.has_delete_horizon() {
        return Err(AppendError::NotForClients { field: "a delete horizon" });
    }
    if header.has_producer_id() && (header.base_sequence < 0 || header.producer_epoch < 0) {
        return Err(AppendError::NotForClients { field: "a producer id without epoch or sequence" });
    }
    if header.is_transactional() {
        return Err(AppendError::Transactional);
    }
    Ok(())
}

/// The largest time of the records, −1 if none has one: what the client states may be wrong, and Kafka corrects it
/// (measured). −1 is "no timestamp" and always good.
fn check_timestamps(records: &OpenBatch<'_>, limits: &AppendLimits, now_ms: i64) -> Result<i64, AppendError> {
    let oldest = now_ms.saturating_sub(limits.timestamp_before_max_ms);
    let newest = now_ms.saturating_add(limits.timestamp_after_max_ms);
    let mut largest = -1;
    for record in records.records() {
        let timestamp = record?.timestamp;
        if timestamp != -1 && !(oldest..=newest).contains(&timestamp) {
            return Err(AppendError::Timestamp { timestamp, now: now_ms });
        }
        largest = largest.max(timestamp);
    }
    Ok(largest)
}

impl Checked<'_> {
    /// The batch as it is stored, but for offset and leader epoch: compressed as the topic asks, its times set.
    pub fn stored(&self, limits: &AppendLimits) -> Result<BytesMut, AppendError> {
        let header = &self.batch.header;
        let mut bytes = match limits.compression {
            // Kafka keeps the bytes when only the level is another.
            TopicCompression::Fixed(codec) if codec.compression != header.compression() => {
                self.compressed_anew(codec)
            }
            TopicCompression::Fixed(_) | TopicCompression::Producer => BytesMut::from(self.batch.bytes),
        };
        check_size(bytes.len(), limits)?;
        match limits.timestamp_type {
            TimestampType::LogAppendTime => patch_append_time(&mut bytes, self.max_timestamp),
            // A client may claim what it likes: the times stay the producer's (measured).
            TimestampType::CreateTime
                if header.is_log_append_time() || header.max_timestamp != self.max_timestamp =>
            {
                patch_create_time(&mut bytes, self.max_timestamp);
            }
            TimestampType::CreateTime => {}
        }
        Ok(bytes)
    }

    fn compressed_anew(&self, codec: Codec) -> BytesMut {
        let header = &self.batch.header;
        let mut builder: Option<BatchBuilder> = None;
        for record in self.records.records() {
            let record = record.expect("the batch was validated");
            let builder = builder.get_or_insert_with(|| {
                BatchBuilder::new(record.timestamp)
                    .with_capacity(self.records.record_bytes().len())
                    .producer(header.producer_id, header.producer_epoch, header.base_sequence)
                    .codec(codec)
            });
            let headers: Vec<_> = record.headers().map(|header| (header.key, header.value)).collect();
            builder.push(record.timestamp, record.key, record.value, &headers);
        }
        builder.expect("a validated batch has records").build()
    }
}
