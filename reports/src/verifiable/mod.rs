//! Histories as Kafka's VerifiableProducer and VerifiableConsumer print them, and an oracle that sees nothing else.
//!
//! ```text
//!  a real cluster's tools ── text ──> line ──┐
//!                                            ├──> oracle ──> Facts: what is lost, twice, out of order, …
//!  a simulated run's History ──> transcript ─┘
//! ```
//!
//! It shares neither code nor data with the loss ledger: where the two disagree on one run, one of them is wrong.

mod line;
mod oracle;
mod transcript;

pub use line::{Line, LineError, Lines, OffsetCommit, Range, Tool, TopicPartition, read};
pub use oracle::{Facts, Position, ReadTo, judge};
pub use transcript::Transcript;

#[cfg(test)]
mod tests;
