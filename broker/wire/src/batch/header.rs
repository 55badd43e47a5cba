//! The 61 bytes before the records of a batch.
//!
//! | byte | field | | byte | field |
//! |---|---|---|---|---|
//! | 0 | base offset, i64 | | 23 | last offset delta, i32 |
//! | 8 | length from byte 12 on, i32 | | 27 | base timestamp, i64 |
//! | 12 | partition leader epoch, i32 | | 35 | largest timestamp, i64 |
//! | 16 | format version, i8 = 2 | | 43 | producer id, i64 |
//! | 17 | CRC-32C from byte 21 on, u32 | | 51 | producer epoch, i16 |
//! | 21 | attributes, i16 | | 53 | base sequence, i32 |
//! | | | | 57 | record count, i32 |
//!
//! The checksum covers neither base offset nor leader epoch, so that a leader can set both in place.

use super::BatchError;

/// Bytes before the first record.
pub const HEADER_SIZE: usize = 61;
/// Bytes that the stated length does not count: base offset and the length itself.
pub(super) const LENGTH_END: usize = 12;
pub(super) const LEADER_EPOCH_AT: usize = 12;
pub(super) const MAGIC_AT: usize = 16;
pub(super) const CRC_AT: usize = 17;
/// First byte under the checksum.
pub(super) const CRC_FROM: usize = 21;
pub(super) const MAX_TIMESTAMP_AT: usize = 35;
pub(super) const MAGIC: i8 = 2;

pub(super) const CODEC_MASK: i16 = 0x07;
pub(super) const LOG_APPEND_TIME: i16 = 0x08;
pub(super) const TRANSACTIONAL: i16 = 0x10;
pub(super) const CONTROL: i16 = 0x20;
pub(super) const DELETE_HORIZON: i16 = 0x40;

/// How the records of a batch are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
    /// Codec numbers 5 to 7, which Kafka does not define.
    Unknown,
}

impl Compression {
    fn numbered(number: i16) -> Compression {
        match number {
            0 => Compression::None,
            1 => Compression::Gzip,
            2 => Compression::Snappy,
            3 => Compression::Lz4,
            4 => Compression::Zstd,
            _ => Compression::Unknown,
        }
    }

    /// Kafka's number of the codec.
    pub(super) fn number(self) -> Option<i16> {
        match self {
            Compression::None => Some(0),
            Compression::Gzip => Some(1),
            Compression::Snappy => Some(2),
            Compression::Lz4 => Some(3),
            Compression::Zstd => Some(4),
            Compression::Unknown => None,
        }
    }

    /// The codec that settings and tools call `name`.
    pub fn named(name: &str) -> Option<Compression> {
        match name {
            "none" | "uncompressed" => Some(Compression::None),
            "gzip" => Some(Compression::Gzip),
            "snappy" => Some(Compression::Snappy),
            "lz4" => Some(Compression::Lz4),
            "zstd" => Some(Compression::Zstd),
            _ => None,
        }
    }
}

/// The header of one batch, as stated. Only length and format version were checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHeader {
    pub base_offset: i64,
    /// Bytes of the batch from byte 12 on, at least 49.
    pub batch_length: i32,
    pub partition_leader_epoch: i32,
    /// Always 2.
    pub magic: i8,
    pub crc: u32,
    pub attributes: i16,
    pub last_offset_delta: i32,
    /// Milliseconds; the delete horizon when that attribute is set.
    pub base_timestamp: i64,
    /// Milliseconds.
    pub max_timestamp: i64,
    /// -1 without a producer id.
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub base_sequence: i32,
    pub record_count: i32,
}

impl BatchHeader {
    /// Offset of the last record, also when compaction removed it.
    pub fn last_offset(&self) -> i64 {
        self.base_offset.wrapping_add(i64::from(self.last_offset_delta))
    }

    /// Offset after the batch.
    pub fn next_offset(&self) -> i64 {
        self.last_offset().wrapping_add(1)
    }

    /// Bytes of the whole batch.
    pub fn size_in_bytes(&self) -> usize {
        LENGTH_END + self.batch_length as usize
    }

    pub fn compression(&self) -> Compression {
        Compression::numbered(self.attributes & CODEC_MASK)
    }

    /// Timestamps are the broker's: every record has `max_timestamp`.
    pub fn is_log_append_time(&self) -> bool {
        self.attributes & LOG_APPEND_TIME != 0
    }

    pub fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL != 0
    }

    pub fn is_control(&self) -> bool {
        self.attributes & CONTROL != 0
    }

    pub fn has_delete_horizon(&self) -> bool {
        self.attributes & DELETE_HORIZON != 0
    }

    pub fn has_producer_id(&self) -> bool {
        self.producer_id >= 0
    }

    /// Sequence number of the last record. Sequences wrap from 2^31 - 1 to 0; -1 without one.
    pub fn last_sequence(&self) -> i32 {
        if self.base_sequence < 0 {
            return -1;
        }
        let last = i64::from(self.base_sequence) + i64::from(self.last_offset_delta);
        (last & i64::from(i32::MAX)) as i32
    }
}

pub(super) fn bytes_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("the slice has N bytes")
}

/// Reads the header of the batch at the front of `bytes`; the records need not be there.
///
/// Fails when `bytes` ends inside the header, when the format is not version 2, and when the stated length is
/// smaller than the header.
pub fn parse_header(bytes: &[u8]) -> Result<BatchHeader, BatchError> {
    // The format comes first: batches of formats 0 and 1 can be shorter than a header of version 2.
    if let Some(magic) = bytes.get(MAGIC_AT).map(|magic| *magic as i8).filter(|magic| *magic != MAGIC) {
        return Err(BatchError::UnsupportedMagic { magic });
    }
    let Some(bytes) = bytes.first_chunk::<HEADER_SIZE>() else {
        return Err(BatchError::Truncated { wanted: HEADER_SIZE, available: bytes.len() });
    };
    let batch_length = i32::from_be_bytes(bytes_at(bytes, 8));
    if batch_length < (HEADER_SIZE - LENGTH_END) as i32 {
        return Err(BatchError::InvalidLength { length: batch_length });
    }
    Ok(BatchHeader {
        base_offset: i64::from_be_bytes(bytes_at(bytes, 0)),
        batch_length,
        partition_leader_epoch: i32::from_be_bytes(bytes_at(bytes, LEADER_EPOCH_AT)),
        magic: bytes[MAGIC_AT] as i8,
        crc: u32::from_be_bytes(bytes_at(bytes, CRC_AT)),
        attributes: i16::from_be_bytes(bytes_at(bytes, CRC_FROM)),
        last_offset_delta: i32::from_be_bytes(bytes_at(bytes, 23)),
        base_timestamp: i64::from_be_bytes(bytes_at(bytes, 27)),
        max_timestamp: i64::from_be_bytes(bytes_at(bytes, MAX_TIMESTAMP_AT)),
        producer_id: i64::from_be_bytes(bytes_at(bytes, 43)),
        producer_epoch: i16::from_be_bytes(bytes_at(bytes, 51)),
        base_sequence: i32::from_be_bytes(bytes_at(bytes, 53)),
        record_count: i32::from_be_bytes(bytes_at(bytes, 57)),
    })
}

/// Sets base offset and leader epoch of a batch in place. The checksum does not cover them.
///
/// Panics when `batch` is shorter than a header: it must be one that was parsed.
pub fn patch(batch: &mut [u8], base_offset: i64, leader_epoch: i32) {
    assert!(batch.len() >= HEADER_SIZE, "only a parsed batch may be patched");
    batch[..8].copy_from_slice(&base_offset.to_be_bytes());
    batch[LEADER_EPOCH_AT..LEADER_EPOCH_AT + 4].copy_from_slice(&leader_epoch.to_be_bytes());
}

/// Sets the time of all records to the broker's (`message.timestamp.type=LogAppendTime`), and the checksum
/// anew.
///
/// Panics when `batch` is shorter than a header or longer than one batch: it must be exactly one that was
/// parsed.
pub fn patch_append_time(batch: &mut [u8], timestamp_ms: i64) {
    let header = parse_header(batch).expect("only a parsed batch may be patched");
    patch_time(batch, &header, header.attributes | LOG_APPEND_TIME, timestamp_ms);
}

/// States that the times of the records are the producer's, and the largest of them, and the checksum anew.
///
/// Panics as [`patch_append_time`] does.
pub fn patch_create_time(batch: &mut [u8], max_timestamp_ms: i64) {
    let header = parse_header(batch).expect("only a parsed batch may be patched");
    patch_time(batch, &header, header.attributes & !LOG_APPEND_TIME, max_timestamp_ms);
}

fn patch_time(batch: &mut [u8], header: &BatchHeader, attributes: i16, timestamp_ms: i64) {
    assert_eq!(header.size_in_bytes(), batch.len(), "exactly one batch is patched");
    batch[CRC_FROM..CRC_FROM + 2].copy_from_slice(&attributes.to_be_bytes());
    batch[MAX_TIMESTAMP_AT..MAX_TIMESTAMP_AT + 8].copy_from_slice(&timestamp_ms.to_be_bytes());
    let crc = crc32c::crc32c(&batch[CRC_FROM..]);
    batch[CRC_AT..CRC_FROM].copy_from_slice(&crc.to_be_bytes());
}
