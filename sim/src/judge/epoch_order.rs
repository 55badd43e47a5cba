//! S13 epoch order: leader epochs never fall along a log; of a partition's committed states, each has a higher
//! partition epoch than the one before, no lower leader epoch, and a higher one where the leader changed.

use acked_core::NodeId;
use acked_core::observation::PartitionState;
use acked_reports::Outcome;

use super::case::{Court, PartitionCase};
use super::checks::Check;
use super::mirror::LogMirror;
use super::reporter::Place;
use crate::names::node_name;

impl PartitionCase {
    /// Records entered a log.
    pub fn check_order_of_log(&self, node: NodeId, log: &LogMirror, from: usize, court: &mut Court<'_>) {
        let Some(added) = log.entries().get(from.saturating_sub(1)..) else { return };
        court.reporter.compared(Check::S13, added.len() as u64);
        for pair in added.windows(2) {
            let (before, entry) = (&pair[0], &pair[1]);
            if entry.leader_epoch >= before.leader_epoch {
                continue;
            }
            let place = self.place(node, entry.leader_epoch, entry.offset);
            court.reporter.found(Check::S13, Outcome::Diverged, place, || {
                format!(
                    "{} holds offset {} of leader epoch {} behind offset {} of epoch {}",
                    node_name(node),
                    entry.offset,
                    entry.leader_epoch,
                    before.offset,
                    before.leader_epoch
                )
            });
        }
    }

    /// A controller replayed a committed state.
    pub fn check_order_of_states(&self, state: &PartitionState, court: &mut Court<'_>) {
        court.reporter.compared(Check::S13, 1);
        let wrong = match self.elections.at(state.partition_epoch) {
            Some(known) if known == state => None,
            Some(_) => Some("is committed twice, with different states".to_owned()),
            None => match self.elections.current() {
                Some(before) if before.partition_epoch > state.partition_epoch => {
                    Some(format!("is committed after partition epoch {}", before.partition_epoch))
                }
                Some(before) if before.leader_epoch > state.leader_epoch => Some(format!(
                    "has leader epoch {}, and the one before had {}",
                    state.leader_epoch, before.leader_epoch
                )),
                Some(before)
                    if before.leader != state.leader && before.leader_epoch == state.leader_epoch =>
                {
                    Some(format!("has another leader in leader epoch {}", state.leader_epoch))
                }
                _ => None,
            },
        };
        let Some(wrong) = wrong else { return };
        let place = Place {
            partition: Some(self.id),
            node: state.leader,
            epoch: state.partition_epoch,
            offset: None,
        };
        court.reporter.found(Check::S13, Outcome::Diverged, place, || {
            format!("partition epoch {} {wrong}", state.partition_epoch)
        });
    }
}
