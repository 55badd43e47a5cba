//! The producer.
//!
//! ```text
//! records ─> partition: queue ─> draft of a request ─> link ─> answer ─> verdict ─> done
//!                ^                                               │
//!                └── retry, in order of creation ────────────────┘
//! ```
//!
//! - `machine`: the endpoint machine; requests, answers, time.
//! - `partition`: the batches of one partition, and which may be sent next.
//! - `batch`: records that travel together.
//! - `sequences`: the numbering of one partition (idempotence).
//! - `verdict`: what each error code means.

mod batch;
mod counters;
mod machine;
mod partition;
mod sequences;
mod verdict;

#[cfg(test)]
mod tests;

pub use batch::{PendingRecord, RecordId};
pub use counters::ProducerCounters;
pub use machine::{Outcome, Producer, ProducerEffect, ProducerInput};
pub use sequences::ProducerIdentity;
pub use verdict::{Action, AttemptEffect, Verdict, verdict};
