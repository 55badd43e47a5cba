//! V13 nonmonotonic send: a producer's later success on a partition got an offset that is not higher, though order
//! was promised (idempotent, or one request in flight) and no record between the two was licensed away.

use std::collections::BTreeMap;

use super::{Licences, Report};
use crate::history::{History, Partition};
use crate::result::Outcome;

/// Compares every success with the one before it, in the order in which the producer sent them.
pub fn nonmonotonic_send(history: &History, licences: &Licences) -> Report {
    let mut last: BTreeMap<(u32, Partition), i64> = BTreeMap::new();
    let mut report = Report::default();
    for (send, key) in history.acknowledged() {
        if !send.ordered {
            continue;
        }
        let Some(before) = last.insert((send.client, key.partition), key.offset) else { continue };
        report.comparisons += 1;
        if key.offset <= before && !licences.touch(key.partition, key.offset, before) {
            report.add("V13", Outcome::Reorder, key, || {
                format!(
                    "producer {} of {}-{} got offset {} after {before}",
                    send.client,
                    history.topic_name(key.partition.topic),
                    key.partition.index,
                    key.offset
                )
            });
        }
    }
    report
}
