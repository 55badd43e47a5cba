//! Random messages for tests: every declaration fills itself from a stream of numbers.

use bytes::Bytes;

use crate::{Str, UnknownTag, Uuid};

/// A stream of pseudo-random numbers (xorshift) that a seed fixes.
pub struct Source(u64);

impl Source {
    pub fn new(seed: u64) -> Source {
        Source(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 32) % bound
    }

    /// Small numbers, small negative ones and extremes.
    pub fn integer(&mut self) -> i64 {
        match self.below(4) {
            0 => self.below(100) as i64,
            1 => -(self.below(3) as i64),
            2 => i64::MAX >> (16 * self.below(4)),
            _ => self.next() as i64,
        }
    }

    pub fn uuid(&mut self) -> Uuid {
        let value = (u128::from(self.next()) << 64) | u128::from(self.next());
        Uuid(value.to_be_bytes())
    }

    pub fn bytes(&mut self) -> Bytes {
        (0..self.below(20)).map(|_| self.next() as u8).collect()
    }

    pub fn text(&mut self) -> Str {
        let letters = (0..self.below(12)).map(|_| ["a", "Z", "-", "é", "0"][self.below(5) as usize]);
        Str::from(letters.collect::<String>())
    }

    /// Usually none; tags above every one that Kafka uses.
    pub fn unknown_tags(&mut self) -> Vec<UnknownTag> {
        let count = if self.below(4) == 0 { self.below(3) } else { 0 };
        let mut tag = 100;
        let mut next = || {
            tag += 1 + self.below(300) as u32;
            UnknownTag { tag, value: self.bytes() }
        };
        (0..count).map(|_| next()).collect()
    }
}
