//! S10 candidate completeness: whoever may be elected, a member of the committed in-sync set or of the eligible leader
//! replicas, holds what is committed. Looked at whenever a state is committed, and of eligible leader replicas also
//! when a high watermark rises (S7 looks at the in-sync set then). What a fault took from a member is excused, and so
//! is what an allowed election has already given up.
//!
//! The newest protected record stands for all: a log has no holes, and S5 compares the rest.

use acked_core::NodeId;
use acked_core::observation::PartitionState;
use acked_reports::Outcome;

use super::case::{Court, PartitionCase, holds_or_lost};
use super::checks::Check;
use super::committed::CommittedRecord;
use super::reporter::Place;
use crate::names::node_name;

impl PartitionCase {
    /// A state was committed.
    pub fn check_candidates(&self, state: &PartitionState, court: &mut Court<'_>) {
        court.reporter.compared(Check::S10, 1);
        let Some(newest) = self.newest_protected() else { return };
        for member in state.isr.iter().chain(&state.elr) {
            self.check_candidate(*member, newest, state, court);
        }
    }

    /// A leader raised its high watermark.
    pub fn check_eligible_leaders(&self, leader_epoch: i32, court: &mut Court<'_>) {
        let Some(state) = self.elections.current() else { return };
        if state.elr.is_empty() || state.leader_epoch != leader_epoch {
            return;
        }
        let Some(newest) = self.newest_protected() else { return };
        for member in &state.elr {
            self.check_candidate(*member, newest, state, court);
        }
    }

    fn newest_protected(&self) -> Option<&CommittedRecord> {
        self.committed.records().iter().rev().find(|record| record.is_protected())
    }

    fn check_candidate(
        &self,
        member: NodeId,
        newest: &CommittedRecord,
        state: &PartitionState,
        court: &mut Court<'_>,
    ) {
        court.reporter.compared(Check::S10, 1);
        let log = court.mirror.log(self.id, member);
        if holds_or_lost(log, &newest.entry)
            || self.loss_permitted(newest, state.leader_epoch, court.mirror, court.elr).is_some()
        {
            return;
        }
        let place = Place {
            partition: Some(self.id),
            node: Some(member),
            epoch: state.leader_epoch,
            offset: Some(newest.entry.offset),
        };
        court.reporter.found(Check::S10, Outcome::Lost, place, || {
            let set = if state.isr.contains(&member) { "in sync" } else { "an eligible leader replica" };
            format!(
                "{} is {set} in partition epoch {} without offset {}, committed in epoch {}; its log ends at {}",
                node_name(member),
                state.partition_epoch,
                newest.entry.offset,
                newest.committed_in,
                log.map_or(0, |log| log.log_end_offset())
            )
        });
    }
}
