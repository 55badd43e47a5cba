//! Tagged fields that this program does not know: kept when read, written again in their place (KIP-482).

use std::ops::RangeInclusive;

use bytes::Bytes;

use super::field::Shape;
use super::reader::Reader;
use super::sink::Sink;
use crate::WireError;

/// A tagged field without a declaration in the version it was read in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownTag {
    pub tag: u32,
    pub value: Bytes,
}

/// Reads the tagged fields that end a structure in flexible versions. `known` reads a field and says `true`,
/// or leaves the reader alone and says `false`; it is given the tag and the field's size.
pub(crate) fn read(
    input: &mut Reader,
    mut known: impl FnMut(&mut Reader, u32, usize) -> Result<bool, WireError>,
) -> Result<Vec<UnknownTag>, WireError> {
    let count = input.varint()? as usize;
    let mut unknown = Vec::new();
    let mut next_tag = 0u64;
    for index in 0..count {
        let tag = input.varint()?;
        if u64::from(tag) < next_tag {
            return Err(WireError::UnorderedTag { tag });
        }
        next_tag = u64::from(tag) + 1;
        let size = input.varint()? as usize;
        if known(input, tag, size)? {
            continue;
        }
        let value = input.slice(size)?;
        if unknown.is_empty() {
            // The tags behind this one take two bytes each at least, and this one is already read.
            unknown = input.reserve(count - index - 1, 2)?;
        }
        unknown.push(UnknownTag { tag, value });
    }
    Ok(unknown)
}

/// All numbers up to the highest of some tags; -1 stands for a field without one.
pub(crate) fn up_to_last(tags: &[i64]) -> RangeInclusive<i64> {
    0..=tags.iter().copied().max().unwrap_or(-1)
}

/// The end of a structure in a version without tagged fields.
pub(crate) fn none(message: &'static str, shape: Shape, unknown: &[UnknownTag]) -> Result<(), WireError> {
    if unknown.is_empty() {
        Ok(())
    } else {
        Err(WireError::TagsNotInVersion { message, version: shape.version })
    }
}

/// Writes tagged fields in ascending order. `known` lists the declared ones to write, each with its size and
/// writer.
pub(crate) struct Writer<'a> {
    unknown: std::iter::Peekable<std::slice::Iter<'a, UnknownTag>>,
    next_tag: u64,
}

impl<'a> Writer<'a> {
    pub(crate) fn begin<S: Sink>(known: u32, unknown: &'a [UnknownTag], out: &mut S) -> Writer<'a> {
        out.varint(known + unknown.len() as u32);
        Writer { unknown: unknown.iter().peekable(), next_tag: 0 }
    }

    fn header<S: Sink>(&mut self, tag: u32, size: usize, out: &mut S) -> Result<(), WireError> {
        if u64::from(tag) < self.next_tag {
            return Err(WireError::UnorderedTag { tag });
        }
        self.next_tag = u64::from(tag) + 1;
        out.varint(tag);
        out.varint(u32::try_from(size).map_err(|_| WireError::TooLong { length: size })?);
        Ok(())
    }

    /// Writes the unknown fields below `tag`, then the header of a declared field; its `size` bytes must
    /// follow.
    pub(crate) fn known<S: Sink>(&mut self, tag: u32, size: usize, out: &mut S) -> Result<(), WireError> {
        self.unknown_below(u64::from(tag), out)?;
        self.header(tag, size, out)
    }

    pub(crate) fn end<S: Sink>(&mut self, out: &mut S) -> Result<(), WireError> {
        self.unknown_below(u64::MAX, out)
    }

    fn unknown_below<S: Sink>(&mut self, bound: u64, out: &mut S) -> Result<(), WireError> {
        while let Some(field) = self.unknown.next_if(|field| u64::from(field.tag) < bound) {
            self.header(field.tag, field.value.len(), out)?;
            out.bytes(&field.value);
        }
        Ok(())
    }
}
