//! V3 duplicate: one value at two or more offsets of a partition. Forbidden for idempotent producers, whose retries
//! must find their first attempt; otherwise a retry licenses it. A value that the application itself sent several
//! times may appear that often. The promise lapses for content of which a copy was licensed away.

use std::collections::BTreeMap;

use super::{Licences, Report, Seen};
use crate::history::{History, Key, Partition};
use crate::result::Outcome;

/// Compares every distinct record that was read and that only idempotent producers sent.
pub fn duplicate(history: &History, seen: &Seen, licences: &Licences) -> Report {
    let mut attempts: BTreeMap<(Partition, u64), (u64, bool)> = BTreeMap::new();
    for send in &history.sends {
        let (count, idempotent) = attempts.entry((send.partition, send.content)).or_insert((0, true));
        *count += 1;
        *idempotent &= send.idempotent;
    }
    let mut report = Report::default();
    for (partition, records) in seen.partitions() {
        let mut by_content: Vec<(u64, i64)> =
            records.iter().map(|(offset, content)| (*content, *offset)).collect();
        by_content.sort_unstable();
        for copies in by_content.chunk_by(|left, right| left.0 == right.0) {
            let content = copies[0].0;
            // A value that nobody sent is V17's.
            let Some((sent, true)) = attempts.get(&(partition, content)) else { continue };
            report.comparisons += 1;
            if copies.len() as u64 <= *sent || licences.lapsed(partition, content) {
                continue;
            }
            for (_, offset) in &copies[1..] {
                report.add("V3", Outcome::Dup, Key { partition, offset: *offset, content }, || {
                    format!(
                        "{}-{}: a value of an idempotent producer, sent {} time(s), is at offsets {:?}",
                        history.topic_name(partition.topic),
                        partition.index,
                        sent,
                        copies.iter().map(|(_, offset)| *offset).collect::<Vec<_>>()
                    )
                });
            }
        }
    }
    report
}
