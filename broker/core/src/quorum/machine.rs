//! The quorum node as one machine: takes inputs in, moves between roles, and says what is durable before what. What
//! each role decides lies in `voting`, `leading` and `following`.

use std::collections::BTreeMap;
use std::time::Duration;

use acked_wire::{RequestBody, ResponseBody, Uuid};
use rand_chacha::ChaCha8Rng;

use super::config::QuorumConfig;
use super::effect::{CommittedBatch, QuorumEffect, QuorumInput};
use super::election_state::{QuorumState, ReplicaKey, at_start};
use super::leading::ParkedFetch;
use super::messages::{self, Standing};
use super::metadata_log::{MetadataLog, RecoveredLog, StoredBatch};
use super::outbox::Outbox;
use super::role::{Role, Unattached};
use crate::observation::Observation;
use crate::rules::{Rules, VoteReply};
use crate::types::{NodeId, Output, PeerError, RequestId, Time};

/// The longest pause between attempts to reach the same node.
const RETRY_BACKOFF_MAX: Duration = Duration::from_millis(500);

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
    pub(super) rules: Rules,
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
    pub(super) persisted: QuorumState,
    pub(super) announced: (i32, Option<NodeId>),
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
    pub(super) has_halted: bool,
    /// Counts role changes.
    pub(super) transitions: u64,
    /// The earliest time at which something that was put off falls due.
    wake: Option<Time>,
}

impl Quorum {
    /// Comes up with what the disk held: `found` is the content of quorum-state (`None` when the file is missing),
    /// `log` what [`super::recover_log`] kept. `rng` is this node's stream for elections.
    pub fn start(
        config: QuorumConfig,
        rules: Rules,
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
            rules,
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
        quorum.state_beginning(out);
        quorum.begin_as(start, now, out);
        quorum.drive(now, out);
        quorum
    }

    fn state_beginning(&self, out: &mut Output<QuorumEffect>) {
        out.observe(Observation::QuorumLogRecovered {
            log_start_offset: 0,
            log_end_offset: self.log.end_offset(),
            last_epoch: self.log.last_epoch(),
        });
        let voters = self.config.voters.keys().map(|voter| (*voter, Uuid::ZERO)).collect();
        out.observe(Observation::QuorumVoters { offset: -1, voters });
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
                let before = self.log.synced_end();
                self.log.synced(write);
                let to = self.log.synced_end();
                if to > before {
                    out.observe(Observation::QuorumSynced { to });
                }
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
            RequestBody::Vote(vote) => {
                let body = self.on_vote(now, vote, out).unwrap_or_else(messages::vote_refused);
                if self.rules.vote_reply == VoteReply::BeforeSaved {
                    return out.effect(QuorumEffect::Reply { request, body });
                }
                body
            }
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
