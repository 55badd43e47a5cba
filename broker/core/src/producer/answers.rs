//! What an answer, or the loss of one, means for the batches that it is about.

use acked_wire::api::init_producer_id::InitProducerIdResponse;
use acked_wire::api::metadata::MetadataResponse;
use acked_wire::api::produce::{PartitionProduceResponse, ProduceResponse};
use acked_wire::{ResponseBody, error_code};

use super::machine::{Asked, Attempt, Identity, Producer, ProducerEffect, Slot};
use super::sequences::ProducerIdentity;
use super::verdict::{Action, AttemptEffect, verdict};
use crate::client::LinkEvent;
use crate::{NodeId, Output};

impl Producer {
    pub(super) fn on_link(&mut self, event: LinkEvent<Asked>, out: &mut Output<ProducerEffect>) {
        match event {
            LinkEvent::Stale | LinkEvent::Up(_) => {}
            LinkEvent::Down { lost, .. } => {
                self.counters.disconnects += 1;
                self.refresh.want();
                for asked in lost {
                    self.on_lost(asked, out);
                }
            }
            LinkEvent::Written { what } => self.on_written(what, out),
            LinkEvent::Unsupported { what, .. } => self.on_unsupported(what, out),
            LinkEvent::Answer { what, body, .. } => self.on_answer(what, body, out),
        }
    }

    pub(super) fn on_lost(&mut self, asked: Asked, out: &mut Output<ProducerEffect>) {
        match asked {
            Asked::Metadata => self.refresh.failed(self.now, &mut self.rng),
            Asked::ProducerId => self.identity_failed(),
            Asked::Produce(attempts) => {
                for attempt in attempts {
                    self.attempt_ended(&attempt);
                    self.retry(attempt, error_code::NETWORK_EXCEPTION, AttemptEffect::Unknown, out);
                }
            }
        }
    }

    /// With acks=0, handing the request over is all there is to know.
    pub(super) fn on_written(&mut self, asked: Asked, out: &mut Output<ProducerEffect>) {
        let Asked::Produce(attempts) = asked else { return };
        for attempt in attempts {
            self.attempt_ended(&attempt);
            if let Some(batch) = self.take(&attempt) {
                self.succeed(attempt.slot, batch, None, -1, out);
            }
        }
    }

    pub(super) fn on_unsupported(&mut self, asked: Asked, out: &mut Output<ProducerEffect>) {
        match asked {
            Asked::Metadata => self.refresh.failed(self.now, &mut self.rng),
            Asked::ProducerId => self.identity_failed(),
            Asked::Produce(attempts) => {
                for attempt in attempts {
                    self.attempt_ended(&attempt);
                    let code = error_code::UNSUPPORTED_VERSION;
                    if let Some(batch) = self.take(&attempt) {
                        self.give_up(attempt.slot, batch, code, AttemptEffect::Nothing, out);
                    }
                }
            }
        }
    }

    pub(super) fn on_answer(&mut self, asked: Asked, body: ResponseBody, out: &mut Output<ProducerEffect>) {
        match (asked, body) {
            (Asked::Metadata, ResponseBody::Metadata(answer)) => self.on_metadata(&answer, out),
            (Asked::ProducerId, ResponseBody::InitProducerId(answer)) => self.on_producer_id(&answer, out),
            (Asked::Produce(attempts), ResponseBody::Produce(answer)) => {
                self.on_produced(attempts, &answer, out);
            }
            // An answer to something else than was asked is as good as none.
            (asked, _) => self.on_lost(asked, out),
        }
    }

    pub(super) fn on_metadata(&mut self, answer: &MetadataResponse, out: &mut Output<ProducerEffect>) {
        self.counters.metadata_answers += 1;
        if !self.view.update(answer) {
            self.refresh.failed(self.now, &mut self.rng);
            return;
        }
        self.links.drop_bootstrap(&mut self.network);
        let settled = self.active.iter().all(|slot| self.leader_of(*slot).is_some());
        self.refresh.answered(self.now, settled, &mut self.rng);
        let mut next = self.next_active(None);
        while let Some(slot) = next {
            next = self.next_active(Some(slot));
            let code = self.view.topic_code(&self.partitions[slot.0].topic);
            if code != error_code::NONE && !error_code::retriable(code) {
                self.give_up_queue(slot, code, out);
            }
        }
    }

    pub(super) fn on_producer_id(
        &mut self,
        answer: &InitProducerIdResponse,
        out: &mut Output<ProducerEffect>,
    ) {
        assert!(matches!(self.identity, Identity::Asked), "an answer follows a question");
        if answer.error_code != error_code::NONE {
            self.count_error(answer.error_code);
            self.identity_failed();
            if !error_code::retriable(answer.error_code) {
                let mut next = self.next_active(None);
                while let Some(slot) = next {
                    next = self.next_active(Some(slot));
                    self.give_up_queue(slot, answer.error_code, out);
                }
            }
            return;
        }
        let identity = ProducerIdentity { id: answer.producer_id, epoch: answer.producer_epoch };
        self.identity = Identity::Known(identity);
        self.identity_failures = 0;
        for slot in (0..self.partitions.len()).map(Slot) {
            if self.partition(slot).waits_for_identity {
                // Nothing fences attempts under the old id.
                self.start_over(slot, identity, true, out);
            }
        }
    }

    pub(super) fn identity_failed(&mut self) {
        self.identity_failures = self.identity_failures.saturating_add(1);
        let not_before = self.now.saturating_add(self.retry.delay(self.identity_failures, &mut self.rng));
        self.identity = Identity::Wanted { not_before };
    }

    pub(super) fn on_produced(
        &mut self,
        attempts: Vec<Attempt>,
        answer: &ProduceResponse,
        out: &mut Output<ProducerEffect>,
    ) {
        for endpoint in &answer.node_endpoints {
            if let Ok(port) = u16::try_from(endpoint.port) {
                self.view.learn_address(NodeId(endpoint.node_id), &endpoint.host, port);
            }
        }
        for attempt in attempts {
            self.attempt_ended(&attempt);
            let answers = answer.responses.iter().filter(|topic| topic.topic_id == attempt.topic);
            let mut answers = answers.flat_map(|topic| &topic.partition_responses);
            match answers.find(|partition| partition.index == attempt.index) {
                Some(partition) => self.on_answered(attempt, partition, out),
                None => self.retry(attempt, error_code::NETWORK_EXCEPTION, AttemptEffect::Unknown, out),
            }
        }
    }

    /// The broker answered for one batch.
    pub(super) fn on_answered(
        &mut self,
        attempt: Attempt,
        answer: &PartitionProduceResponse,
        out: &mut Output<ProducerEffect>,
    ) {
        let code = answer.error_code;
        let verdict = verdict(code);
        if code != error_code::NONE {
            self.count_error(code);
        }
        match verdict.action {
            Action::Succeed => {
                // Also of a batch that was given up meanwhile: the broker has its sequences.
                if let Some(numbering) = attempt.numbering {
                    self.partition(attempt.slot).sequences.acked(attempt.batch, numbering.producer);
                }
                let Some(batch) = self.take(&attempt) else { return };
                if batch.numbering != attempt.numbering {
                    // Numbered anew while an old attempt was on its way, which then succeeded.
                    self.partition(attempt.slot).sequences.given_up(batch.number);
                }
                let offset =
                    Some(answer.base_offset).filter(|offset| *offset >= 0 && code == error_code::NONE);
                self.succeed(attempt.slot, batch, offset, answer.log_append_time_ms, out);
            }
            Action::Retry => {
                let leader = answer.current_leader.leader_id;
                let leader_epoch = answer.current_leader.leader_epoch;
                if leader >= 0 {
                    self.view.learn_leader(attempt.topic, attempt.index, NodeId(leader), leader_epoch);
                }
                self.retry(attempt, code, verdict.effect, out);
            }
            Action::Sequence => self.on_other_sequence(attempt, code, out),
            Action::Fail => {
                if let Some(batch) = self.take(&attempt) {
                    self.give_up(attempt.slot, batch, code, verdict.effect, out);
                }
            }
        }
    }
}
