//! What a poll gives to the application.

use std::sync::Arc;

use bytes::Bytes;

/// Where to start reading a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The first retained offset.
    Earliest,
    /// The high watermark at the moment of asking.
    Latest,
    /// This offset. `leader_epoch` is that of the record before it, when known.
    At { offset: i64, leader_epoch: Option<i32> },
}

/// One record that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumedRecord {
    pub topic: Arc<str>,
    pub partition: i32,
    pub offset: i64,
    /// Of the batch it came in.
    pub leader_epoch: i32,
    /// Milliseconds since 1970.
    pub timestamp_ms: i64,
    pub key: Option<Bytes>,
    pub value: Option<Bytes>,
}

/// Something that the application must know besides records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// What was read up to `offset`, the last of it in `leader_epoch`, is no longer there from some offset on.
    Truncated {
        topic: Arc<str>,
        partition: i32,
        offset: i64,
        leader_epoch: i32,
        /// The first offset that is gone, and the epoch before it; `None` when the leader cannot say.
        diverges_at: Option<(i64, i32)>,
        /// Reading goes on there, or where `auto.offset.reset` says when the leader cannot. Otherwise it waits for a
        /// seek (`auto.offset.reset=none`).
        resets: bool,
    },
    /// The leader has no record at `offset`: it is below its first or above its last. Reading goes on where
    /// `auto.offset.reset` says, or waits for a seek when `resets` is false.
    OutOfRange { topic: Arc<str>, partition: i32, offset: i64, resets: bool },
    /// A leader said where `auto.offset.reset` leads to: reading goes on at `offset` instead of at `from`.
    Reset { topic: Arc<str>, partition: i32, from: i64, offset: i64 },
    /// The partition cannot be read; `code` is Kafka's. Reading waits for a seek when `halted`, and is tried again
    /// otherwise.
    Failed { topic: Arc<str>, partition: i32, code: i16, halted: bool },
}

/// What one poll returned. Records of one partition are in offset order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Polled {
    pub records: Vec<ConsumedRecord>,
    pub events: Vec<Event>,
}
