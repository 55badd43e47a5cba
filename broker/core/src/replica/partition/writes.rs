//! Queued changes of one partition's files, in order, and the published log end offset: the end of what completed.
//!
//! Source: the shell runs the queue of one partition in order, so completions come in order as well.

use std::collections::VecDeque;

use crate::replica::interface::WriteId;

#[derive(Debug)]
struct Queued {
    write: WriteId,
    /// Where the log ends once this one completed; `None` when it appends nothing.
    end: Option<i64>,
}

/// The queue, and the end offset (exclusive) of the completed part.
#[derive(Debug)]
pub(in crate::replica) struct Writes {
    queued: VecDeque<Queued>,
    end: i64,
}

impl Writes {
    pub fn new(log_end_offset: i64) -> Writes {
        Writes { queued: VecDeque::new(), end: log_end_offset }
    }

    /// The published log end offset.
    pub fn end(&self) -> i64 {
        self.end
    }

    pub fn is_idle(&self) -> bool {
        self.queued.is_empty()
    }

    pub fn append(&mut self, write: WriteId, end: i64) {
        self.push(write, Some(end));
    }

    /// Queues a change that appends nothing.
    pub fn change(&mut self, write: WriteId) {
        self.push(write, None);
    }

    fn push(&mut self, write: WriteId, end: Option<i64>) {
        assert!(
            self.queued.back().is_none_or(|last| last.write < write),
            "write {write:?} is queued out of order"
        );
        self.queued.push_back(Queued { write, end });
    }

    /// Takes a completion. Gives whether the published end moved. A write that is not queued belonged to an earlier
    /// replica of the same partition and changes nothing.
    pub fn complete(&mut self, write: WriteId) -> bool {
        let Some(place) = self.queued.iter().position(|queued| queued.write == write) else { return false };
        assert_eq!(place, 0, "write {write:?} completed before one that was queued earlier");
        let completed = self.queued.pop_front().expect("it was found at the front");
        match completed.end {
            Some(end) if end > self.end => {
                self.end = end;
                true
            }
            _ => false,
        }
    }

    pub fn is_queued(&self, write: WriteId) -> bool {
        self.queued.iter().any(|queued| queued.write == write)
    }

    /// Nothing at or beyond `end` exists any more, written or not.
    pub fn cut(&mut self, end: i64) {
        self.end = self.end.min(end);
        for queued in &mut self.queued {
            queued.end = queued.end.map(|queued_end| queued_end.min(end));
        }
    }

    /// The log was emptied and starts anew at `start`.
    pub fn restart(&mut self, start: i64) {
        self.end = start;
        for queued in &mut self.queued {
            queued.end = None;
        }
    }
}
