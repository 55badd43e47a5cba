//! Followers and observers: where to fetch from, what to append, where to cut, how far the high watermark goes.
//! Source: KIP-595 (fetch, divergence), KIP-1166.

use acked_wire::error_code;

use super::effect::{QuorumEffect, QuorumFault};
use super::machine::{Asked, InFlight, Quorum};
use super::messages::{self, FetchAnswer};
use super::metadata_log::{Expected, InvalidBatch, valid_batches};
use super::role::Role;
use crate::observation::Observation;
use crate::types::{NodeId, Output, Time};

impl Quorum {
    pub(super) fn drive_follower(&mut self, now: Time, out: &mut Output<QuorumEffect>) {
        let Role::Follower(follower) = &mut self.role else { unreachable!("called for this role only") };
        if now >= follower.deadline {
            if !self.config.is_voter() {
                follower.asks_another = true;
                follower.deadline = now + self.config.fetch_timeout;
            } else if !self.is_stopping() {
                // It stands only with what it cannot lose; a write under way is waited for.
                if self.may_stand() {
                    self.become_prospective(now, out);
                }
                return;
            }
        }
        let Role::Follower(follower) = &self.role else { unreachable!("the role was just looked at") };
        let (leader, deadline, asks_another) = (follower.leader, follower.deadline, follower.asks_another);
        if now < deadline {
            self.wake_at(deadline);
        }
        if asks_another && self.config.voters.len() > 1 {
            self.fetch_from_anyone(now, out);
        } else {
            self.fetch(now, leader, out);
        }
    }

    /// Asks the voters in turn who leads: whoever does not lead says so.
    pub(super) fn fetch_from_anyone(&mut self, now: Time, out: &mut Output<QuorumEffect>) {
        let others: Vec<NodeId> = self.config.other_voters().collect();
        if !others.is_empty() {
            self.fetch(now, others[self.ask_next % others.len()], out);
        }
    }

    /// One fetch at a time, and none before what the last one brought is synced: the offset asked for is an
    /// acknowledgement of everything below it.
    fn fetch(&mut self, now: Time, from: NodeId, out: &mut Output<QuorumEffect>) {
        if self.fetching.is_some() || !self.log.is_synced() {
            return;
        }
        let offset = self.log.end_offset();
        assert_eq!(offset, self.log.synced_end(), "a fetch acknowledges only what is synced");
        let body = messages::fetch_request(
            &self.config,
            self.epoch,
            offset,
            self.log.last_epoch(),
            self.high_watermark,
        );
        let sent = self.ask(now, from, Asked::Fetch { epoch: self.epoch, offset }, body, out);
        if sent.is_some() {
            self.fetching = sent;
            self.ask_next = self.ask_next.wrapping_add(1);
        }
    }

    /// `counts`: it answers the one fetch under way, and this node has not changed its role since. False when the
    /// next fetch to the same node should wait.
    pub(super) fn on_fetch_answer(
        &mut self,
        now: Time,
        flight: InFlight,
        counts: bool,
        answer: FetchAnswer,
        out: &mut Output<QuorumEffect>,
    ) -> bool {
        let (from, Asked::Fetch { epoch: asked_epoch, offset: asked_offset }) = (flight.to, flight.asked)
        else {
            unreachable!("called for fetches only")
        };
        let standing_before = self.standing();
        self.learn(now, answer.standing, out);
        let has_learned = self.standing() != standing_before;
        let leads = matches!(&self.role, Role::Follower(follower) if follower.leader == from);
        let is_current = asked_epoch == self.epoch && asked_offset == self.log.end_offset();
        if answer.error != error_code::NONE || !leads || !is_current || !counts {
            self.leave_probing(has_learned);
            return has_learned || !counts;
        }
        match answer.diverging {
            Some((epoch, end_offset)) if !self.truncate(from, epoch, end_offset, out) => return false,
            None if !self.append(&answer, out) => return false,
            Some(_) | None => {}
        }
        if let Role::Follower(follower) = &mut self.role {
            follower.deadline = now + self.config.fetch_timeout;
            follower.has_fetched = true;
            follower.asks_another = false;
            self.advance_as_follower(out);
        }
        true
    }

    /// An observer that asked another voter and got no better advice tries its leader again, and so on in turn.
    fn leave_probing(&mut self, has_learned: bool) {
        if let (Role::Follower(follower), false) = (&mut self.role, self.config.is_voter()) {
            follower.asks_another = !has_learned && !follower.asks_another;
        }
    }

    /// Cuts where the leader's log parts from this one. False when nothing can be cut.
    fn truncate(
        &mut self,
        leader: NodeId,
        epoch: i32,
        end_offset: i64,
        out: &mut Output<QuorumEffect>,
    ) -> bool {
        let to = self.log.truncation_point(epoch, end_offset);
        if to >= self.log.end_offset() {
            return false;
        }
        if to < self.high_watermark {
            let fault = QuorumFault::DivergesBelowHighWatermark {
                epoch: self.epoch,
                leader,
                to,
                high_watermark: self.high_watermark,
            };
            self.halt(fault, out);
            return false;
        }
        let (write, size) = self.log.truncate_to(to);
        assert!(self.log.end_offset() >= self.high_watermark, "a committed batch was cut");
        self.outbox.send(QuorumEffect::TruncateLog { write, size }, out);
        self.outbox.observe(Observation::QuorumTruncated { to: self.log.end_offset() }, out);
        true
    }

    /// Appends the whole batches that continue this log. False when the answer's records are unusable.
    fn append(&mut self, answer: &FetchAnswer, out: &mut Output<QuorumEffect>) -> bool {
        let expected = Expected {
            base_offset: self.log.end_offset(),
            least_epoch: self.log.last_epoch(),
            greatest_epoch: self.epoch,
        };
        let (batches, rest) = valid_batches(&answer.records, expected);
        if batches.is_empty() && rest.is_some_and(|reason: InvalidBatch| !reason.is_cut()) {
            return false;
        }
        if !batches.is_empty() {
            self.append_batches(batches, out);
        }
        if let Role::Follower(follower) = &mut self.role {
            follower.leader_high_watermark = follower.leader_high_watermark.max(answer.high_watermark);
        }
        true
    }

    /// The leader's high watermark, as far as this node's synced log reaches.
    pub(super) fn advance_as_follower(&mut self, out: &mut Output<QuorumEffect>) {
        let Role::Follower(follower) = &self.role else { unreachable!("called for this role only") };
        let to = follower.leader_high_watermark.min(self.log.synced_end());
        self.commit(to, out);
    }
}
