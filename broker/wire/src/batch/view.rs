//! Walks the batches of a byte range without copying, and checks them.

use super::BatchError;
use super::header::{BatchHeader, CRC_FROM, Compression, HEADER_SIZE, LENGTH_END, bytes_at, parse_header};
use super::record::Records;

/// One whole batch.
#[derive(Clone, Copy, Debug)]
pub struct BatchView<'a> {
    pub header: BatchHeader,
    /// The batch, header included.
    pub bytes: &'a [u8],
    /// Where it begins in the range that was walked.
    pub position: usize,
}

/// Walks a range of whole batches.
pub fn batches(bytes: &[u8]) -> Batches<'_> {
    Batches { bytes, position: 0, failed: false }
}

/// Iterator over batches. It ends at a last batch that is cut ([`Batches::incomplete_tail`]) and after an
/// error.
#[derive(Clone, Debug)]
pub struct Batches<'a> {
    bytes: &'a [u8],
    position: usize,
    failed: bool,
}

impl Batches<'_> {
    /// Bytes that were not walked: after the end, those of a batch that is cut or malformed.
    pub fn incomplete_tail(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// Bytes walked so far.
    pub fn position(&self) -> usize {
        self.position
    }
}

impl<'a> Iterator for Batches<'a> {
    type Item = Result<BatchView<'a>, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = &self.bytes[self.position..];
        if self.failed || rest.len() < LENGTH_END {
            return None;
        }
        let stated = i32::from_be_bytes(bytes_at(rest, 8));
        if stated >= 0 && rest.len() - LENGTH_END < stated as usize {
            return None;
        }
        match BatchView::first(rest) {
            Ok(batch) => {
                let position = self.position;
                self.position += batch.bytes.len();
                Some(Ok(BatchView { position, ..batch }))
            }
            Err(error) => {
                self.failed = true;
                Some(Err(error))
            }
        }
    }
}

impl<'a> BatchView<'a> {
    /// The batch at the front of `bytes`, which must hold all of it.
    pub fn first(bytes: &'a [u8]) -> Result<BatchView<'a>, BatchError> {
        let header = parse_header(bytes)?;
        let size = header.size_in_bytes();
        match bytes.get(..size) {
            Some(bytes) => Ok(BatchView { header, bytes, position: 0 }),
            None => Err(BatchError::Truncated { wanted: size, available: bytes.len() }),
        }
    }

    /// The one batch that `bytes` is.
    pub fn only(bytes: &'a [u8]) -> Result<BatchView<'a>, BatchError> {
        let batch = BatchView::first(bytes)?;
        match bytes.len() - batch.bytes.len() {
            0 => Ok(batch),
            left => Err(BatchError::TrailingBytes { left }),
        }
    }

    /// Whether the bytes are the ones that the checksum was made of.
    pub fn verify_crc(&self) -> bool {
        self.computed_crc() == self.header.crc
    }

    fn computed_crc(&self) -> u32 {
        crc32c::crc32c(&self.bytes[CRC_FROM..])
    }

    /// The checks of form that a leader makes on a produced batch: checksum, at least one record, consecutive
    /// offsets from the first to the last stated one, every length, nothing behind the last record.
    ///
    /// It looks at no rule of the protocol (sequences, control batches, timestamps). Fails with
    /// [`BatchError::Compressed`] when the records cannot be looked at.
    pub fn validate(&self) -> Result<(), BatchError> {
        self.check_crc()?;
        let BatchHeader { record_count: count, last_offset_delta, .. } = self.header;
        if count < 1 {
            return Err(BatchError::RecordCount { count });
        }
        if last_offset_delta != count - 1 {
            return Err(BatchError::LastOffsetDelta { last_offset_delta, count });
        }
        if self.header.compression() != Compression::None {
            return Err(BatchError::Compressed);
        }
        self.walk(|index, offset_delta| offset_delta == index)
    }

    /// The checks of form on a batch found in a log: as [`BatchView::validate`], but compaction may have
    /// removed records, even all, and the records of a compressed batch are believed when the checksum is
    /// right.
    pub fn validate_stored(&self) -> Result<(), BatchError> {
        self.check_crc()?;
        let BatchHeader { record_count: count, last_offset_delta, .. } = self.header;
        if count < 0 {
            return Err(BatchError::RecordCount { count });
        }
        if last_offset_delta < 0 || i64::from(count) > i64::from(last_offset_delta) + 1 {
            return Err(BatchError::LastOffsetDelta { last_offset_delta, count });
        }
        if self.header.compression() != Compression::None {
            return Ok(());
        }
        let mut lowest = 0;
        self.walk(|_, offset_delta| {
            let fits = (lowest..=last_offset_delta).contains(&offset_delta);
            lowest = offset_delta.saturating_add(1);
            fits
        })
    }

    fn check_crc(&self) -> Result<(), BatchError> {
        let (stated, computed) = (self.header.crc, self.computed_crc());
        if stated == computed { Ok(()) } else { Err(BatchError::Checksum { stated, computed }) }
    }

    fn walk(&self, mut offset_fits: impl FnMut(i32, i32) -> bool) -> Result<(), BatchError> {
        let mut records = self.uncompressed_records();
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

    /// The records in their order. Fails with [`BatchError::Compressed`] when they are compressed.
    pub fn records(&self) -> Result<Records<'a>, BatchError> {
        match self.header.compression() {
            Compression::None => Ok(self.uncompressed_records()),
            _ => Err(BatchError::Compressed),
        }
    }

    fn uncompressed_records(&self) -> Records<'a> {
        Records::new(self.header, &self.bytes[HEADER_SIZE..])
    }
}
