//! How long a message takes on a link: a floor, an exponential part from an integer table, and a rare tail.
//! No floating point, whose functions may differ between builds.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

/// The shape of one direction of a link. Times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// No message is faster.
    pub floor_ns: u64,
    /// Mean of the exponential part above the floor.
    pub mean_ns: u64,
    /// Messages in a million that take the tail.
    pub tail_per_million: u32,
    /// The tail adds up to this much, uniformly.
    pub tail_ns: u64,
}

impl Latency {
    /// Within one machine: about 20 µs.
    pub const LOOPBACK: Latency =
        Latency { floor_ns: 10_000, mean_ns: 10_000, tail_per_million: 0, tail_ns: 0 };
    /// Within one zone: about 0.5 ms, seldom up to 20 ms.
    pub const SAME_ZONE: Latency =
        Latency { floor_ns: 200_000, mean_ns: 300_000, tail_per_million: 1_000, tail_ns: 20_000_000 };
    /// Between zones: about 2 ms, seldom up to 100 ms.
    pub const CROSS_ZONE: Latency =
        Latency { floor_ns: 1_000_000, mean_ns: 1_000_000, tail_per_million: 1_000, tail_ns: 100_000_000 };
    /// Between regions: about 50 ms, seldom half a second more.
    pub const CROSS_REGION: Latency =
        Latency { floor_ns: 30_000_000, mean_ns: 20_000_000, tail_per_million: 2_000, tail_ns: 500_000_000 };

    /// One message's latency; always one draw of the stream.
    pub(super) fn draw(&self, random: &mut ChaCha8Rng) -> u64 {
        self.of(random.next_u64())
    }

    /// The latency that the bits of `draw` choose.
    pub(super) fn of(&self, draw: u64) -> u64 {
        let cell = (draw & 63) as usize;
        let within = (draw >> 6) & 1023;
        let low = EXPONENTIAL[cell];
        let high = EXPONENTIAL[cell + 1];
        let quantile = low * 1024 + (high - low) * within;
        let body = self.floor_ns + ((u128::from(self.mean_ns) * u128::from(quantile)) >> 20) as u64;
        let tail_draw = (draw >> 16) & 0xf_ffff;
        if tail_draw * 1_000_000 < u64::from(self.tail_per_million) << 20 {
            body + ((u128::from(self.tail_ns) * u128::from(draw >> 36)) >> 28) as u64
        } else {
            body
        }
    }
}

/// The exponential distribution's quantiles at multiples of 1/64, in units of mean/1024; the last one is cut at 8 means.
const EXPONENTIAL: [u64; 65] = [
    0, 16, 33, 49, 66, 83, 101, 119, 137, 155, 174, 193, 213, 233, 253, 273, 295, 316, 338, 361, 384, 407,
    431, 456, 481, 507, 534, 561, 589, 618, 648, 678, 710, 742, 776, 811, 847, 884, 922, 963, 1004, 1048,
    1093, 1141, 1191, 1244, 1299, 1357, 1420, 1486, 1556, 1632, 1714, 1803, 1901, 2009, 2129, 2266, 2424,
    2611, 2839, 3134, 3549, 4259, 8192,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::streams;

    #[test]
    fn latencies_have_the_floor_the_mean_and_the_tail_that_was_asked_for() {
        let latency =
            Latency { floor_ns: 1_000, mean_ns: 10_000, tail_per_million: 10_000, tail_ns: 100_000_000 };
        let mut random = streams::stream(3, "latency");
        let draws: Vec<u64> = (0..100_000).map(|_| latency.draw(&mut random)).collect();
        assert!(draws.iter().all(|ns| (1_000..1_000 + 80_000 + 100_000_000).contains(ns)));
        let body: Vec<u64> = draws.iter().copied().filter(|ns| *ns < 100_000).collect();
        let mean = body.iter().sum::<u64>() / body.len() as u64;
        assert!((10_500..11_800).contains(&mean), "mean {mean}");
        let tail = draws.len() - body.len();
        assert!((800..1_200).contains(&tail), "tail {tail}");
    }
}
