//! S14 truncation safety and S16 no fabricated records, at every change of a log. A fault's damage is no truncation:
//! it never comes here.

use std::collections::BTreeSet;

use acked_core::NodeId;
use acked_reports::Outcome;

use super::case::{Court, PartitionCase};
use super::checks::Check;
use super::mirror::{Entry, LogMirror};
use crate::names::node_name;

impl PartitionCase {
    /// A broker cut records off its log.
    pub fn discarded(&mut self, node: NodeId, removed: &[Entry], court: &mut Court<'_>) {
        court.reporter.compared(Check::S14, removed.len() as u64);
        self.cut_off.extend(removed.iter().map(|entry| ((entry.offset, entry.content), entry.leader_epoch)));
        if !self.elections.is_electable(node) {
            return;
        }
        for entry in removed {
            let Some(record) = self.committed.get(entry.offset) else { continue };
            if !record.is_protected() || !record.entry.same_record(entry) {
                continue;
            }
            let place = self.place(node, self.elections.leader_epoch(), entry.offset);
            court.reporter.found(Check::S14, Outcome::Lost, place, || {
                format!(
                    "{}, which may be elected, discards offset {}, committed in epoch {}",
                    node_name(node),
                    entry.offset,
                    record.committed_in
                )
            });
        }
    }

    /// Records entered a log: each must have been sent to this partition by some client.
    pub fn appended(
        &mut self,
        node: NodeId,
        log: &LogMirror,
        from: usize,
        attempts: &BTreeSet<u64>,
        court: &mut Court<'_>,
    ) {
        let entries = log.entries().get(from..).unwrap_or(&[]);
        court.reporter.compared(Check::S16, entries.len() as u64);
        self.check_order_of_log(node, log, from, court);
        if let Some(first) = entries.first() {
            self.matched.written_from(node, first.offset);
        }
        for entry in entries {
            let known = usize::try_from(entry.offset).ok().and_then(|offset| self.sent.get(offset));
            if entry.control || known == Some(&(entry.leader_epoch, entry.content)) {
                continue;
            }
            if attempts.contains(&entry.content) {
                self.remember(entry);
                continue;
            }
            let place = self.place(node, entry.leader_epoch, entry.offset);
            court.reporter.found(Check::S16, Outcome::Phantom, place, || {
                format!(
                    "{} holds a record at offset {} that no client sent there",
                    node_name(node),
                    entry.offset
                )
            });
        }
    }

    fn remember(&mut self, entry: &Entry) {
        let Ok(offset) = usize::try_from(entry.offset) else { return };
        let sent = (entry.leader_epoch, entry.content);
        if let Some(known) = self.sent.get_mut(offset) {
            *known = sent;
        } else if offset == self.sent.len() {
            self.sent.push(sent);
        }
        // Behind a gap it is looked up again each time.
    }
}
