//! Client-visible wrongs, by Jepsen's names: each a pure function over a history and the licences of its run, in
//! n log n time. Sends and reads are all they see. What the faults that fired were allowed to destroy comes in as
//! plain keys.

mod duplicate;
mod inconsistent_offsets;
mod lost_write;
mod nonmonotonic_send;
mod phantom;
mod polls;
mod seen;
mod unseen;

use std::collections::BTreeSet;

use crate::history::{History, Key, Partition};
use crate::result::{Contract, Outcome};

pub use duplicate::duplicate;
pub use inconsistent_offsets::inconsistent_offsets;
pub use lost_write::lost_write;
pub use nonmonotonic_send::nonmonotonic_send;
pub use phantom::phantom;
pub use polls::{Step, nonmonotonic_poll, poll_skip, silent_branch_switch, steps};
pub use seen::Seen;
pub use unseen::{Unseen, unseen};

/// One wrong; the same wrong on one partition is reported once, with a count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anomaly {
    /// `V1`, `V3`, …
    pub invariant: &'static str,
    pub outcome: Outcome,
    pub contract: Contract,
    /// The first record concerned.
    pub first: Key,
    /// The lowest and highest offset concerned, both inclusive.
    pub offsets: (i64, i64),
    pub count: u64,
    pub text: String,
}

/// What one check found and how many comparisons it made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// By kind and partition, in the order of first occurrence.
    pub anomalies: Vec<Anomaly>,
    pub comparisons: u64,
}

impl Report {
    /// Adds one occurrence. The text is only made for the first of its kind on a partition.
    fn add(&mut self, invariant: &'static str, outcome: Outcome, key: Key, text: impl FnOnce() -> String) {
        let known = self.anomalies.iter_mut().find(|anomaly| {
            anomaly.invariant == invariant
                && anomaly.outcome == outcome
                && anomaly.first.partition == key.partition
        });
        match known {
            Some(anomaly) => {
                anomaly.count += 1;
                anomaly.offsets = (anomaly.offsets.0.min(key.offset), anomaly.offsets.1.max(key.offset));
            }
            None => self.anomalies.push(Anomaly {
                invariant,
                outcome,
                contract: Contract::Broken,
                first: key,
                offsets: (key.offset, key.offset),
                count: 1,
                text: text(),
            }),
        }
    }
}

/// The keys whose absence was permitted. A licence is for a key, never for an offset: another record at the same
/// offset is not covered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Licences {
    keys: BTreeSet<Key>,
    lapsed: BTreeSet<(Partition, u64)>,
    /// Keys that some leader's branch displaced, and that no later leader brought back.
    displaced: BTreeSet<Key>,
}

impl Licences {
    /// Nothing is permitted.
    pub fn none() -> Licences {
        Licences::default()
    }

    pub fn new(keys: impl IntoIterator<Item = Key>) -> Licences {
        let keys: BTreeSet<Key> = keys.into_iter().collect();
        let lapsed = keys.iter().map(|key| (key.partition, key.content)).collect();
        Licences { displaced: keys.clone(), keys, lapsed }
    }

    /// These were licensed away, but a later leader had them all the same and committed them again: whoever read one
    /// reads on from it.
    #[must_use]
    pub fn with_returned(mut self, keys: impl IntoIterator<Item = Key>) -> Licences {
        for key in keys {
            self.displaced.remove(&key);
        }
        self
    }

    /// Adds the records of deleted topics. A topic that was created again under the same name may hold copies of them
    /// at the same or at other offsets, and is no other branch of the deleted one.
    #[must_use]
    pub fn with_deleted(mut self, keys: impl IntoIterator<Item = Key>) -> Licences {
        for key in keys {
            self.keys.insert(key);
            self.lapsed.insert((key.partition, key.content));
        }
        self
    }

    /// Adds records that were removed on purpose (DeleteRecords, retention). They may be absent and their offsets may
    /// come again, but nothing permits a copy of one.
    #[must_use]
    pub fn with_removed(mut self, keys: impl IntoIterator<Item = Key>) -> Licences {
        self.keys.extend(keys);
        self
    }

    /// The absence of exactly this record is permitted.
    pub fn cover(&self, key: &Key) -> bool {
        self.keys.contains(key)
    }

    /// Exactly this record was licensed away, and another branch took its place.
    fn displaced(&self, key: &Key) -> bool {
        self.displaced.contains(key)
    }

    /// A copy of this content was licensed away, so it may legally be written again.
    fn lapsed(&self, partition: Partition, content: u64) -> bool {
        self.lapsed.contains(&(partition, content))
    }

    /// Some key with an offset in `from..=to` was licensed away.
    fn touch(&self, partition: Partition, from: i64, to: i64) -> bool {
        assert!(from <= to, "a range of offsets has its ends in order");
        let first = Key { partition, offset: from, content: 0 };
        let last = Key { partition, offset: to, content: u64::MAX };
        self.keys.range(first..=last).next().is_some()
    }
}

/// Every anomaly of a history, in the order V1, V3, V4, V9, V11, V13, V17, V20.
pub fn all(history: &History, licences: &Licences) -> Vec<(&'static str, Report)> {
    let seen = Seen::of(history);
    vec![
        ("V1", lost_write(history, &seen, licences)),
        ("V3", duplicate(history, &seen, licences)),
        ("V4", inconsistent_offsets(history, &seen, licences)),
        ("V9", poll_skip(history, &seen, licences)),
        ("V11", nonmonotonic_poll(history, licences)),
        ("V13", nonmonotonic_send(history, licences)),
        ("V17", phantom(history, &seen, licences)),
        ("V20", silent_branch_switch(history, licences)),
    ]
}

#[cfg(test)]
mod tests;
