//! The record that takes a partition from one state to the next, and what kind of election it holds.
//!
//! ELR is off: when the last in-sync replica goes, it stays in the ISR and nobody leads. Not decided here: whether
//! the change was asked for rightly. Source: kafka-rules 3, 5; KIP-704 (recovery state).

use acked_wire::PartitionChangeRecord;

use super::election::{Candidates, Wanted};
use super::image::{LEADER_UNCHANGED, NO_LEADER, ids, merged};
use crate::observation::{Election, PartitionState};
use crate::types::NodeId;

/// What shall become of a partition.
#[derive(Clone, Debug)]
pub(super) struct Intent {
    /// The in-sync replicas wanted; empty means that the last one goes.
    pub isr: Vec<NodeId>,
    /// The recovery state wanted; unclean elections overrule it.
    pub recovering: bool,
    pub wanted: Wanted,
}

impl Intent {
    /// Elects again and leaves the rest.
    pub fn elect(state: &PartitionState, wanted: Wanted) -> Intent {
        Intent { isr: state.isr.clone(), recovering: state.recovering, wanted }
    }

    /// Takes a broker out of the ISR, and its leadership away.
    pub fn without(state: &PartitionState, broker: NodeId) -> Intent {
        let isr = state.isr.iter().copied().filter(|member| *member != broker).collect();
        Intent { isr, recovering: state.recovering, wanted: Wanted::Online }
    }
}

/// A change that is worth a record.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub record: PartitionChangeRecord,
    pub after: PartitionState,
    /// `None` when the leader stays.
    pub election: Option<Election>,
}

/// The change that `intent` makes of `before`, or `None` when there is nothing to write down. `unclean_allowed` is
/// the topic's setting; an administrator's request overrules it.
pub(super) fn change(
    before: &PartitionState,
    intent: &Intent,
    unclean_allowed: bool,
    acceptable: impl Fn(NodeId) -> bool,
) -> Option<Change> {
    assert!(intent.isr.iter().all(|node| before.replicas.contains(node)), "the ISR is among the replicas");
    let candidates = Candidates { replicas: &before.replicas, isr: &intent.isr, current: before.leader };
    let preferred = intent.wanted == Wanted::Preferred;
    let by_administrator = intent.wanted == Wanted::UncleanByAdministrator;
    // A preferred election only moves leadership about; Kafka never makes it unclean.
    let unclean = by_administrator || (unclean_allowed && intent.wanted == Wanted::Online);
    let elected = candidates.elect(preferred, unclean, acceptable);

    let mut record = PartitionChangeRecord {
        partition_id: before.partition.index,
        topic_id: before.partition.topic,
        ..PartitionChangeRecord::default()
    };
    assert_eq!(record.leader, LEADER_UNCHANGED, "a fresh change record keeps the leader");
    let mut election = None;
    let mut recovering = intent.recovering;
    if elected.leader != before.leader {
        record.leader = elected.leader.map_or(NO_LEADER, |node| node.0);
        election = Some(match elected.leader {
            None => Election::Leaderless,
            Some(_) if elected.unclean => Election::Unclean { asked_by_administrator: by_administrator },
            Some(leader) if preferred && before.replicas.first() == Some(&leader) => Election::Preferred,
            Some(_) => Election::Clean,
        });
    }
    let isr = match elected.leader {
        Some(leader) if elected.unclean => {
            recovering = true;
            vec![leader]
        }
        // ELR off: the last member stays.
        _ if intent.isr.is_empty() => before.isr.clone(),
        _ => intent.isr.clone(),
    };
    if isr != before.isr {
        record.isr = Some(ids(&isr));
    }
    if recovering != before.recovering {
        record.leader_recovery_state = i8::from(recovering);
    }
    if record.leader == LEADER_UNCHANGED && record.isr.is_none() && record.leader_recovery_state < 0 {
        return None;
    }
    let after = merged(before, &record);
    assert!(after.leader.is_none_or(|leader| after.isr.contains(&leader)), "the leader is in sync");
    assert!(!after.isr.is_empty(), "with ELR off the ISR is never empty");
    Some(Change { record, after, election })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::TopicPartition;
    use acked_wire::Uuid;

    fn state(isr: &[i32], leader: Option<i32>) -> PartitionState {
        PartitionState {
            partition: TopicPartition { topic: Uuid([7; 16]), index: 0 },
            replicas: vec![NodeId(1), NodeId(2), NodeId(3)],
            isr: isr.iter().map(|id| NodeId(*id)).collect(),
            elr: Vec::new(),
            leader: leader.map(NodeId),
            leader_epoch: 4,
            partition_epoch: 9,
            recovering: false,
        }
    }

    fn remove(before: &PartitionState, broker: i32, unclean: bool) -> Option<Change> {
        change(before, &Intent::without(before, NodeId(broker)), unclean, |node| node != NodeId(broker))
    }

    #[test]
    fn leader_epoch_grows_only_with_the_leader() {
        let before = state(&[1, 2, 3], Some(1));
        let follower_gone = remove(&before, 3, false).expect("the ISR shrinks");
        assert_eq!((follower_gone.after.leader_epoch, follower_gone.after.partition_epoch), (4, 10));
        assert_eq!(follower_gone.election, None);
        let leader_gone = remove(&before, 1, false).expect("the leader moves");
        assert_eq!((leader_gone.after.leader_epoch, leader_gone.after.partition_epoch), (5, 10));
        assert_eq!(leader_gone.after.leader, Some(NodeId(2)));
        assert_eq!(leader_gone.election, Some(Election::Clean));
    }

    #[test]
    fn last_in_sync_replica_stays_and_nobody_leads() {
        let before = state(&[2], Some(2));
        let gone = remove(&before, 2, false).expect("the leader goes");
        assert_eq!(gone.after.isr, vec![NodeId(2)]);
        assert_eq!(gone.after.leader, None);
        assert_eq!(gone.after.leader_epoch, 5);
        assert_eq!(gone.election, Some(Election::Leaderless));
        assert_eq!(gone.record.isr, None);
        // A second removal of the same broker has nothing left to say.
        assert!(remove(&gone.after, 2, false).is_none());
    }

    #[test]
    fn unclean_election_makes_a_recovering_isr_of_one() {
        let before = state(&[2], Some(2));
        let gone = remove(&before, 2, true).expect("an outsider leads");
        assert_eq!(gone.after.leader, Some(NodeId(1)));
        assert_eq!(gone.after.isr, vec![NodeId(1)]);
        assert!(gone.after.recovering);
        assert_eq!(gone.election, Some(Election::Unclean { asked_by_administrator: false }));
    }

    #[test]
    fn administrator_may_have_what_the_settings_refuse() {
        let before = state(&[2], None);
        let intent = Intent::elect(&before, Wanted::UncleanByAdministrator);
        let change = change(&before, &intent, false, |node| node == NodeId(3)).expect("elected");
        assert_eq!(change.after.leader, Some(NodeId(3)));
        assert_eq!(change.election, Some(Election::Unclean { asked_by_administrator: true }));
    }

    #[test]
    fn returning_last_member_is_elected_cleanly() {
        let before = state(&[2], None);
        let back = change(&before, &Intent::elect(&before, Wanted::Online), true, |node| node == NodeId(2));
        let back = back.expect("elected");
        assert_eq!((back.after.leader, back.election), (Some(NodeId(2)), Some(Election::Clean)));
        assert!(!back.after.recovering);
    }

    #[test]
    fn preferred_election_is_never_unclean() {
        let before = state(&[2], None);
        let intent = Intent::elect(&before, Wanted::Preferred);
        assert!(change(&before, &intent, true, |node| node == NodeId(1)).is_none());
    }
}
