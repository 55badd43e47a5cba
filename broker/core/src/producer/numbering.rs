//! When a partition's numbering starts over (KIP-360), and who is numbered anew then.

use acked_wire::error_code;

use super::machine::{Attempt, Identity, Producer, ProducerEffect, Slot};
use super::sequences::ProducerIdentity;
use super::verdict::AttemptEffect;
use crate::Output;

impl Producer {
    /// The broker expects another sequence than this batch has.
    ///
    /// 1. The batch was numbered anew since: the refusal is about the past.
    /// 2. An older batch is not done: this one came too early.
    /// 3. An older one was given up and an attempt of it has no answer: it may still close the gap.
    /// 4. An older one was given up and did not arrive: number anew, but give up what may be in the log.
    /// 5. Nothing is missing before it: the broker lost what it knew. Number anew.
    pub(super) fn on_other_sequence(
        &mut self,
        attempt: Attempt,
        code: i16,
        out: &mut Output<ProducerEffect>,
    ) {
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

    /// Starts the numbering of one partition over: under the producer's identity if that is new to the partition,
    /// else under the next epoch, which fences what was sent under the old one (KIP-360).
    pub(super) fn number_anew(
        &mut self,
        slot: Slot,
        give_up_unknown: bool,
        out: &mut Output<ProducerEffect>,
    ) {
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

    pub(super) fn start_over(
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
    pub(super) fn resolve(&mut self, slot: Slot, out: &mut Output<ProducerEffect>) {
        let partition = self.partition(slot);
        if partition.sequences.is_unresolved()
            && partition.oldest_unacked().is_none()
            && partition.attempts_on_wire == 0
            && !partition.waits_for_identity
        {
            self.number_anew(slot, true, out);
        }
    }
}
