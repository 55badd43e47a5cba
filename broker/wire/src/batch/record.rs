//! The records of one uncompressed batch, read in place.

use super::BatchError;
use super::header::BatchHeader;
use super::varint::{read_int, read_long};

/// One record, pointing into its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordView<'a> {
    pub offset: i64,
    pub offset_delta: i32,
    /// Milliseconds: the producer's, or the broker's in a batch with append time.
    pub timestamp: i64,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    headers: Headers<'a>,
}

impl<'a> RecordView<'a> {
    /// The headers in their order. A key may come more than once.
    pub fn headers(&self) -> Headers<'a> {
        self.headers
    }
}

/// One header of a record. The key is text by convention; it is not checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderView<'a> {
    pub key: &'a [u8],
    pub value: Option<&'a [u8]>,
}

/// The headers of a record whose form has been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers<'a> {
    left: i32,
    bytes: &'a [u8],
}

impl<'a> Iterator for Headers<'a> {
    type Item = HeaderView<'a>;

    fn next(&mut self) -> Option<HeaderView<'a>> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        read_header(&mut self.bytes)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left as usize, Some(self.left as usize))
    }
}

impl ExactSizeIterator for Headers<'_> {}

/// Walks the records of a batch; ends after the stated count or at the first error.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    header: BatchHeader,
    index: i32,
    bytes: &'a [u8],
    failed: bool,
}

impl<'a> Records<'a> {
    pub(super) fn new(header: BatchHeader, bytes: &'a [u8]) -> Records<'a> {
        Records { header, index: 0, bytes, failed: false }
    }

    /// Bytes behind the records read so far.
    pub(super) fn left(&self) -> usize {
        self.bytes.len()
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<RecordView<'a>, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.index >= self.header.record_count {
            return None;
        }
        let record = read_record(&self.header, &mut self.bytes);
        let index = self.index;
        self.index += 1;
        self.failed = record.is_none();
        Some(record.ok_or(BatchError::MalformedRecord { index }))
    }
}

fn split<'a>(input: &mut &'a [u8], length: i32) -> Option<&'a [u8]> {
    let (front, rest) = input.split_at_checked(usize::try_from(length).ok()?)?;
    *input = rest;
    Some(front)
}

/// Bytes after their length; the outer `None` is malformed, the inner null (-1).
fn read_bytes<'a>(input: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    match read_int(input)? {
        -1 => Some(None),
        length => split(input, length).map(Some),
    }
}

fn read_header<'a>(input: &mut &'a [u8]) -> Option<HeaderView<'a>> {
    Some(HeaderView { key: read_bytes(input)??, value: read_bytes(input)? })
}

fn read_record<'a>(header: &BatchHeader, input: &mut &'a [u8]) -> Option<RecordView<'a>> {
    let length = read_int(input)?;
    let mut body = split(input, length)?;
    let _attributes = split(&mut body, 1)?;
    let timestamp_delta = read_long(&mut body)?;
    let offset_delta = read_int(&mut body)?;
    let key = read_bytes(&mut body)?;
    let value = read_bytes(&mut body)?;
    let headers = read_headers(&mut body)?;
    if !body.is_empty() {
        return None;
    }
    let timestamp = if header.is_log_append_time() {
        header.max_timestamp
    } else {
        header.base_timestamp.wrapping_add(timestamp_delta)
    };
    let offset = header.base_offset.wrapping_add(i64::from(offset_delta));
    Some(RecordView { offset, offset_delta, timestamp, key, value, headers })
}

fn read_headers<'a>(body: &mut &'a [u8]) -> Option<Headers<'a>> {
    let count = read_int(body)?;
    if count < 0 {
        return None;
    }
    let bytes = *body;
    for _ in 0..count {
        read_header(body)?;
    }
    Some(Headers { left: count, bytes })
}
