//! Writes one batch.

use bytes::{BufMut, BytesMut};

use super::codec::{Codec, compress};
use super::header::{
    CODEC_MASK, CONTROL, CRC_AT, CRC_FROM, Compression, HEADER_SIZE, LENGTH_END, MAGIC, TRANSACTIONAL,
};
use super::varint::{long_size, write_long};

/// Collects records behind a space for the header, which [`BatchBuilder::build`] fills in.
#[derive(Clone, Debug)]
pub struct BatchBuilder {
    out: BytesMut,
    base_offset: i64,
    leader_epoch: i32,
    attributes: i16,
    codec: Codec,
    base_timestamp: i64,
    max_timestamp: i64,
    producer_id: i64,
    producer_epoch: i16,
    base_sequence: i32,
    count: i32,
}

impl BatchBuilder {
    /// A batch at offset 0 without producer, leader epoch -1. Timestamps (milliseconds) are stored relative
    /// to `base_timestamp`: that of the first record.
    pub fn new(base_timestamp: i64) -> BatchBuilder {
        let mut out = BytesMut::with_capacity(256);
        out.put_bytes(0, HEADER_SIZE);
        BatchBuilder {
            out,
            base_offset: 0,
            leader_epoch: -1,
            attributes: 0,
            codec: Codec::NONE,
            base_timestamp,
            max_timestamp: i64::MIN,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            count: 0,
        }
    }

    /// Space for records of `bytes` bytes in all, so that the buffer does not grow.
    pub fn with_capacity(mut self, bytes: usize) -> BatchBuilder {
        self.out.reserve(bytes);
        self
    }

    pub fn base_offset(mut self, base_offset: i64) -> BatchBuilder {
        self.base_offset = base_offset;
        self
    }

    pub fn leader_epoch(mut self, leader_epoch: i32) -> BatchBuilder {
        self.leader_epoch = leader_epoch;
        self
    }

    /// The producer and the sequence number of the first record.
    pub fn producer(mut self, id: i64, epoch: i16, base_sequence: i32) -> BatchBuilder {
        (self.producer_id, self.producer_epoch, self.base_sequence) = (id, epoch, base_sequence);
        self
    }

    /// How [`BatchBuilder::build`] compresses the records.
    ///
    /// Panics for [`Compression::Unknown`].
    pub fn codec(mut self, codec: Codec) -> BatchBuilder {
        let number = codec.compression.number().expect("a codec that Kafka defines");
        self.attributes = self.attributes & !CODEC_MASK | number;
        self.codec = codec;
        self
    }

    pub fn transactional(mut self) -> BatchBuilder {
        self.attributes |= TRANSACTIONAL;
        self
    }

    /// A batch of control records.
    pub fn control(mut self) -> BatchBuilder {
        self.attributes |= CONTROL;
        self
    }

    /// Appends a record at the next offset. `timestamp` is in milliseconds.
    ///
    /// Panics when key, value or a header has 2^31 bytes or more.
    pub fn push(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[(&[u8], Option<&[u8]>)],
    ) {
        let timestamp_delta = timestamp.wrapping_sub(self.base_timestamp);
        let body = body_size(timestamp_delta, self.count, key, value, headers);
        assert!(i32::try_from(body).is_ok(), "a record has less than 2^31 bytes");
        self.out.reserve(body + 5);
        write_long(&mut self.out, body as i64);
        self.out.put_u8(0);
        write_long(&mut self.out, timestamp_delta);
        write_long(&mut self.out, i64::from(self.count));
        write_bytes(&mut self.out, key);
        write_bytes(&mut self.out, value);
        write_long(&mut self.out, headers.len() as i64);
        for (key, value) in headers {
            write_bytes(&mut self.out, Some(key));
            write_bytes(&mut self.out, *value);
        }
        self.count += 1;
        self.max_timestamp = self.max_timestamp.max(timestamp);
    }

    /// Records so far.
    pub fn count(&self) -> i32 {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of the batch as built now, before compression.
    pub fn size_in_bytes(&self) -> usize {
        self.out.len()
    }

    /// Bytes of the batch with one more record, before compression.
    pub fn size_with(
        &self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[(&[u8], Option<&[u8]>)],
    ) -> usize {
        let body = body_size(timestamp.wrapping_sub(self.base_timestamp), self.count, key, value, headers);
        self.out.len() + long_size(body as i64) + body
    }

    /// The batch. Panics without a record.
    pub fn build(self) -> BytesMut {
        assert!(self.count > 0, "a written batch has at least one record");
        let mut batch = self.out;
        if self.codec.compression != Compression::None {
            let records = compress(self.codec, &batch[HEADER_SIZE..]);
            batch.truncate(HEADER_SIZE);
            batch.extend_from_slice(&records);
        }
        let length = batch.len() - LENGTH_END;
        assert!(i32::try_from(length).is_ok(), "a batch has less than 2^31 bytes");
        let mut header = &mut batch[..HEADER_SIZE];
        header.put_i64(self.base_offset);
        header.put_i32(length as i32);
        header.put_i32(self.leader_epoch);
        header.put_i8(MAGIC);
        header.put_u32(0);
        header.put_i16(self.attributes);
        header.put_i32(self.count - 1);
        header.put_i64(self.base_timestamp);
        header.put_i64(self.max_timestamp);
        header.put_i64(self.producer_id);
        header.put_i16(self.producer_epoch);
        header.put_i32(self.base_sequence);
        header.put_i32(self.count);
        let crc = crc32c::crc32c(&batch[CRC_FROM..]);
        batch[CRC_AT..CRC_FROM].copy_from_slice(&crc.to_be_bytes());
        batch
    }
}

fn body_size(
    timestamp_delta: i64,
    offset_delta: i32,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
    headers: &[(&[u8], Option<&[u8]>)],
) -> usize {
    let fixed = 1 + long_size(timestamp_delta) + long_size(i64::from(offset_delta));
    let headers_size =
        headers.iter().map(|(key, value)| bytes_size(Some(key)) + bytes_size(*value)).sum::<usize>();
    fixed + bytes_size(key) + bytes_size(value) + long_size(headers.len() as i64) + headers_size
}

fn bytes_size(bytes: Option<&[u8]>) -> usize {
    bytes.map_or(1, |bytes| long_size(bytes.len() as i64) + bytes.len())
}

fn write_bytes(out: &mut BytesMut, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => {
            write_long(out, bytes.len() as i64);
            out.put_slice(bytes);
        }
        None => write_long(out, -1),
    }
}
