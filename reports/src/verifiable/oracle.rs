//! What the lines of verifiable clients prove, and nothing else: no configuration, no faults, no broker.
//!
//! The log of a partition is what consumers saw of it. One consumer reads a *run* of rising offsets from where it was
//! assigned, and passes over every offset in between: what it did not return is not there. Where several passed over an
//! offset, the last one speaks for it, in the order in which consumers are given.
//!
//! - acknowledged, and passed over without being seen there: lost.
//! - acknowledged beyond what anybody reached: unread, unless the caller says that the logs were read to their ends.
//! - an error proves nothing: such a record may be there or not.
//!
//! Source: the table of verdicts beside the recorded histories, Jepsen's rules for unknown operations.

use std::collections::{BTreeMap, BTreeSet};

use super::line::{Line, Tool};

/// Whether what nobody reached may be taken for absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadTo {
    /// Consumers stopped somewhere.
    Anywhere,
    /// The last consumer read every partition from its first record to its end.
    TheEnd,
}

/// A value at an offset.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub topic: String,
    pub partition: i32,
    pub offset: i64,
    pub value: String,
}

/// What the lines prove.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Sends answered with success.
    pub acked: u64,
    pub errors: u64,
    /// Distinct values that some consumer returned.
    pub read: u64,
    /// Acknowledged values that no consumer ever returned.
    pub acked_never_read: u64,
    /// Distinct values returned that were never acknowledged.
    pub read_never_acked: u64,
    /// Acknowledged and not there, though somebody passed over their place; by topic, partition and offset.
    pub lost: Vec<Position>,
    /// Acknowledged at a place that nobody reached.
    pub unread: u64,
    /// Acknowledged below the first record that is left: retention, or a consumer that began late.
    pub below_start: u64,
    /// Values at two or more offsets of the log.
    pub twice_in_log: u64,
    /// Offsets acknowledged for two values or more: the log was cut below an acknowledged record.
    pub offsets_acked_twice: u64,
    /// Offsets at which consumers saw two values or more.
    pub diverged: u64,
    /// Neighbours in the log, by one producer, in the reverse of the order in which it sent them.
    pub inversions: u64,
    /// The same with every value only where it is found first: a copy behind its original breaks no order.
    pub inversions_of_originals: u64,
}

/// One partition as its readers and writers speak of it.
#[derive(Default)]
struct Case<'a> {
    acked: Vec<(i64, &'a str)>,
    /// The log, as far as it was passed over: disjoint ranges of offsets, both ends inclusive.
    passed: BTreeMap<i64, i64>,
    log: BTreeMap<i64, &'a str>,
    seen: BTreeMap<i64, BTreeSet<&'a str>>,
}

type Cases<'a> = BTreeMap<(&'a str, i32), Case<'a>>;

/// Judges the lines of all clients. Consumers come in the order in which they began.
pub fn judge<'a>(
    producers: impl IntoIterator<Item = &'a [Line]>,
    consumers: impl IntoIterator<Item = &'a [Line]>,
    read_to: ReadTo,
) -> Facts {
    let mut facts = Facts::default();
    let mut cases = Cases::new();
    for lines in producers {
        acknowledged(lines, &mut cases, &mut facts);
    }
    let mut consumers = consumers.into_iter().peekable();
    while let Some(lines) = consumers.next() {
        if read_to == ReadTo::TheEnd && consumers.peek().is_none() {
            // What others once saw beyond the end of a log that was cut is not there any more.
            for case in cases.values_mut() {
                case.passed.clear();
                case.log.clear();
            }
        }
        consumed(lines, &mut cases);
    }
    for ((topic, partition), case) in &cases {
        case.add_to(topic, *partition, read_to, &mut facts);
    }
    values(&cases, &mut facts);
    facts
}

fn acknowledged<'a>(lines: &'a [Line], cases: &mut Cases<'a>, facts: &mut Facts) {
    for line in lines {
        match &line.tool {
            Tool::ProducerSendSuccess { value, topic, partition, offset, .. } => {
                facts.acked += 1;
                let case = cases.entry((&**topic, *partition)).or_default();
                case.acked.push((*offset, value));
            }
            Tool::ProducerSendError { .. } => facts.errors += 1,
            _ => {}
        }
    }
}

/// Splits what one consumer returned into runs, and lays each over what was known.
fn consumed<'a>(lines: &'a [Line], cases: &mut Cases<'a>) {
    let mut runs: BTreeMap<(&str, i32), Vec<(i64, &'a str)>> = BTreeMap::new();
    for line in lines {
        match &line.tool {
            Tool::RecordData { value, topic, partition, offset, .. } => {
                let run = runs.entry((&**topic, *partition)).or_default();
                if run.last().is_some_and(|(last, _)| offset <= last) {
                    cases.entry((&**topic, *partition)).or_default().lay(run);
                    run.clear();
                }
                run.push((*offset, value.as_deref().unwrap_or_default()));
            }
            Tool::PartitionsAssigned { partitions } | Tool::PartitionsRevoked { partitions } => {
                for one in partitions {
                    if let Some(run) = runs.remove(&(&*one.topic, one.partition)) {
                        cases.entry((&*one.topic, one.partition)).or_default().lay(&run);
                    }
                }
            }
            _ => {}
        }
    }
    for (name, run) in &runs {
        cases.entry(*name).or_default().lay(run);
    }
}

impl<'a> Case<'a> {
    /// From its first offset to its last, the log is this run.
    fn lay(&mut self, run: &[(i64, &'a str)]) {
        let (Some((first, _)), Some((last, _))) = (run.first(), run.last()) else { return };
        assert!(first <= last, "offsets of a run rise");
        for (offset, value) in run {
            self.seen.entry(*offset).or_default().insert(value);
        }
        let replaced: Vec<i64> = self.log.range(first..=last).map(|(offset, _)| *offset).collect();
        for offset in replaced {
            self.log.remove(&offset);
        }
        self.log.extend(run.iter().copied());
        let (mut from, mut to) = (*first, *last);
        let touching: Vec<(i64, i64)> = self
            .passed
            .range(..=to.saturating_add(1))
            .rev()
            .take_while(|(_, end)| **end >= from.saturating_sub(1))
            .map(|(begin, end)| (*begin, *end))
            .collect();
        for (begin, end) in touching {
            self.passed.remove(&begin);
            (from, to) = (from.min(begin), to.max(end));
        }
        self.passed.insert(from, to);
    }

    fn was_passed(&self, offset: i64) -> bool {
        self.passed.range(..=offset).next_back().is_some_and(|(_, end)| *end >= offset)
    }

    fn add_to(&self, topic: &str, partition: i32, read_to: ReadTo, facts: &mut Facts) {
        let start = self.passed.first_key_value().map(|(begin, _)| *begin);
        let mut by_offset: BTreeMap<i64, BTreeSet<&str>> = BTreeMap::new();
        for (offset, value) in &self.acked {
            if *offset < 0 {
                continue;
            }
            by_offset.entry(*offset).or_default().insert(value);
            let is_there = self.log.get(offset) == Some(value);
            let is_below = start.is_some_and(|start| *offset < start);
            let is_absent = !is_below && (self.was_passed(*offset) || read_to == ReadTo::TheEnd);
            if is_there {
                continue;
            } else if is_absent {
                facts.lost.push(Position {
                    topic: topic.to_owned(),
                    partition,
                    offset: *offset,
                    value: (*value).to_owned(),
                });
            } else if is_below {
                facts.below_start += 1;
            } else {
                facts.unread += 1;
            }
        }
        facts.lost.sort_unstable();
        facts.lost.dedup();
        facts.offsets_acked_twice += by_offset.values().filter(|values| values.len() > 1).count() as u64;
        facts.diverged += self.seen.values().filter(|values| values.len() > 1).count() as u64;
        facts.inversions += inversions(self.log.values().copied());
        let mut first_seen = BTreeSet::new();
        let originals = self.log.values().copied().filter(|value| first_seen.insert(*value));
        facts.inversions_of_originals += inversions(originals);
    }
}

/// How often a producer's next value has a lower number; values are `N` or `PREFIX.N`.
fn inversions<'a>(log: impl Iterator<Item = &'a str>) -> u64 {
    let mut last_of: BTreeMap<&str, u64> = BTreeMap::new();
    let mut count = 0;
    for value in log {
        let (producer, number) = value.rsplit_once('.').unwrap_or(("", value));
        let Ok(number) = number.parse::<u64>() else { continue };
        let before = last_of.insert(producer, number);
        count += u64::from(before.is_some_and(|before| before > number));
    }
    count
}

/// What is counted by value, over all partitions.
fn values(cases: &Cases<'_>, facts: &mut Facts) {
    let acked: BTreeSet<(&str, &str)> = cases
        .iter()
        .flat_map(|((topic, _), case)| case.acked.iter().map(|(_, value)| (*topic, *value)))
        .collect();
    let read: BTreeSet<(&str, &str)> = cases
        .iter()
        .flat_map(|((topic, _), case)| case.seen.values().flatten().map(|value| (*topic, *value)))
        .collect();
    facts.read = read.len() as u64;
    facts.acked_never_read = acked.difference(&read).count() as u64;
    facts.read_never_acked = read.difference(&acked).count() as u64;
    let mut copies: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for ((topic, _), case) in cases {
        for value in case.log.values() {
            *copies.entry((*topic, *value)).or_default() += 1;
        }
    }
    facts.twice_in_log = copies.values().filter(|copies| **copies > 1).count() as u64;
}
