//! K4: the losses of a run by two oracles that share nothing. The ledger's come from the disks and the licences; the
//! other's from the lines that Kafka's verifiable clients would have printed.

use std::collections::{BTreeMap, BTreeSet};

use acked_core::TopicPartition;
use acked_reports::history::Partition;
use acked_reports::verifiable::{Position, ReadTo, Transcript, judge};
use acked_reports::{History, Key, Outcome};

use super::checks::Check;
use super::finding::LostRecord;
use super::reporter::{Place, Reporter};
use super::validation::Removed;

/// Compares the two over a run whose every partition was read to its end.
pub fn oracles_agree(
    history: &History,
    lost: &[LostRecord],
    names: &BTreeMap<TopicPartition, Partition>,
    removed: &Removed,
    reporter: &mut Reporter,
) {
    if !reporter.is_on(Check::K4) {
        return;
    }
    let transcript = Transcript::of(history);
    // The final read is by the client that read last.
    let last = history.reads.last().map(|read| read.client);
    let (last, others): (Vec<_>, Vec<_>) =
        transcript.consumers.iter().partition(|(client, _)| Some(**client) == last);
    let facts = judge(
        transcript.producers.values().map(Vec::as_slice),
        others.iter().chain(&last).map(|(_, lines)| lines.as_slice()),
        ReadTo::TheEnd,
    );
    let position = |key: &Key| Position {
        topic: history.topic_name(key.partition.topic).to_owned(),
        partition: key.partition.index,
        offset: key.offset,
        value: transcript.values.get(&key.content).map(|value| value.to_string()).unwrap_or_default(),
    };
    let by_ledger: BTreeSet<Position> = lost
        .iter()
        .filter_map(|record| {
            let partition = *names.get(&record.key.partition)?;
            Some(position(&Key { partition, offset: record.key.offset, content: record.key.content }))
        })
        .collect();
    // Lines do not tell what was removed on purpose.
    let excused: BTreeSet<Position> = history
        .acknowledged()
        .filter(|(_, key)| removed.contains(key))
        .map(|(_, key)| position(&key))
        .collect();
    let by_lines: BTreeSet<Position> =
        facts.lost.into_iter().filter(|position| !excused.contains(position)).collect();
    reporter.compared(Check::K4, facts.acked);
    for position in by_ledger.symmetric_difference(&by_lines) {
        let place = Place { offset: Some(position.offset), ..Place::default() };
        reporter.found(Check::K4, Outcome::Lost, place, || {
            let (by, not_by) = match by_ledger.contains(position) {
                true => ("by the ledger", "by the lines of its clients"),
                false => ("by the lines of its clients", "by the ledger"),
            };
            let Position { topic, partition, offset, value } = position;
            format!("record {value} at {topic}-{partition}@{offset} is lost {by}, and not {not_by}")
        });
    }
}

#[cfg(test)]
mod tests {
    use acked_reports::history::{Completion, Operation, Read, ReadPurpose, Send, TopicNumber};
    use acked_wire::Uuid;

    use super::*;
    use crate::judge::{Checks, RecordKey};

    const PARTITION: Partition = Partition { topic: TopicNumber(0), index: 0 };
    const ID: TopicPartition = TopicPartition { topic: Uuid([7; 16]), index: 0 };

    /// Offsets 0 and 1 are acknowledged, the final read passes over 1.
    fn history() -> History {
        let send = |content, offset| {
            Operation::Send(Send {
                client: 0,
                partition: PARTITION,
                content,
                acks: -1,
                idempotent: true,
                ordered: true,
                offset: Some(offset),
                completion: Completion::Ok,
                invoked_us: 0,
                completed_us: 1,
            })
        };
        let read = Operation::Read(Read {
            client: 1,
            partition: PARTITION,
            purpose: ReadPurpose::ReadBack,
            records: vec![(0, 70), (2, 72)],
            position: 3,
            at_us: 2,
        });
        History::from_operations(["orders".to_owned()], [send(70, 0), send(71, 1), read])
    }

    fn lost(offset: i64, content: u64) -> LostRecord {
        let key = RecordKey { partition: ID, offset, leader_epoch: 0, content };
        LostRecord { key, acks: -1, licensed_by: None, fault: None }
    }

    fn findings(lost: &[LostRecord], removed: &Removed) -> Vec<String> {
        let mut reporter = Reporter::new(Checks::ALL);
        let names = BTreeMap::from([(ID, PARTITION)]);
        oracles_agree(&history(), lost, &names, removed, &mut reporter);
        assert_eq!(reporter.comparisons.of(Check::K4), 2);
        let found: Vec<_> = reporter.findings.into_vec();
        assert!(found.iter().all(|finding| finding.invariant == "K4"));
        found.into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn oracles_that_find_the_same_record_lost_agree() {
        assert!(findings(&[lost(1, 71)], &Removed::default()).is_empty());
    }

    #[test]
    fn loss_that_only_one_oracle_sees_is_a_finding() {
        let found = findings(&[], &Removed::default());
        assert_eq!(
            found,
            ["record 0.1 at orders-0@1 is lost by the lines of its clients, and not by the ledger"]
        );
        let found = findings(&[lost(1, 71), lost(0, 70)], &Removed::default());
        assert_eq!(
            found,
            ["record 0.0 at orders-0@0 is lost by the ledger, and not by the lines of its clients"]
        );
    }

    #[test]
    fn record_that_was_removed_on_purpose_is_missed_by_nobody() {
        let removed = Removed::of([Key { partition: PARTITION, offset: 1, content: 71 }]);
        assert!(findings(&[], &removed).is_empty());
    }
}
