//! The consumer of assigned partitions.

mod polled;

pub use polled::{ConsumedRecord, Event, Polled, Start};
