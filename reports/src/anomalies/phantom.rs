//! V17 phantom value: somebody read a value that nobody sent to that partition (a wrong partition and altered bytes
//! are the same thing here), or read a record that the final pass over the partition did not give back and that no
//! licence covers.

use std::collections::BTreeSet;

use super::{Licences, Report, Seen};
use crate::history::{History, Partition};
use crate::result::Outcome;

/// Compares every distinct record that was read.
pub fn phantom(history: &History, seen: &Seen, licences: &Licences) -> Report {
    let sent: BTreeSet<(Partition, u64)> =
        history.sends.iter().map(|send| (send.partition, send.content)).collect();
    let mut report = Report::default();
    for key in seen.keys() {
        report.comparisons += 1;
        let sent_here = sent.contains(&(key.partition, key.content));
        let vanished = seen.read_back_passed(key.partition, key.offset)
            && !seen.read_back(&key)
            && !licences.cover(&key);
        if sent_here && !vanished {
            continue;
        }
        report.add("V17", Outcome::Phantom, key, || {
            let place =
                format!("{}-{}@{}", history.topic_name(key.partition.topic), key.partition.index, key.offset);
            if sent_here {
                format!("{place} was read by a consumer and is gone from the final read")
            } else {
                format!("{place} was read, and nobody sent that value to this partition")
            }
        });
    }
    report
}
