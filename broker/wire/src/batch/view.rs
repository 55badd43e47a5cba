//! Walks the batches of a byte range without copying, and checks them.

use super::header::{BatchHeader, CRC_FROM, Compression, HEADER_SIZE, LENGTH_END, bytes_at, parse_header};
use super::record::Records;
use super::{BatchError, OpenBatch};

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
    /// It looks at no rule of the protocol (sequences, control batches, timestamps). A compressed batch is opened
    /// for it: see [`BatchView::open`] for the memory and the errors.
    pub fn validate(&self) -> Result<(), BatchError> {
        self.open_validated().map(|_| ())
    }

    /// As [`BatchView::validate`], and gives the records that were looked at.
    pub fn open_validated(&self) -> Result<OpenBatch<'a>, BatchError> {
        self.check_crc()?;
        let BatchHeader { record_count: count, last_offset_delta, .. } = self.header;
        if count < 1 {
            return Err(BatchError::RecordCount { count });
        }
        if last_offset_delta != count - 1 {
            return Err(BatchError::LastOffsetDelta { last_offset_delta, count });
        }
        let open = self.open()?;
        open.walk(|index, offset_delta| offset_delta == index)?;
        Ok(open)
    }

    /// The checks of form on a batch found in a log: as [`BatchView::validate`], but compaction may have
    /// removed records, even all, and the records of a compressed batch are believed when the checksum is
    /// right.
    pub fn validate_stored(&self) -> Result<(), BatchError> {
        self.check_stored()?;
        if self.header.compression() == Compression::None { self.walk_stored() } else { Ok(()) }
    }

    /// As [`BatchView::validate_stored`], and looks at the records of a compressed batch too.
    pub fn validate_stored_records(&self) -> Result<(), BatchError> {
        self.check_stored()?;
        self.walk_stored()
    }

    fn check_stored(&self) -> Result<(), BatchError> {
        self.check_crc()?;
        let BatchHeader { record_count: count, last_offset_delta, .. } = self.header;
        if count < 0 {
            return Err(BatchError::RecordCount { count });
        }
        if last_offset_delta < 0 || i64::from(count) > i64::from(last_offset_delta) + 1 {
            return Err(BatchError::LastOffsetDelta { last_offset_delta, count });
        }
        Ok(())
    }

    fn walk_stored(&self) -> Result<(), BatchError> {
        let last_offset_delta = self.header.last_offset_delta;
        let mut lowest = 0;
        self.open()?.walk(|_, offset_delta| {
            let fits = (lowest..=last_offset_delta).contains(&offset_delta);
            lowest = offset_delta.saturating_add(1);
            fits
        })
    }

    fn check_crc(&self) -> Result<(), BatchError> {
        let (stated, computed) = (self.header.crc, self.computed_crc());
        if stated == computed { Ok(()) } else { Err(BatchError::Checksum { stated, computed }) }
    }

    /// The records in their order, of a batch that nobody compresses, as those of the metadata log. Fails with
    /// [`BatchError::Compressed`] when they are; [`BatchView::open`] does not.
    pub fn records(&self) -> Result<Records<'a>, BatchError> {
        match self.header.compression() {
            Compression::None => Ok(Records::new(self.header, &self.bytes[HEADER_SIZE..])),
            _ => Err(BatchError::Compressed),
        }
    }
}
