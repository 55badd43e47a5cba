//! A batch whose records can be read, compressed or not.

use bytes::Bytes;

use super::codec::{INFLATED_MAX, decompress};
use super::header::{BatchHeader, Compression, HEADER_SIZE};
use super::record::Records;
use super::{BatchError, BatchView};

/// A batch with its records as they were before compression: where they are in an uncompressed batch, in a buffer
/// of their own otherwise.
#[derive(Clone, Debug)]
pub struct OpenBatch<'a> {
    pub header: BatchHeader,
    stored: &'a [u8],
    inflated: Option<Bytes>,
}

impl<'a> BatchView<'a> {
    /// Makes the records readable: without a copy when they are not compressed, else into at most
    /// [`INFLATED_MAX`] bytes. The checksum is not looked at.
    ///
    /// Fails with [`BatchError::UnknownCodec`], [`BatchError::MalformedStream`] and [`BatchError::TooLarge`].
    pub fn open(&self) -> Result<OpenBatch<'a>, BatchError> {
        self.open_within(INFLATED_MAX)
    }

    /// As [`BatchView::open`], with another bound of the inflated records, in bytes.
    pub fn open_within(&self, max: usize) -> Result<OpenBatch<'a>, BatchError> {
        let stored = &self.bytes[HEADER_SIZE..];
        let inflated = match self.header.compression() {
            Compression::None => None,
            // A batch of which compaction left nothing has no stream.
            _ if stored.is_empty() && self.header.record_count == 0 => None,
            compression => Some(Bytes::from(decompress(compression, stored, max)?)),
        };
        Ok(OpenBatch { header: self.header, stored, inflated })
    }
}

impl OpenBatch<'_> {
    /// The records in their order.
    pub fn records(&self) -> Records<'_> {
        Records::new(self.header, self.record_bytes())
    }

    /// The records as bytes, one behind the other.
    pub fn record_bytes(&self) -> &[u8] {
        self.inflated.as_deref().unwrap_or(self.stored)
    }

    /// A key or value of one of the records that shares their memory: that of `whole`, in which the batch lies, when
    /// the batch is not compressed.
    ///
    /// Panics when `part` is of another batch, or the batch not in `whole`.
    pub fn share(&self, part: &[u8], whole: &Bytes) -> Bytes {
        self.inflated.as_ref().unwrap_or(whole).slice_ref(part)
    }

    /// Every record can be read, its offset fits, and nothing is behind the last one.
    pub(super) fn walk(&self, mut offset_fits: impl FnMut(i32, i32) -> bool) -> Result<(), BatchError> {
        let mut records = self.records();
        let mut index = 0;
        for record in &mut records {
            let offset_delta = record?.offset_delta;
            if !offset_fits(index, offset_delta) {
                return Err(BatchError::OffsetDelta { index, offset_delta });
            }
            index += 1;
        }
        assert_eq!(index, self.header.record_count, "the walk ends early only with an error");
        match records.left() {
            0 => Ok(()),
            left => Err(BatchError::BytesBehindRecords { left }),
        }
    }
}
