//! Client-visible wrongs, by Jepsen's names: each a pure function over a history. A licence (what the faults that
//! fired were allowed to destroy) comes in as a predicate on keys.

use crate::history::Key;
use crate::result::{Contract, Outcome};

/// One anomaly: the same cause on one partition is reported once, with a count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anomaly {
    /// `V1`, `V3`, …
    pub invariant: &'static str,
    pub outcome: Outcome,
    pub contract: Contract,
    /// The first record concerned.
    pub first: Key,
    /// The last offset concerned.
    pub last_offset: i64,
    pub count: u64,
    pub text: String,
}

/// What one check found and how many comparisons it made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub anomalies: Vec<Anomaly>,
    pub comparisons: u64,
}
