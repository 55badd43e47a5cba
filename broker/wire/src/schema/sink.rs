//! Where encoded bytes go: counted first, then written into one buffer of exactly that size.

use bytes::{BufMut, BytesMut};

use crate::WireError;

/// A place for bytes, in network byte order.
pub trait Sink {
    fn bytes(&mut self, bytes: &[u8]);

    fn u8(&mut self, value: u8) {
        self.bytes(&[value]);
    }

    fn u16(&mut self, value: u16) {
        self.bytes(&value.to_be_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.bytes(&value.to_be_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.bytes(&value.to_be_bytes());
    }

    /// An unsigned variable-length integer, seven bits a byte, lowest first.
    fn varint(&mut self, mut value: u32) {
        while value > 0x7f {
            self.u8(value as u8 | 0x80);
            value >>= 7;
        }
        self.u8(value as u8);
    }

    /// Length of a string. At most 32,767 bytes in every encoding, as in Kafka's own classes.
    fn text_length(&mut self, flexible: bool, length: usize) -> Result<(), WireError> {
        let short = u16::try_from(length).ok().filter(|short| *short <= i16::MAX as u16);
        let short = short.ok_or(WireError::TooLong { length })?;
        if flexible {
            self.varint(u32::from(short) + 1)
        } else {
            self.u16(short)
        }
        Ok(())
    }

    /// Length of a byte field or count of an array, at most 2^31 - 2.
    fn length(&mut self, flexible: bool, length: usize) -> Result<(), WireError> {
        let count = u32::try_from(length).ok().filter(|count| *count < i32::MAX as u32);
        let count = count.ok_or(WireError::TooLong { length })?;
        if flexible {
            self.varint(count + 1)
        } else {
            self.u32(count)
        }
        Ok(())
    }
}

impl Sink for BytesMut {
    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        self.put_slice(bytes);
    }
}

/// Counts instead of writing.
#[derive(Default)]
pub struct Counter(pub usize);

impl Sink for Counter {
    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        self.0 += bytes.len();
    }
}
