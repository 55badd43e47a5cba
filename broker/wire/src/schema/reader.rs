//! A cursor over one frame. It checks every length and count before it believes it, and hands out slices that
//! share the frame. It does not know any message.

use bytes::Bytes;

use crate::{Str, Uuid, WireError};

/// Memory that one frame may ask for, besides what its bytes already take: 64 times its size and 64 KiB. Two
/// wire bytes of an empty topic are a structure of 40 to 72 bytes, so an honest frame stays far below.
pub(crate) fn allocation_budget(frame_length: usize) -> usize {
    frame_length.saturating_mul(64).saturating_add(64 * 1024)
}

/// Position, end and memory budget while one message is decoded.
pub struct Reader {
    frame: Bytes,
    at: usize,
    end: usize,
    budget: usize,
}

impl Reader {
    pub(crate) fn new(frame: Bytes) -> Reader {
        let end = frame.len();
        Reader { frame, at: 0, end, budget: allocation_budget(end) }
    }

    /// Bytes read so far.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    pub(crate) fn remaining(&self) -> usize {
        self.end - self.at
    }

    #[inline]
    fn take(&mut self, length: usize) -> Result<&[u8], WireError> {
        let start = self.at;
        self.skip(length)?;
        Ok(&self.frame[start..self.at])
    }

    #[inline]
    fn skip(&mut self, length: usize) -> Result<(), WireError> {
        if length > self.remaining() {
            return Err(WireError::Truncated { wanted: length, remaining: self.remaining() });
        }
        self.at += length;
        Ok(())
    }

    #[inline]
    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        Ok(self.take(N)?.try_into().expect("take gives exactly the length asked for"))
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Result<u8, WireError> {
        Ok(self.fixed::<1>()?[0])
    }

    #[inline]
    pub(crate) fn u16(&mut self) -> Result<u16, WireError> {
        Ok(u16::from_be_bytes(self.fixed()?))
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Result<u32, WireError> {
        Ok(u32::from_be_bytes(self.fixed()?))
    }

    #[inline]
    pub(crate) fn u64(&mut self) -> Result<u64, WireError> {
        Ok(u64::from_be_bytes(self.fixed()?))
    }

    #[inline]
    pub(crate) fn uuid(&mut self) -> Result<Uuid, WireError> {
        Ok(Uuid(self.fixed()?))
    }

    /// An unsigned variable-length integer of at most 32 bits, seven bits a byte, lowest first.
    pub(crate) fn varint(&mut self) -> Result<u32, WireError> {
        let mut value = 0u32;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.u8()?;
            if shift == 28 && byte > 0x0f {
                return Err(WireError::InvalidVarint);
            }
            value |= u32::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(WireError::InvalidVarint)
    }

    /// A compact length: 0 is null, n + 1 is n.
    #[inline]
    fn compact_length(&mut self) -> Result<Option<usize>, WireError> {
        Ok(self.varint()?.checked_sub(1).map(|length| length as usize))
    }

    #[inline]
    fn signed_length(length: i32) -> Result<Option<usize>, WireError> {
        match length {
            -1 => Ok(None),
            _ => usize::try_from(length).map(Some).map_err(|_| WireError::NegativeLength { length }),
        }
    }

    /// Length of a string, `None` for null.
    pub(crate) fn text_length(&mut self, flexible: bool) -> Result<Option<usize>, WireError> {
        if flexible { self.compact_length() } else { Reader::signed_length(i32::from(self.u16()? as i16)) }
    }

    /// Length of a byte field or count of an array, `None` for null.
    pub(crate) fn length(&mut self, flexible: bool) -> Result<Option<usize>, WireError> {
        if flexible { self.compact_length() } else { Reader::signed_length(self.u32()? as i32) }
    }

    /// The next bytes, shared with the frame.
    pub(crate) fn slice(&mut self, length: usize) -> Result<Bytes, WireError> {
        let start = self.at;
        self.skip(length)?;
        Ok(self.frame.slice(start..self.at))
    }

    pub(crate) fn text(&mut self, length: usize) -> Result<Str, WireError> {
        Str::from_utf8(self.slice(length)?)
    }

    /// An empty vector for `count` elements, each of which takes at least `smallest` bytes of the frame.
    /// Refused when the remaining bytes cannot hold them or the frame's memory budget is used up.
    pub(crate) fn reserve<T>(&mut self, count: usize, smallest: usize) -> Result<Vec<T>, WireError> {
        assert!(smallest > 0, "an element without bytes makes every count believable");
        assert!(size_of::<T>() <= 64 * smallest, "an honest frame would break its budget");
        if count > self.remaining() / smallest {
            return Err(WireError::CountTooLarge { count, remaining: self.remaining() });
        }
        let wanted = count.saturating_mul(size_of::<T>());
        if wanted > self.budget {
            return Err(WireError::BudgetExceeded { wanted, budget: self.budget });
        }
        self.budget -= wanted;
        Ok(Vec::with_capacity(count))
    }

    /// Runs `read` on exactly the next `length` bytes: a tagged field.
    pub(crate) fn within<T>(
        &mut self,
        tag: u32,
        length: usize,
        read: impl FnOnce(&mut Reader) -> Result<T, WireError>,
    ) -> Result<T, WireError> {
        if length > self.remaining() {
            return Err(WireError::Truncated { wanted: length, remaining: self.remaining() });
        }
        let outer_end = std::mem::replace(&mut self.end, self.at + length);
        let value = read(self)?;
        if self.remaining() > 0 {
            return Err(WireError::TagTooLong { tag, left: self.remaining() });
        }
        self.end = outer_end;
        Ok(value)
    }
}
