//! S9 leader completeness and S11 one leader per epoch. A leader is judged when it first *acts* in its epoch: appends,
//! or answers a client or a follower. A dead broker may be elected and fenced again without acting. Only records
//! committed in lower epochs count: a deposed leader may answer late and lack them.

use acked_core::NodeId;
use acked_reports::Outcome;

use super::case::{Court, PartitionCase, Role};
use super::checks::Check;
use super::committed::Standing;
use super::finding::Rule;
use crate::names::node_name;

impl PartitionCase {
    /// A broker appended as leader.
    pub fn appended_as_leader(&mut self, node: NodeId, leader_epoch: i32, court: &mut Court<'_>) {
        court.reporter.compared(Check::S11, 1);
        if self.acting.newest_append != Some((node, leader_epoch)) {
            let first = *self.acting.appended.entry(leader_epoch).or_insert(node);
            self.acting.newest_append = Some((node, leader_epoch));
            if first != node {
                let place = self.place(node, leader_epoch, 0);
                court.reporter.found(Check::S11, Outcome::Diverged, place, || {
                    format!("brokers {first} and {node} both append as leader in epoch {leader_epoch}")
                });
            }
        }
        self.acted_as_leader(node, leader_epoch, court);
    }

    /// A broker appended, or answered somebody, as leader of this epoch.
    pub fn acted_as_leader(&mut self, node: NodeId, leader_epoch: i32, court: &mut Court<'_>) {
        if self.acting.newest == Some((node, leader_epoch)) {
            return;
        }
        // Whoever has stepped down answers for what it did before: that is no act.
        match self.role(node) {
            Some(Role::Leader(epoch)) if epoch != leader_epoch => return,
            Some(Role::Follower(_)) => return,
            Some(Role::Leader(_)) | None => {}
        }
        self.acting.newest = Some((node, leader_epoch));
        if self.acting.acted.contains_key(&leader_epoch) {
            return;
        }
        self.check_completeness(node, leader_epoch, court);
        self.acting.acted.insert(leader_epoch, node);
        self.judge_single_acks(node, leader_epoch, court);
    }

    fn check_completeness(&mut self, leader: NodeId, leader_epoch: i32, court: &mut Court<'_>) {
        let log = court.mirror.log(self.id, leader);
        let mut lacking = Vec::new();
        let mut compared = 0;
        for record in self.committed.records() {
            if !record.is_protected() || record.committed_in >= leader_epoch {
                continue;
            }
            compared += 1;
            if !log.is_some_and(|log| log.holds(&record.entry)) {
                lacking.push(*record);
            }
        }
        // A leader that acts over an empty committed set was looked at all the same.
        court.reporter.compared(Check::S9, compared.max(1));
        if court.elr {
            court.reporter.compared(Check::S23, compared.max(1));
        }
        for record in lacking {
            let mut permitted = self.loss_permitted(&record, leader_epoch, court.mirror, court.elr);
            let mut down = Vec::new();
            if let Some(rule) = permitted {
                let is_price = rule != Rule::UncleanElection
                    || self.is_price_of_election(&record, leader, leader_epoch, court);
                let (all_down, members) =
                    self.everybody_went_down(&record, rule, leader, leader_epoch, court);
                down = members;
                permitted = permitted.filter(|_| is_price && all_down);
            }
            let standing = match permitted {
                Some(rule) => Standing::Licensed(rule),
                None => Standing::Violated,
            };
            if let Some(record) = self.committed.get_mut(record.entry.offset) {
                record.standing = standing;
            }
            match permitted {
                Some(rule) => {
                    self.license(&record.entry, rule, leader, leader_epoch, court);
                    court.ledger.name_members(down);
                }
                None => {
                    let place = self.place(leader, leader_epoch, record.entry.offset);
                    court.reporter.found(Check::S9, Outcome::Lost, place, || {
                        format!(
                            "leader {} acts in epoch {leader_epoch} without offset {}, committed in epoch {}; nothing permits that",
                            node_name(leader), record.entry.offset, record.committed_in
                        )
                    });
                }
            }
        }
    }
}
