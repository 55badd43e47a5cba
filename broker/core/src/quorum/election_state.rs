//! What a node remembers of elections across restarts, and the role in which it comes back. Decides nothing later
//! than start-up. Source: KIP-595, quorum-state file; kafka-formats `data_version` 0.

use acked_wire::Uuid;

use crate::types::NodeId;

/// The content of `quorum-state` with static voters: it has no directory ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct QuorumState {
    /// The newest epoch this node knows of.
    pub epoch: i32,
    /// The leader of that epoch, if known.
    pub leader: Option<NodeId>,
    /// Whom this node voted for in that epoch. A node elected leader forgets its own vote: having led says more.
    pub voted: Option<NodeId>,
}

/// A replica as votes name it. Without a directory it matches any: the file keeps none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaKey {
    pub id: NodeId,
    pub directory: Option<Uuid>,
}

impl ReplicaKey {
    /// True when a vote for `self` may be given again to `other`.
    pub fn is_same_voter(&self, other: &ReplicaKey) -> bool {
        self.id == other.id && (self.directory.is_none() || self.directory == other.directory)
    }
}

/// How a node begins, by what it finds on its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartRole {
    /// It led this epoch and may have lost what it told others: it never leads this epoch again.
    Resigned,
    /// It voted for itself and asks for the votes of this epoch again.
    Candidate,
    Follower {
        leader: NodeId,
    },
    Unattached,
}

/// The epoch and role at start. `log_epoch` is the epoch of the last batch, 0 for an empty log.
///
/// | found | comes back as |
/// |---|---|
/// | log epoch newer than the file's | Unattached in the log's epoch, without a vote |
/// | leader is this node | Resigned |
/// | vote is for this node | Candidate |
/// | a leader is known | Follower |
/// | anything else | Unattached, with its vote |
///
/// Observers neither lead nor stand: what the first rows would make of them they begin as Unattached.
pub fn at_start(
    found: QuorumState,
    log_epoch: i32,
    node: NodeId,
    is_voter: bool,
) -> (QuorumState, StartRole) {
    if log_epoch > found.epoch {
        return (QuorumState { epoch: log_epoch, leader: None, voted: None }, StartRole::Unattached);
    }
    let role = match (found.leader, found.voted) {
        (Some(leader), _) if leader == node && is_voter => StartRole::Resigned,
        (_, Some(voted)) if voted == node && is_voter => StartRole::Candidate,
        (Some(leader), _) if leader != node => StartRole::Follower { leader },
        _ => StartRole::Unattached,
    };
    // A candidate asks anew; whoever was elected says so.
    let keeps_leader = matches!(role, StartRole::Resigned | StartRole::Follower { .. });
    let leader = found.leader.filter(|_| keeps_leader);
    (QuorumState { leader, ..found }, role)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: NodeId = NodeId(101);
    const OTHER: NodeId = NodeId(102);

    fn state(epoch: i32, leader: Option<NodeId>, voted: Option<NodeId>) -> QuorumState {
        QuorumState { epoch, leader, voted }
    }

    #[test]
    fn newer_epoch_in_the_log_wins_and_forgets_the_vote() {
        let (found, role) = at_start(state(3, None, Some(ME)), 4, ME, true);
        assert_eq!((found, role), (state(4, None, None), StartRole::Unattached));
    }

    #[test]
    fn former_leader_comes_back_resigned_even_if_it_voted_for_itself() {
        assert_eq!(at_start(state(3, Some(ME), Some(ME)), 3, ME, true).1, StartRole::Resigned);
    }

    #[test]
    fn vote_for_itself_comes_back_as_candidate() {
        assert_eq!(at_start(state(3, None, Some(ME)), 2, ME, true).1, StartRole::Candidate);
    }

    #[test]
    fn known_leader_is_followed() {
        let (found, role) = at_start(state(3, Some(OTHER), Some(OTHER)), 3, ME, true);
        assert_eq!(found.voted, Some(OTHER));
        assert_eq!(role, StartRole::Follower { leader: OTHER });
    }

    #[test]
    fn vote_for_another_is_kept_while_no_leader_is_known() {
        assert_eq!(
            at_start(state(3, None, Some(OTHER)), 3, ME, true),
            (state(3, None, Some(OTHER)), StartRole::Unattached)
        );
    }

    #[test]
    fn observer_never_comes_back_as_leader_or_candidate() {
        assert_eq!(at_start(state(3, Some(ME), None), 3, ME, false).1, StartRole::Unattached);
        assert_eq!(at_start(state(3, None, Some(ME)), 3, ME, false).1, StartRole::Unattached);
    }

    #[test]
    fn vote_without_directory_matches_any_directory() {
        let kept = ReplicaKey { id: OTHER, directory: None };
        let here = ReplicaKey { id: OTHER, directory: Some(Uuid([1; 16])) };
        let there = ReplicaKey { id: OTHER, directory: Some(Uuid([2; 16])) };
        assert!(kept.is_same_voter(&here));
        assert!(!here.is_same_voter(&there));
        assert!(!here.is_same_voter(&ReplicaKey { id: ME, directory: here.directory }));
    }
}
