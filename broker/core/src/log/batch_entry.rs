//! What a log remembers of one batch: enough to find it, to answer by time, and to replay its producer. 56 bytes.

use acked_wire::batch::BatchHeader;

use super::ProducerBatch;

/// One batch of a log, without its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchEntry {
    pub base_offset: i64,
    /// Where it begins in the file, in bytes.
    pub position: u64,
    /// Milliseconds since 1970.
    pub max_timestamp: i64,
    pub producer_id: i64,
    pub size: u32,
    pub last_offset_delta: i32,
    pub leader_epoch: i32,
    pub base_sequence: i32,
    pub producer_epoch: i16,
    pub is_control: bool,
}

impl BatchEntry {
    pub fn new(header: &BatchHeader, position: u64) -> BatchEntry {
        assert!(header.last_offset_delta >= 0, "the batch at {} was checked", header.base_offset);
        BatchEntry {
            base_offset: header.base_offset,
            position,
            max_timestamp: header.max_timestamp,
            producer_id: header.producer_id,
            size: u32::try_from(header.size_in_bytes()).expect("a batch's length has 32 bits"),
            last_offset_delta: header.last_offset_delta,
            leader_epoch: header.partition_leader_epoch,
            base_sequence: header.base_sequence,
            producer_epoch: header.producer_epoch,
            is_control: header.is_control(),
        }
    }

    pub fn last_offset(&self) -> i64 {
        self.base_offset + i64::from(self.last_offset_delta)
    }

    /// Position of the first byte behind it.
    pub fn end_position(&self) -> u64 {
        self.position + u64::from(self.size)
    }

    pub fn producer_batch(&self) -> ProducerBatch {
        ProducerBatch {
            producer_id: self.producer_id,
            producer_epoch: self.producer_epoch,
            base_sequence: self.base_sequence,
            base_offset: self.base_offset,
            last_offset: self.last_offset(),
            max_timestamp: self.max_timestamp,
            is_control: self.is_control,
        }
    }
}
