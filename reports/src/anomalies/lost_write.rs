//! V1 lost write: an acknowledged record was never read by anyone although some reader saw a higher offset, or the
//! final pass over the partition went past its offset without it. The second clause also catches what a consumer
//! read before it was lost. Assumes that somebody reads every partition from its start.

use super::{Licences, Report, Seen};
use crate::history::History;
use crate::result::Outcome;

/// Compares every acknowledged record that some reader passed.
pub fn lost_write(history: &History, seen: &Seen, licences: &Licences) -> Report {
    let mut report = Report::default();
    for (send, key) in history.acknowledged() {
        let read_back_passed = seen.read_back_passed(key.partition, key.offset);
        if !read_back_passed && !seen.anyone_passed(key.partition, key.offset) {
            continue;
        }
        report.comparisons += 1;
        let present = if read_back_passed { seen.read_back(&key) } else { seen.anyone_read(&key) };
        if !present && !licences.cover(&key) {
            report.add("V1", Outcome::Lost, key, || {
                format!(
                    "{}-{}@{} was acknowledged at acks={} and is gone, though a reader went past it",
                    history.topic_name(key.partition.topic),
                    key.partition.index,
                    key.offset,
                    send.acks
                )
            });
        }
    }
    report
}
