//! The content of a record as one number: what the sender gave, without what a broker assigns (offset, epoch,
//! timestamps). Two records are taken for equal when their hashes are. Not cryptographic: nobody here is hostile.

const SEED: u64 = 0x51_7c_c1_b7_27_22_0a_95;
const MULTIPLIER: u64 = 0x9e_37_79_b9_7f_4a_7c_15;

fn mix(state: u64, word: u64) -> u64 {
    let product = u128::from(state ^ word) * u128::from(MULTIPLIER);
    (product as u64) ^ ((product >> 64) as u64).wrapping_add(word.rotate_left(29))
}

fn absorb(mut state: u64, bytes: &[u8]) -> u64 {
    state = mix(state, bytes.len() as u64 ^ SEED);
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        state = mix(state, u64::from_le_bytes(word.try_into().expect("chunks of eight")));
    }
    let mut last = [0; 8];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    mix(state, u64::from_le_bytes(last))
}

fn absorb_optional(state: u64, bytes: Option<&[u8]>) -> u64 {
    match bytes {
        None => mix(state, SEED.rotate_left(17)),
        Some(bytes) => absorb(state, bytes),
    }
}

/// Hash of key, value and headers. Equal content, equal hash; a different one with chance 2^-64.
pub fn content_hash<'a>(
    key: Option<&[u8]>,
    value: Option<&[u8]>,
    headers: impl IntoIterator<Item = (&'a [u8], Option<&'a [u8]>)>,
) -> u64 {
    let mut state = absorb_optional(absorb_optional(SEED, key), value);
    for (name, value) in headers {
        state = absorb_optional(absorb(state, name), value);
    }
    mix(state, SEED.rotate_left(31))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_part_and_its_absence_count() {
        let none: [(&[u8], Option<&[u8]>); 0] = [];
        let all = [
            content_hash(None, None, none),
            content_hash(Some(b""), None, none),
            content_hash(None, Some(b""), none),
            content_hash(Some(b"a"), Some(b"b"), none),
            content_hash(Some(b"ab"), Some(b""), none),
            content_hash(Some(b"b"), Some(b"a"), none),
            content_hash(Some(b"a"), Some(b"b"), [(&b"h"[..], None)]),
            content_hash(Some(b"a"), Some(b"b"), [(&b"h"[..], Some(&b""[..]))]),
            content_hash(Some(b"a"), Some(b"b\0"), none),
        ];
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
    }

    #[test]
    fn numbered_values_do_not_collide() {
        let none: [(&[u8], Option<&[u8]>); 0] = [];
        let hashes: BTreeSet<u64> = (0..20_000u32)
            .map(|number| content_hash(None, Some(format!("m-{number}").as_bytes()), none))
            .collect();
        assert_eq!(hashes.len(), 20_000);
    }
}
