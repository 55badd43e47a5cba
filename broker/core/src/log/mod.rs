//! The log of one partition replica as a pure state: which offsets, epochs, producers and byte positions it holds,
//! never the bytes.
//!
//! ```text
//! a client's records ──> append (checks) ──> partition_log: Log ──> bytes and position to write
//! a leader's records ───────────────────────────^   ^  ^
//!                          epochs ──────────────────'  '── producers
//! a file found at start ──> recovery ──> RecoveryPlan ──> Log
//! ```
//!
//! - `partition_log`: offsets, positions, appends, truncation, look-ups.
//! - `append`: what a leader accepts from a client, and Kafka's code for what it refuses.
//! - `batch_entry`: what is remembered of one batch.
//! - `epochs`: which leader epoch wrote which part.
//! - `producers`: what is remembered of idempotent producers.
//! - `recovery`: what is done with a log file found at start, as a decision table.
//! - `checkpoint`: the small files beside the log, in Kafka's formats.

mod append;
mod batch_entry;
pub mod checkpoint;
mod epochs;
mod partition_log;
mod producers;
pub mod recovery;

#[cfg(test)]
mod tests;

pub use append::{AppendError, AppendLimits, Appended, Prepared, PreparedAppend};
use batch_entry::BatchEntry;
pub use epochs::{EpochCache, EpochStart};
pub use partition_log::{Log, Slice, Truncation};
pub use producers::{ProducerBatch, ProducerStates, Sequence, SequenceError};
pub use recovery::{Damage, Defect, FoundLog, RecoveredLog, RecoveryPlan, recover};
