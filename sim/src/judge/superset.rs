//! S15 quorum superset. Of every committed state: the sets are among the replicas and disjoint, the leader is in sync,
//! and nobody is an eligible leader replica while enough replicas are in sync. Of a leader that knows the newest
//! committed state: it counts every member of it, whatever it has asked for. (That no member is fenced or shutting
//! down is looked at in `fencing.rs`.)

use acked_core::NodeId;
use acked_core::observation::PartitionState;
use acked_reports::Outcome;

use super::case::{Court, PartitionCase};
use super::checks::Check;
use super::reporter::Place;
use crate::names::{node_name, node_names};

/// What the leaders of one partition are known to know.
#[derive(Debug, Default)]
pub struct Known {
    /// Broker, leader epoch, partition epoch of the committed in-sync set that it works with.
    leaders: Vec<(NodeId, i32, i32)>,
    /// Taken over before any controller was seen to commit it.
    early: Vec<(NodeId, i32, i32, Vec<NodeId>)>,
}

impl Known {
    /// The broker's process ended, or it took a role anew: what it knows is unknown.
    pub fn forget(&mut self, node: NodeId) {
        self.leaders.retain(|(known, ..)| *known != node);
        self.early.retain(|(known, ..)| *known != node);
    }

    fn partition_epoch(&self, node: NodeId, leader_epoch: i32) -> Option<i32> {
        let found = self.leaders.iter().find(|(known, epoch, _)| *known == node && *epoch == leader_epoch);
        found.map(|(_, _, partition_epoch)| *partition_epoch)
    }
}

impl PartitionCase {
    /// A state was committed.
    pub fn check_shape(&mut self, state: &PartitionState, court: &mut Court<'_>) {
        court.reporter.compared(Check::S15, 1);
        if let Some(wrong) = self.wrong_shape(state, court.elr) {
            let place = Place {
                partition: Some(self.id),
                node: state.leader,
                epoch: state.partition_epoch,
                offset: None,
            };
            court.reporter.found(Check::S15, Outcome::None, place, || {
                format!(
                    "committed partition epoch {}: {wrong} (in sync {{{}}}, eligible {{{}}}, replicas {{{}}})",
                    state.partition_epoch,
                    node_names(&state.isr),
                    node_names(&state.elr),
                    node_names(&state.replicas)
                )
            });
        }
        for (leader, leader_epoch, partition_epoch, isr) in std::mem::take(&mut self.known.early) {
            self.adopted(leader, leader_epoch, partition_epoch, &isr, court);
        }
    }

    fn wrong_shape(&self, state: &PartitionState, elr: bool) -> Option<String> {
        let outsider = state.isr.iter().chain(&state.elr).find(|member| !state.replicas.contains(member));
        let twice = state.elr.iter().find(|member| state.isr.contains(member));
        let min_insync = self.contract.min_insync.min(state.replicas.len() as i32);
        if let Some(outsider) = outsider {
            return Some(format!("{} is no replica", node_name(*outsider)));
        }
        if let Some(twice) = twice {
            return Some(format!("{} is in sync and eligible besides", node_name(*twice)));
        }
        if let Some(leader) = state.leader.filter(|leader| !state.isr.contains(leader)) {
            return Some(format!("leader {} is not in sync", node_name(leader)));
        }
        if !elr && !state.elr.is_empty() {
            return Some("there are eligible leader replicas, which are off".to_owned());
        }
        if !elr && state.isr.is_empty() {
            return Some("nobody is in sync, not even the last one".to_owned());
        }
        if !state.elr.is_empty() && state.isr.len() as i64 >= i64::from(min_insync) {
            return Some(format!("there are eligible leader replicas beside {min_insync} in sync"));
        }
        None
    }

    /// A leader takes a committed in-sync set over.
    pub fn adopted(
        &mut self,
        leader: NodeId,
        leader_epoch: i32,
        partition_epoch: i32,
        isr: &[NodeId],
        court: &mut Court<'_>,
    ) {
        self.known.leaders.retain(|(known, ..)| *known != leader);
        self.known.leaders.push((leader, leader_epoch, partition_epoch));
        let Some(state) = self.elections.at(partition_epoch) else {
            self.known.early.retain(|(known, ..)| *known != leader);
            self.known.early.push((leader, leader_epoch, partition_epoch, isr.to_vec()));
            return;
        };
        court.reporter.compared(Check::S15, 1);
        if state.isr.iter().all(|member| isr.contains(member)) {
            return;
        }
        let place = self.place(leader, leader_epoch, self.committed.end());
        court.reporter.found(Check::S15, Outcome::None, place, || {
            format!(
                "leader {} works with in-sync set {{{}}} in partition epoch {partition_epoch}, which is {{{}}}",
                node_name(leader),
                node_names(isr),
                node_names(&state.isr)
            )
        });
    }

    /// A leader raised its high watermark, or acknowledged at acks=all, by this maximal in-sync set.
    pub fn check_superset(
        &self,
        leader: NodeId,
        leader_epoch: i32,
        maximal_isr: &[NodeId],
        court: &mut Court<'_>,
    ) {
        let Some(state) = self.elections.current() else { return };
        let agree = state.leader_epoch == leader_epoch
            && self.known.partition_epoch(leader, leader_epoch) == Some(state.partition_epoch);
        if !agree {
            return;
        }
        court.reporter.compared(Check::S15, 1);
        let missing = state.isr.iter().find(|member| !maximal_isr.contains(member));
        let Some(missing) = missing else { return };
        let place = self.place(leader, leader_epoch, self.committed.end());
        court.reporter.found(Check::S15, Outcome::None, place, || {
            format!(
                "leader {} knows partition epoch {} and counts {{{}}}, without committed member {}",
                node_name(leader),
                state.partition_epoch,
                node_names(maximal_isr),
                node_name(*missing)
            )
        });
    }
}
