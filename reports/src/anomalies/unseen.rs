//! V2 unseen: acknowledged records that nobody read and no reader passed. Not a wrong by itself; whoever sees the
//! logs resolves each to lost or present.

use super::{Licences, Seen};
use crate::history::{History, Key};

/// How the acknowledged records of a history came out. Every one is in exactly one count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unseen {
    /// Read by someone and, where there was a final pass, by it.
    pub seen: u64,
    /// Passed by a reader, absent, and licensed.
    pub licensed: u64,
    /// Passed by a reader and absent: V1 reports them.
    pub lost: u64,
    /// Acknowledged without a position (acks=0).
    pub without_position: u64,
    /// Beyond what anyone read.
    pub unread: Vec<Key>,
}

/// Sorts every acknowledged record into its count.
pub fn unseen(history: &History, seen: &Seen, licences: &Licences) -> Unseen {
    let mut counts = Unseen::default();
    for send in &history.sends {
        if send.completion == crate::history::Completion::Ok && send.offset.is_none() {
            counts.without_position += 1;
        }
    }
    for (_, key) in history.acknowledged() {
        let passed_back = seen.read_back_passed(key.partition, key.offset);
        let present = if passed_back { seen.read_back(&key) } else { seen.anyone_read(&key) };
        if present {
            counts.seen += 1;
        } else if licences.cover(&key) {
            counts.licensed += 1;
        } else if passed_back || seen.anyone_passed(key.partition, key.offset) {
            counts.lost += 1;
        } else {
            counts.unread.push(key);
        }
    }
    counts
}
