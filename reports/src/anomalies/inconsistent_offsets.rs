//! V4 inconsistent offsets: two values were seen at one offset, by readers or in the answers to producers, and at
//! most one of them may be a record that was licensed away. The order in which they were seen does not matter: a
//! deposed leader may still serve the licensed one late.

use std::collections::BTreeMap;

use super::{Licences, Report, Seen};
use crate::history::{History, Key, Partition};
use crate::result::Outcome;

/// Compares every offset that was read or told to a producer.
pub fn inconsistent_offsets(history: &History, seen: &Seen, licences: &Licences) -> Report {
    let mut claims: BTreeMap<Partition, Vec<(i64, u64)>> = BTreeMap::new();
    for (_, key) in history.acknowledged() {
        claims.entry(key.partition).or_default().push((key.offset, key.content));
    }
    for (partition, records) in seen.partitions() {
        claims.entry(partition).or_default().extend_from_slice(records);
    }
    let mut report = Report::default();
    for (partition, mut values) in claims {
        values.sort_unstable();
        values.dedup();
        for at_offset in values.chunk_by(|left, right| left.0 == right.0) {
            report.comparisons += 1;
            if at_offset.len() == 1 {
                continue;
            }
            let protected = at_offset
                .iter()
                .filter(|(offset, content)| {
                    !licences.cover(&Key { partition, offset: *offset, content: *content })
                })
                .count();
            if protected > 1 {
                let (offset, content) = at_offset[0];
                report.add("V4", Outcome::Diverged, Key { partition, offset, content }, || {
                    format!(
                        "{}-{}@{offset} showed {} different values, {protected} of them protected",
                        history.topic_name(partition.topic),
                        partition.index,
                        at_offset.len()
                    )
                });
            }
        }
    }
    report
}
