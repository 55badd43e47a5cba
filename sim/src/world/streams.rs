//! Derives one random stream per purpose, so that taking one fault, link or node away never shifts the draws of
//! another. The derivation is ours and fixed: a token must mean the same run in every build.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// The stream of `purpose` under `seed`.
pub fn stream(seed: u64, purpose: &str) -> ChaCha8Rng {
    let mut state = fnv1a(purpose.as_bytes(), 0xcbf2_9ce4_8422_2325 ^ mix(seed));
    let mut key = [0_u8; 32];
    for chunk in key.chunks_exact_mut(8) {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        chunk.copy_from_slice(&mix(state).to_le_bytes());
    }
    ChaCha8Rng::from_seed(key)
}

/// A number below `bound` (which is at least 1), by multiplication: one draw always, and a bias of at most
/// `bound / 2^64`.
pub fn below(random: &mut ChaCha8Rng, bound: u64) -> u64 {
    assert!(bound > 0, "no number is below zero");
    ((u128::from(random.next_u64()) * u128::from(bound)) >> 64) as u64
}

/// A number in `low..=high`, with one draw.
pub fn between(random: &mut ChaCha8Rng, low: u64, high: u64) -> u64 {
    assert!(low <= high, "an empty range has no number");
    low + below(random, high - low + 1)
}

/// True `parts` times in a million, with one draw.
pub fn chance(random: &mut ChaCha8Rng, parts_per_million: u32) -> bool {
    below(random, 1_000_000) < u64::from(parts_per_million)
}

fn fnv1a(bytes: &[u8], start: u64) -> u64 {
    bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// The finalizer of SplitMix64: every input bit reaches every output bit.
fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_seed_and_purpose_and_repeat_otherwise() {
        let first = |seed, purpose| stream(seed, purpose).next_u64();
        assert_eq!(first(7, "disk/b1"), first(7, "disk/b1"));
        assert_ne!(first(7, "disk/b1"), first(8, "disk/b1"));
        assert_ne!(first(7, "disk/b1"), first(7, "disk/b2"));
    }

    #[test]
    fn draws_stay_in_their_range() {
        let mut random = stream(1, "range");
        for _ in 0..1000 {
            assert!((5..=9).contains(&between(&mut random, 5, 9)));
            assert!(!chance(&mut random, 0));
            assert!(chance(&mut random, 1_000_000));
        }
    }
}
