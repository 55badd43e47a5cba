//! What a consumer saw, in numbers.

use std::collections::BTreeMap;

/// Counted from the consumer's start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConsumerCounters {
    /// Records handed out.
    pub records: u64,
    /// Fetch answers.
    pub fetches: u64,
    /// Times that a leader said that its log is not the one that was read.
    pub truncations: u64,
    /// Connections that ended or could not be made.
    pub disconnects: u64,
    /// Error codes that brokers answered, and 13 (NETWORK_EXCEPTION) for answers that never came.
    pub errors: BTreeMap<i16, u64>,
}
