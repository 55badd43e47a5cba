//! S12 stale leader is harmless: a broker that leads in an epoch below the committed one may still commit or
//! acknowledge (acks=all) a record, but only if every electable replica holds it. What an allowed unclean election, or
//! a fault, has already taken is excused by the same rule that judges losses.

use acked_core::NodeId;
use acked_reports::Outcome;

use super::case::{Court, Gone, PartitionCase, holds_or_lost};
use super::checks::Check;
use super::committed::{Acks, CommittedRecord, Standing};
use super::mirror::Entry;
use crate::names::node_name;

impl PartitionCase {
    /// A deposed leader's high watermark passed the record, which is in the committed set by now.
    pub fn check_stale_commit(
        &mut self,
        entry: &Entry,
        leader: NodeId,
        leader_epoch: i32,
        court: &mut Court<'_>,
    ) {
        if !self.check_stale(entry, leader, leader_epoch, "committed", court) {
            return;
        }
        // The leaders of higher epochs that already acted will not be asked again: they are asked now.
        let Some((acted_in, acting)) =
            self.acting.acted.last_key_value().map(|(epoch, node)| (*epoch, *node))
        else {
            return;
        };
        let lacks = !court.mirror.log(self.id, acting).is_some_and(|log| log.holds(entry));
        if acted_in <= leader_epoch || !lacks {
            return;
        }
        let Some(record) = self.committed.get(entry.offset).copied() else { return };
        if !record.entry.same_record(entry) || !record.is_protected() {
            return;
        }
        if let Some(rule) = self.loss_permitted(&record, acted_in, court.mirror, court.elr) {
            if let Some(record) = self.committed.get_mut(entry.offset) {
                record.standing = Standing::Licensed(rule);
            }
            self.license(entry, rule, acting, acted_in, court);
        }
    }

    /// The leader of a higher epoch has already committed another record there.
    pub fn is_on_a_dead_branch(&self, entry: &Entry, leader_epoch: i32) -> bool {
        self.committed
            .get(entry.offset)
            .is_some_and(|known| known.committed_in > leader_epoch && !known.entry.same_record(entry))
    }

    /// A deposed leader's high watermark passed a record that is lost already: its successors hold another one. A
    /// leader that is cut off from the controllers does so after an allowed unclean election.
    pub fn commit_on_a_dead_branch(
        &mut self,
        entry: &Entry,
        leader: NodeId,
        leader_epoch: i32,
        court: &mut Court<'_>,
    ) {
        court.reporter.compared(Check::S12, 1);
        let newest = self.elections.leader_epoch();
        let record = CommittedRecord {
            entry: *entry,
            committed_in: leader_epoch,
            acted_by_then: self.highest_acted(),
            acks: Acks::default(),
            standing: Standing::Live,
        };
        match self.loss_permitted(&record, newest, court.mirror, court.elr) {
            Some(rule) => {
                let acting = self.acting.acted.last_key_value().map_or(leader, |(_, node)| *node);
                self.license(entry, rule, acting, newest, court);
            }
            None => {
                let place = self.place(leader, leader_epoch, entry.offset);
                court.reporter.found(Check::S12, Outcome::Diverged, place, || {
                    format!(
                        "deposed leader {} of epoch {leader_epoch} committed offset {}, where a later epoch has committed another record",
                        node_name(leader), entry.offset
                    )
                });
            }
        }
        self.gone.push(Gone { entry: *entry, acks: Acks::default() });
    }

    /// A deposed leader sends an acks=all success for the record.
    pub fn check_stale_ack(&self, entry: &Entry, leader: NodeId, leader_epoch: i32, court: &mut Court<'_>) {
        if self.elections.leader_epoch() > leader_epoch {
            self.check_stale(entry, leader, leader_epoch, "acknowledged", court);
        }
    }

    /// True when all is well, or excused.
    fn check_stale(
        &self,
        entry: &Entry,
        leader: NodeId,
        leader_epoch: i32,
        what: &str,
        court: &mut Court<'_>,
    ) -> bool {
        let Some(state) = self.elections.current() else { return true };
        assert!(state.leader_epoch > leader_epoch, "only a deposed leader is stale");
        let mut lacking = None;
        for member in state.isr.iter().chain(&state.elr) {
            court.reporter.compared(Check::S12, 1);
            if !holds_or_lost(court.mirror.log(self.id, *member), entry) {
                lacking = lacking.or(Some(*member));
            }
        }
        let Some(member) = lacking else { return true };
        let excused = self.committed.get(entry.offset).is_some_and(|record| {
            record.entry.same_record(entry)
                && (matches!(record.standing, Standing::Licensed(_) | Standing::Removed)
                    || self.loss_permitted(record, state.leader_epoch, court.mirror, court.elr).is_some())
        }) || self.is_licensed_and_gone(entry, court);
        if excused {
            return true;
        }
        let place = self.place(leader, leader_epoch, entry.offset);
        court.reporter.found(Check::S12, Outcome::Lost, place, || {
            format!(
                "deposed leader {} of epoch {leader_epoch} {what} offset {} while electable replica {} lacks it (committed epoch {})",
                node_name(leader), entry.offset, node_name(member), state.leader_epoch
            )
        });
        false
    }

    pub fn is_licensed_and_gone(&self, entry: &Entry, court: &Court<'_>) -> bool {
        let key = self.key(entry);
        self.gone.iter().any(|gone| gone.entry.same_record(entry))
            && court.ledger.licences.iter().any(|licence| licence.key == key)
    }
}
