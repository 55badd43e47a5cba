//! Kafka's 128-bit identifiers of topics, directories and incarnations.

use std::fmt;

/// A topic, directory or incarnation identifier. Text form: 22 characters of URL-safe base64 (KIP-516).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Uuid(pub [u8; 16]);

impl Uuid {
    /// "No identifier", all zero (Kafka's `Uuid.ZERO_UUID`).
    pub const ZERO: Uuid = Uuid([0; 16]);
    /// Kafka's reserved topic id of `__cluster_metadata`.
    pub const METADATA_TOPIC: Uuid = Uuid([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = u128::from_be_bytes(self.0);
        for index in 0..22 {
            // 128 bits are 21 groups of six and a last one of two, padded on the right with four zero bits.
            let group = if index < 21 { (value >> (122 - 6 * index)) & 63 } else { (value << 4) & 63 };
            write!(f, "{}", ALPHABET[group as usize] as char)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not 22 characters of URL-safe base64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("parse uuid: not 22 characters of URL-safe base64")]
pub struct UuidError;

impl std::str::FromStr for Uuid {
    type Err = UuidError;

    fn from_str(text: &str) -> Result<Uuid, UuidError> {
        let bytes = text.as_bytes();
        if bytes.len() != 22 {
            return Err(UuidError);
        }
        let mut value: u128 = 0;
        for (index, byte) in bytes.iter().enumerate() {
            let group = ALPHABET.iter().position(|letter| letter == byte).ok_or(UuidError)? as u128;
            value = if index < 21 { (value << 6) | group } else { (value << 2) | (group >> 4) };
        }
        Ok(Uuid(value.to_be_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_is_read_back() {
        for id in [Uuid::ZERO, Uuid::METADATA_TOPIC, Uuid([0xff; 16]), Uuid(*b"0123456789abcdef")] {
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        assert_eq!(Uuid::METADATA_TOPIC.to_string(), "AAAAAAAAAAAAAAAAAAAAAQ");
    }
}
