//! Base64 with the URL alphabet and without padding (RFC 4648, 5), strict: one text for every sequence of bytes.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let mut group = [0; 3];
        group[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes([0, group[0], group[1], group[2]]);
        for digit in 0..=chunk.len() {
            text.push(ALPHABET[(bits >> (18 - 6 * digit)) as usize & 63] as char);
        }
    }
    text
}

/// `None` for letters outside the alphabet, an impossible length, or bits left over that are not zero.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for chunk in text.as_bytes().chunks(4) {
        let mut bits = 0_u32;
        for letter in chunk {
            let digit = ALPHABET.iter().position(|known| known == letter)?;
            bits = bits << 6 | digit as u32;
        }
        bits <<= 6 * (4 - chunk.len());
        let group = bits.to_be_bytes();
        let kept = match chunk.len() {
            4 => 3,
            3 => 2,
            2 => 1,
            _ => return None,
        };
        if group[1 + kept..].iter().any(|byte| *byte != 0) {
            return None;
        }
        bytes.extend_from_slice(&group[1..=kept]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_examples_of_the_standard_hold() {
        for (bytes, text) in [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()));
        }
    }

    #[test]
    fn loose_forms_are_refused() {
        for text in ["Z", "Zg==", "Zh", "Zm9", "Zm9v ", "Zm+v"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn bytes_come_back(bytes: Vec<u8>) {
            prop_assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }
    }
}
