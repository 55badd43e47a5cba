//! The producer.
//!
//! ```text
//! records ─> partition: queue ─> draft of a request ─> link ─> answer ─> verdict ─> done
//!                ^                                               │
//!                └── retry, in order of creation ────────────────┘
//! ```
//!
//! - `machine`: the endpoint machine: its state, its inputs and effects, records in.
//! - `requests`: what goes out now.
//! - `answers`: what comes back.
//! - `numbering`: when sequences start over (idempotence).
//! - `ending`: another try, success, or giving up.
//! - `partition`: the batches of one partition, and which may be sent next.
//! - `batch`: records that travel together.
//! - `sequences`: the numbering of one partition.
//! - `verdict`: what each error code means.

mod answers;
mod batch;
mod counters;
mod ending;
mod machine;
mod numbering;
mod partition;
mod requests;
mod sequences;
mod verdict;

#[cfg(test)]
mod tests;

pub use batch::{PendingRecord, RecordId};
pub use counters::ProducerCounters;
pub use machine::{Outcome, Producer, ProducerEffect, ProducerInput};
pub use sequences::ProducerIdentity;
pub use verdict::{Action, AttemptEffect, Verdict, verdict};
