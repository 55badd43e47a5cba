//! How attempts end: in another try, in success, or in giving up; and when time ends them.

use acked_wire::error_code;

use super::batch::{Batch, RecordId};
use super::machine::{Attempt, Outcome, Producer, ProducerEffect, Slot};
use super::verdict::AttemptEffect;
use crate::{Output, Time};

impl Producer {
    pub(super) fn attempt_ended(&mut self, attempt: &Attempt) {
        let partition = self.partition(attempt.slot);
        assert!(partition.attempts_on_wire > 0, "an attempt ends once");
        partition.attempts_on_wire -= 1;
    }

    /// The batch of an attempt, unless it was given up.
    pub(super) fn take(&mut self, attempt: &Attempt) -> Option<Batch> {
        self.partition(attempt.slot).take_in_flight(attempt.batch)
    }

    pub(super) fn retry(
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

    pub(super) fn out_of_retries(&self, batch: &Batch) -> bool {
        assert!(batch.attempts > 0, "only what was sent can be retried");
        batch.attempts > self.settings.retries
    }

    pub(super) fn succeed(
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
    pub(super) fn give_up(
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

    pub(super) fn give_up_queue(&mut self, slot: Slot, code: i16, out: &mut Output<ProducerEffect>) {
        for batch in std::mem::take(&mut self.partition(slot).queue) {
            self.give_up(slot, batch, code, AttemptEffect::Nothing, out);
        }
    }

    pub(super) fn complete_failed(
        &mut self,
        batch: Batch,
        code: i16,
        definite: bool,
        out: &mut Output<ProducerEffect>,
    ) {
        self.buffered -= batch.size_max;
        for record in batch.records {
            self.fail_record(record.id, code, definite, out);
        }
    }

    pub(super) fn fail_record(
        &mut self,
        record: RecordId,
        code: i16,
        definite: bool,
        out: &mut Output<ProducerEffect>,
    ) {
        self.counters.failed += 1;
        out.effect(ProducerEffect::Complete { record, outcome: Outcome::Failed { code, definite } });
    }

    /// Forgets that a partition is active once all its batches are done.
    pub(super) fn settle(&mut self, slot: Slot) {
        if self.partitions[slot.0].is_idle() {
            self.active.remove(&slot);
        }
    }

    pub(super) fn expire(&mut self, out: &mut Output<ProducerEffect>) {
        while let Some(event) = self.links.expire(self.now, &mut self.rng, &mut self.network) {
            self.on_link(event, out);
        }
        let mut next = self.next_active(None);
        while let Some(slot) = next {
            next = self.next_active(Some(slot));
            self.expire_batches(slot, out);
        }
    }

    pub(super) fn is_overdue(&self, slot: Slot) -> bool {
        self.partitions[slot.0].oldest().is_some_and(|batch| self.delivery_deadline(batch) <= self.now)
    }

    pub(super) fn delivery_deadline(&self, batch: &Batch) -> Time {
        batch.created.saturating_add(self.settings.delivery_timeout)
    }

    pub(super) fn expire_batches(&mut self, slot: Slot, out: &mut Output<ProducerEffect>) {
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
}
