//! The sequence numbers of one partition, and what is known of those that were used.

/// `producer.id` and its epoch, as the broker knows the producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerIdentity {
    pub id: i64,
    pub epoch: i16,
}

/// The place of one batch: fixed while an attempt under it may have taken effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbering {
    pub producer: ProducerIdentity,
    pub base_sequence: i32,
    /// How many batches were numbered before it under the same identity.
    pub index: u64,
}

/// The numbering of one partition under one identity.
///
/// Actions: [`Sequences::assign`], [`Sequences::acked`], [`Sequences::given_up`], [`Sequences::start_over`].
#[derive(Debug, Default)]
pub struct Sequences {
    producer: Option<ProducerIdentity>,
    next: i32,
    /// Batches numbered so far.
    batches: u64,
    /// A broker acknowledged something under this identity.
    known: bool,
    /// Numbered batches that were given up, in order: whether their sequences are in the log is not known.
    gaps: Vec<u64>,
}

impl Sequences {
    pub fn producer(&self) -> Option<ProducerIdentity> {
        self.producer
    }

    /// Numbers from 0 under an identity that this partition has not used. Nothing of the old numbering remains.
    pub fn start_over(&mut self, producer: ProducerIdentity) {
        assert!(self.producer != Some(producer), "an identity numbers a partition once");
        *self = Sequences { producer: Some(producer), ..Sequences::default() };
    }

    /// The place of the next batch of `count` records.
    pub fn assign(&mut self, count: i32) -> Numbering {
        assert!(count > 0, "a batch holds records");
        let producer = self.producer.expect("numbering starts with an identity");
        let numbering = Numbering { producer, base_sequence: self.next, index: self.batches };
        self.next = after(self.next, count);
        self.batches += 1;
        numbering
    }

    /// Batches numbered so far.
    pub fn batches(&self) -> u64 {
        self.batches
    }

    /// The broker has the batch, hence everything numbered before it.
    pub fn acked(&mut self, batch: u64, producer: ProducerIdentity) {
        if self.producer == Some(producer) {
            self.known = true;
            self.gaps.retain(|gap| *gap > batch);
        }
    }

    /// A numbered batch was given up; the partition is unresolved until the broker acknowledges a later batch or
    /// numbering starts over.
    pub fn given_up(&mut self, batch: u64) {
        let index = self.gaps.partition_point(|gap| *gap < batch);
        self.gaps.insert(index, batch);
    }

    /// Whether a broker acknowledged anything under this identity. Before that it may never have heard of it, and
    /// then takes any sequence for the first: only one batch may be on its way.
    pub fn is_known(&self) -> bool {
        self.known
    }

    pub fn is_unresolved(&self) -> bool {
        !self.gaps.is_empty()
    }

    pub fn is_unresolved_before(&self, batch: u64) -> bool {
        self.gaps.first().is_some_and(|gap| *gap < batch)
    }
}

/// Sequences wrap from 2^31 - 1 to 0.
fn after(sequence: i32, count: i32) -> i32 {
    sequence.wrapping_add(count) & i32::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRODUCER: ProducerIdentity = ProducerIdentity { id: 7, epoch: 0 };

    fn started() -> Sequences {
        let mut sequences = Sequences::default();
        sequences.start_over(PRODUCER);
        sequences
    }

    #[test]
    fn sequences_wrap_to_zero() {
        let mut sequences = started();
        sequences.next = i32::MAX - 1;
        assert_eq!(sequences.assign(1).base_sequence, i32::MAX - 1);
        assert_eq!(sequences.assign(3).base_sequence, i32::MAX);
        assert_eq!(sequences.assign(1).base_sequence, 2);
    }

    #[test]
    fn ack_of_a_later_batch_resolves_the_gap_before_it() {
        let mut sequences = started();
        sequences.given_up(10);
        assert!(sequences.is_unresolved_before(11) && !sequences.is_unresolved_before(10));
        sequences.acked(11, PRODUCER);
        assert!(!sequences.is_unresolved());
    }

    #[test]
    fn ack_under_an_older_identity_resolves_nothing() {
        let mut sequences = started();
        sequences.start_over(ProducerIdentity { id: 7, epoch: 1 });
        sequences.given_up(10);
        sequences.acked(10, PRODUCER);
        assert!(sequences.is_unresolved() && !sequences.is_known());
    }
}
