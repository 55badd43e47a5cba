//! When to ask for metadata: on demand, paced by the retry backoff, and again when what is known grows old.

use std::time::Duration;

use rand_chacha::ChaCha8Rng;

use super::Backoff;
use crate::Time;

/// The pace of metadata requests of one client; at most one is on its way.
///
/// Actions: [`Refresh::want`], [`Refresh::asked`], [`Refresh::answered`], [`Refresh::failed`].
#[derive(Debug)]
pub struct Refresh {
    backoff: Backoff,
    max_age: Duration,
    wanted: bool,
    on_its_way: bool,
    not_before: Time,
    /// Answers in a row that did not settle what was asked.
    failures: u32,
    last_answer: Option<Time>,
}

impl Refresh {
    pub fn new(backoff: Backoff, max_age: Duration) -> Refresh {
        Refresh {
            backoff,
            max_age,
            wanted: false,
            on_its_way: false,
            not_before: Time::ZERO,
            failures: 0,
            last_answer: None,
        }
    }

    /// Something that is known is missing or wrong.
    pub fn want(&mut self) {
        self.wanted = true;
    }

    /// Whether to ask now.
    pub fn due(&self, now: Time) -> bool {
        !self.on_its_way && self.moment().is_some_and(|moment| moment <= now)
    }

    /// When to look at [`Refresh::due`] again; `None` while a request is on its way or nothing is wanted.
    pub fn next_deadline(&self) -> Option<Time> {
        if self.on_its_way { None } else { self.moment() }
    }

    fn moment(&self) -> Option<Time> {
        let aged = self.last_answer.map(|answer| answer.saturating_add(self.max_age));
        if self.wanted { Some(self.not_before) } else { aged.map(|aged| aged.max(self.not_before)) }
    }

    pub fn asked(&mut self) {
        assert!(!self.on_its_way, "one metadata request at a time");
        self.on_its_way = true;
        self.wanted = false;
    }

    /// An answer came. While `settled` is false (a leader is missing, say), the next request waits longer and longer.
    pub fn answered(&mut self, now: Time, settled: bool, rng: &mut ChaCha8Rng) {
        assert!(self.on_its_way, "an answer follows a request");
        self.on_its_way = false;
        self.last_answer = Some(now);
        self.failures = if settled { 1 } else { self.failures.saturating_add(1) };
        self.not_before = now.saturating_add(self.backoff.delay(self.failures, rng));
        self.wanted |= !settled;
    }

    /// The connection ended before the answer came.
    pub fn failed(&mut self, now: Time, rng: &mut ChaCha8Rng) {
        assert!(self.on_its_way, "a failure follows a request");
        self.on_its_way = false;
        self.failures = self.failures.saturating_add(1);
        self.not_before = now.saturating_add(self.backoff.delay(self.failures, rng));
        self.wanted = true;
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn requests_are_paced_and_age_asks_again() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut refresh = Refresh::new(Backoff { first: 100 * MS, max: 1000 * MS }, 5000 * MS);
        assert!(!refresh.due(Time::ZERO) && refresh.next_deadline().is_none());
        refresh.want();
        assert!(refresh.due(Time::ZERO));
        refresh.asked();
        refresh.want();
        assert!(!refresh.due(1000 * MS), "one is on its way");
        refresh.answered(1000 * MS, true, &mut rng);
        assert!(!refresh.due(1079 * MS) && refresh.due(1120 * MS), "wanted since, but paced");
        refresh.asked();
        refresh.answered(1200 * MS, true, &mut rng);
        assert_eq!(refresh.next_deadline(), Some(6200 * MS), "only age is left");
    }
}
