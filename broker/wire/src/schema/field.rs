//! How each type of the schema language looks on the wire, in the old and in the flexible encoding (KIP-482).

use bytes::Bytes;

use super::reader::Reader;
use super::sink::Sink;
use crate::{Str, Uuid, WireError};

/// The version being read or written, and whether it is a flexible one.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub version: i16,
    pub flexible: bool,
}

/// A type that a field can have.
pub trait Field: Sized {
    fn read(input: &mut Reader, shape: Shape) -> Result<Self, WireError>;
    fn write<S: Sink>(&self, shape: Shape, out: &mut S) -> Result<(), WireError>;

    /// Fewest bytes that a value takes. At least 1, else a count could not be checked.
    fn smallest(shape: Shape) -> usize;

    /// How null is told from a value: by a byte before it (-1 null, 1 a value), or by the value's own length.
    const MARKED: bool = true;

    fn read_nullable(input: &mut Reader, shape: Shape) -> Result<Option<Self>, WireError> {
        assert!(Self::MARKED, "a type with a length reads its own null");
        if (input.u8()? as i8) < 0 { Ok(None) } else { Self::read(input, shape).map(Some) }
    }

    fn write_null<S: Sink>(_: Shape, out: &mut S) {
        assert!(Self::MARKED, "a type with a length writes its own null");
        out.u8(-1i8 as u8);
    }

    fn is_null(&self) -> bool {
        false
    }

    /// A random value that `shape` can say.
    #[cfg(test)]
    fn arbitrary(source: &mut crate::arbitrary::Source, shape: Shape) -> Self;
}

macro_rules! fixed_width {
    ($($type:ty, $raw:ident, $width:literal;)*) => {$(
        impl Field for $type {
            #[inline]
            fn read(input: &mut Reader, _: Shape) -> Result<Self, WireError> {
                Ok(input.$raw()? as $type)
            }

            #[inline]
            fn write<S: Sink>(&self, _: Shape, out: &mut S) -> Result<(), WireError> {
                out.$raw(*self as $raw);
                Ok(())
            }

            fn smallest(_: Shape) -> usize {
                $width
            }

            #[cfg(test)]
            fn arbitrary(source: &mut crate::arbitrary::Source, _: Shape) -> Self {
                source.integer() as $type
            }
        }
    )*};
}

fixed_width! {
    i8, u8, 1;
    i16, u16, 2;
    u16, u16, 2;
    i32, u32, 4;
    i64, u64, 8;
}

impl Field for bool {
    fn read(input: &mut Reader, _: Shape) -> Result<Self, WireError> {
        Ok(input.u8()? != 0)
    }

    fn write<S: Sink>(&self, _: Shape, out: &mut S) -> Result<(), WireError> {
        out.u8(u8::from(*self));
        Ok(())
    }

    fn smallest(_: Shape) -> usize {
        1
    }

    #[cfg(test)]
    fn arbitrary(source: &mut crate::arbitrary::Source, _: Shape) -> Self {
        source.below(2) == 1
    }
}

impl Field for f64 {
    fn read(input: &mut Reader, _: Shape) -> Result<Self, WireError> {
        Ok(f64::from_bits(input.u64()?))
    }

    fn write<S: Sink>(&self, _: Shape, out: &mut S) -> Result<(), WireError> {
        out.u64(self.to_bits());
        Ok(())
    }

    fn smallest(_: Shape) -> usize {
        8
    }

    #[cfg(test)]
    fn arbitrary(source: &mut crate::arbitrary::Source, _: Shape) -> Self {
        source.integer() as f64
    }
}

impl Field for Uuid {
    fn read(input: &mut Reader, _: Shape) -> Result<Self, WireError> {
        input.uuid()
    }

    fn write<S: Sink>(&self, _: Shape, out: &mut S) -> Result<(), WireError> {
        out.bytes(&self.0);
        Ok(())
    }

    fn smallest(_: Shape) -> usize {
        16
    }

    #[cfg(test)]
    fn arbitrary(source: &mut crate::arbitrary::Source, _: Shape) -> Self {
        source.uuid()
    }
}

/// A value whose length cannot be null came as null.
fn null_here() -> WireError {
    WireError::NegativeLength { length: -1 }
}

impl Field for Str {
    const MARKED: bool = false;

    fn read(input: &mut Reader, shape: Shape) -> Result<Self, WireError> {
        Str::read_nullable(input, shape)?.ok_or_else(null_here)
    }

    fn write<S: Sink>(&self, shape: Shape, out: &mut S) -> Result<(), WireError> {
        out.text_length(shape.flexible, self.as_bytes().len())?;
        out.bytes(self.as_bytes());
        Ok(())
    }

    fn smallest(shape: Shape) -> usize {
        if shape.flexible { 1 } else { 2 }
    }

    fn read_nullable(input: &mut Reader, shape: Shape) -> Result<Option<Self>, WireError> {
        match input.text_length(shape.flexible)? {
            Some(length) => input.text(length).map(Some),
            None => Ok(None),
        }
    }

    fn write_null<S: Sink>(shape: Shape, out: &mut S) {
        if shape.flexible { out.u8(0) } else { out.u16(-1i16 as u16) }
    }

    #[cfg(test)]
    fn arbitrary(source: &mut crate::arbitrary::Source, _: Shape) -> Self {
        source.text()
    }
}

impl Field for Bytes {
    const MARKED: bool = false;

    fn read(input: &mut Reader, shape: Shape) -> Result<Self, WireError> {
        Bytes::read_nullable(input, shape)?.ok_or_else(null_here)
    }

    fn write<S: Sink>(&self, shape: Shape, out: &mut S) -> Result<(), WireError> {
        out.length(shape.flexible, self.len())?;
        out.bytes(self);
        Ok(())
    }

    fn smallest(shape: Shape) -> usize {
        if shape.flexible { 1 } else { 4 }
    }

    fn read_nullable(input: &mut Reader, shape: Shape) -> Result<Option<Self>, WireError> {
        match input.length(shape.flexible)? {
            Some(length) => input.slice(length).map(Some),
            None => Ok(None),
        }
    }

    fn write_null<S: Sink>(shape: Shape, out: &mut S) {
        if shape.flexible { out.u8(0) } else { out.u32(-1i32 as u32) }
    }

    #[cfg(test)]
    fn arbitrary(source: &mut crate::arbitrary::Source, _: Shape) -> Self {
        source.bytes()
    }
}

impl<T: Field> Field for Vec<T> {
    const MARKED: bool = false;

    fn read(input: &mut Reader, shape: Shape) -> Result<Self, WireError> {
        Vec::read_nullable(input, shape)?.ok_or_else(null_here)
    }

    fn write<S: Sink>(&self, shape: Shape, out: &mut S) -> Result<(), WireError> {
        out.length(shape.flexible, self.len())?;
        self.iter().try_for_each(|element| element.write(shape, out))
    }

    fn smallest(shape: Shape) -> usize {
        if shape.flexible { 1 } else { 4 }
    }

    fn read_nullable(input: &mut Reader, shape: Shape) -> Result<Option<Self>, WireError> {
        let Some(count) = input.length(shape.flexible)? else { return Ok(None) };
        let mut elements = input.reserve(count, T::smallest(shape))?;
        for _ in 0..count {
            elements.push(T::read(input, shape)?);
        }
        Ok(Some(elements))
    }

    fn write_null<S: Sink>(shape: Shape, out: &mut S) {
        if shape.flexible { out.u8(0) } else { out.u32(-1i32 as u32) }
    }

    #[cfg(test)]
    fn arbitrary(source: &mut crate::arbitrary::Source, shape: Shape) -> Self {
        (0..source.below(3)).map(|_| T::arbitrary(source, shape)).collect()
    }
}

impl<T: Field> Field for Option<T> {
    fn read(input: &mut Reader, shape: Shape) -> Result<Self, WireError> {
        T::read_nullable(input, shape)
    }

    fn write<S: Sink>(&self, shape: Shape, out: &mut S) -> Result<(), WireError> {
        match self {
            Some(value) => {
                if T::MARKED {
                    out.u8(1);
                }
                value.write(shape, out)
            }
            None => {
                T::write_null(shape, out);
                Ok(())
            }
        }
    }

    fn smallest(shape: Shape) -> usize {
        if T::MARKED { 1 } else { T::smallest(shape) }
    }

    fn is_null(&self) -> bool {
        self.is_none()
    }

    #[cfg(test)]
    fn arbitrary(source: &mut crate::arbitrary::Source, shape: Shape) -> Self {
        (source.below(4) > 0).then(|| T::arbitrary(source, shape))
    }
}
