//! Records that travel together to one partition.

use acked_wire::batch::{BatchBuilder, Codec};
use bytes::Bytes;

use super::sequences::Numbering;
use crate::Time;

/// A record as its sender names it; the producer says once what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordId(pub u64);

/// One record that waits for its answer.
#[derive(Clone, Debug)]
pub struct PendingRecord {
    pub id: RecordId,
    pub key: Option<Bytes>,
    pub value: Option<Bytes>,
    /// Milliseconds since 1970.
    pub timestamp_ms: i64,
}

impl PendingRecord {
    /// Bytes that the record takes in a batch, at most.
    pub fn size_max(&self) -> usize {
        // Length, attributes, deltas, key and value length, header count: varints of at most 5 or 10 bytes.
        const OVERHEAD: usize = 5 + 1 + 10 + 5 + 5 + 5 + 1;
        OVERHEAD + self.key.as_ref().map_or(0, Bytes::len) + self.value.as_ref().map_or(0, Bytes::len)
    }
}

/// A batch before its last answer. Open until it is full, lingered long enough or was sent; then its records are
/// fixed, and so is its numbering while its outcome is unknown.
#[derive(Debug)]
pub struct Batch {
    /// Order of creation in the whole producer.
    pub number: u64,
    pub records: Vec<PendingRecord>,
    /// Bytes on the wire before compression, at most.
    pub size_max: usize,
    pub created: Time,
    /// Takes no more records, and waits for no others.
    pub closed: bool,
    pub attempts: u32,
    pub retry_at: Time,
    /// An attempt ended without anyone knowing whether it was appended.
    pub may_have_effect: bool,
    pub numbering: Option<Numbering>,
    encoded: Option<Bytes>,
}

impl Batch {
    pub fn new(number: u64, created: Time, record: PendingRecord) -> Batch {
        let size_max = acked_wire::batch::HEADER_SIZE + record.size_max();
        Batch {
            number,
            records: vec![record],
            size_max,
            created,
            closed: false,
            attempts: 0,
            retry_at: Time::ZERO,
            may_have_effect: false,
            numbering: None,
            encoded: None,
        }
    }

    pub fn push(&mut self, record: PendingRecord) {
        assert!(!self.closed, "a closed batch takes no records");
        self.size_max += record.size_max();
        self.records.push(record);
    }

    /// How many sequence numbers it takes.
    pub fn count(&self) -> i32 {
        i32::try_from(self.records.len()).expect("a batch is smaller than a frame")
    }

    /// Gives the batch its place in the partition's sequence, or another one.
    pub fn renumber(&mut self, numbering: Numbering) {
        self.numbering = Some(numbering);
        self.encoded = None;
    }

    /// The bytes to send. The same bytes for every attempt with the same numbering.
    pub fn bytes(&mut self, codec: Codec) -> Bytes {
        assert!(self.closed, "only closed batches are sent");
        let (records, numbering) = (&self.records, self.numbering);
        self.encoded.get_or_insert_with(|| encode(records, numbering, codec)).clone()
    }
}

fn encode(records: &[PendingRecord], numbering: Option<Numbering>, codec: Codec) -> Bytes {
    let size = records.iter().map(PendingRecord::size_max).sum();
    let mut builder = BatchBuilder::new(records[0].timestamp_ms).with_capacity(size).codec(codec);
    if let Some(Numbering { producer, base_sequence, .. }) = numbering {
        builder = builder.producer(producer.id, producer.epoch, base_sequence);
    }
    for record in records {
        builder.push(record.timestamp_ms, record.key.as_deref(), record.value.as_deref(), &[]);
    }
    builder.build().freeze()
}
