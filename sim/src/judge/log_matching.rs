//! S5 log matching, committed, while the run lasts: below a replica's high watermark its log holds what is committed.
//! Every record of a replica is compared once, when the replica's high watermark passes it, and again if it was
//! written anew. (At the end of the run `validation.rs` compares every in-sync replica's whole log.)

use acked_core::NodeId;
use acked_reports::Outcome;

use super::case::{Court, PartitionCase};
use super::checks::Check;
use crate::names::node_name;

/// How far each replica's log is compared.
#[derive(Debug, Default)]
pub struct Matched {
    ends: Vec<(NodeId, i64)>,
}

impl Matched {
    /// Moves a replica's mark to `to`; where it was.
    fn advance(&mut self, node: NodeId, to: i64) -> i64 {
        match self.ends.iter_mut().find(|(known, _)| *known == node) {
            Some((_, end)) => {
                let from = *end;
                *end = from.max(to);
                from
            }
            None => {
                self.ends.push((node, to));
                0
            }
        }
    }

    /// From this offset on the replica's log was written anew.
    pub fn written_from(&mut self, node: NodeId, offset: i64) {
        if let Some((_, end)) = self.ends.iter_mut().find(|(known, _)| *known == node) {
            *end = (*end).min(offset);
        }
    }
}

impl PartitionCase {
    /// A replica's high watermark is `to`.
    pub fn match_below(&mut self, node: NodeId, leader_epoch: i32, to: i64, court: &mut Court<'_>) {
        if self.deleted {
            return;
        }
        let from = self.matched.advance(node, to);
        let Some(log) = court.mirror.log(self.id, node) else { return };
        for offset in from..to {
            let (Some(entry), Some(record)) = (log.get(offset), self.committed.get(offset)) else { continue };
            court.reporter.compared(Check::S5, 1);
            // A deposed leader's followers may still hold a branch that was licensed away.
            if entry.same_record(&record.entry) || self.is_licensed_and_gone(entry, court) {
                continue;
            }
            let place = self.place(node, leader_epoch, offset);
            court.reporter.found(Check::S5, Outcome::Diverged, place, || {
                format!(
                    "{} holds a record of epoch {} at offset {offset}, below its high watermark {to}, where one of \
                     epoch {} is committed",
                    node_name(node),
                    entry.leader_epoch,
                    record.entry.leader_epoch
                )
            });
        }
    }
}
