//! The loss ledger: when may a record be lost that was committed, or acknowledged at acks=1. Rules 1 to 4 of the loss
//! oracle as one small function over the elections of a partition, and the licences that it gave. A licence is for
//! one key, never for an offset.

use acked_core::{NodeId, Time};

use super::elections::{Election, Kind};
use super::finding::{Licence, RecordKey, Rule};
use super::input::FaultEvent;
use crate::names::node_names;

/// A leader lacks a record that was committed: everything that the rules ask about.
pub struct Question<'a> {
    /// Of the partition, in the order of their leader epochs.
    pub elections: &'a [Election],
    /// Leader epoch in which the record was committed.
    pub committed_in: i32,
    /// Leader epoch of the leader that lacks it.
    pub acting_in: i32,
    /// Eligible leader replicas are on.
    pub elr: bool,
    /// The leader of this epoch acted, and held the record.
    pub acted: &'a dyn Fn(i32) -> bool,
    /// A power loss or disk fault took the record from this broker, and it has not replicated it again.
    pub lost: &'a dyn Fn(NodeId) -> bool,
}

/// Rule 3: the rule that permits the loss of a committed record, if one does.
///
/// Goes back from the election of the leader that lacks it. A clean election hands on whatever the set that it was
/// elected from may have lost (iv): so the one before is judged, until a leader that acted and held the record ends
/// the descent.
pub fn loss_permitted(question: &Question<'_>) -> Option<Rule> {
    let descent = question
        .elections
        .iter()
        .rev()
        .skip_while(|election| election.leader_epoch > question.acting_in)
        .take_while(|election| election.leader_epoch > question.committed_in);
    for election in descent {
        if election.leader_epoch < question.acting_in && (question.acted)(election.leader_epoch) {
            return None;
        }
        let Some(leader) = election.leader else { continue };
        let lost = (question.lost)(leader);
        match election.kind {
            Kind::Unclean { allowed } => return allowed.then_some(Rule::UncleanElection),
            Kind::LastKnownLeader => return lost.then_some(Rule::LastKnownLeaderLostIt),
            Kind::Created | Kind::Leaderless | Kind::Clean | Kind::CleanElr => {
                let last_member = !question.elr && election.isr_before == [leader];
                if lost && (last_member || election.replicas == 1) {
                    return Some(Rule::LastReplicaLostIt);
                }
            }
        }
    }
    None
}

/// A fault that fired, as far as the ledger names it.
#[derive(Debug)]
struct Fault {
    text: String,
    nodes: Vec<NodeId>,
    loses: bool,
    injected_at: Time,
}

/// Licences given and the faults behind them.
#[derive(Debug, Default)]
pub struct Ledger {
    pub licences: Vec<Licence>,
    faults: Vec<Fault>,
}

impl Ledger {
    /// A fault began or was healed.
    pub fn fault(&mut self, now: Time, event: &FaultEvent<'_>) {
        if !event.injected {
            return;
        }
        self.faults.push(Fault {
            text: format!("{} of {} ({})", event.kind, node_names(event.nodes), event.id),
            nodes: event.nodes.to_vec(),
            loses: event.loses_power || event.wipes_disk,
            injected_at: now,
        });
    }

    /// Gives a licence.
    pub fn license(&mut self, key: RecordKey, rule: Rule, leader: NodeId, leader_epoch: i32, time: Time) {
        let fault = self.behind(rule, leader, time);
        self.licences.push(Licence { key, rule, leader, leader_epoch, time, fault, down: Vec::new() });
    }

    /// Names in the newest licence who could have been elected with its record, and went down uncleanly.
    pub fn name_members(&mut self, down: Vec<NodeId>) {
        if let Some(licence) = self.licences.last_mut() {
            licence.down = down;
        }
    }

    /// The newest fault that can have led to a loss by this rule.
    fn behind(&self, rule: Rule, leader: NodeId, time: Time) -> Option<String> {
        let took_from_leader =
            matches!(rule, Rule::AcksOneLeaderLostIt | Rule::LastKnownLeaderLostIt | Rule::LastReplicaLostIt);
        self.faults
            .iter()
            .rev()
            .filter(|fault| fault.injected_at <= time)
            .find(|fault| !took_from_leader || (fault.loses && fault.nodes.contains(&leader)))
            .map(|fault| fault.text.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const B1: NodeId = NodeId(1);
    const B2: NodeId = NodeId(2);

    fn election(leader_epoch: i32, leader: Option<NodeId>, kind: Kind, isr_before: &[NodeId]) -> Election {
        Election {
            leader_epoch,
            leader,
            kind,
            isr_before: isr_before.to_vec(),
            replicas: 3,
            time: Time::ZERO,
        }
    }

    fn ask(elections: &[Election], elr: bool, acted: &[i32], lost: &[NodeId]) -> Option<Rule> {
        let acting_in = elections.last().map_or(0, |election| election.leader_epoch);
        loss_permitted(&Question {
            elections,
            committed_in: 0,
            acting_in,
            elr,
            acted: &|epoch| acted.contains(&epoch),
            lost: &|node| lost.contains(&node),
        })
    }

    #[test]
    fn clean_election_permits_nothing_even_when_its_leader_lost_the_record() {
        let elections = [election(1, Some(B1), Kind::Clean, &[B1, B2])];
        assert_eq!(ask(&elections, false, &[], &[]), None);
        assert_eq!(ask(&elections, false, &[], &[B1]), None, "another in-sync replica was there");
    }

    #[test]
    fn last_member_that_lost_it_permits_with_elr_off_only() {
        let elections = [election(1, Some(B1), Kind::Clean, &[B1])];
        assert_eq!(ask(&elections, false, &[], &[B1]), Some(Rule::LastReplicaLostIt));
        assert_eq!(ask(&elections, false, &[], &[]), None);
        assert_eq!(ask(&elections, false, &[], &[B2]), None);
        assert_eq!(ask(&elections, true, &[], &[B1]), None);
    }

    #[test]
    fn only_replica_that_lost_it_permits() {
        let mut elections = [election(1, Some(B1), Kind::Clean, &[B1])];
        elections[0].replicas = 1;
        assert_eq!(ask(&elections, true, &[], &[B1]), Some(Rule::LastReplicaLostIt));
    }

    #[test]
    fn unclean_election_permits_only_when_allowed() {
        let allowed = [election(1, Some(B2), Kind::Unclean { allowed: true }, &[B1])];
        let forbidden = [election(1, Some(B2), Kind::Unclean { allowed: false }, &[B1])];
        assert_eq!(ask(&allowed, false, &[], &[]), Some(Rule::UncleanElection));
        assert_eq!(ask(&forbidden, false, &[], &[]), None);
    }

    #[test]
    fn last_known_leader_permits_only_what_it_lost() {
        let elections = [election(1, Some(B1), Kind::LastKnownLeader, &[])];
        assert_eq!(ask(&elections, true, &[], &[B1]), Some(Rule::LastKnownLeaderLostIt));
        assert_eq!(ask(&elections, true, &[], &[]), None, "it returned with everything");
    }

    #[test]
    fn clean_descendant_of_an_unclean_leader_that_never_acted_is_permitted() {
        let elections = [
            election(1, Some(B2), Kind::Unclean { allowed: true }, &[B1]),
            election(2, None, Kind::Leaderless, &[B2]),
            election(3, Some(B2), Kind::Clean, &[B2]),
        ];
        assert_eq!(ask(&elections, false, &[], &[]), Some(Rule::UncleanElection));
        assert_eq!(ask(&elections, false, &[1], &[]), None, "it acted, and held the record then");
    }

    #[test]
    fn elections_up_to_the_committing_epoch_permit_nothing() {
        let elections = [
            election(0, Some(B2), Kind::Unclean { allowed: true }, &[B1]),
            election(1, Some(B1), Kind::Clean, &[B1, B2]),
        ];
        assert_eq!(ask(&elections, false, &[], &[]), None);
    }

    #[test]
    fn licence_names_the_power_loss_of_the_leader_rather_than_a_later_fault() {
        let mut ledger = Ledger::default();
        let power = FaultEvent {
            id: "dark",
            kind: "power-loss",
            nodes: &[B1],
            injected: true,
            loses_power: true,
            wipes_disk: false,
        };
        let split = FaultEvent { id: "cut", kind: "split", nodes: &[B1, B2], loses_power: false, ..power };
        ledger.fault(Time::from_secs(1), &power);
        ledger.fault(Time::from_secs(2), &split);
        let at = Time::from_secs(3);
        assert_eq!(
            ledger.behind(Rule::LastReplicaLostIt, B1, at).as_deref(),
            Some("power-loss of b1 (dark)")
        );
        assert_eq!(ledger.behind(Rule::UncleanElection, B2, at).as_deref(), Some("split of b1 b2 (cut)"));
        assert_eq!(ledger.behind(Rule::LastReplicaLostIt, B2, at), None);
    }
}
