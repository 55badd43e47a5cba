//! The leader: announces itself, serves fetches, raises the high watermark over what a majority has synced, takes
//! proposals, and resigns when it cannot. Source: KIP-595, KIP-1166 (followers' high watermark), check-quorum.

use std::collections::VecDeque;
use std::time::Duration;

use acked_wire::batch::BatchBuilder;
use acked_wire::control::{ControlRecord, LeaderChangeMessage, Voter};
use acked_wire::{FetchRequest, error_code};
use bytes::Bytes;

use super::config::QuorumConfig;
use super::effect::{NotLeader, QuorumEffect};
use super::machine::{Asked, InFlight, Quorum};
use super::messages::{self, Answer, FetchAnswer, FetchAsked};
use super::metadata_log::StoredBatch;
use super::role::{FollowerProgress, Leader, Role};
use crate::observation::Observation;
use crate::types::{NodeId, Output, RequestId, Time};

/// Gathered proposals of so many bytes are written without waiting for the linger time.
const GATHERED_BYTES_MAX: usize = 1024 * 1024;
/// Fetches that wait at one time; the oldest is answered early when another comes.
const PARKED_MAX: usize = 1024;

/// A fetch in purgatory: valid, but there was nothing new to give.
#[derive(Debug)]
pub(super) struct ParkedFetch {
    request: RequestId,
    asked: FetchAsked,
    deadline: Time,
}

impl Quorum {
    // Beginning and ending.

    pub(super) fn become_leader(&mut self, now: Time, out: &mut Output<QuorumEffect>) {
        let Role::Candidate(ballot) = &self.role else { unreachable!("only a candidate is elected") };
        assert!(self.leader.is_none(), "epoch {} has a leader already", self.epoch);
        let granting: Vec<NodeId> = ballot.granting().collect();
        assert!(granting.len() >= self.config.majority(), "elected by a minority");
        let progress = FollowerProgress { begin_at: now, ..FollowerProgress::default() };
        let leader = Leader {
            epoch: self.epoch,
            epoch_start: self.log.end_offset(),
            since: now,
            followers: self.config.other_voters().map(|voter| (voter, progress.clone())).collect(),
            is_active: false,
            gathered: VecDeque::new(),
            gathered_bytes: 0,
            write_at: None,
        };
        self.lost_elections = 0;
        self.leader = Some(self.config.node);
        let log_end_offset = self.log.end_offset();
        self.enter(Role::Leader(leader), out);
        let elected = Observation::QuorumLeaderElected { epoch: self.epoch, log_end_offset };
        self.outbox.observe(elected, out);
        self.append_leader_change(now, &granting, out);
    }

    fn append_leader_change(&mut self, now: Time, granting: &[NodeId], out: &mut Output<QuorumEffect>) {
        let voter = |id: &NodeId| Voter { voter_id: id.0, ..Voter::default() };
        let record = ControlRecord::LeaderChange(LeaderChangeMessage {
            leader_id: self.config.node.0,
            voters: self.config.voters.keys().map(voter).collect(),
            granting_voters: granting.iter().map(voter).collect(),
            ..LeaderChangeMessage::default()
        });
        let value = record.value().expect("version 0 can say voters without directories");
        let timestamp = self.wall_clock_ms(now);
        let mut batch = BatchBuilder::new(timestamp)
            .base_offset(self.log.end_offset())
            .leader_epoch(self.epoch)
            .control();
        batch.push(timestamp, Some(&record.key()), Some(&value), &[]);
        let stored = self.stored(self.log.end_offset(), 1, batch.build().freeze());
        self.append_batches(vec![stored], out);
    }

    /// Gives up leadership of the epoch, and names the voters that could follow, the most caught-up first.
    pub(super) fn resign(&mut self, now: Time, out: &mut Output<QuorumEffect>) {
        let Role::Leader(leader) = &self.role else { unreachable!("only a leader resigns") };
        let mut successors: Vec<(i64, NodeId)> = leader
            .followers
            .iter()
            .map(|(voter, progress)| (progress.log_end_offset.unwrap_or(-1), *voter))
            .collect();
        successors.sort_by_key(|(end, voter)| (-end, *voter));
        self.outbox.observe(Observation::QuorumLeaderResigned { epoch: self.epoch }, out);
        self.become_resigned(now, successors.into_iter().map(|(_, voter)| voter).collect(), out);
    }

    // What is due.

    pub(super) fn drive_leader(&mut self, now: Time, out: &mut Output<QuorumEffect>) {
        let Role::Leader(leader) = &self.role else { unreachable!("called for this role only") };
        if let Some(deadline) = check_quorum_deadline(leader, &self.config) {
            if now >= deadline {
                return self.resign(now, out);
            }
            self.wake_at(deadline);
        }
        self.begin_epoch(now, out);
        self.write_gathered_if_due(now, out);
    }

    fn begin_epoch(&mut self, now: Time, out: &mut Output<QuorumEffect>) {
        let Role::Leader(leader) = &self.role else { unreachable!("called for this role only") };
        let heartbeat = self.heartbeat();
        let due: Vec<(NodeId, Time)> =
            leader.followers.iter().map(|(voter, progress)| (*voter, progress.begin_at)).collect();
        for (voter, begin_at) in due {
            if now < begin_at {
                self.wake_at(begin_at);
                continue;
            }
            let body = messages::begin_request(&self.config, voter, self.epoch);
            let sent = self.ask(now, voter, Asked::Begin { epoch: self.epoch }, body, out).is_some();
            if let (true, Role::Leader(leader)) = (sent, &mut self.role)
                && let Some(progress) = leader.followers.get_mut(&voter)
            {
                progress.begin_at = now + heartbeat;
                self.wake_at(now + heartbeat);
            }
        }
    }

    /// A voter that has not fetched for so long is told again who leads.
    fn heartbeat(&self) -> Duration {
        (self.config.fetch_timeout / 2).max(Duration::from_millis(1))
    }

    pub(super) fn on_begin_answer(
        &mut self,
        now: Time,
        answer: Answer,
        out: &mut Output<QuorumEffect>,
    ) -> bool {
        self.learn(now, answer.standing, out);
        answer.error == error_code::NONE
    }

    pub(super) fn on_end_answer(
        &mut self,
        now: Time,
        flight: InFlight,
        answer: Answer,
        out: &mut Output<QuorumEffect>,
    ) -> bool {
        self.learn(now, answer.standing, out);
        let Asked::End { epoch } = flight.asked else { unreachable!("called for EndQuorumEpoch only") };
        if answer.error != error_code::NONE {
            return false;
        }
        if let (Role::Resigned(resigned), true) = (&mut self.role, epoch == self.epoch) {
            resigned.not_told.remove(&flight.to);
        }
        true
    }

    pub(super) fn drive_resigned(&mut self, now: Time, out: &mut Output<QuorumEffect>) {
        let Role::Resigned(resigned) = &self.role else { unreachable!("called for this role only") };
        if now >= resigned.deadline
            && !self.is_stopping()
            && let Some(next_epoch) = self.epoch.checked_add(1)
        {
            return self.become_unattached(now, next_epoch, out);
        }
        if now < resigned.deadline {
            self.wake_at(resigned.deadline);
        }
        let Role::Resigned(resigned) = &self.role else { unreachable!("the role was just looked at") };
        let not_told: Vec<NodeId> = resigned.not_told.iter().copied().collect();
        let body = messages::end_request(&self.config, self.epoch, &resigned.successors);
        for voter in not_told {
            self.ask(now, voter, Asked::End { epoch: self.epoch }, body.clone(), out);
        }
    }

    // Proposals.

    /// Appends `records` (encoded metadata records) as one batch, all of it or nothing, and gives the offset of the
    /// first. It is committed once a `Committed` effect holds it; after `LostLeadership` it may be lost.
    ///
    /// Fails when this node does not lead, has not yet said `BecameLeader`, or is stopping. Panics without records.
    pub fn propose(
        &mut self,
        now: Time,
        records: &[Bytes],
        out: &mut Output<QuorumEffect>,
    ) -> Result<i64, NotLeader> {
        assert!(!records.is_empty(), "a proposal brings at least one record");
        if !self.is_active_leader() || self.is_stopping() {
            return Err(NotLeader);
        }
        let base_offset = self.log_end_offset();
        let timestamp = self.wall_clock_ms(now);
        let mut batch = BatchBuilder::new(timestamp).base_offset(base_offset).leader_epoch(self.epoch);
        for record in records {
            batch.push(timestamp, None, Some(record), &[]);
        }
        let stored = self.stored(base_offset, records.len(), batch.build().freeze());
        let write_at = now + self.config.append_linger;
        let Role::Leader(leader) = &mut self.role else { return Err(NotLeader) };
        leader.gathered_bytes += stored.bytes.len();
        leader.gathered.push_back(stored);
        leader.write_at.get_or_insert(write_at);
        self.write_gathered_if_due(now, out);
        self.answer_parked(now, out);
        assert!(self.log_end_offset() > base_offset);
        Ok(base_offset)
    }

    fn write_gathered_if_due(&mut self, now: Time, out: &mut Output<QuorumEffect>) {
        let Role::Leader(leader) = &mut self.role else { return };
        let Some(write_at) = leader.write_at else { return };
        if now < write_at && leader.gathered_bytes < GATHERED_BYTES_MAX {
            return self.wake_at(write_at);
        }
        let batches = leader.gathered.drain(..).collect();
        leader.gathered_bytes = 0;
        leader.write_at = None;
        self.append_batches(batches, out);
    }

    fn stored(&self, base_offset: i64, records: usize, bytes: Bytes) -> StoredBatch {
        let records = i64::try_from(records).expect("a batch counts its records in 32 bits");
        StoredBatch {
            base_offset,
            last_offset: base_offset + records - 1,
            epoch: self.epoch,
            position: 0,
            bytes,
        }
    }

    fn wall_clock_ms(&self, now: Time) -> i64 {
        let since_origin = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
        self.config.clock_origin_ms.saturating_add(since_origin)
    }

    // The high watermark.

    /// The largest offset that a majority of voters has synced, this node counted by its own synced log, if that lies
    /// in the epoch of this leader.
    pub(super) fn advance_as_leader(&mut self, out: &mut Output<QuorumEffect>) {
        let Role::Leader(leader) = &self.role else { unreachable!("called for this role only") };
        let mut ends: Vec<i64> =
            leader.followers.values().map(|progress| progress.log_end_offset.unwrap_or(-1)).collect();
        ends.push(self.log.synced_end());
        assert_eq!(ends.len(), self.config.voters.len(), "every voter counts once");
        ends.sort_unstable_by(|left, right| right.cmp(left));
        let held_by_majority = ends[self.config.majority() - 1];
        if held_by_majority <= leader.epoch_start {
            return;
        }
        self.commit(held_by_majority, out);
        let reached = self.high_watermark;
        if let Role::Leader(leader) = &mut self.role
            && !leader.is_active
            && reached > leader.epoch_start
        {
            leader.is_active = true;
            out.effect(QuorumEffect::BecameLeader { epoch: leader.epoch });
        }
    }

    // Serving fetches.

    pub(super) fn on_fetch(
        &mut self,
        now: Time,
        request: RequestId,
        body: &FetchRequest,
        out: &mut Output<QuorumEffect>,
    ) {
        let answer = match self.consider_fetch(now, body, out) {
            Ok((asked, None)) => return self.park(now, request, asked, out),
            Ok((_, Some(answer))) => messages::fetch_response(&self.config, answer),
            Err(code) => messages::fetch_refused(code),
        };
        self.outbox.send(QuorumEffect::Reply { request, body: answer }, out);
    }

    fn consider_fetch(
        &mut self,
        now: Time,
        body: &FetchRequest,
        out: &mut Output<QuorumEffect>,
    ) -> Result<(FetchAsked, Option<FetchAnswer>), i16> {
        if !messages::is_same_cluster(&self.config, body.cluster_id.as_ref()) {
            return Err(error_code::INCONSISTENT_CLUSTER_ID);
        }
        let asked = messages::read_fetch(body).ok_or(error_code::UNKNOWN_TOPIC_OR_PARTITION)?;
        if !messages::is_well_formed_fetch(body, &asked) {
            let refused = FetchAnswer::refused(error_code::INVALID_REQUEST, self.standing());
            return Ok((asked, Some(refused)));
        }
        if self.leadership_error(asked.epoch).is_none() {
            self.note_fetch(now, &asked);
            self.advance_as_leader(out);
        }
        let answer = self.answer_fetch(&asked);
        let is_empty = answer.error == error_code::NONE
            && answer.diverging.is_none()
            && answer.records.is_empty()
            && !asked.max_wait.is_zero();
        let is_news = self.brings_high_watermark(&asked);
        Ok((asked, (!is_empty || is_news).then_some(answer)))
    }

    /// Only the leader serves, and only those that know its epoch.
    fn leadership_error(&self, epoch: i32) -> Option<i16> {
        match epoch.cmp(&self.epoch) {
            std::cmp::Ordering::Less => Some(error_code::FENCED_LEADER_EPOCH),
            std::cmp::Ordering::Greater => Some(error_code::UNKNOWN_LEADER_EPOCH),
            std::cmp::Ordering::Equal if matches!(self.role, Role::Leader(_)) => None,
            std::cmp::Ordering::Equal => Some(error_code::NOT_LEADER_OR_FOLLOWER),
        }
    }

    /// A voter was heard from; if its log is a prefix of this one, all of it counts as synced there.
    fn note_fetch(&mut self, now: Time, asked: &FetchAsked) {
        let is_prefix = self.log.divergence(asked.offset, asked.last_epoch).is_none();
        let begin_at = now + self.heartbeat();
        let Role::Leader(leader) = &mut self.role else { unreachable!("only a leader serves fetches") };
        if let Some(progress) = leader.followers.get_mut(&asked.replica) {
            progress.last_fetch = Some(now);
            progress.begin_at = begin_at;
            if is_prefix {
                progress.log_end_offset = Some(asked.offset);
            }
        }
    }

    fn answer_fetch(&self, asked: &FetchAsked) -> FetchAnswer {
        if let Some(code) = self.leadership_error(asked.epoch) {
            return FetchAnswer::refused(code, self.standing());
        }
        let diverging = self.log.divergence(asked.offset, asked.last_epoch);
        let records = match diverging {
            Some(_) => Bytes::new(),
            None => self.log.read(asked.offset, asked.max_bytes),
        };
        FetchAnswer {
            error: error_code::NONE,
            standing: self.standing(),
            high_watermark: self.high_watermark,
            diverging,
            records,
        }
    }

    /// The asker said that it knows a lower high watermark, so an empty answer is news too.
    fn brings_high_watermark(&self, asked: &FetchAsked) -> bool {
        asked.high_watermark < self.high_watermark
    }

    fn park(&mut self, now: Time, request: RequestId, asked: FetchAsked, out: &mut Output<QuorumEffect>) {
        let replaced = self.parked.iter().position(|parked| parked.asked.replica == asked.replica);
        let oldest = (self.parked.len() >= PARKED_MAX).then_some(0);
        if let Some(index) = replaced.or(oldest) {
            let parked = self.parked.remove(index);
            self.answer_one(parked, out);
        }
        self.parked.push(ParkedFetch { request, asked, deadline: now + asked.max_wait });
        assert!(self.parked.len() <= PARKED_MAX);
    }

    /// Answers the fetches that something became of, or that have waited long enough.
    pub(super) fn answer_parked(&mut self, now: Time, out: &mut Output<QuorumEffect>) {
        let mut index = 0;
        while index < self.parked.len() {
            let parked = &self.parked[index];
            let leads = self.leadership_error(parked.asked.epoch).is_none();
            let has_news =
                parked.asked.offset < self.log.end_offset() || self.brings_high_watermark(&parked.asked);
            if !leads || has_news || now >= parked.deadline {
                let parked = self.parked.remove(index);
                self.answer_one(parked, out);
            } else {
                let deadline = parked.deadline;
                self.wake_at(deadline);
                index += 1;
            }
        }
    }

    fn answer_one(&mut self, parked: ParkedFetch, out: &mut Output<QuorumEffect>) {
        let body = messages::fetch_response(&self.config, self.answer_fetch(&parked.asked));
        self.outbox.send(QuorumEffect::Reply { request: parked.request, body }, out);
    }
}

/// When the leader must have been fetched from by a majority again; `None` for a leader that is one by itself.
fn check_quorum_deadline(leader: &Leader, config: &QuorumConfig) -> Option<Time> {
    let others_needed = config.majority() - 1;
    let mut heard: Vec<Time> =
        leader.followers.values().map(|progress| progress.last_fetch.unwrap_or(leader.since)).collect();
    heard.sort_unstable_by(|left, right| right.cmp(left));
    let index = others_needed.checked_sub(1)?;
    Some(heard[index] + config.check_quorum_timeout().max(Duration::from_millis(1)))
}
