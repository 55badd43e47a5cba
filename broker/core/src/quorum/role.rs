//! The roles of a quorum node: what each does, where each leads, and which of them grant a vote.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::election_state::ReplicaKey;
use super::metadata_log::StoredBatch;
use crate::types::{NodeId, Time};

/// What a node is in its current epoch.
#[derive(Debug)]
pub(super) enum Role {
    Unattached(Unattached),
    Prospective(Ballot),
    Candidate(Ballot),
    Leader(Leader),
    Follower(Follower),
    Resigned(Resigned),
}

/// Knows an epoch and no leader it could follow.
///
/// Does: grants votes and pre-votes; asks any voter by a fetch who leads.
/// Goes to: Prospective (voter, at the deadline), Follower (a leader is discovered).
#[derive(Debug)]
pub(super) struct Unattached {
    /// `None` for observers, which never stand.
    pub election_deadline: Option<Time>,
}

/// The votes of one election: pre-votes of a Prospective, votes of a Candidate.
///
/// Prospective does: asks for pre-votes in its current epoch, persists nothing; grants votes as an Unattached does.
/// Goes to: Candidate (majority), else Follower (a leader is known) or Unattached.
///
/// Candidate does: votes for itself in a new epoch, durably, then asks for votes; grants none.
/// Goes to: Leader (majority), Prospective (lost, after a random pause), Follower (a leader is discovered).
#[derive(Debug)]
pub(super) struct Ballot {
    answers: BTreeMap<NodeId, bool>,
    pub deadline: Time,
    /// Set once a Candidate has lost: when it may try again.
    pub backed_off_until: Option<Time>,
}

impl Ballot {
    /// A ballot on which `own` has said yes.
    pub fn new(own: NodeId, deadline: Time) -> Ballot {
        Ballot { answers: BTreeMap::from([(own, true)]), deadline, backed_off_until: None }
    }

    /// The first answer of a voter counts; it may turn from no to yes, never back.
    pub fn record(&mut self, voter: NodeId, granted: bool) {
        let answer = self.answers.entry(voter).or_insert(granted);
        *answer |= granted;
    }

    pub fn has_answered(&self, voter: NodeId) -> bool {
        self.answers.contains_key(&voter)
    }

    pub fn granting(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.answers.iter().filter(|(_, granted)| **granted).map(|(voter, _)| *voter)
    }

    pub fn is_won(&self, majority: usize) -> bool {
        self.granting().count() >= majority
    }

    /// True when the voters that have not refused are fewer than a majority.
    pub fn is_lost(&self, voters: usize, majority: usize) -> bool {
        let refused = self.answers.values().filter(|granted| !**granted).count();
        voters - refused < majority
    }
}

/// Won its epoch.
///
/// Does: appends LeaderChange first; tells every voter by BeginQuorumEpoch until it fetches, and again whenever it
/// has not fetched for half a fetch timeout; serves fetches and raises the high watermark; takes proposals once its
/// LeaderChange is committed.
/// Goes to: Resigned (no fetches from a majority, asked to, or orderly stop); newer epochs as from every state.
#[derive(Debug)]
pub(super) struct Leader {
    pub epoch: i32,
    /// Offset of its LeaderChange: the high watermark may pass only what lies in its own epoch.
    pub epoch_start: i64,
    pub since: Time,
    /// The voters other than itself.
    pub followers: BTreeMap<NodeId, FollowerProgress>,
    /// Its LeaderChange is committed, and it was said so.
    pub is_active: bool,
    /// Proposals that wait for the linger time, in order, not yet in the log.
    pub gathered: VecDeque<StoredBatch>,
    pub gathered_bytes: usize,
    pub write_at: Option<Time>,
}

/// What the leader knows of one voter.
#[derive(Clone, Debug, Default)]
pub(super) struct FollowerProgress {
    /// The end of its synced log, by its last valid fetch. May go down when it lost its disk.
    pub log_end_offset: Option<i64>,
    pub last_fetch: Option<Time>,
    /// When it is next told of the epoch, unless it fetches before.
    pub begin_at: Time,
}

/// Follows the leader of its epoch.
///
/// Does: fetches; appends and syncs before the next fetch; truncates where the leader diverges, never below its high
/// watermark; refuses votes, and pre-votes once it has fetched.
/// Goes to: Prospective (voter, nothing fetched until the deadline). An observer stays and asks other voters.
#[derive(Debug)]
pub(super) struct Follower {
    pub leader: NodeId,
    pub deadline: Time,
    /// Whether a fetch succeeded in this epoch since it last became a Follower.
    pub has_fetched: bool,
    pub leader_high_watermark: i64,
    /// An observer that missed its leader asks another voter next.
    pub asks_another: bool,
}

/// Led this epoch and leads it no longer; or found on its disk that it did.
///
/// Does: tells the voters by EndQuorumEpoch, the most caught-up first in line; grants pre-votes, no votes.
/// Goes to: Unattached in the next epoch at the deadline; Follower of a newer epoch.
#[derive(Debug)]
pub(super) struct Resigned {
    /// Voters by descending log end offset.
    pub successors: Vec<NodeId>,
    pub not_told: BTreeSet<NodeId>,
    pub deadline: Time,
}

impl Role {
    /// Whether a vote (or pre-vote) of the current epoch is granted. `candidate_is_caught_up`: its log is not behind
    /// this node's. Source: KIP-595, KIP-996.
    pub fn grants(
        &self,
        pre_vote: bool,
        candidate: &ReplicaKey,
        candidate_is_caught_up: bool,
        voted: Option<&ReplicaKey>,
        leader_is_known: bool,
    ) -> bool {
        match self {
            Role::Leader(_) => false,
            Role::Follower(follower) => pre_vote && candidate_is_caught_up && !follower.has_fetched,
            Role::Candidate(_) | Role::Resigned(_) => pre_vote && candidate_is_caught_up,
            Role::Unattached(_) | Role::Prospective(_) if pre_vote => candidate_is_caught_up,
            Role::Unattached(_) | Role::Prospective(_) => match voted {
                Some(voted) => voted.is_same_voter(candidate),
                None => !leader_is_known && candidate_is_caught_up,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTHER: ReplicaKey = ReplicaKey { id: NodeId(2), directory: None };
    const THIRD: ReplicaKey = ReplicaKey { id: NodeId(3), directory: None };

    fn ballot() -> Ballot {
        Ballot::new(NodeId(1), Time::from_secs(1))
    }

    fn unattached() -> Role {
        Role::Unattached(Unattached { election_deadline: None })
    }

    fn follower(has_fetched: bool) -> Role {
        Role::Follower(Follower {
            leader: NodeId(9),
            deadline: Time::ZERO,
            has_fetched,
            leader_high_watermark: 0,
            asks_another: false,
        })
    }

    fn leader() -> Role {
        Role::Leader(Leader {
            epoch: 1,
            epoch_start: 0,
            since: Time::ZERO,
            followers: BTreeMap::new(),
            is_active: false,
            gathered: VecDeque::new(),
            gathered_bytes: 0,
            write_at: None,
        })
    }

    fn resigned() -> Role {
        Role::Resigned(Resigned { successors: Vec::new(), not_told: BTreeSet::new(), deadline: Time::ZERO })
    }

    #[test]
    fn vote_is_granted_once_per_epoch_and_again_to_the_same_candidate_without_the_log_check() {
        for role in [unattached(), Role::Prospective(ballot())] {
            assert!(role.grants(false, &OTHER, true, None, false));
            assert!(!role.grants(false, &OTHER, false, None, false));
            assert!(!role.grants(false, &OTHER, true, Some(&THIRD), false));
            assert!(role.grants(false, &OTHER, false, Some(&OTHER), false));
            assert!(!role.grants(false, &OTHER, true, None, true));
        }
    }

    #[test]
    fn leader_follower_candidate_and_resigned_never_grant_a_vote_in_their_epoch() {
        for role in [leader(), follower(false), Role::Candidate(ballot()), resigned()] {
            assert!(!role.grants(false, &OTHER, true, None, false));
        }
    }

    #[test]
    fn pre_vote_asks_only_for_the_log_unless_a_leader_is_heard() {
        for role in [unattached(), Role::Prospective(ballot()), Role::Candidate(ballot()), resigned()] {
            assert!(role.grants(true, &OTHER, true, Some(&THIRD), true));
            assert!(!role.grants(true, &OTHER, false, None, false));
        }
        assert!(follower(false).grants(true, &OTHER, true, None, true));
        assert!(!follower(true).grants(true, &OTHER, true, None, true));
        assert!(!leader().grants(true, &OTHER, true, None, true));
    }

    #[test]
    fn ballot_is_won_by_a_majority_and_lost_when_none_is_left() {
        let mut ballot = ballot();
        assert!(!ballot.is_won(2));
        ballot.record(NodeId(2), false);
        assert!(!ballot.is_lost(3, 2));
        ballot.record(NodeId(3), false);
        assert!(ballot.is_lost(3, 2));
        ballot.record(NodeId(3), true);
        assert!(ballot.is_won(2));
        ballot.record(NodeId(3), false);
        assert!(ballot.is_won(2));
    }
}
