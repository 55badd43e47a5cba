//! How long to wait before the next try: doubling from a first to a last delay, with ± 20 % of chance so that clients
//! do not come back together (Kafka's `ExponentialBackoff`).

use std::time::Duration;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// One pair of `….backoff.ms` and `….backoff.max.ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    pub first: Duration,
    pub max: Duration,
}

impl Backoff {
    /// The delay after `failures` failures in a row, the first of which counts as 1. Between 80 % and 120 % of
    /// `first · 2^(failures - 1)`, which itself is at most `max`.
    pub fn delay(self, failures: u32, rng: &mut ChaCha8Rng) -> Duration {
        assert!(failures > 0, "there is no delay before the first try");
        let doubled = self.first.saturating_mul(1_u32.checked_shl(failures - 1).unwrap_or(u32::MAX));
        let percent = rng.random_range(80..=120_u32);
        let delay = doubled.min(self.max).saturating_mul(percent) / 100;
        assert!(delay <= self.max.saturating_mul(2), "a delay is at most a fifth longer than its bound");
        delay
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn delays_double_up_to_the_bound_and_spread_by_a_fifth() {
        let backoff = Backoff { first: Duration::from_millis(100), max: Duration::from_millis(1000) };
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for (failures, centre) in [(1, 100), (2, 200), (4, 800), (5, 1000), (40, 1000)] {
            for _ in 0..50 {
                let delay = backoff.delay(failures, &mut rng).as_millis();
                assert!((centre * 80 / 100..=centre * 120 / 100).contains(&delay), "{failures} {delay}");
            }
        }
    }
}
