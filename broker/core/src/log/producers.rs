//! What a partition remembers of idempotent producers, and whether a batch of theirs is new, a repeat, or out of
//! line (KIP-98, KIP-360; kafka-rules 6). Decides nothing about transactions.
//!
//! State per producer id: its epoch and its last five batches of that epoch.
//! - `check` judges a client's batch and changes nothing.
//! - `apply` takes a batch in that is in the log: a leader's after `check`, a replicated or recovered one always.
//! - truncation drops everything and applies the headers that are left.

use std::collections::{BTreeMap, VecDeque};

use crate::rules::DedupeWindow;

/// Batches remembered per producer: what may be in flight at once.
pub const WINDOW: usize = 5;

/// The producer's part of a batch header, with the offsets that the batch has in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerBatch {
    /// −1: not idempotent.
    pub producer_id: i64,
    pub producer_epoch: i16,
    /// −1 in control batches.
    pub base_sequence: i32,
    pub base_offset: i64,
    pub last_offset: i64,
    /// Milliseconds since 1970.
    pub max_timestamp: i64,
    /// A transaction's end marker: raises the epoch, has no sequence.
    pub is_control: bool,
}

impl ProducerBatch {
    /// Sequence of the last record; wraps from 2^31 − 1 to 0.
    pub fn last_sequence(&self) -> i32 {
        let delta =
            i32::try_from(self.last_offset - self.base_offset).expect("a batch spans less than 2^31 offsets");
        advance(self.base_sequence, delta)
    }
}

/// `sequence` moved on by `by`, wrapping from 2^31 − 1 to 0.
pub fn advance(sequence: i32, by: i32) -> i32 {
    assert!(sequence >= 0, "sequence {sequence} is a real one");
    assert!(by >= 0, "sequences only move on, not by {by}");
    ((i64::from(sequence) + i64::from(by)) & i64::from(i32::MAX)) as i32
}

/// What a good batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sequence {
    /// Not seen before, and next in line.
    New,
    /// One of the last five batches, where it already lies.
    Repeat { base_offset: i64, last_offset: i64, max_timestamp: i64 },
}

/// Why a client's batch is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SequenceError {
    #[error("take producer {producer_id}'s batch: its epoch {given} is older than {known}")]
    StaleEpoch { producer_id: i64, given: i16, known: i16 },
    #[error("take producer {producer_id}'s batch: sequence {given} arrived, {expected} was expected")]
    OutOfOrder { producer_id: i64, given: i32, expected: i32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Remembered {
    base_sequence: i32,
    last_sequence: i32,
    base_offset: i64,
    last_offset: i64,
    max_timestamp: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Producer {
    epoch: i16,
    /// Oldest first, at most [`WINDOW`].
    window: VecDeque<Remembered>,
    /// Largest timestamp of its last batch or marker, by the clock of whoever wrote it.
    last_timestamp: i64,
}

/// See the file's header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProducerStates {
    producers: BTreeMap<i64, Producer>,
}

impl ProducerStates {
    /// Judges a client's batch; of the batches before, `window` says how many are recognised. Its offsets may be any that are as far apart as the real ones.
    pub fn check(&self, batch: &ProducerBatch, window: DedupeWindow) -> Result<Sequence, SequenceError> {
        assert!(batch.producer_id >= 0, "only idempotent batches are checked");
        assert!(!batch.is_control, "clients do not write control batches");
        let producer_id = batch.producer_id;
        // A producer that was never seen, or has expired, may start anywhere.
        let Some(producer) = self.producers.get(&producer_id) else { return Ok(Sequence::New) };
        if batch.producer_epoch == producer.epoch
            && let Some(repeated) = producer.window.iter().rev().take(recognised(window)).find(|known| {
                known.base_sequence == batch.base_sequence && known.last_sequence == batch.last_sequence()
            })
        {
            let Remembered { base_offset, last_offset, max_timestamp, .. } = *repeated;
            return Ok(Sequence::Repeat { base_offset, last_offset, max_timestamp });
        }
        if batch.producer_epoch < producer.epoch {
            return Err(SequenceError::StaleEpoch {
                producer_id,
                given: batch.producer_epoch,
                known: producer.epoch,
            });
        }
        let expected = match producer.window.back() {
            Some(last) if batch.producer_epoch == producer.epoch => advance(last.last_sequence, 1),
            // A new epoch, or one of which only a marker was seen, starts at 0.
            _ => 0,
        };
        if batch.base_sequence == expected {
            Ok(Sequence::New)
        } else {
            Err(SequenceError::OutOfOrder { producer_id, given: batch.base_sequence, expected })
        }
    }

    /// Takes in a batch that is in the log. Batches without a producer id change nothing.
    pub fn apply(&mut self, batch: &ProducerBatch) {
        if batch.producer_id < 0 {
            return;
        }
        assert!(batch.base_offset <= batch.last_offset, "a batch ends where it starts or behind");
        let producer = self.producers.entry(batch.producer_id).or_insert_with(|| Producer {
            epoch: batch.producer_epoch,
            window: VecDeque::new(),
            last_timestamp: batch.max_timestamp,
        });
        if producer.epoch != batch.producer_epoch {
            producer.epoch = batch.producer_epoch;
            producer.window.clear();
        }
        producer.last_timestamp = batch.max_timestamp;
        if batch.is_control || batch.base_sequence < 0 {
            return;
        }
        if producer.window.len() == WINDOW {
            producer.window.pop_front();
        }
        producer.window.push_back(Remembered {
            base_sequence: batch.base_sequence,
            last_sequence: batch.last_sequence(),
            base_offset: batch.base_offset,
            last_offset: batch.last_offset,
            max_timestamp: batch.max_timestamp,
        });
        assert!(producer.window.len() <= WINDOW, "no more than {WINDOW} batches are remembered");
    }

    /// Forgets producers whose last batch is `expiration_ms` old or older by its own timestamp.
    pub fn expire(&mut self, now_ms: i64, expiration_ms: i64) {
        self.producers.retain(|_, producer| now_ms.saturating_sub(producer.last_timestamp) < expiration_ms);
    }

    pub fn clear(&mut self) {
        self.producers.clear();
    }

    /// How many producers are remembered.
    pub fn len(&self) -> usize {
        self.producers.len()
    }

    pub fn is_empty(&self) -> bool {
        self.producers.is_empty()
    }
}

/// Rule seam: how many of a producer's last batches are recognised when they come again.
fn recognised(window: DedupeWindow) -> usize {
    match window {
        DedupeWindow::InFlight => WINDOW,
        DedupeWindow::LastOnly => 1,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: DedupeWindow = DedupeWindow::InFlight;

    fn batch(producer_epoch: i16, base_sequence: i32, base_offset: i64, count: i64) -> ProducerBatch {
        ProducerBatch {
            producer_id: 7,
            producer_epoch,
            base_sequence,
            base_offset,
            last_offset: base_offset + count - 1,
            max_timestamp: 1_000 + base_offset,
            is_control: false,
        }
    }

    fn marker(producer_epoch: i16, base_offset: i64) -> ProducerBatch {
        ProducerBatch { base_sequence: -1, is_control: true, ..batch(producer_epoch, 0, base_offset, 1) }
    }

    fn states(batches: &[ProducerBatch]) -> ProducerStates {
        let mut states = ProducerStates::default();
        batches.iter().for_each(|batch| states.apply(batch));
        states
    }

    fn out_of_order(given: i32, expected: i32) -> Result<Sequence, SequenceError> {
        Err(SequenceError::OutOfOrder { producer_id: 7, given, expected })
    }

    #[test]
    fn unknown_producer_starts_anywhere() {
        assert_eq!(states(&[]).check(&batch(3, 42, 0, 1), ALL), Ok(Sequence::New));
    }

    #[test]
    fn next_sequence_is_one_behind_the_last_record() {
        let states = states(&[batch(0, 0, 0, 3)]);
        assert_eq!(states.check(&batch(0, 3, 3, 1), ALL), Ok(Sequence::New));
        assert_eq!(states.check(&batch(0, 4, 3, 1), ALL), out_of_order(4, 3));
    }

    #[test]
    fn each_of_the_last_five_is_a_repeat_and_the_sixth_is_out_of_order() {
        let batches: Vec<_> = (0..6).map(|number| batch(0, number, i64::from(number) + 100, 1)).collect();
        let states = states(&batches);
        for known in &batches[1..] {
            let repeat = Sequence::Repeat {
                base_offset: known.base_offset,
                last_offset: known.last_offset,
                max_timestamp: known.max_timestamp,
            };
            assert_eq!(states.check(known, ALL), Ok(repeat));
        }
        assert_eq!(states.check(&batches[0], ALL), out_of_order(0, 6));
    }

    #[test]
    fn repeat_with_other_bounds_is_no_repeat() {
        let states = states(&[batch(0, 0, 0, 3)]);
        assert_eq!(states.check(&batch(0, 0, 3, 2), ALL), out_of_order(0, 3));
    }

    #[test]
    fn new_epoch_starts_at_zero_and_forgets_the_window() {
        let mut states = states(&[batch(0, 0, 0, 5)]);
        assert_eq!(states.check(&batch(1, 5, 5, 1), ALL), out_of_order(5, 0));
        // The same bounds as the batch of the old epoch, yet no repeat.
        assert_eq!(states.check(&batch(1, 0, 5, 5), ALL), Ok(Sequence::New));
        states.apply(&batch(1, 0, 5, 5));
        let stale = SequenceError::StaleEpoch { producer_id: 7, given: 0, known: 1 };
        assert_eq!(states.check(&batch(0, 0, 10, 5), ALL), Err(stale));
    }

    #[test]
    fn marker_raises_the_epoch_and_then_zero_is_required() {
        let states = states(&[batch(0, 0, 0, 1), marker(1, 1)]);
        assert_eq!(states.check(&batch(1, 0, 2, 1), ALL), Ok(Sequence::New));
        assert_eq!(states.check(&batch(1, 1, 2, 1), ALL), out_of_order(1, 0));
    }

    #[test]
    fn marker_of_the_same_epoch_keeps_the_window() {
        let states = states(&[batch(0, 0, 0, 1), marker(0, 1)]);
        assert_eq!(states.check(&batch(0, 1, 2, 1), ALL), Ok(Sequence::New));
    }

    #[test]
    fn sequence_wraps_to_zero() {
        let states = states(&[batch(0, i32::MAX - 1, 0, 2)]);
        assert_eq!(states.check(&batch(0, 0, 2, 1), ALL), Ok(Sequence::New));
        assert_eq!(batch(0, i32::MAX, 0, 3).last_sequence(), 1);
    }

    #[test]
    fn expired_producer_starts_anywhere() {
        let mut states = states(&[batch(0, 0, 0, 1)]);
        states.expire(1_000 + 99, 100);
        assert_eq!(states.len(), 1);
        states.expire(1_000 + 100, 100);
        assert!(states.is_empty());
    }

    proptest! {
        /// A model that keeps the whole history gives the same verdicts as the window.
        #[test]
        fn verdicts_agree_with_the_whole_history(
            tries in prop::collection::vec((0i16..3, 0i32..12, 1i64..3), 1..40),
        ) {
            let mut states = ProducerStates::default();
            let mut history: Vec<ProducerBatch> = Vec::new();
            for (epoch, sequence, count) in tries {
                let offset = history.last().map_or(0, |last| last.last_offset + 1);
                let tried = batch(epoch, sequence, offset, count);
                let verdict = states.check(&tried, ALL);
                prop_assert_eq!(verdict.is_ok(), model_accepts(&history, &tried), "{:?}", tried);
                if verdict == Ok(Sequence::New) {
                    states.apply(&tried);
                    history.push(tried);
                }
            }
        }
    }

    fn model_accepts(history: &[ProducerBatch], tried: &ProducerBatch) -> bool {
        let Some(last) = history.last() else { return true };
        let same_epoch =
            history.iter().rev().take_while(|known| known.producer_epoch == tried.producer_epoch);
        let repeated = same_epoch.take(5).any(|known| {
            (known.base_sequence, known.last_sequence()) == (tried.base_sequence, tried.last_sequence())
        });
        let expected = if last.producer_epoch == tried.producer_epoch { last.last_sequence() + 1 } else { 0 };
        repeated || (tried.producer_epoch >= last.producer_epoch && tried.base_sequence == expected)
    }
}
