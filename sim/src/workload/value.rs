//! Unique record values: who sent it, its number, and filler that depends on both, so that no two are alike and a
//! mixed-up byte shows.

use bytes::{BufMut, Bytes, BytesMut};

/// The value of record `number` of `producer`: exactly `size` bytes, at least what the name and number take.
pub fn value(producer: &str, number: u64, size: usize) -> Bytes {
    let mut value = BytesMut::with_capacity(size.max(producer.len() + 21));
    value.put_slice(producer.as_bytes());
    value.put_u8(b'-');
    let mut digits = [b'0'; 20];
    let mut rest = number;
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    value.put_slice(&digits[at..]);
    value.put_u8(b' ');
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ producer.len() as u64;
    while value.len() + 8 <= size {
        state = state.rotate_left(23).wrapping_mul(0x2545_f491_4f6c_dd1d) ^ number;
        value.put_u64(state);
    }
    let missing = size.saturating_sub(value.len());
    value.put_bytes(b'.', missing);
    value.freeze()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn values_are_unique_and_of_the_size_asked() {
        let mut seen = BTreeSet::new();
        for producer in ["p1", "p2", "p11"] {
            for number in 0..1000 {
                let value = value(producer, number, 100);
                assert_eq!(value.len(), 100);
                assert!(value.starts_with(format!("{producer}-{number} ").as_bytes()));
                assert!(seen.insert(value));
            }
        }
    }
}
