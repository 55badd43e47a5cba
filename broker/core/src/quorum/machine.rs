//! The quorum node as one machine: takes inputs in, moves between roles, and says what is durable before what. What
//! each role decides lies in `voting`, `leading` and `following`.

use std::collections::BTreeMap;
use std::time::Duration;

use acked_wire::{RequestBody, ResponseBody};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::config::QuorumConfig;
use super::effect::{CommittedBatch, QuorumEffect, QuorumFault, QuorumInput};
use super::election_state::{QuorumState, ReplicaKey, StartRole, at_start};
use super::leading::ParkedFetch;
use super::messages::{self, Standing};
use super::metadata_log::{MetadataLog, RecoveredLog, StoredBatch};
use super::outbox::Outbox;
use super::role::{Ballot, Follower, Resigned, Role, Unattached};
use crate::observation::Observation;
use crate::types::{NodeId, Output, PeerError, RequestId, Time};

/// The longest pause between attempts to reach the same node.
const RETRY_BACKOFF_MAX: Duration = Duration::from_millis(500);
/// Unit of the random pause after a lost election; doubles with every loss.
const ELECTION_BACKOFF_UNIT: Duration = Duration::from_millis(50);

/// What a request that is under way was about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Vote { epoch: i32, pre_vote: bool, ballot: u64 },
    Begin { epoch: i32 },
    End { epoch: i32 },
    Fetch { epoch: i32, offset: i64 },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct InFlight {
    pub to: NodeId,
    pub asked: Asked,
    expires_at: Time,
}

impl Asked {
    fn errand(self) -> Errand {
        match self {
            Asked::Fetch { .. } => Errand::Fetch,
            Asked::Vote { .. } | Asked::Begin { .. } | Asked::End { .. } => Errand::Election,
        }
    }
}

/// What is backed off together: vain questions who leads must not delay an election.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Errand {
    Fetch,
    Election,
}

/// How a node fares with another: after failures it waits longer and longer.
#[derive(Clone, Copy, Debug, Default)]
struct Reach {
    failures: u32,
    retry_at: Time,
}

/// A node of the metadata quorum.
#[derive(Debug)]
pub struct Quorum {
    pub(super) config: QuorumConfig,
    pub(super) rng: ChaCha8Rng,
    pub(super) log: MetadataLog,
    pub(super) outbox: Outbox,
    pub(super) epoch: i32,
    pub(super) leader: Option<NodeId>,
    pub(super) voted: Option<ReplicaKey>,
    pub(super) role: Role,
    /// Everything below is committed and was delivered.
    pub(super) high_watermark: i64,
    /// What was last asked to be saved.
    persisted: QuorumState,
    announced: (i32, Option<NodeId>),
    pub(super) parked: Vec<ParkedFetch>,
    in_flight: BTreeMap<u64, InFlight>,
    last_correlation: u64,
    reach: BTreeMap<(NodeId, Errand), Reach>,
    /// Correlation of the one fetch under way, if its answer still counts.
    pub(super) fetching: Option<u64>,
    /// Voter to ask next when the leader is unknown or silent.
    pub(super) ask_next: usize,
    /// Numbers the ballots, so that an answer counts only for the one it was given to.
    pub(super) ballots: u64,
    pub(super) lost_elections: u32,
    /// When an orderly stop is over at the latest.
    stops_at: Option<Time>,
    has_stopped: bool,
    has_halted: bool,
    /// Counts role changes.
    transitions: u64,
    /// The earliest time at which something that was put off falls due.
    wake: Option<Time>,
}

impl Quorum {
    /// Comes up with what the disk held: `found` is the content of quorum-state (`None` when the file is missing),
    /// `log` what [`super::recover_log`] kept. `rng` is this node's stream for elections.
    pub fn start(
        config: QuorumConfig,
        found: Option<QuorumState>,
        log: RecoveredLog,
        rng: ChaCha8Rng,
        now: Time,
        out: &mut Output<QuorumEffect>,
    ) -> Quorum {
        let found = found.unwrap_or_default();
        let log = MetadataLog::recovered(log);
        let (state, start) = at_start(found, log.last_epoch(), config.node, config.is_voter());
        let mut quorum = Quorum {
            rng,
            log,
            outbox: Outbox::default(),
            epoch: state.epoch,
            leader: state.leader,
            voted: state.voted.map(|id| ReplicaKey { id, directory: None }),
            role: Role::Unattached(Unattached { election_deadline: None }),
            high_watermark: 0,
            persisted: found,
            announced: (0, None),
            parked: Vec::new(),
            in_flight: BTreeMap::new(),
            last_correlation: 0,
            reach: BTreeMap::new(),
            fetching: None,
            ask_next: 0,
            ballots: 0,
            lost_elections: 0,
            stops_at: None,
            has_stopped: false,
            has_halted: false,
            transitions: 0,
            wake: None,
            config,
        };
        quorum.ask_next = quorum.random_below(quorum.config.voters.len());
        quorum.begin_as(start, now, out);
        quorum.drive(now, out);
        quorum
    }

    fn begin_as(&mut self, start: StartRole, now: Time, out: &mut Output<QuorumEffect>) {
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

    /// Takes one input in. Call as well when [`Quorum::next_deadline`] has passed, with `Tick`.
    pub fn handle(&mut self, now: Time, input: QuorumInput, out: &mut Output<QuorumEffect>) {
        if self.has_halted {
            return;
        }
        match input {
            QuorumInput::Request { request, body, .. } => self.on_request(now, request, body, out),
            QuorumInput::Response { to, correlation, result } => {
                self.on_response(now, to, correlation, result, out);
            }
            QuorumInput::StateSaved { save } => self.outbox.saved(save, out),
            QuorumInput::LogSynced { write } => {
                self.log.synced(write);
                self.advance_high_watermark(out);
            }
            QuorumInput::Resign { epoch } => {
                if epoch == self.epoch && matches!(self.role, Role::Leader(_)) {
                    self.resign(now, out);
                }
            }
            QuorumInput::Shutdown => self.on_shutdown(now, out),
            QuorumInput::Tick => {}
        }
        self.drive(now, out);
        self.check();
    }

    /// When to call [`Quorum::handle`] with `Tick` if nothing else happens before.
    pub fn next_deadline(&self) -> Option<Time> {
        if self.has_halted { None } else { self.wake }
    }

    /// The newest epoch this node knows.
    pub fn epoch(&self) -> i32 {
        self.epoch
    }

    /// The leader of [`Quorum::epoch`] as far as this node knows.
    pub fn leader(&self) -> Option<NodeId> {
        self.leader
    }

    /// Whether this node leads and may propose.
    pub fn is_active_leader(&self) -> bool {
        matches!(&self.role, Role::Leader(leader) if leader.is_active)
    }

    /// The next offset that a proposal here would get; on followers the end of the local log, synced or not.
    pub fn log_end_offset(&self) -> i64 {
        match &self.role {
            Role::Leader(leader) => {
                leader.gathered.back().map_or(self.log.end_offset(), |last| last.last_offset + 1)
            }
            _ => self.log.end_offset(),
        }
    }

    /// Everything below is committed and was delivered. Never decreases while the node runs.
    pub fn high_watermark(&self) -> i64 {
        self.high_watermark
    }

    /// Everything delivered so far, from offset 0 on: what a state machine is rebuilt from.
    pub fn committed_batches(&self) -> impl Iterator<Item = CommittedBatch> + '_ {
        self.log.between(0, self.high_watermark).iter().map(StoredBatch::committed)
    }

    // What comes in.

    fn on_request(
        &mut self,
        now: Time,
        request: RequestId,
        body: RequestBody,
        out: &mut Output<QuorumEffect>,
    ) {
        let body = match &body {
            RequestBody::Vote(vote) => self.on_vote(now, vote, out).unwrap_or_else(messages::vote_refused),
            RequestBody::BeginQuorumEpoch(begin) => {
                self.on_begin(now, begin, out).unwrap_or_else(messages::begin_refused)
            }
            RequestBody::EndQuorumEpoch(end) => {
                self.on_end(now, end, out).unwrap_or_else(messages::end_refused)
            }
            RequestBody::Fetch(fetch) => return self.on_fetch(now, request, fetch, out),
            other => panic!("request {request:?}: {:?} is no message of the quorum", other.key()),
        };
        self.outbox.send(QuorumEffect::Reply { request, body }, out);
    }

    fn on_response(
        &mut self,
        now: Time,
        to: NodeId,
        correlation: u64,
        result: Result<ResponseBody, PeerError>,
        out: &mut Output<QuorumEffect>,
    ) {
        let Some(flight) = self.in_flight.get(&correlation).copied().filter(|flight| flight.to == to) else {
            return;
        };
        self.in_flight.remove(&correlation);
        let answered = match (flight.asked, result) {
            (Asked::Vote { .. }, Ok(ResponseBody::Vote(response))) => messages::read_vote_response(&response)
                .is_some_and(|answer| self.on_vote_answer(now, flight, answer, out)),
            (Asked::Begin { .. }, Ok(ResponseBody::BeginQuorumEpoch(response))) => {
                messages::read_begin_response(&response)
                    .is_some_and(|answer| self.on_begin_answer(now, answer, out))
            }
            (Asked::End { .. }, Ok(ResponseBody::EndQuorumEpoch(response))) => {
                messages::read_end_response(&response)
                    .is_some_and(|answer| self.on_end_answer(now, flight, answer, out))
            }
            (Asked::Fetch { .. }, Ok(ResponseBody::Fetch(response))) => {
                let counts = self.fetching == Some(correlation);
                match messages::read_fetch_response(response) {
                    Some(answer) => {
                        if counts {
                            self.fetching = None;
                        }
                        self.on_fetch_answer(now, flight, counts, answer, out)
                    }
                    None => false,
                }
            }
            (_, Ok(_) | Err(_)) => false,
        };
        if answered {
            self.reach.remove(&(to, flight.asked.errand()));
        } else {
            self.on_failure(now, correlation, flight);
        }
    }

    fn on_failure(&mut self, now: Time, correlation: u64, flight: InFlight) {
        let reach = self.reach.entry((flight.to, flight.asked.errand())).or_default();
        let doubled = self.config.retry_backoff.saturating_mul(1 << reach.failures.min(16));
        reach.retry_at = now + doubled.min(RETRY_BACKOFF_MAX.max(self.config.retry_backoff));
        reach.failures += 1;
        match (flight.asked, &mut self.role) {
            (Asked::Fetch { .. }, role) => {
                if let (Role::Follower(follower), false) = (role, self.config.is_voter()) {
                    follower.asks_another = !follower.asks_another;
                }
                if self.fetching == Some(correlation) {
                    self.fetching = None;
                }
            }
            (Asked::Begin { epoch }, Role::Leader(leader)) if epoch == self.epoch => {
                if let Some(follower) = leader.followers.get_mut(&flight.to) {
                    follower.begin_at = now;
                }
            }
            _ => {}
        }
    }

    fn on_shutdown(&mut self, now: Time, out: &mut Output<QuorumEffect>) {
        if self.stops_at.is_none() {
            self.stops_at = Some(now + self.config.request_timeout);
            if matches!(self.role, Role::Leader(_)) {
                self.resign(now, out);
            }
        }
    }

    // What is due.

    /// Does everything that is due, until nothing changes, and notes when to look again.
    fn drive(&mut self, now: Time, out: &mut Output<QuorumEffect>) {
        self.expire_requests(now);
        loop {
            let before = self.transitions;
            self.wake = None;
            match &self.role {
                Role::Unattached(_) => self.drive_unattached(now, out),
                Role::Prospective(_) => self.drive_prospective(now, out),
                Role::Candidate(_) => self.drive_candidate(now, out),
                Role::Leader(_) => self.drive_leader(now, out),
                Role::Follower(_) => self.drive_follower(now, out),
                Role::Resigned(_) => self.drive_resigned(now, out),
            }
            if self.has_halted || self.transitions == before {
                break;
            }
        }
        self.answer_parked(now, out);
        self.finish_stopping(now, out);
        if let Some(expiry) = self.in_flight.values().map(|flight| flight.expires_at).min() {
            self.wake_at(expiry);
        }
        assert!(self.has_halted || self.wake.is_none_or(|wake| wake > now), "a deadline that was not met");
    }

    fn expire_requests(&mut self, now: Time) {
        let expired: Vec<u64> = self
            .in_flight
            .iter()
            .filter(|(_, flight)| flight.expires_at <= now)
            .map(|(correlation, _)| *correlation)
            .collect();
        for correlation in expired {
            let flight = self.in_flight.remove(&correlation).expect("it was just found there");
            self.on_failure(now, correlation, flight);
        }
    }

    /// An orderly stop ends when somebody else leads, so that this node's answers were there for the election.
    fn finish_stopping(&mut self, now: Time, out: &mut Output<QuorumEffect>) {
        let Some(give_up_at) = self.stops_at.filter(|_| !self.has_stopped) else { return };
        let other_leads = matches!(self.role, Role::Follower(_));
        if other_leads || !self.config.is_voter() || self.config.voters.len() == 1 || now >= give_up_at {
            self.has_stopped = true;
            self.outbox.send(QuorumEffect::Stopped, out);
        } else {
            self.wake_at(give_up_at);
        }
    }

    /// Notes that something falls due at `at`.
    pub(super) fn wake_at(&mut self, at: Time) {
        self.wake = Some(self.wake.map_or(at, |wake| wake.min(at)));
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stops_at.is_some()
    }

    // Asking others.

    /// Sends unless the same is under way or the node was asked in vain too shortly before; then it is put off.
    /// Gives the correlation if it was sent.
    pub(super) fn ask(
        &mut self,
        now: Time,
        to: NodeId,
        asked: Asked,
        body: RequestBody,
        out: &mut Output<QuorumEffect>,
    ) -> Option<u64> {
        assert_ne!(to, self.config.node, "a node does not ask itself");
        // Fetches are counted by `fetching`: one that was given up for a change of role must not block the next.
        let is_under_way = self.in_flight.values().any(|flight| flight.to == to && flight.asked == asked);
        if is_under_way && asked.errand() == Errand::Election {
            return None;
        }
        let retry_at = self.reach.get(&(to, asked.errand())).map_or(Time::ZERO, |reach| reach.retry_at);
        if now < retry_at {
            self.wake_at(retry_at);
            return None;
        }
        self.last_correlation += 1;
        let correlation = self.last_correlation;
        let expires_at = now + self.config.request_timeout.max(Duration::from_millis(1));
        self.in_flight.insert(correlation, InFlight { to, asked, expires_at });
        self.outbox.send(QuorumEffect::Send { to, correlation, body }, out);
        Some(correlation)
    }

    /// What this node tells about itself with every answer.
    pub(super) fn standing(&self) -> Standing {
        Standing { epoch: self.epoch, leader: self.leader }
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

    // Moving between roles.

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
        self.save_if_changed(state, out);
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

    fn advance_high_watermark(&mut self, out: &mut Output<QuorumEffect>) {
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

    fn random_below(&mut self, count: usize) -> usize {
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

    fn check(&self) {
        let own = self.config.node;
        assert!(self.high_watermark <= self.log.end_offset(), "committed more than the log holds");
        assert!(self.persisted.epoch == self.epoch, "the epoch is always on its way to the disk");
        match &self.role {
            Role::Leader(leader) => {
                assert_eq!(self.leader, Some(own));
                assert!(leader.epoch_start < self.log.end_offset());
            }
            Role::Follower(follower) => assert_eq!(self.leader, Some(follower.leader)),
            Role::Candidate(_) => assert!(self.leader.is_none()),
            Role::Resigned(_) => assert_eq!(self.leader, Some(own)),
            Role::Unattached(_) => assert!(self.leader.is_none()),
            Role::Prospective(_) => assert_ne!(self.leader, Some(own)),
        }
        if !self.config.is_voter() {
            assert!(matches!(self.role, Role::Unattached(_) | Role::Follower(_)), "observers never stand");
        }
    }
}
