//! Wrongs between two records that one consumer gave out, one after the other, in one poll or in two:
//!
//! - V9 poll skip: the second lies behind records that are there to be read, for somebody read them, and that no
//!   licence and no removal covers. What was acknowledged and nobody read is V1's.
//! - V11 nonmonotonic poll: the second lies at or below the first, and no licence touches what is between.
//! - V20 silent branch switch: the first was licensed away, and the second lies behind it and was not: it is of
//!   another branch. Two records that were both licensed away may be of one branch, so they are not judged here.
//!
//! A consumer that was told of it (truncation, out of range) or asked for it (seek, new assignment) in between is
//! free to go anywhere.

use std::collections::BTreeMap;

use super::{Licences, Report, Seen};
use crate::history::{History, Key, Partition, Read, ReadPurpose};
use crate::result::Outcome;

/// Two records of one partition that a consumer gave out one after the other, with no reset between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub client: u32,
    pub before: Key,
    pub next: Key,
}

/// Every step of every consumer, in the order of the reads.
pub fn steps(history: &History, mut look: impl FnMut(&Step)) {
    let mut resets = history.resets.iter().peekable();
    let mut last: BTreeMap<(u32, Partition, bool), Key> = BTreeMap::new();
    for (number, read) in history.reads.iter().enumerate() {
        while let Some(reset) = resets.next_if(|reset| reset.reads_before <= number) {
            for is_final in [false, true] {
                last.remove(&(reset.client, reset.partition, is_final));
            }
        }
        let Read { client, partition, .. } = *read;
        let Some((offset, content)) = read.records.last().copied() else { continue };
        let chain = (client, partition, read.purpose == ReadPurpose::ReadBack);
        let mut before = last.insert(chain, Key { partition, offset, content });
        for (offset, content) in read.records.iter().copied() {
            let next = Key { partition, offset, content };
            if let Some(before) = before {
                look(&Step { client, before, next });
            }
            before = Some(next);
        }
    }
}

/// V9. Compares every two records that follow each other.
pub fn poll_skip(history: &History, seen: &Seen, licences: &Licences) -> Report {
    let mut report = Report::default();
    steps(history, |step| {
        report.comparisons += 1;
        let (from, to) = (step.before.offset + 1, step.next.offset);
        if to <= from {
            return;
        }
        let values = seen.of_partition(step.next.partition);
        let first = values.partition_point(|(offset, _)| *offset < from);
        let between = values[first..].iter().take_while(|(offset, _)| *offset < to);
        for (offset, content) in between {
            let key = Key { offset: *offset, content: *content, ..step.next };
            if licences.cover(&key) {
                continue;
            }
            report.add("V9", Outcome::Skipped, key, || {
                format!(
                    "consumer {} of {}-{} went from offset {} to {to} over {offset}, which others read",
                    step.client,
                    history.topic_name(key.partition.topic),
                    key.partition.index,
                    step.before.offset
                )
            });
        }
    });
    report
}

/// V11. Compares every two records that follow each other.
pub fn nonmonotonic_poll(history: &History, licences: &Licences) -> Report {
    let mut report = Report::default();
    steps(history, |step| {
        report.comparisons += 1;
        let (before, next) = (step.before.offset, step.next.offset);
        if next > before || licences.touch(step.next.partition, next, before) {
            return;
        }
        report.add("V11", Outcome::Replayed, step.next, || {
            format!(
                "consumer {} of {}-{} was given offset {next} after {before}, and nothing told it to go back",
                step.client,
                history.topic_name(step.next.partition.topic),
                step.next.partition.index
            )
        });
    });
    report
}

/// V20. Compares every two records that follow each other.
pub fn silent_branch_switch(history: &History, licences: &Licences) -> Report {
    let mut report = Report::default();
    steps(history, |step| {
        report.comparisons += 1;
        let switched = step.next.offset > step.before.offset
            && licences.displaced(&step.before)
            && !licences.cover(&step.next);
        if !switched {
            return;
        }
        report.add("V20", Outcome::Diverged, step.next, || {
            format!(
                "consumer {} of {}-{} had read up to offset {} of a branch that is gone, and was given {} of another \
                 without being told",
                step.client,
                history.topic_name(step.next.partition.topic),
                step.next.partition.index,
                step.before.offset,
                step.next.offset
            )
        });
    });
    report
}
