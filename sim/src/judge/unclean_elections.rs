//! S22 unclean election accounting, the part about what is lost and who is told (`elections.rs` has the part about when
//! it may happen).
//!
//! - The records that an unclean election costs lie at or above the point where the chosen replica's log parts from
//!   the committed records, as both stood when it was elected. What it loses besides is lost by something else.
//! - A consumer that had read beyond that point is told (truncation, out of range) before it is given any record of
//!   the new branch.

use std::collections::{BTreeMap, BTreeSet};

use acked_core::{NodeId, TopicPartition};
use acked_reports::anomalies::{Step, steps};
use acked_reports::history::Partition;
use acked_reports::{History, Key, Outcome};

use super::case::{Court, PartitionCase};
use super::checks::Check;
use super::committed::CommittedRecord;
use super::finding::Rule;
use super::ledger::Ledger;
use super::reporter::{Place, Reporter};
use crate::names::node_name;

impl PartitionCase {
    /// An unclean election is committed: where the chosen replica's log parts from the committed records.
    pub fn chosen_uncleanly(&mut self, leader: NodeId, leader_epoch: i32, court: &mut Court<'_>) {
        let log = court.mirror.log(self.id, leader);
        let parts_at = self
            .committed
            .records()
            .iter()
            .find(|record| record.is_protected() && !log.is_some_and(|log| log.holds(&record.entry)))
            .map_or(self.committed.end(), |record| record.entry.offset);
        court.reporter.compared(Check::S22, 1);
        self.parts_at.insert(leader_epoch, parts_at);
    }

    /// The rule of unclean elections permits that this leader lacks a record. Whether the record lies where the election
    /// costs something.
    pub fn is_price_of_election(
        &self,
        record: &CommittedRecord,
        leader: NodeId,
        leader_epoch: i32,
        court: &mut Court<'_>,
    ) -> bool {
        let Some((elected_in, parts_at)) = self.parts_at.range(..=leader_epoch).next_back() else {
            return true;
        };
        court.reporter.compared(Check::S22, 1);
        let offset = record.entry.offset;
        let taken_by_fault = court.mirror.log(self.id, leader).is_some_and(|log| log.lost(&record.entry));
        if offset >= *parts_at || taken_by_fault {
            return true;
        }
        let place = self.place(leader, leader_epoch, offset);
        court.reporter.found(Check::S22, Outcome::Lost, place, || {
            format!(
                "leader {} of epoch {leader_epoch} lacks offset {offset}, which it held when it was elected uncleanly \
                 in epoch {elected_in}: its log parted from what is committed only at {parts_at}",
                node_name(leader)
            )
        });
        false
    }
}

/// The consumer clause, over the whole history.
pub fn consumers_are_told(
    history: &History,
    cases: &[PartitionCase],
    ledger: &Ledger,
    names: &BTreeMap<TopicPartition, Partition>,
    returned: &BTreeSet<Key>,
    reporter: &mut Reporter,
) {
    if !reporter.is_on(Check::S22)
        || !ledger.licences.iter().any(|licence| licence.rule == Rule::UncleanElection)
    {
        return;
    }
    // By record, the newest epoch whose leader displaced it by an unclean election.
    let mut displaced: BTreeMap<(Partition, i64, u64), i32> = BTreeMap::new();
    for licence in ledger.licences.iter().filter(|licence| licence.rule == Rule::UncleanElection) {
        let Some(partition) = names.get(&licence.key.partition) else { continue };
        let key = (*partition, licence.key.offset, licence.key.content);
        let epoch = displaced.entry(key).or_insert(licence.leader_epoch);
        *epoch = (*epoch).max(licence.leader_epoch);
    }
    displaced.retain(|(partition, offset, content), _| {
        !returned.contains(&Key { partition: *partition, offset: *offset, content: *content })
    });
    let mut epochs: BTreeMap<(Partition, i64), (i32, u64)> = BTreeMap::new();
    let touched: BTreeSet<Partition> = displaced.keys().map(|(partition, ..)| *partition).collect();
    for case in cases.iter().filter(|case| !case.deleted) {
        let Some(partition) = names.get(&case.id).filter(|partition| touched.contains(partition)) else {
            continue;
        };
        for record in case.committed.records() {
            let entry = record.entry;
            epochs.insert((*partition, entry.offset), (entry.leader_epoch, entry.content));
        }
    }
    let ids: BTreeMap<Partition, TopicPartition> = cases
        .iter()
        .filter(|case| !case.deleted)
        .filter_map(|case| Some((*names.get(&case.id)?, case.id)))
        .collect();
    let was_displaced = |partition, offset, content| displaced.get(&(partition, offset, content)).copied();
    // Whoever was told was told of something.
    let told = history.resets.iter().filter(|reset| {
        let at = (reset.partition, reset.from - 1, 0)..=(reset.partition, reset.from - 1, u64::MAX);
        displaced.range(at).next().is_some()
    });
    reporter.compared(Check::S22, told.count() as u64);
    steps(history, |step: &Step| {
        let (before, next) = (step.before, step.next);
        let Some(gone_in) = was_displaced(before.partition, before.offset, before.content) else { return };
        reporter.compared(Check::S22, 1);
        let Some((leader_epoch, content)) = epochs.get(&(next.partition, next.offset)) else { return };
        if next.offset <= before.offset || *content != next.content || *leader_epoch < gone_in {
            return;
        }
        let place = Place {
            partition: ids.get(&next.partition).copied(),
            node: None,
            epoch: gone_in,
            offset: Some(next.offset),
        };
        reporter.found(Check::S22, Outcome::Diverged, place, || {
            format!(
                "consumer {} had read up to offset {}, which an unclean election displaced in epoch {gone_in}, and was \
                 given offset {} of epoch {leader_epoch} without being told",
                step.client, before.offset, next.offset
            )
        });
    });
}
