//! Signed variable-length integers of records: zigzag, then seven bits a byte, lowest first.

/// Reads at most 64 bits from the front of `input`. `None` when it ends inside or does not end in ten bytes.
#[inline]
pub(super) fn read_long(input: &mut &[u8]) -> Option<i64> {
    // Nearly all values of records take one byte.
    let (&first, rest) = input.split_first()?;
    if first < 0x80 {
        *input = rest;
        return Some(unzigzag(u64::from(first)));
    }
    let mut value = u64::from(first & 0x7f);
    for (index, &byte) in rest.iter().take(9).enumerate() {
        let shift = 7 * (index as u32 + 1);
        if shift == 63 && byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            *input = &rest[index + 1..];
            return Some(unzigzag(value));
        }
    }
    None
}

/// Reads at most 32 bits.
#[inline]
pub(super) fn read_int(input: &mut &[u8]) -> Option<i32> {
    read_long(input).and_then(|value| i32::try_from(value).ok())
}

pub(super) fn write_long(out: &mut impl bytes::BufMut, value: i64) {
    let mut rest = zigzag(value);
    while rest > 0x7f {
        out.put_u8(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.put_u8(rest as u8);
}

/// Bytes that [`write_long`] writes.
pub(super) fn long_size(value: i64) -> usize {
    let bits = 64 - (zigzag(value) | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read_back(value: i64, shift in 0u32..64) {
            let value = value >> shift;
            let mut out = Vec::new();
            write_long(&mut out, value);
            prop_assert_eq!(out.len(), long_size(value));
            let mut input = &out[..];
            prop_assert_eq!(read_long(&mut input), Some(value));
            prop_assert!(input.is_empty());
            prop_assert_eq!(read_long(&mut &out[..out.len() - 1]), None);
        }
    }

    #[test]
    fn integers_without_an_end_are_refused() {
        assert_eq!(read_long(&mut &[0xffu8; 11][..]), None);
        assert_eq!(read_long(&mut &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2][..]), None);
        assert_eq!(read_int(&mut &[0xff, 0xff, 0xff, 0xff, 0x1f][..]), None);
        assert_eq!(read_int(&mut &[0xff, 0xff, 0xff, 0xff, 0x0f][..]), Some(i32::MIN));
    }
}
