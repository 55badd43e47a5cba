//! What a producer saw, in numbers.

use std::collections::BTreeMap;

/// Counted from the producer's start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProducerCounters {
    /// Records handed in.
    pub records: u64,
    pub acknowledged: u64,
    /// Records given up, definitely or not.
    pub failed: u64,
    /// Batches that `delivery.timeout.ms` ended.
    pub expired: u64,
    /// Produce requests.
    pub requests: u64,
    /// Batches in them, retries included.
    pub batches: u64,
    /// Batches that were to be sent again.
    pub retries: u64,
    /// Connections that ended or could not be made.
    pub disconnects: u64,
    pub metadata_answers: u64,
    pub epoch_bumps: u64,
    /// Error codes that brokers answered.
    pub errors: BTreeMap<i16, u64>,
}
