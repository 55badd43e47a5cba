//! The consumer of assigned partitions.
//!
//! ```text
//! poll ─> assigned: position ─> validate ─> fetch ─> link ─> answer ─> records ─> poll
//! ```
//!
//! - `machine`: the endpoint machine: its state, its inputs and effects, polls.
//! - `requests`: what goes out now.
//! - `answers`: what comes back.
//! - `assigned`: one partition, where it is read and what waits to be handed out.
//! - `read_epochs`: what was read in which leader epoch.
//! - `records`: reads batches.
//! - `polled`: what the application gets.

mod answers;
mod assigned;
mod counters;
mod machine;
mod polled;
mod read_epochs;
mod records;
mod requests;

#[cfg(test)]
mod tests;

pub use counters::ConsumerCounters;
pub use machine::{Consumer, ConsumerEffect, ConsumerInput, OffsetEnd};
pub use polled::{ConsumedRecord, Event, Polled, Start};
