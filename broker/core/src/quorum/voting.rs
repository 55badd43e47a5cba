//! Elections: who is asked for votes, who gets them, and how an election ends. Source: KIP-595 (Vote,
//! BeginQuorumEpoch, EndQuorumEpoch), KIP-996 (pre-vote).

use std::time::Duration;

use acked_wire::{BeginQuorumEpochRequest, EndQuorumEpochRequest, ResponseBody, VoteRequest, error_code};

use super::effect::QuorumEffect;
use super::election_state::{QuorumState, ReplicaKey};
use super::machine::{Asked, InFlight, Quorum};
use super::messages::{self, Answer, Intended, Standing, VoteAsked};
use super::role::{Role, Unattached};
use crate::observation::Observation;
use crate::rules::VoteReply;
use crate::types::{NodeId, Output, Time};

/// The answer, or the error code for the whole of it.
type Answered = Result<ResponseBody, i16>;

impl Quorum {
    // Answering.

    pub(super) fn on_vote(
        &mut self,
        now: Time,
        request: &VoteRequest,
        out: &mut Output<QuorumEffect>,
    ) -> Answered {
        if !messages::is_same_cluster(&self.config, request.cluster_id.as_ref()) {
            return Err(error_code::INCONSISTENT_CLUSTER_ID);
        }
        let asked = messages::read_vote(request).ok_or(error_code::INVALID_REQUEST)?;
        let (error, granted) = match self.consider_vote(now, &asked, out) {
            Ok(granted) => (error_code::NONE, granted),
            Err(code) => (code, false),
        };
        let answer = Answer { error, standing: self.standing(), granted };
        assert!(
            !granted
                || asked.pre_vote
                || self.voted.is_some_and(|voted| voted.is_same_voter(&asked.candidate))
        );
        Ok(messages::vote_response(&self.config, &answer))
    }

    fn consider_vote(
        &mut self,
        now: Time,
        asked: &VoteAsked,
        out: &mut Output<QuorumEffect>,
    ) -> Result<bool, i16> {
        // A candidate has just begun its epoch, so its log cannot be of it; a pre-vote carries the current epoch.
        let is_illegal =
            if asked.pre_vote { asked.last_epoch > asked.epoch } else { asked.last_epoch >= asked.epoch };
        if is_illegal || asked.last_epoch < 0 || asked.end_offset < 0 {
            return Err(error_code::INVALID_REQUEST);
        }
        if !self.config.voters.contains_key(&asked.candidate.id) {
            return Err(error_code::INCONSISTENT_VOTER_SET);
        }
        if asked.epoch < self.epoch {
            return Err(error_code::FENCED_LEADER_EPOCH);
        }
        self.learn(now, Standing { epoch: asked.epoch, leader: None }, out);
        if !asked.intended.is(&self.config) {
            return Err(error_code::INVALID_VOTER_KEY);
        }
        // Observers have no vote to give; with a static voter set nobody who asks them can know better.
        let granted = self.config.is_voter()
            && self.role.grants(
                asked.pre_vote,
                &asked.candidate,
                self.log.is_caught_up(asked.last_epoch, asked.end_offset),
                self.voted.as_ref(),
                self.leader.is_some(),
            );
        if granted && !asked.pre_vote {
            self.grant_vote(now, asked.candidate, out);
        }
        Ok(granted)
    }

    fn grant_vote(&mut self, now: Time, candidate: ReplicaKey, out: &mut Output<QuorumEffect>) {
        if self.voted.is_none() {
            self.voted = Some(candidate);
            let state = QuorumState { epoch: self.epoch, leader: self.leader, voted: Some(candidate.id) };
            self.save_if_changed(state, out);
            if matches!(self.role, Role::Unattached(_)) {
                let election_deadline = Some(now + self.random_election_timeout());
                self.role = Role::Unattached(Unattached { election_deadline });
            }
        }
        assert!(self.voted.is_some_and(|voted| voted.id == candidate.id), "one vote in epoch {}", self.epoch);
        let granted = Observation::VoteGranted { epoch: self.epoch, candidate: candidate.id };
        match self.rules.vote_reply {
            VoteReply::WhenSaved => self.outbox.observe(granted, out),
            VoteReply::BeforeSaved => out.observe(granted),
        }
    }

    pub(super) fn on_begin(
        &mut self,
        now: Time,
        request: &BeginQuorumEpochRequest,
        out: &mut Output<QuorumEffect>,
    ) -> Answered {
        if !messages::is_same_cluster(&self.config, request.cluster_id.as_ref()) {
            return Err(error_code::INCONSISTENT_CLUSTER_ID);
        }
        let asked = messages::read_begin(request).ok_or(error_code::INVALID_REQUEST)?;
        let error = self.hear_leader(now, asked.leader, asked.epoch, asked.intended, out);
        if error == error_code::NONE {
            let fetch_timeout = self.config.fetch_timeout;
            match &mut self.role {
                Role::Follower(follower) => follower.deadline = now + fetch_timeout,
                // Its leader is alive after all.
                Role::Prospective(_) => self.become_follower(now, asked.epoch, asked.leader, out),
                _ => {}
            }
        }
        let answer = Answer { error, standing: self.standing(), granted: false };
        Ok(messages::begin_response(&self.config, &answer))
    }

    pub(super) fn on_end(
        &mut self,
        now: Time,
        request: &EndQuorumEpochRequest,
        out: &mut Output<QuorumEffect>,
    ) -> Answered {
        if !messages::is_same_cluster(&self.config, request.cluster_id.as_ref()) {
            return Err(error_code::INCONSISTENT_CLUSTER_ID);
        }
        let asked = messages::read_end(request).ok_or(error_code::INVALID_REQUEST)?;
        let error = self.hear_leader(now, asked.leader, asked.epoch, asked.intended, out);
        if error == error_code::NONE {
            let pause = self.successor_pause(&asked.successors);
            if let Role::Follower(follower) = &mut self.role {
                follower.deadline = follower.deadline.min(now + pause);
            }
        }
        let answer = Answer { error, standing: self.standing(), granted: false };
        Ok(messages::end_response(&self.config, &answer))
    }

    /// A leader speaks of its own epoch. Gives the error code of the answer.
    fn hear_leader(
        &mut self,
        now: Time,
        leader: NodeId,
        epoch: i32,
        intended: Intended,
        out: &mut Output<QuorumEffect>,
    ) -> i16 {
        let is_other = self.leader.is_some_and(|known| known != leader);
        if epoch < self.epoch {
            return error_code::FENCED_LEADER_EPOCH;
        }
        if !self.config.voters.contains_key(&leader)
            || leader == self.config.node
            || (epoch == self.epoch && is_other)
        {
            return error_code::INVALID_REQUEST;
        }
        self.learn(now, Standing { epoch, leader: Some(leader) }, out);
        if intended.is(&self.config) { error_code::NONE } else { error_code::INVALID_VOTER_KEY }
    }

    /// How long a follower leaves the resigning leader's better choices alone: nothing for the first, then doubling up
    /// to half the longest election pause for the last, and all of it for one that is not listed.
    fn successor_pause(&self, successors: &[NodeId]) -> Duration {
        let longest = self.config.election_backoff_max;
        let position = successors.iter().position(|successor| *successor == self.config.node);
        match position {
            Some(0) => Duration::ZERO,
            Some(position) => {
                let steps_left = (successors.len() - position).min(31);
                longest / (1 << steps_left)
            }
            None => longest,
        }
    }

    // Asking.

    pub(super) fn drive_unattached(&mut self, now: Time, out: &mut Output<QuorumEffect>) {
        let Role::Unattached(unattached) = &self.role else { unreachable!("called for this role only") };
        if let Some(deadline) = unattached.election_deadline.filter(|_| !self.is_stopping()) {
            if now < deadline {
                self.wake_at(deadline);
            } else if self.may_stand() {
                return self.become_prospective(now, out);
            }
        }
        self.fetch_from_anyone(now, out);
    }

    pub(super) fn drive_prospective(&mut self, now: Time, out: &mut Output<QuorumEffect>) {
        let Role::Prospective(ballot) = &self.role else { unreachable!("called for this role only") };
        let (voters, majority) = (self.config.voters.len(), self.config.majority());
        if ballot.is_won(majority) && !self.is_stopping() && self.may_stand() {
            self.stand_for_election(now, self.epoch + 1, out);
        } else if ballot.is_lost(voters, majority) || now >= ballot.deadline || self.is_stopping() {
            match self.leader {
                Some(leader) => self.become_follower(now, self.epoch, leader, out),
                None => self.become_unattached(now, self.epoch, out),
            }
        } else {
            self.wake_at(ballot.deadline);
            self.ask_for_votes(now, true, out);
        }
    }

    pub(super) fn drive_candidate(&mut self, now: Time, out: &mut Output<QuorumEffect>) {
        let Role::Candidate(ballot) = &self.role else { unreachable!("called for this role only") };
        let (voters, majority) = (self.config.voters.len(), self.config.majority());
        if self.is_stopping() {
            return;
        }
        if let Some(pause_end) = ballot.backed_off_until {
            if now >= pause_end && self.may_stand() {
                self.become_prospective(now, out);
            } else if now < pause_end {
                self.wake_at(pause_end);
            }
        } else if ballot.is_won(majority) {
            self.become_leader(now, out);
        } else if ballot.is_lost(voters, majority) || now >= ballot.deadline {
            let pause_end = now + self.election_backoff();
            self.wake_at(pause_end);
            if let Role::Candidate(ballot) = &mut self.role {
                ballot.backed_off_until = Some(pause_end);
            }
        } else {
            self.wake_at(ballot.deadline);
            self.ask_for_votes(now, false, out);
        }
    }

    fn ask_for_votes(&mut self, now: Time, pre_vote: bool, out: &mut Output<QuorumEffect>) {
        let (Role::Prospective(ballot) | Role::Candidate(ballot)) = &self.role else { return };
        let silent: Vec<NodeId> =
            self.config.other_voters().filter(|voter| !ballot.has_answered(*voter)).collect();
        let asked = Asked::Vote { epoch: self.epoch, pre_vote, ballot: self.ballots };
        let log_end = (self.log.last_epoch(), self.log.end_offset());
        assert!(self.log.is_synced(), "a candidate claims only what it cannot lose");
        for voter in silent {
            let body = messages::vote_request(&self.config, voter, self.epoch, log_end, pre_vote);
            self.ask(now, voter, asked, body, out);
        }
    }

    /// False when the voter has to be asked again.
    pub(super) fn on_vote_answer(
        &mut self,
        now: Time,
        flight: InFlight,
        answer: Answer,
        out: &mut Output<QuorumEffect>,
    ) -> bool {
        self.learn(now, answer.standing, out);
        let Asked::Vote { epoch, pre_vote, ballot } = flight.asked else {
            unreachable!("called for votes only")
        };
        if ballot != self.ballots || epoch != self.epoch {
            return true;
        }
        if answer.error != error_code::NONE {
            return false;
        }
        match &mut self.role {
            Role::Prospective(ballot) if pre_vote => ballot.record(flight.to, answer.granted),
            Role::Candidate(ballot) if !pre_vote => ballot.record(flight.to, answer.granted),
            _ => {}
        }
        true
    }
}
