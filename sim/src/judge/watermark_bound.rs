//! S7 watermark bound, at the step that raises a leader's high watermark; and what that step means: its records enter
//! the committed set, where S4 (one content at an offset) and S19 (one offset for a sequence) are checked.
//!
//! The set that must hold the records is the one that the leader used, widened by the controller's committed in-sync
//! set of the same leader epoch: a leader may not leave a member out before the controller did. A member that lost
//! the record to a fault after it was held counts as holding it.

use acked_core::NodeId;
use acked_reports::Outcome;

use super::case::{Court, Gone, PartitionCase, holds_or_lost};
use super::checks::Check;
use super::committed::{Acks, CommittedRecord, Standing};
use super::mirror::Entry;
use crate::names::node_name;

/// A leader's high watermark went up.
pub struct Advance<'a> {
    pub leader: NodeId,
    pub leader_epoch: i32,
    pub from: i64,
    pub to: i64,
    /// Committed in-sync set and maximal in-sync set as the leader knows them.
    pub isr: &'a [NodeId],
    pub maximal_isr: &'a [NodeId],
    pub min_insync: i32,
}

impl PartitionCase {
    /// Checks the step and takes its records in.
    pub fn high_watermark_advanced(&mut self, advance: &Advance<'_>, court: &mut Court<'_>) {
        assert!(advance.from <= advance.to, "a high watermark that advances does not fall");
        // To commit is to act: what the leader's log lacks is judged before its branch enters the committed set.
        self.acted_as_leader(advance.leader, advance.leader_epoch, court);
        if self.deleted {
            self.committed_after_deletion(advance, court);
            return;
        }
        self.check_set_size(advance, court);
        self.leader_watermark(advance.leader, advance.leader_epoch, advance.to, court);
        self.check_superset(advance.leader, advance.leader_epoch, advance.maximal_isr, court);
        // Nothing lies between, unless a step was missed: then it is made up for.
        let from = advance.from.min(self.committed.end());
        for offset in from..advance.to {
            let Some(entry) =
                court.mirror.log(self.id, advance.leader).and_then(|log| log.get(offset)).copied()
            else {
                let place = self.place(advance.leader, advance.leader_epoch, offset);
                court.reporter.compared(Check::S7, 1);
                court.reporter.found(Check::S7, Outcome::Lost, place, || {
                    format!(
                        "leader {} raised its high watermark to {} over offset {offset}, which its own log lacks",
                        node_name(advance.leader), advance.to
                    )
                });
                continue;
            };
            self.check_members(advance, &entry, court);
            if self.is_on_a_dead_branch(&entry, advance.leader_epoch) {
                self.commit_on_a_dead_branch(&entry, advance.leader, advance.leader_epoch, court);
                continue;
            }
            self.commit(&entry, advance.leader, advance.leader_epoch, court);
            if self.elections.leader_epoch() > advance.leader_epoch {
                self.check_stale_commit(&entry, advance.leader, advance.leader_epoch, court);
            }
        }
        self.check_eligible_leaders(advance.leader_epoch, court);
    }

    fn check_set_size(&self, advance: &Advance<'_>, court: &mut Court<'_>) {
        let wanted = self.laxest_min_insync;
        if advance.isr.len() as i64 >= i64::from(wanted) {
            return;
        }
        let place = self.place(advance.leader, advance.leader_epoch, advance.from);
        court.reporter.found(Check::S7, Outcome::None, place, || {
            format!(
                "leader {} raised its high watermark with {} in-sync replicas of at least {wanted} (it believes {})",
                node_name(advance.leader),
                advance.isr.len(),
                advance.min_insync
            )
        });
    }

    fn check_members(&self, advance: &Advance<'_>, entry: &Entry, court: &mut Court<'_>) {
        let committed = self.elections.current();
        let committed_isr = committed
            .filter(|state| state.leader_epoch == advance.leader_epoch)
            .map_or(&[][..], |state| &state.isr);
        let widened = committed_isr.iter().filter(|member| !advance.maximal_isr.contains(member));
        for member in advance.maximal_isr.iter().chain(widened) {
            if *member == advance.leader {
                continue;
            }
            court.reporter.compared(Check::S7, 1);
            let log = court.mirror.log(self.id, *member);
            if holds_or_lost(log, entry) {
                continue;
            }
            let place = self.place(advance.leader, advance.leader_epoch, entry.offset);
            court.reporter.found(Check::S7, Outcome::Lost, place, || {
                format!(
                    "leader {} of epoch {} raised its high watermark to {} while in-sync replica {} {}",
                    node_name(advance.leader),
                    advance.leader_epoch,
                    advance.to,
                    node_name(*member),
                    match log.and_then(|log| log.get(entry.offset)) {
                        Some(other) =>
                            format!("holds another record (epoch {}) at {}", other.leader_epoch, entry.offset),
                        None => format!(
                            "ends at {}, before offset {}",
                            log.map_or(0, |log| log.log_end_offset()),
                            entry.offset
                        ),
                    }
                )
            });
        }
    }

    /// One record enters the committed set.
    fn commit(&mut self, entry: &Entry, leader: NodeId, leader_epoch: i32, court: &mut Court<'_>) {
        let acted_by_then = self.highest_acted().max(leader_epoch);
        court.reporter.compared(Check::S4, 1);
        if let Some(known) = self.committed.get_mut(entry.offset)
            && known.entry.same_record(entry)
        {
            // A licensed record that came back and is committed again is protected afresh; a removed one stays removed.
            if !known.is_protected() && known.standing != Standing::Removed {
                known.standing = Standing::Live;
                known.committed_in = leader_epoch;
                known.acted_by_then = acted_by_then;
            }
            self.settle_single_acks(entry, leader, leader_epoch, court);
            return;
        }
        let record = CommittedRecord {
            entry: *entry,
            committed_in: leader_epoch,
            acted_by_then,
            acks: Acks::default(),
            standing: Standing::Live,
        };
        if let Some(displaced) = self.committed.put(record) {
            if displaced.is_protected() {
                let place = self.place(leader, leader_epoch, entry.offset);
                court.reporter.found(Check::S4, Outcome::Diverged, place, || {
                    format!(
                        "offset {} was committed in epoch {} and again, with another record, by leader {} of epoch {leader_epoch}",
                        entry.offset, displaced.committed_in, node_name(leader)
                    )
                });
            }
            self.gone.push(Gone { entry: displaced.entry, acks: displaced.acks });
        }
        self.check_sequence(entry, leader, leader_epoch, court);
        self.settle_single_acks(entry, leader, leader_epoch, court);
    }

    fn check_sequence(&mut self, entry: &Entry, leader: NodeId, leader_epoch: i32, court: &mut Court<'_>) {
        if entry.producer_id < 0 || entry.control {
            return;
        }
        court.reporter.compared(Check::S19, 1);
        if self.sequences.insert(entry.producer_id, entry.producer_epoch, entry.sequence) {
            return;
        }
        let place = self.place(leader, leader_epoch, entry.offset);
        court.reporter.found(Check::S19, Outcome::Dup, place, || {
            format!(
                "sequence {} of producer {} (epoch {}) is committed a second time, at offset {}",
                entry.sequence, entry.producer_id, entry.producer_epoch, entry.offset
            )
        });
    }
}
