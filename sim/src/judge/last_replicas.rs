//! S23 last replica standing. With eligible leader replicas on, a committed record goes (other than by an unclean
//! election that was allowed) only when every broker that could have been elected with it went down uncleanly: process
//! crash, power loss or lost disk, since it could be elected. The licence lists them.
//!
//! Who could have been elected: the members of the in-sync set and of the eligible leader replicas since the last time
//! that enough replicas were in sync.

use std::collections::BTreeMap;

use acked_core::{NodeId, Time};
use acked_reports::Outcome;

use super::case::{Court, PartitionCase, holds_or_lost};
use super::checks::Check;
use super::committed::CommittedRecord;
use super::elections::Elections;
use super::finding::Rule;
use crate::names::node_name;

/// When the processes of nodes began without a clean stop before.
#[derive(Debug, Default)]
pub struct Starts {
    /// Whether a node's process, if it has begun, has stopped in order since.
    stopped: BTreeMap<NodeId, bool>,
    unclean: BTreeMap<NodeId, Vec<Time>>,
}

impl Starts {
    pub fn started(&mut self, node: NodeId, now: Time) {
        if self.stopped.insert(node, false) == Some(false) {
            self.unclean.entry(node).or_default().push(now);
        }
    }

    pub fn stopped(&mut self, node: NodeId) {
        self.stopped.insert(node, true);
    }

    fn unclean_since(&self, node: NodeId, since: Time) -> bool {
        self.unclean.get(&node).and_then(|times| times.last()).is_some_and(|time| *time >= since)
    }
}

/// The members that could be elected before this leader epoch began, each with the time since when it could.
fn members_before(elections: &Elections, leader_epoch: i32, min_insync: i32) -> Vec<(NodeId, Time)> {
    let mut members: Vec<(NodeId, Time)> = Vec::new();
    let states = elections.states().rev().skip_while(|(state, _)| state.leader_epoch >= leader_epoch);
    let mut enough = false;
    for (state, since) in states {
        let is_member = |node: &NodeId| state.isr.contains(node) || state.elr.contains(node);
        if enough {
            // Further back, only how long they had been members counts.
            let mut any = false;
            for (_, time) in members.iter_mut().filter(|(node, _)| is_member(node)) {
                *time = since;
                any = true;
            }
            if !any {
                break;
            }
            continue;
        }
        for node in state.isr.iter().chain(&state.elr) {
            match members.iter_mut().find(|(known, _)| known == node) {
                Some((_, time)) => *time = since,
                None => members.push((*node, since)),
            }
        }
        enough = state.isr.len() as i64 >= i64::from(min_insync);
    }
    members
}

impl PartitionCase {
    /// A rule other than that of unclean elections permits the loss of a record to this leader. Whether everybody who
    /// could have been elected with it went down uncleanly; and who that was.
    pub fn everybody_went_down(
        &self,
        record: &CommittedRecord,
        rule: Rule,
        leader: NodeId,
        leader_epoch: i32,
        court: &mut Court<'_>,
    ) -> (bool, Vec<NodeId>) {
        if !court.elr || rule == Rule::UncleanElection {
            return (true, Vec::new());
        }
        let min_insync = self.contract.effective_min_insync();
        let mut down = Vec::new();
        let mut spared = None;
        for (member, since) in members_before(&self.elections, leader_epoch, min_insync) {
            court.reporter.compared(Check::S23, 1);
            if !holds_or_lost(court.mirror.log(self.id, member), &record.entry) {
                continue;
            }
            if court.starts.unclean_since(member, since) {
                down.push(member);
            } else {
                spared = spared.or(Some(member));
            }
        }
        let Some(spared) = spared else { return (true, down) };
        let place = self.place(leader, leader_epoch, record.entry.offset);
        court.reporter.found(Check::S23, Outcome::Lost, place, || {
            format!(
                "leader {} of epoch {leader_epoch} lacks offset {}, which {} could have been elected with: it never \
                 went down uncleanly",
                node_name(leader),
                record.entry.offset,
                node_name(spared)
            )
        });
        (false, down)
    }
}
