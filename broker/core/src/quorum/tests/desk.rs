//! One node on a desk: the test says what it hears and when its disk is done, and reads what it wants.

use std::collections::BTreeMap;
use std::time::Duration;

use acked_wire::{RequestBody, ResponseBody, Uuid};
use bytes::Bytes;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::super::messages::{self, Answer, FetchAnswer, Standing};
use super::super::*;
use crate::observation::Observation;
use crate::rules::Rules;
use crate::types::{NodeId, Output, PeerError, RequestId, Time};

pub const ME: NodeId = NodeId(101);
pub const SECOND: NodeId = NodeId(102);
pub const THIRD: NodeId = NodeId(103);
pub const BROKER: NodeId = NodeId(1);

pub fn config(node: NodeId, voters: &[NodeId]) -> QuorumConfig {
    let endpoint = |id: &NodeId| (*id, VoterEndpoint { host: format!("c{id}"), port: 9093 });
    let directory = Uuid([node.0 as u8; 16]);
    QuorumConfig::new("cluster", node, directory, voters.iter().map(endpoint).collect::<BTreeMap<_, _>>())
}

/// A request that the node sent.
#[derive(Clone, Debug)]
pub struct Sent {
    pub to: NodeId,
    pub correlation: u64,
    pub body: RequestBody,
}

pub struct Desk {
    pub quorum: Quorum,
    pub now: Time,
    /// Whether saves and writes are reported done as soon as they are asked for.
    pub disk_is_prompt: bool,
    pub effects: Vec<QuorumEffect>,
    pub observations: Vec<Observation>,
    requests: u64,
}

impl Desk {
    pub fn start(config: QuorumConfig, state: Option<QuorumState>, log: &Bytes) -> Desk {
        Desk::with_rules(Rules::KAFKA, config, state, log)
    }

    pub fn with_rules(rules: Rules, config: QuorumConfig, state: Option<QuorumState>, log: &Bytes) -> Desk {
        let recovered = recover_log(log, 0).expect("nothing is known to be synced");
        let mut out = Output::default();
        let rng = ChaCha8Rng::seed_from_u64(7);
        let quorum = Quorum::start(config, rules, state, recovered, rng, Time::ZERO, &mut out);
        let mut desk = Desk {
            quorum,
            now: Time::ZERO,
            disk_is_prompt: true,
            effects: Vec::new(),
            observations: Vec::new(),
            requests: 0,
        };
        desk.take(out);
        desk
    }

    /// Voter 101 of three that knows nothing yet.
    pub fn new_voter() -> Desk {
        Desk::start(config(ME, &[ME, SECOND, THIRD]), None, &Bytes::new())
    }

    /// Voter 101 of three, leading `epoch` 1 with nothing but its LeaderChange, not yet committed.
    pub fn new_leader() -> Desk {
        let mut desk = Desk::new_voter();
        desk.wait_for_election();
        desk.answer_votes(true);
        desk.answer_votes(true);
        assert_eq!(desk.quorum.leader(), Some(ME));
        desk
    }

    /// As [`Desk::new_leader`], and 102 has fetched its LeaderChange.
    pub fn new_active_leader() -> Desk {
        let mut desk = Desk::new_leader();
        desk.fetch(SECOND, 1, 1, 1);
        assert!(desk.quorum.is_active_leader());
        desk
    }

    /// Voter 101 of three, following 102 in `epoch`.
    pub fn new_follower(epoch: i32, log: &Bytes) -> Desk {
        let state = QuorumState { epoch, leader: Some(SECOND), voted: None };
        Desk::start(config(ME, &[ME, SECOND, THIRD]), Some(state), log)
    }

    pub fn input(&mut self, input: QuorumInput) {
        let mut out = Output::default();
        self.quorum.handle(self.now, input, &mut out);
        self.take(out);
    }

    pub fn take(&mut self, out: Output<QuorumEffect>) {
        self.observations.extend(out.observations);
        for effect in out.effects {
            let done = match &effect {
                QuorumEffect::SaveState { save, .. } => Some(QuorumInput::StateSaved { save: *save }),
                QuorumEffect::AppendLog { write, .. } | QuorumEffect::TruncateLog { write, .. } => {
                    Some(QuorumInput::LogSynced { write: *write })
                }
                _ => None,
            };
            self.effects.push(effect);
            if let Some(done) = done.filter(|_| self.disk_is_prompt) {
                self.input(done);
            }
        }
    }

    /// Lets time pass, meeting every deadline on the way.
    pub fn pass(&mut self, duration: Duration) {
        let end = self.now + duration;
        while let Some(deadline) = self.quorum.next_deadline().filter(|deadline| *deadline <= end) {
            self.now = deadline;
            self.input(QuorumInput::Tick);
        }
        self.now = end;
    }

    /// Until the node wants to be elected; forgets what it wanted before.
    pub fn wait_for_election(&mut self) {
        for _ in 0..1000 {
            self.effects.clear();
            self.pass(Duration::from_millis(10));
            if self.sent().iter().any(|sent| matches!(sent.body, RequestBody::Vote(_))) {
                return;
            }
        }
        panic!("no election in ten seconds");
    }

    /// The requests sent since the effects were last cleared.
    pub fn sent(&self) -> Vec<Sent> {
        let sent = |effect: &QuorumEffect| match effect {
            QuorumEffect::Send { to, correlation, body } => {
                Some(Sent { to: *to, correlation: *correlation, body: body.clone() })
            }
            _ => None,
        };
        self.effects.iter().filter_map(sent).collect()
    }

    pub fn last_sent(&self) -> Sent {
        self.sent().pop().expect("the node asked somebody")
    }

    /// The last vote requests, as `(to, epoch, pre_vote)`.
    pub fn votes_sent(&self) -> Vec<(NodeId, i32, bool)> {
        let vote = |sent: Sent| match sent.body {
            RequestBody::Vote(vote) => {
                messages::read_vote(&vote).map(|asked| (sent.to, asked.epoch, asked.pre_vote))
            }
            _ => None,
        };
        self.sent().into_iter().filter_map(vote).collect()
    }

    pub fn answer(&mut self, sent: &Sent, result: Result<ResponseBody, PeerError>) {
        self.input(QuorumInput::Response { to: sent.to, correlation: sent.correlation, result });
    }

    /// Everybody answers the vote requests that are open.
    pub fn answer_votes(&mut self, granted: bool) {
        let sent = self.sent();
        self.effects.clear();
        for sent in sent {
            if let RequestBody::Vote(vote) = &sent.body {
                let asked = messages::read_vote(vote).expect("it asks for one vote");
                let standing = Standing { epoch: asked.epoch.min(self.quorum.epoch()), leader: None };
                self.answer(&sent, Ok(vote_answer(granted, standing)));
            }
        }
    }

    /// Answers the last fetch.
    pub fn answer_fetch(&mut self, answer: FetchAnswer) {
        let sent = self.last_sent();
        assert!(matches!(sent.body, RequestBody::Fetch(_)));
        self.effects.clear();
        let body = messages::fetch_response(&config(sent.to, &[ME, SECOND, THIRD]), answer);
        self.answer(&sent, Ok(body));
    }

    /// The leader of this node's epoch answers the last fetch with records.
    pub fn bring(&mut self, records: Bytes, high_watermark: i64) {
        let standing = Standing { epoch: self.quorum.epoch(), leader: self.quorum.leader() };
        let answer = FetchAnswer { error: 0, standing, high_watermark, diverging: None, records };
        self.answer_fetch(answer);
    }

    /// Asks the node; the answer, if it gives one at once.
    pub fn request(&mut self, body: RequestBody) -> Option<ResponseBody> {
        self.requests += 1;
        let request = RequestId(self.requests);
        self.effects.clear();
        self.input(QuorumInput::Request { request, version: 0, body });
        self.reply(request)
    }

    pub fn last_request(&self) -> RequestId {
        RequestId(self.requests)
    }

    pub fn reply(&self, wanted: RequestId) -> Option<ResponseBody> {
        self.effects.iter().find_map(|effect| match effect {
            QuorumEffect::Reply { request, body } if *request == wanted => Some(body.clone()),
            _ => None,
        })
    }

    /// A fetch of `from`; the answer, if it does not wait.
    pub fn fetch(&mut self, from: NodeId, epoch: i32, offset: i64, last_epoch: i32) -> Option<FetchAnswer> {
        let known = self.quorum.high_watermark();
        let voters = [ME, SECOND, THIRD];
        let body = messages::fetch_request(&config(from, &voters), epoch, offset, last_epoch, known);
        self.request(body).map(fetch_answer)
    }

    /// A vote request of `from` with a log that ends at `log_end`, as `(last epoch, end offset)`.
    pub fn vote(&mut self, from: NodeId, epoch: i32, log_end: (i32, i64), pre_vote: bool) -> Option<Answer> {
        let body = messages::vote_request(&config(from, &[ME, SECOND, THIRD]), ME, epoch, log_end, pre_vote);
        self.request(body).map(|body| answer(&body))
    }

    pub fn begin(&mut self, leader: NodeId, epoch: i32) -> Option<Answer> {
        let body = messages::begin_request(&config(leader, &[ME, SECOND, THIRD]), ME, epoch);
        self.request(body).map(|body| answer(&body))
    }

    pub fn end(&mut self, leader: NodeId, epoch: i32, successors: &[NodeId]) -> Option<Answer> {
        let body = messages::end_request(&config(leader, &[ME, SECOND, THIRD]), epoch, successors);
        self.request(body).map(|body| answer(&body))
    }

    pub fn propose(&mut self, records: &[&str]) -> Result<i64, NotLeader> {
        let records: Vec<Bytes> = records.iter().map(|record| record.to_string().into()).collect();
        let mut out = Output::default();
        let proposed = self.quorum.propose(self.now, &records, &mut out);
        self.take(out);
        proposed
    }

    pub fn saves(&self) -> Vec<QuorumState> {
        let state = |effect: &QuorumEffect| match effect {
            QuorumEffect::SaveState { state, .. } => Some(*state),
            _ => None,
        };
        self.effects.iter().filter_map(state).collect()
    }

    /// Offsets delivered since the effects were last cleared, as `(base, last)`.
    pub fn committed(&self) -> Vec<(i64, i64)> {
        let batches = |effect: &QuorumEffect| match effect {
            QuorumEffect::Committed { batches } => batches.clone(),
            _ => Vec::new(),
        };
        let batches = self.effects.iter().flat_map(batches);
        batches.map(|batch| (batch.base_offset, batch.last_offset)).collect()
    }

    pub fn wants(&self, wanted: impl Fn(&QuorumEffect) -> bool) -> bool {
        self.effects.iter().any(wanted)
    }
}

pub fn answer(body: &ResponseBody) -> Answer {
    match body {
        ResponseBody::Vote(vote) => messages::read_vote_response(vote),
        ResponseBody::BeginQuorumEpoch(begin) => messages::read_begin_response(begin),
        ResponseBody::EndQuorumEpoch(end) => messages::read_end_response(end),
        other => panic!("no answer of an election: {other:?}"),
    }
    .expect("it is about the metadata log")
}

pub fn vote_answer(granted: bool, standing: Standing) -> ResponseBody {
    messages::vote_response(&config(SECOND, &[ME, SECOND, THIRD]), &Answer { error: 0, standing, granted })
}

pub fn fetch_answer(body: ResponseBody) -> FetchAnswer {
    let ResponseBody::Fetch(response) = body else { panic!("no answer to a fetch: {body:?}") };
    messages::read_fetch_response(response).expect("it is about the metadata log")
}

/// A batch of one record an offset.
pub fn batch(epoch: i32, base_offset: i64, records: &[&str]) -> Bytes {
    let mut batch = acked_wire::batch::BatchBuilder::new(0).base_offset(base_offset).leader_epoch(epoch);
    records.iter().for_each(|record| batch.push(0, None, Some(record.as_bytes()), &[]));
    batch.build().freeze()
}

pub fn concat(parts: &[Bytes]) -> Bytes {
    parts.iter().flat_map(|part| part.iter().copied()).collect()
}
