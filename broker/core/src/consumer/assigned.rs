//! One assigned partition: where it is read, and what was read and not handed out.

use std::collections::VecDeque;
use std::time::Duration;

use super::ConsumedRecord;
use super::read_epochs::ReadEpochs;
use crate::Time;

/// Where the next fetch starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// The leader has to be asked: the first offset, or the high watermark.
    Earliest,
    Latest,
    /// The leader has to be asked: the first record that is not older than this, or else the high watermark.
    NotOlderThan(Duration),
    /// `leader_epoch` is that of the record read last: a new leader compares it with its own history.
    At {
        offset: i64,
        leader_epoch: Option<i32>,
    },
}

/// A question to a leader, so that an answer to an older one is told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Serial(pub u64);

/// State of one assigned partition.
///
/// - has records: nothing is asked until they were handed out.
/// - unvalidated: the leader epoch is not the one that the position is valid in. Before anything is fetched, the new
///   leader is asked where the epoch of the last record ends in its log.
/// - asks: `pending` names the question; a seek forgets it, and then its answer means nothing.
/// - halted: waits for a seek.
/// - otherwise ready to ask once `retry_at` has passed.
#[derive(Debug)]
pub struct Assigned {
    pub position: Position,
    /// The leader epoch in which the position was found to be one of the leader's log.
    pub valid_in: Option<i32>,
    pub read_epochs: ReadEpochs,
    /// The position that was given up, until a leader said where to go on.
    pub given_up: Option<i64>,
    pub halted: bool,
    pub retry_at: Time,
    /// Answers in a row that brought nothing but an error.
    pub failures: u32,
    pub pending: Option<Serial>,
    pub records: VecDeque<ConsumedRecord>,
}

impl Assigned {
    pub fn new(position: Position) -> Assigned {
        Assigned {
            position,
            valid_in: None,
            read_epochs: ReadEpochs::default(),
            given_up: None,
            halted: false,
            retry_at: Time::ZERO,
            failures: 0,
            pending: None,
            records: VecDeque::new(),
        }
    }

    /// Whether the leader is to be asked for something now.
    pub fn asks(&self, now: Time) -> bool {
        !self.halted && self.pending.is_none() && self.records.is_empty() && self.retry_at <= now
    }

    /// When to look again, if it is only time that is missing.
    pub fn retry_deadline(&self) -> Option<Time> {
        let waits = !self.halted && self.pending.is_none() && self.records.is_empty();
        waits.then_some(self.retry_at)
    }
}
