//! The producer: an endpoint machine that turns sent records into acknowledged ones, each answered exactly once.
//! Decides batching, order, retries, numbering and when to give up; does not encode frames or touch sockets.
//! Source: kafka-clients 4.3 (`Sender`, `RecordAccumulator`, `TransactionManager`), KIP-91, KIP-98, KIP-360.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use acked_wire::api::init_producer_id::{InitProducerIdRequest, InitProducerIdResponse};
use acked_wire::api::metadata::MetadataResponse;
use acked_wire::api::produce::{
    PartitionProduceData, PartitionProduceResponse, ProduceRequest, ProduceResponse, TopicProduceData,
};
use acked_wire::{RequestBody, ResponseBody, Uuid, error_code};
use bytes::Bytes;
use rand_chacha::ChaCha8Rng;

use super::batch::{Batch, PendingRecord, RecordId};
use super::counters::ProducerCounters;
use super::partition::{Ordering, Partition};
use super::sequences::{Numbering, ProducerIdentity};
use super::verdict::{Action, AttemptEffect, verdict};
use crate::client::{
    Backoff, ClusterView, Earliest, LinkEvent, LinkSettings, Links, NetworkEffect, NetworkInput, Peer,
    Refresh,
};
use crate::settings::{Acks, ProducerSettings};
use crate::{NodeId, Output, Time};

/// What the producer is told.
#[derive(Debug)]
pub enum ProducerInput {
    /// A record to deliver. `delivery.timeout.ms` counts from here.
    Send {
        record: PendingRecord,
        topic: Arc<str>,
        partition: i32,
    },
    Network(NetworkInput),
    /// Say `Flushed` once every record sent before is done; let nothing linger.
    Flush {
        flush: u64,
    },
    /// Flush, take no more records, then say `Closed`.
    Close,
    /// A deadline passed.
    Tick,
}

/// What the producer asks for.
#[derive(Debug)]
pub enum ProducerEffect {
    Network(NetworkEffect),
    /// What became of a record; said once for each.
    Complete {
        record: RecordId,
        outcome: Outcome,
    },
    Flushed {
        flush: u64,
    },
    Closed,
}

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// `offset` is `None` with acks=0, and when the broker only said that it has the record already.
    Ok { partition: i32, offset: Option<i64>, timestamp_ms: i64 },
    /// `code` is Kafka's. `definite` when the record is in no log and will not get there.
    Failed { code: i16, definite: bool },
}

/// The place of a partition in the producer's list, in order of first use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Slot(usize);

/// What a request was for.
#[derive(Debug)]
enum Asked {
    Metadata,
    ProducerId,
    Produce(Vec<Attempt>),
}

/// One batch in one request.
#[derive(Debug)]
struct Attempt {
    slot: Slot,
    topic: Uuid,
    index: i32,
    batch: u64,
    numbering: Option<Numbering>,
}

/// A request that is being put together.
#[derive(Default)]
struct Draft {
    size: usize,
    topics: Vec<TopicProduceData>,
    attempts: Vec<Attempt>,
}

/// Numbering of this producer.
#[derive(Debug)]
enum Identity {
    /// `enable.idempotence=false`.
    Off,
    /// To be asked for, not before the given time.
    Wanted {
        not_before: Time,
    },
    Asked,
    Known(ProducerIdentity),
}

/// See the module.
#[derive(Debug)]
pub struct Producer {
    settings: ProducerSettings,
    retry: Backoff,
    rng: ChaCha8Rng,
    now: Time,
    view: ClusterView,
    refresh: Refresh,
    links: Links<Asked>,
    identity: Identity,
    identity_failures: u32,
    partitions: Vec<Partition>,
    slots: BTreeMap<(Arc<str>, i32), Slot>,
    /// The partitions with batches that are not done.
    active: BTreeSet<Slot>,
    /// Topics that records were sent to.
    topics: BTreeSet<Arc<str>>,
    /// Bytes of batches that are not done.
    buffered: usize,
    next_batch: u64,
    /// `(flush, number of the first batch made after it)`.
    flushes: Vec<(u64, u64)>,
    closing: Closing,
    counters: ProducerCounters,
    network: Vec<NetworkEffect>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closing {
    No,
    Asked,
    Done,
}

impl Producer {
    /// # Panics
    /// When `bootstrap` is empty, or the settings ask for idempotence with more than five requests in flight.
    pub fn new(settings: ProducerSettings, bootstrap: Vec<(String, u16)>, rng: ChaCha8Rng) -> Producer {
        assert!(settings.max_in_flight_requests_per_connection > 0, "a producer sends something");
        if settings.enable_idempotence {
            assert!(settings.max_in_flight_requests_per_connection <= 5, "the broker remembers five batches");
            assert_eq!(settings.acks, Acks::All, "only acks=all makes sequences safe");
        }
        let retry = Backoff { first: settings.retry_backoff, max: settings.retry_backoff_max };
        let links = LinkSettings {
            request_timeout: settings.request_timeout,
            setup_timeout: settings.socket_connection_setup_timeout,
            reconnect: Backoff { first: settings.reconnect_backoff, max: settings.reconnect_backoff_max },
        };
        Producer {
            retry,
            rng,
            now: Time::ZERO,
            view: ClusterView::default(),
            refresh: Refresh::new(retry, settings.metadata_max_age),
            links: Links::new(links, bootstrap),
            identity: if settings.enable_idempotence {
                Identity::Wanted { not_before: Time::ZERO }
            } else {
                Identity::Off
            },
            identity_failures: 0,
            partitions: Vec::new(),
            slots: BTreeMap::new(),
            active: BTreeSet::new(),
            topics: BTreeSet::new(),
            buffered: 0,
            next_batch: 0,
            flushes: Vec::new(),
            closing: Closing::No,
            counters: ProducerCounters::default(),
            network: Vec::new(),
            settings,
        }
    }

    /// What happened so far.
    pub fn counters(&self) -> &ProducerCounters {
        &self.counters
    }

    /// The id and epoch that new batches get, once known.
    pub fn identity(&self) -> Option<ProducerIdentity> {
        match self.identity {
            Identity::Known(identity) => Some(identity),
            Identity::Off | Identity::Wanted { .. } | Identity::Asked => None,
        }
    }

    pub fn handle(&mut self, now: Time, input: ProducerInput, out: &mut Output<ProducerEffect>) {
        assert!(now >= self.now, "time does not go back");
        assert!(self.network.is_empty(), "every effect of the last call was handed out");
        self.now = now;
        match input {
            ProducerInput::Send { record, topic, partition } => self.accept(record, topic, partition, out),
            ProducerInput::Network(input) => {
                let event = self.links.handle(now, input, &mut self.rng, &mut self.network);
                self.on_link(event, out);
            }
            ProducerInput::Flush { flush } => self.flush(flush),
            ProducerInput::Close => {
                self.close_batches();
                if self.closing == Closing::No {
                    self.closing = Closing::Asked;
                }
            }
            ProducerInput::Tick => {}
        }
        self.expire(out);
        self.advance(out);
        out.effects.extend(self.network.drain(..).map(ProducerEffect::Network));
    }

    /// When to say [`ProducerInput::Tick`] if nothing else happens.
    pub fn next_deadline(&self) -> Option<Time> {
        let mut earliest = Earliest::after(self.now);
        earliest.add(self.links.next_deadline());
        earliest.add(self.refresh.next_deadline());
        if let Identity::Wanted { not_before } = self.identity {
            earliest.add(Some(not_before));
        }
        if self.asks_any() {
            earliest.add(self.links.any_retry_at());
        }
        for slot in &self.active {
            let partition = &self.partitions[slot.0];
            earliest.add(partition.oldest().map(|batch| self.delivery_deadline(batch)));
            if let Some(first) = partition.queue.front() {
                earliest.add(Some(first.retry_at));
                earliest.add(Some(first.created.saturating_add(self.settings.linger)));
                if let Some(node) = self.view.leader_node(&partition.topic, partition.index) {
                    earliest.add(self.links.retry_at(Peer::Node(node)));
                }
            }
        }
        earliest.deadline()
    }

    // ---- records in

    fn accept(
        &mut self,
        record: PendingRecord,
        topic: Arc<str>,
        index: i32,
        out: &mut Output<ProducerEffect>,
    ) {
        self.counters.records += 1;
        let id = record.id;
        let size = record.size_max() + acked_wire::batch::HEADER_SIZE;
        let refusal = if self.closing != Closing::No {
            Some(error_code::INVALID_REQUEST)
        } else if size > self.settings.max_request_size {
            Some(error_code::MESSAGE_TOO_LARGE)
        } else if self.buffered + size > self.settings.buffer_memory {
            Some(error_code::REQUEST_TIMED_OUT)
        } else {
            None
        };
        if let Some(code) = refusal {
            self.fail_record(id, code, true, out);
            return;
        }
        if !self.topics.contains(&topic) {
            self.topics.insert(topic.clone());
            self.refresh.want();
        }
        let slot = self.slot(topic, index);
        let partition = &mut self.partitions[slot.0];
        self.buffered += record.size_max();
        if partition.push(record, self.settings.batch_size, self.next_batch, self.now) {
            self.buffered += acked_wire::batch::HEADER_SIZE;
            self.next_batch += 1;
        }
        self.active.insert(slot);
    }

    fn slot(&mut self, topic: Arc<str>, index: i32) -> Slot {
        *self.slots.entry((topic, index)).or_insert_with_key(|(topic, index)| {
            self.partitions.push(Partition::new(topic.clone(), *index));
            Slot(self.partitions.len() - 1)
        })
    }

    fn flush(&mut self, flush: u64) {
        self.close_batches();
        self.flushes.push((flush, self.next_batch));
    }

    fn close_batches(&mut self) {
        for slot in &self.active {
            let partition = &mut self.partitions[slot.0];
            if let Some(last) = partition.queue.back_mut() {
                last.closed = true;
            }
        }
    }

    // ---- the network

    fn on_link(&mut self, event: LinkEvent<Asked>, out: &mut Output<ProducerEffect>) {
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

    fn on_lost(&mut self, asked: Asked, out: &mut Output<ProducerEffect>) {
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
    fn on_written(&mut self, asked: Asked, out: &mut Output<ProducerEffect>) {
        let Asked::Produce(attempts) = asked else { return };
        for attempt in attempts {
            self.attempt_ended(&attempt);
            if let Some(batch) = self.take(&attempt) {
                self.succeed(attempt.slot, batch, None, -1, out);
            }
        }
    }

    fn on_unsupported(&mut self, asked: Asked, out: &mut Output<ProducerEffect>) {
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

    fn on_answer(&mut self, asked: Asked, body: ResponseBody, out: &mut Output<ProducerEffect>) {
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

    fn on_metadata(&mut self, answer: &MetadataResponse, out: &mut Output<ProducerEffect>) {
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

    fn on_producer_id(&mut self, answer: &InitProducerIdResponse, out: &mut Output<ProducerEffect>) {
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

    fn identity_failed(&mut self) {
        self.identity_failures = self.identity_failures.saturating_add(1);
        let not_before = self.now.saturating_add(self.retry.delay(self.identity_failures, &mut self.rng));
        self.identity = Identity::Wanted { not_before };
    }

    fn on_produced(
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
    fn on_answered(
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

    /// The broker expects another sequence than this batch has.
    ///
    /// 1. The batch was numbered anew since: the refusal is about the past.
    /// 2. An older batch is not done: this one came too early.
    /// 3. An older one was given up and an attempt of it has no answer: it may still close the gap.
    /// 4. An older one was given up and did not arrive: number anew, but give up what may be in the log.
    /// 5. Nothing is missing before it: the broker lost what it knew. Number anew.
    fn on_other_sequence(&mut self, attempt: Attempt, code: i16, out: &mut Output<ProducerEffect>) {
        let Some(mut batch) = self.take(&attempt) else { return };
        let Some(numbering) = batch.numbering else {
            self.give_up(attempt.slot, batch, code, AttemptEffect::Nothing, out);
            return;
        };
        let slot = attempt.slot;
        batch.retry_at = self.now.saturating_add(self.retry.delay(batch.attempts, &mut self.rng));
        let number = batch.number;
        let unresolved = self.partition(slot).sequences.is_unresolved_before(number);
        let partition = self.partition(slot);
        let renumbered = attempt.numbering != Some(numbering);
        let too_early = partition.has_unacked_before(number);
        let may_close = unresolved && partition.waits_for_given_up();
        let waits = partition.waits_for_identity;
        if self.out_of_retries(&batch) {
            self.give_up(slot, batch, code, AttemptEffect::Nothing, out);
            return;
        }
        self.counters.retries += 1;
        self.partition(slot).requeue(batch);
        if !(renumbered || too_early || may_close || waits) {
            self.number_anew(slot, unresolved, out);
        }
    }

    // ---- numbering

    /// Starts the numbering of one partition over: under the producer's identity if that is new to the partition,
    /// else under the next epoch, which fences what was sent under the old one (KIP-360).
    fn number_anew(&mut self, slot: Slot, give_up_unknown: bool, out: &mut Output<ProducerEffect>) {
        let own = self.partition(slot).sequences.producer();
        if let Identity::Known(identity) = self.identity
            && own == Some(identity)
        {
            self.counters.epoch_bumps += 1;
            self.identity = match identity.epoch.checked_add(1) {
                Some(epoch) => Identity::Known(ProducerIdentity { epoch, ..identity }),
                None => Identity::Wanted { not_before: self.now },
            };
        }
        match self.identity {
            Identity::Known(identity) => self.start_over(slot, identity, give_up_unknown, out),
            _ => self.partition(slot).waits_for_identity = true,
        }
    }

    fn start_over(
        &mut self,
        slot: Slot,
        identity: ProducerIdentity,
        give_up_unknown: bool,
        out: &mut Output<ProducerEffect>,
    ) {
        for batch in self.partition(slot).start_over(identity, give_up_unknown) {
            self.complete_failed(batch, error_code::OUT_OF_ORDER_SEQUENCE_NUMBER, false, out);
        }
        self.settle(slot);
    }

    /// A partition whose given-up batches cannot be resolved any more starts over.
    fn resolve(&mut self, slot: Slot, out: &mut Output<ProducerEffect>) {
        let partition = self.partition(slot);
        if partition.sequences.is_unresolved()
            && partition.oldest_unacked().is_none()
            && partition.attempts_on_wire == 0
            && !partition.waits_for_identity
        {
            self.number_anew(slot, true, out);
        }
    }

    // ---- the end of an attempt

    fn attempt_ended(&mut self, attempt: &Attempt) {
        let partition = self.partition(attempt.slot);
        assert!(partition.attempts_on_wire > 0, "an attempt ends once");
        partition.attempts_on_wire -= 1;
    }

    /// The batch of an attempt, unless it was given up.
    fn take(&mut self, attempt: &Attempt) -> Option<Batch> {
        self.partition(attempt.slot).take_in_flight(attempt.batch)
    }

    fn retry(
        &mut self,
        attempt: Attempt,
        code: i16,
        effect: AttemptEffect,
        out: &mut Output<ProducerEffect>,
    ) {
        self.refresh.want();
        let Some(mut batch) = self.take(&attempt) else { return };
        if self.out_of_retries(&batch) {
            self.give_up(attempt.slot, batch, code, effect, out);
            return;
        }
        self.counters.retries += 1;
        batch.may_have_effect |= effect == AttemptEffect::Unknown;
        batch.retry_at = self.now.saturating_add(self.retry.delay(batch.attempts, &mut self.rng));
        self.partition(attempt.slot).requeue(batch);
    }

    fn out_of_retries(&self, batch: &Batch) -> bool {
        assert!(batch.attempts > 0, "only what was sent can be retried");
        batch.attempts > self.settings.retries
    }

    fn succeed(
        &mut self,
        slot: Slot,
        batch: Batch,
        base_offset: Option<i64>,
        log_append_time_ms: i64,
        out: &mut Output<ProducerEffect>,
    ) {
        self.buffered -= batch.size_max;
        let index = self.partitions[slot.0].index;
        let mut offset = base_offset;
        for record in batch.records {
            let timestamp_ms = if log_append_time_ms >= 0 { log_append_time_ms } else { record.timestamp_ms };
            let outcome = Outcome::Ok { partition: index, offset, timestamp_ms };
            self.counters.acknowledged += 1;
            out.effect(ProducerEffect::Complete { record: record.id, outcome });
            // A hostile base offset near the end of the range must not overflow.
            offset = offset.and_then(|offset| offset.checked_add(1));
        }
        self.settle(slot);
    }

    /// Gives a batch up. `effect` is what the last attempt, if any, did.
    fn give_up(
        &mut self,
        slot: Slot,
        batch: Batch,
        code: i16,
        effect: AttemptEffect,
        out: &mut Output<ProducerEffect>,
    ) {
        if batch.numbering.is_some() {
            self.partition(slot).sequences.given_up(batch.number);
        }
        let definite = !batch.may_have_effect && effect == AttemptEffect::Nothing;
        self.complete_failed(batch, code, definite, out);
        self.settle(slot);
    }

    fn give_up_queue(&mut self, slot: Slot, code: i16, out: &mut Output<ProducerEffect>) {
        for batch in std::mem::take(&mut self.partition(slot).queue) {
            self.give_up(slot, batch, code, AttemptEffect::Nothing, out);
        }
    }

    fn complete_failed(&mut self, batch: Batch, code: i16, definite: bool, out: &mut Output<ProducerEffect>) {
        self.buffered -= batch.size_max;
        for record in batch.records {
            self.fail_record(record.id, code, definite, out);
        }
    }

    fn fail_record(&mut self, record: RecordId, code: i16, definite: bool, out: &mut Output<ProducerEffect>) {
        self.counters.failed += 1;
        out.effect(ProducerEffect::Complete { record, outcome: Outcome::Failed { code, definite } });
    }

    /// Forgets that a partition is active once all its batches are done.
    fn settle(&mut self, slot: Slot) {
        if self.partitions[slot.0].is_idle() {
            self.active.remove(&slot);
        }
    }

    // ---- time

    fn expire(&mut self, out: &mut Output<ProducerEffect>) {
        while let Some(event) = self.links.expire(self.now, &mut self.rng, &mut self.network) {
            self.on_link(event, out);
        }
        let mut next = self.next_active(None);
        while let Some(slot) = next {
            next = self.next_active(Some(slot));
            self.expire_batches(slot, out);
        }
    }

    fn is_overdue(&self, slot: Slot) -> bool {
        self.partitions[slot.0].oldest().is_some_and(|batch| self.delivery_deadline(batch) <= self.now)
    }

    fn delivery_deadline(&self, batch: &Batch) -> Time {
        batch.created.saturating_add(self.settings.delivery_timeout)
    }

    fn expire_batches(&mut self, slot: Slot, out: &mut Output<ProducerEffect>) {
        while self.is_overdue(slot) {
            let partition = self.partition(slot);
            let number = partition.oldest().expect("an overdue partition has an oldest batch").number;
            let (batch, effect) = match partition.take_in_flight(number) {
                Some(batch) => (batch, AttemptEffect::Unknown),
                None => {
                    let batch = partition.queue.pop_front().expect("the oldest batch is queued or in flight");
                    (batch, AttemptEffect::Nothing)
                }
            };
            self.counters.expired += 1;
            self.give_up(slot, batch, error_code::REQUEST_TIMED_OUT, effect, out);
        }
    }

    // ---- requests out

    /// Does everything that can be done now.
    fn advance(&mut self, out: &mut Output<ProducerEffect>) {
        self.resolve_all(out);
        self.ask_for_identity();
        while self.send_round() {}
        self.ask_for_metadata();
        self.finish(out);
    }

    fn resolve_all(&mut self, out: &mut Output<ProducerEffect>) {
        if !matches!(self.identity, Identity::Off) {
            let mut next = self.next_active(None);
            while let Some(slot) = next {
                next = self.next_active(Some(slot));
                self.resolve(slot, out);
            }
        }
    }

    /// Whether a request waits for any broker to be reachable.
    fn asks_any(&self) -> bool {
        let identity = matches!(self.identity, Identity::Wanted { not_before } if not_before <= self.now)
            && !self.active.is_empty();
        identity || self.refresh.due(self.now)
    }

    fn ask_for_identity(&mut self) {
        let Identity::Wanted { not_before } = self.identity else { return };
        if not_before > self.now || self.active.is_empty() {
            return;
        }
        let Some(peer) = self.links.any(self.now, &self.view, &mut self.network) else { return };
        // Without a transaction every id is a fresh one; epochs after the first are the producer's own to raise.
        let body = RequestBody::InitProducerId(InitProducerIdRequest {
            transactional_id: None,
            transaction_timeout_ms: i32::MAX,
            producer_id: -1,
            producer_epoch: -1,
            ..Default::default()
        });
        self.identity = Identity::Asked;
        self.links.send(self.now, peer, body, true, Asked::ProducerId, &mut self.network);
    }

    fn ask_for_metadata(&mut self) {
        if !self.refresh.due(self.now) {
            return;
        }
        let Some(peer) = self.links.any(self.now, &self.view, &mut self.network) else { return };
        let body = RequestBody::Metadata(ClusterView::request(self.topics.iter(), true));
        self.refresh.asked();
        self.links.send(self.now, peer, body, true, Asked::Metadata, &mut self.network);
    }

    /// Sends at most one request to each broker, with at most one batch of each partition. False when nothing was
    /// sent.
    fn send_round(&mut self) -> bool {
        let mut drafts: BTreeMap<NodeId, Draft> = BTreeMap::new();
        let mut next = self.next_active(None);
        while let Some(slot) = next {
            next = self.next_active(Some(slot));
            let Some((node, topic)) = self.sendable(slot) else { continue };
            let draft = drafts.entry(node).or_default();
            let size = self.partitions[slot.0].queue.front().map_or(0, |first| first.size_max);
            if draft.size > 0 && draft.size + size > self.settings.max_request_size {
                continue;
            }
            draft.size += size;
            let (attempt, bytes) = self.number_and_take(slot, topic, node);
            draft.add(attempt, bytes);
        }
        let sent = !drafts.is_empty();
        for (node, draft) in drafts {
            self.send_draft(node, draft);
        }
        sent
    }

    /// Where the first queued batch of a partition can go right now.
    fn sendable(&mut self, slot: Slot) -> Option<(NodeId, Uuid)> {
        let partition = &self.partitions[slot.0];
        if !partition.is_ready(self.now, self.settings.linger) {
            return None;
        }
        let ordering = match self.identity {
            Identity::Off if self.settings.max_in_flight_requests_per_connection == 1 => Ordering::OneAtATime,
            Identity::Off => Ordering::Free,
            Identity::Known(identity) => Ordering::Idempotent(identity),
            Identity::Wanted { .. } | Identity::Asked => return None,
        };
        let (Some(node), Some(topic)) = (self.leader_of(slot), self.view.topic_id(&partition.topic)) else {
            self.refresh.want();
            return None;
        };
        if !partition.may_send(node, ordering) {
            return None;
        }
        let peer = Peer::Node(node);
        let up = self.links.ensure(self.now, peer, &self.view, &mut self.network);
        let free = self.links.in_flight(peer) < self.settings.max_in_flight_requests_per_connection;
        (up && free).then_some((node, topic))
    }

    fn number_and_take(&mut self, slot: Slot, topic: Uuid, node: NodeId) -> (Attempt, Bytes) {
        let identity = self.identity();
        let partition = self.partition(slot);
        let mut batch = partition.queue.pop_front().expect("a sendable partition has a queued batch");
        batch.closed = true;
        batch.attempts += 1;
        if let Some(identity) = identity
            && batch.numbering.is_none()
        {
            if partition.sequences.producer() != Some(identity) {
                partition.sequences.start_over(identity);
            }
            let numbering = partition.sequences.assign(batch.count());
            batch.renumber(numbering);
        }
        let bytes = batch.bytes();
        let attempt =
            Attempt { slot, topic, index: partition.index, batch: batch.number, numbering: batch.numbering };
        partition.attempts_on_wire += 1;
        partition.node_on_wire = Some(node);
        let index = partition.in_flight.partition_point(|sent| sent.number < batch.number);
        partition.in_flight.insert(index, batch);
        (attempt, bytes)
    }

    fn send_draft(&mut self, node: NodeId, draft: Draft) {
        self.counters.requests += 1;
        self.counters.batches += draft.attempts.len() as u64;
        let timeout_ms = i32::try_from(self.settings.request_timeout.as_millis()).unwrap_or(i32::MAX);
        let body = RequestBody::Produce(ProduceRequest {
            transactional_id: None,
            acks: self.settings.acks.code(),
            timeout_ms,
            topic_data: draft.topics,
            ..Default::default()
        });
        let answered = self.settings.acks != Acks::None;
        let asked = Asked::Produce(draft.attempts);
        self.links.send(self.now, Peer::Node(node), body, answered, asked, &mut self.network);
    }

    fn finish(&mut self, out: &mut Output<ProducerEffect>) {
        if !self.flushes.is_empty() {
            let oldest = self.active.iter().filter_map(|slot| self.partitions[slot.0].oldest());
            let oldest = oldest.map(|batch| batch.number).min().unwrap_or(u64::MAX);
            self.flushes.retain(|(flush, first_after)| {
                let done = oldest >= *first_after;
                if done {
                    out.effect(ProducerEffect::Flushed { flush: *flush });
                }
                !done
            });
        }
        if self.closing == Closing::Asked && self.active.is_empty() {
            assert_eq!(self.buffered, 0, "what is done is not buffered");
            self.closing = Closing::Done;
            out.effect(ProducerEffect::Closed);
        }
    }

    // ---- small helpers

    fn partition(&mut self, slot: Slot) -> &mut Partition {
        &mut self.partitions[slot.0]
    }

    fn leader_of(&self, slot: Slot) -> Option<NodeId> {
        let partition = &self.partitions[slot.0];
        self.view.leader_node(&partition.topic, partition.index)
    }

    /// Walks the active partitions while they change.
    fn next_active(&self, after: Option<Slot>) -> Option<Slot> {
        match after {
            None => self.active.first().copied(),
            Some(slot) => self.active.range((Bound::Excluded(slot), Bound::Unbounded)).next().copied(),
        }
    }

    fn count_error(&mut self, code: i16) {
        *self.counters.errors.entry(code).or_insert(0) += 1;
    }
}

impl Draft {
    fn add(&mut self, attempt: Attempt, bytes: Bytes) {
        let data = PartitionProduceData { index: attempt.index, records: Some(bytes), ..Default::default() };
        match self.topics.last_mut() {
            Some(topic) if topic.topic_id == attempt.topic => topic.partition_data.push(data),
            _ => self.topics.push(TopicProduceData {
                topic_id: attempt.topic,
                partition_data: vec![data],
                ..Default::default()
            }),
        }
        self.attempts.push(attempt);
    }
}
