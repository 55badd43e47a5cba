//! The log of one partition replica as a pure state: which offsets, epochs, producers and byte positions it holds.
//!
//! - `epochs`: which leader epoch wrote which part.
//! - `producers`: what is remembered of idempotent producers.
//! - `checkpoint`: the small files beside the log, in Kafka's formats.

pub mod checkpoint;
mod epochs;
mod producers;

pub use epochs::{EpochCache, EpochStart};
pub use producers::{ProducerBatch, ProducerStates, Sequence, SequenceError};
