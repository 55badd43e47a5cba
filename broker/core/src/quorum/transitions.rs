//! Moving between roles: what a node hears that changes its epoch or leader, what it becomes, what is saved and told.
//! It does not decide when: that is in `voting`, `leading` and `following`.

use std::time::Duration;

use rand::RngExt;

use super::effect::{CommittedBatch, QuorumEffect, QuorumFault};
use super::election_state::{QuorumState, ReplicaKey, StartRole};
use super::machine::Quorum;
use super::messages::Standing;
use super::metadata_log::StoredBatch;
use super::role::{Ballot, Follower, Resigned, Role, Unattached};
use crate::observation::Observation;
use crate::rules::QuorumAppend;
use crate::types::{NodeId, Output, Time};

/// Unit of the random pause after a lost election; doubles with every loss.
const ELECTION_BACKOFF_UNIT: Duration = Duration::from_millis(50);

impl Quorum {
    pub(super) fn begin_as(&mut self, start: StartRole, now: Time, out: &mut Output<QuorumEffect>) {
        match start {
            StartRole::Resigned => self.become_resigned(now, Vec::new(), out),
            StartRole::Candidate => self.stand_for_election(now, self.epoch, out),
            StartRole::Follower { leader } if self.config.voters.contains_key(&leader) => {
                self.become_follower(now, self.epoch, leader, out);
            }
            // A leader that is no voter was written under another configuration.
            StartRole::Follower { .. } | StartRole::Unattached => {
                self.leader = None;
                self.become_unattached(now, self.epoch, out);
            }
        }
    }

    /// Takes over what another node says of the newest epoch and its leader, if that is news.
    pub(super) fn learn(&mut self, now: Time, heard: Standing, out: &mut Output<QuorumEffect>) {
        let leader = heard.leader.filter(|leader| self.config.voters.contains_key(leader));
        if heard.epoch < self.epoch || (heard.epoch == self.epoch && self.leader.is_some()) {
            return;
        }
        match leader {
            // It led this epoch and does not remember: its disk was lost. It must not lead or vote in it again.
            Some(leader) if leader == self.config.node => {
                self.move_to_epoch(heard.epoch);
                self.leader = Some(leader);
                self.become_resigned(now, Vec::new(), out);
            }
            Some(leader) => self.become_follower(now, heard.epoch, leader, out),
            None if heard.epoch > self.epoch => self.become_unattached(now, heard.epoch, out),
            None => {}
        }
    }

    fn move_to_epoch(&mut self, epoch: i32) {
        assert!(epoch >= self.epoch, "epoch {} would fall to {epoch}", self.epoch);
        if epoch > self.epoch {
            self.epoch = epoch;
            self.leader = None;
            self.voted = None;
        }
    }

    /// In a newer epoch, or in the same when it could not win it and knows no leader.
    pub(super) fn become_unattached(&mut self, now: Time, epoch: i32, out: &mut Output<QuorumEffect>) {
        let election_deadline = self.config.is_voter().then(|| self.remaining_election_time(now));
        self.move_to_epoch(epoch);
        self.enter(Role::Unattached(Unattached { election_deadline }), out);
    }

    pub(super) fn become_follower(
        &mut self,
        now: Time,
        epoch: i32,
        leader: NodeId,
        out: &mut Output<QuorumEffect>,
    ) {
        assert_ne!(leader, self.config.node, "a node does not follow itself");
        self.move_to_epoch(epoch);
        assert!(self.leader.is_none_or(|known| known == leader), "two leaders in epoch {epoch}");
        self.leader = Some(leader);
        self.lost_elections = 0;
        let follower = Follower {
            leader,
            deadline: now + self.config.fetch_timeout,
            has_fetched: false,
            leader_high_watermark: 0,
            asks_another: false,
        };
        self.enter(Role::Follower(follower), out);
        self.outbox.observe(Observation::QuorumFollowing { epoch, leader }, out);
    }

    /// Whether nothing it would claim can be lost any more, and there is an epoch left to lead.
    pub(super) fn may_stand(&self) -> bool {
        self.log.is_synced() && self.epoch < i32::MAX
    }

    pub(super) fn become_prospective(&mut self, now: Time, out: &mut Output<QuorumEffect>) {
        assert!(self.may_stand(), "a candidate claims only what it cannot lose");
        self.ballots += 1;
        let ballot = Ballot::new(self.config.node, now + self.random_election_timeout());
        self.enter(Role::Prospective(ballot), out);
    }

    /// Votes for itself in `epoch`: a new one, or, after a restart, the one it had voted for itself in.
    pub(super) fn stand_for_election(&mut self, now: Time, epoch: i32, out: &mut Output<QuorumEffect>) {
        assert!(self.log.is_synced(), "a candidate claims only what it cannot lose");
        let own = ReplicaKey { id: self.config.node, directory: Some(self.config.directory) };
        self.move_to_epoch(epoch);
        assert!(self.voted.is_none_or(|voted| voted.id == own.id), "voted for another in epoch {epoch}");
        self.voted = Some(own);
        self.ballots += 1;
        let ballot = Ballot::new(own.id, now + self.random_election_timeout());
        self.enter(Role::Candidate(ballot), out);
        self.outbox.observe(Observation::BecameCandidate { epoch }, out);
        self.outbox.observe(Observation::VoteGranted { epoch, candidate: own.id }, out);
    }

    pub(super) fn become_resigned(
        &mut self,
        now: Time,
        successors: Vec<NodeId>,
        out: &mut Output<QuorumEffect>,
    ) {
        assert_eq!(self.leader, Some(self.config.node), "only a leader resigns");
        let not_told = successors.iter().copied().collect();
        let deadline = now + self.random_election_timeout();
        self.enter(Role::Resigned(Resigned { successors, not_told, deadline }), out);
    }

    /// Takes the role on; saves what must outlast a restart, and tells the shell.
    pub(super) fn enter(&mut self, role: Role, out: &mut Output<QuorumEffect>) {
        let left = std::mem::replace(&mut self.role, role);
        self.transitions += 1;
        self.fetching = None;
        if matches!(self.role, Role::Leader(_)) {
            self.voted = None;
        }
        let state =
            QuorumState { epoch: self.epoch, leader: self.leader, voted: self.voted.map(|voted| voted.id) };
        let epoch_before = self.persisted.epoch;
        self.save_if_changed(state, out);
        if self.epoch > epoch_before {
            self.outbox.observe(Observation::QuorumEpochReached { epoch: self.epoch }, out);
        }
        if let Role::Leader(leader) = left {
            assert!(!matches!(self.role, Role::Leader(_)), "a leader does not become leader again");
            if leader.is_active {
                out.effect(QuorumEffect::LostLeadership { epoch: leader.epoch });
            }
        }
        self.announce(out);
    }

    pub(super) fn save_if_changed(&mut self, state: QuorumState, out: &mut Output<QuorumEffect>) {
        assert!(state.epoch >= self.persisted.epoch, "epochs never fall");
        if state != self.persisted {
            self.persisted = state;
            self.outbox.save(state, out);
        }
    }

    fn announce(&mut self, out: &mut Output<QuorumEffect>) {
        if self.announced != (self.epoch, self.leader) {
            self.announced = (self.epoch, self.leader);
            out.effect(QuorumEffect::LeaderChanged { epoch: self.epoch, leader: self.leader });
        }
    }

    pub(super) fn halt(&mut self, fault: QuorumFault, out: &mut Output<QuorumEffect>) {
        self.has_halted = true;
        out.effect(QuorumEffect::Halt { fault });
    }

    /// Appends batches that begin at the end of the log.
    pub(super) fn append_batches(&mut self, batches: Vec<StoredBatch>, out: &mut Output<QuorumEffect>) {
        for batch in &batches {
            self.outbox.observe(batch.appended(), out);
        }
        let append = self.log.append(batches);
        let effect = QuorumEffect::AppendLog {
            write: append.write,
            position: append.position,
            bytes: append.bytes,
            sync: self.rules.quorum_append == QuorumAppend::SyncedBeforeAcknowledged,
        };
        self.outbox.send(effect, out);
    }

    /// Commits and delivers up to `to` (rounded down to a batch).
    pub(super) fn commit(&mut self, to: i64, out: &mut Output<QuorumEffect>) {
        let to = self.log.batch_end_at_most(to);
        if to <= self.high_watermark {
            return;
        }
        let batches: Vec<CommittedBatch> =
            self.log.between(self.high_watermark, to).iter().map(StoredBatch::committed).collect();
        assert_eq!(batches.first().map(|batch| batch.base_offset), Some(self.high_watermark));
        assert_eq!(batches.last().map(|batch| batch.last_offset + 1), Some(to));
        self.high_watermark = to;
        out.observe(Observation::QuorumHighWatermark { epoch: self.epoch, to });
        out.effect(QuorumEffect::Committed { batches });
    }

    pub(super) fn advance_high_watermark(&mut self, out: &mut Output<QuorumEffect>) {
        match &self.role {
            Role::Leader(_) => self.advance_as_leader(out),
            Role::Follower(_) => self.advance_as_follower(out),
            _ => {}
        }
    }

    // Chance.

    pub(super) fn random_election_timeout(&mut self) -> Duration {
        let spread = u64::try_from(self.config.election_timeout.as_millis()).unwrap_or(u64::MAX).max(1);
        self.config.election_timeout + Duration::from_millis(self.rng.random_range(0..spread).max(1))
    }

    /// The pause after a lost election: up to 50 ms, doubled with every loss in a row, at most the configured maximum.
    pub(super) fn election_backoff(&mut self) -> Duration {
        self.lost_elections += 1;
        let slots = self.rng.random_range(1..=1_u32 << self.lost_elections.min(10));
        (ELECTION_BACKOFF_UNIT * slots).min(self.config.election_backoff_max.max(Duration::from_millis(1)))
    }

    pub(super) fn random_below(&mut self, count: usize) -> usize {
        if count < 2 { 0 } else { self.rng.random_range(0..count) }
    }

    /// A node that moves to a newer epoch keeps waiting as long as it would have: others' elections do not put its
    /// own off for ever.
    fn remaining_election_time(&mut self, now: Time) -> Time {
        let kept = match &self.role {
            Role::Unattached(unattached) => unattached.election_deadline,
            Role::Candidate(ballot) => Some(ballot.deadline),
            Role::Resigned(resigned) => Some(resigned.deadline),
            Role::Prospective(_) | Role::Leader(_) | Role::Follower(_) => None,
        };
        match kept.filter(|deadline| *deadline > now) {
            Some(deadline) => deadline,
            None => now + self.random_election_timeout(),
        }
    }
}
