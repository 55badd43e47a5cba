//! The record that takes a partition from one state to the next, and what kind of election it holds.
//!
//! ELR is off: when the last in-sync replica goes, it stays in the ISR and nobody leads. Not decided here: whether
//! the change was asked for rightly. Source: kafka-rules 3, 5; KIP-704 (recovery state).

use acked_wire::PartitionChangeRecord;

use super::election::{Candidates, Wanted};
use super::image::{LEADER_UNCHANGED, NO_LEADER, ids, merged};
use super::reassignment::Reassignment;
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
    /// The replicas and the reassignment under way as they shall be; `None` keeps both.
    pub reassign: Option<(Vec<NodeId>, Reassignment)>,
}

impl Intent {
    /// Elects again and leaves the rest.
    pub fn elect(state: &PartitionState, wanted: Wanted) -> Intent {
        Intent { isr: state.isr.clone(), recovering: state.recovering, wanted, reassign: None }
    }

    /// Takes a broker out of the ISR, and its leadership away.
    pub fn without(state: &PartitionState, broker: NodeId) -> Intent {
        let isr = state.isr.iter().copied().filter(|member| *member != broker).collect();
        Intent { isr, recovering: state.recovering, wanted: Wanted::Online, reassign: None }
    }
}

/// A change that is worth a record.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub record: PartitionChangeRecord,
    pub after: PartitionState,
    pub reassignment: Reassignment,
    /// `None` when the leader stays.
    pub election: Option<Election>,
}

/// The change that `intent` makes of `before`, or `None` when there is nothing to write down. `unclean_allowed` is
/// the topic's setting; an administrator's request overrules it.
pub(super) fn change(
    before: &PartitionState,
    under_way: &Reassignment,
    intent: &Intent,
    unclean_allowed: bool,
    acceptable: impl Fn(NodeId) -> bool,
) -> Option<Change> {
    let (mut replicas, mut reassignment) =
        intent.reassign.clone().unwrap_or_else(|| (before.replicas.clone(), under_way.clone()));
    let mut wanted_isr = intent.isr.clone();
    assert!(wanted_isr.iter().all(|node| replicas.contains(node)), "the ISR is among the replicas");
    let mut removed = false;
    if let Some((remaining, in_sync)) = reassignment.completed(&replicas, &wanted_isr) {
        removed = !reassignment.removing.is_empty();
        (replicas, wanted_isr, reassignment) = (remaining, in_sync, Reassignment::default());
    }
    let candidates = Candidates { replicas: &replicas, isr: &wanted_isr, current: before.leader };
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
            Some(leader) if preferred && replicas.first() == Some(&leader) => Election::Preferred,
            Some(_) => Election::Clean,
        });
    }
    if removed && record.leader == LEADER_UNCHANGED {
        // Those that are gone must not follow, or lead, in the epoch in which they were replicas.
        record.leader = before.leader.map_or(NO_LEADER, |node| node.0);
    }
    if replicas != before.replicas {
        record.replicas = Some(ids(&replicas));
    }
    if reassignment.adding != under_way.adding {
        record.adding_replicas = Some(ids(&reassignment.adding));
    }
    if reassignment.removing != under_way.removing {
        record.removing_replicas = Some(ids(&reassignment.removing));
    }
    let isr = match elected.leader {
        Some(leader) if elected.unclean => {
            recovering = true;
            vec![leader]
        }
        // ELR off: the last member stays.
        _ if wanted_isr.is_empty() => before.isr.clone(),
        _ => wanted_isr,
    };
    if isr != before.isr {
        record.isr = Some(ids(&isr));
    }
    if recovering != before.recovering {
        record.leader_recovery_state = i8::from(recovering);
    }
    let is_reassigned =
        record.replicas.is_some() || record.adding_replicas.is_some() || record.removing_replicas.is_some();
    if record.leader == LEADER_UNCHANGED
        && record.isr.is_none()
        && record.leader_recovery_state < 0
        && !is_reassigned
    {
        return None;
    }
    let after = merged(before, &record);
    assert!(after.leader.is_none_or(|leader| after.isr.contains(&leader)), "the leader is in sync");
    assert!(!after.isr.is_empty(), "with ELR off the ISR is never empty");
    assert!(after.isr.iter().all(|node| after.replicas.contains(node)), "the ISR is among the replicas");
    Some(Change { record, after, reassignment, election })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::TopicPartition;
    use acked_wire::Uuid;

    const IDLE: Reassignment = Reassignment { adding: Vec::new(), removing: Vec::new() };

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
        change(before, &IDLE, &Intent::without(before, NodeId(broker)), unclean, |node| {
            node != NodeId(broker)
        })
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
        let change = change(&before, &IDLE, &intent, false, |node| node == NodeId(3)).expect("elected");
        assert_eq!(change.after.leader, Some(NodeId(3)));
        assert_eq!(change.election, Some(Election::Unclean { asked_by_administrator: true }));
    }

    #[test]
    fn returning_last_member_is_elected_cleanly() {
        let before = state(&[2], None);
        let back =
            change(&before, &IDLE, &Intent::elect(&before, Wanted::Online), true, |node| node == NodeId(2));
        let back = back.expect("elected");
        assert_eq!((back.after.leader, back.election), (Some(NodeId(2)), Some(Election::Clean)));
        assert!(!back.after.recovering);
    }

    #[test]
    fn preferred_election_is_never_unclean() {
        let before = state(&[2], None);
        let intent = Intent::elect(&before, Wanted::Preferred);
        assert!(change(&before, &IDLE, &intent, true, |node| node == NodeId(1)).is_none());
    }

    #[test]
    fn reassignment_that_completes_drops_the_removed_and_raises_the_leader_epoch() {
        let before = state(&[1, 2, 3], Some(2));
        let begun = Reassignment { adding: vec![NodeId(4)], removing: vec![NodeId(1)] };
        let replicas = [4, 2, 3, 1].map(NodeId).to_vec();
        let begin =
            change(&before, &IDLE, &Intent::reassign(&before, replicas, begun.clone()), false, |_| true);
        let begin = begin.expect("the replicas grow");
        assert_eq!((begin.after.leader_epoch, begin.after.partition_epoch), (4, 10));
        assert_eq!((&begin.reassignment, begin.election), (&begun, None));
        let mut caught_up = Intent::elect(&begin.after, Wanted::Online);
        caught_up.isr = [1, 2, 3, 4].map(NodeId).to_vec();
        let end = change(&begin.after, &begun, &caught_up, false, |_| true).expect("it completes");
        assert_eq!(end.after.replicas, [4, 2, 3].map(NodeId));
        assert_eq!(end.after.isr, [2, 3, 4].map(NodeId));
        assert_eq!((end.after.leader, end.after.leader_epoch), (Some(NodeId(2)), 5));
        assert!(!end.reassignment.is_under_way());
    }

    #[test]
    fn new_order_of_the_same_replicas_is_complete_at_once_and_moves_no_leader() {
        let before = state(&[1, 2, 3], Some(1));
        let replicas = [2, 1, 3].map(NodeId).to_vec();
        let moved =
            change(&before, &IDLE, &Intent::reassign(&before, replicas.clone(), IDLE), false, |_| true);
        let moved = moved.expect("the order changes");
        assert_eq!(
            (moved.after.replicas, moved.after.leader, moved.after.leader_epoch),
            (replicas, Some(NodeId(1)), 4)
        );
    }
}
