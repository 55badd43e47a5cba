//! Where checks put what they compared and what they found. Knows which checks are switched on and what time it is.

use acked_core::{NodeId, Time, TopicPartition};
use acked_reports::Outcome;

use super::checks::{Check, Checks, Comparisons};
use super::finding::{Cause, Findings};

/// The place of one occurrence.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    pub partition: Option<TopicPartition>,
    pub node: Option<NodeId>,
    /// Leader epoch or quorum epoch; tells causes apart.
    pub epoch: i32,
    pub offset: Option<i64>,
}

/// Collects comparisons and findings of the checks that are on.
#[derive(Debug)]
pub struct Reporter {
    checks: Checks,
    pub now: Time,
    pub comparisons: Comparisons,
    pub findings: Findings,
}

impl Reporter {
    pub fn new(checks: Checks) -> Reporter {
        Reporter {
            checks,
            now: Time::ZERO,
            comparisons: Comparisons::default(),
            findings: Findings::default(),
        }
    }

    pub fn is_on(&self, check: Check) -> bool {
        self.checks.has(check)
    }

    /// The check made this many comparisons.
    pub fn compared(&mut self, check: Check, count: u64) {
        if self.checks.has(check) {
            self.comparisons.add(check, count);
        }
    }

    /// The check found something. The text is only made for the first occurrence of its cause.
    pub fn found(&mut self, check: Check, outcome: Outcome, place: Place, text: impl FnOnce() -> String) {
        if !self.checks.has(check) {
            return;
        }
        let cause =
            Cause { check, partition: place.partition, node: place.node, epoch: i64::from(place.epoch) };
        self.findings.report(cause, outcome, self.now, place.offset, text);
    }
}
