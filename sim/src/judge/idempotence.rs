//! S19 idempotence: each (producer id, producer epoch, sequence) is committed at most once in a partition. Sequences
//! of a producer come in runs, so a few numbers stand for thousands of records.

use std::collections::{BTreeMap, BTreeSet};

/// The sequences that are committed in one partition.
#[derive(Debug, Default)]
pub struct Sequences {
    /// By producer id and epoch: runs of consecutive sequences, first and last inclusive, sorted.
    runs: BTreeMap<(i64, i16), Vec<(i32, i32)>>,
    /// Sequences that a licence took: the promise lapsed for exactly these.
    lapsed: BTreeSet<(i64, i16, i32)>,
}

impl Sequences {
    /// Adds a committed sequence. False when it was there already and no licence had taken it.
    pub fn insert(&mut self, producer_id: i64, producer_epoch: i16, sequence: i32) -> bool {
        let runs = self.runs.entry((producer_id, producer_epoch)).or_default();
        let next = runs.partition_point(|(first, _)| *first <= sequence);
        if next > 0 && runs[next - 1].1 >= sequence {
            return self.lapsed.contains(&(producer_id, producer_epoch, sequence));
        }
        let joins_left = next > 0 && runs[next - 1].1 + 1 == sequence;
        let joins_right = runs.get(next).is_some_and(|(first, _)| *first - 1 == sequence);
        match (joins_left, joins_right) {
            (true, true) => {
                runs[next - 1].1 = runs[next].1;
                runs.remove(next);
            }
            (true, false) => runs[next - 1].1 = sequence,
            (false, true) => runs[next].0 = sequence,
            (false, false) => runs.insert(next, (sequence, sequence)),
        }
        true
    }

    /// A licence took the record with this sequence: it may be committed again.
    pub fn lapse(&mut self, producer_id: i64, producer_epoch: i16, sequence: i32) {
        self.lapsed.insert((producer_id, producer_epoch, sequence));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lapsed_sequence_may_come_again_and_no_other() {
        let mut sequences = Sequences::default();
        assert!(sequences.insert(1, 0, 5) && sequences.insert(1, 0, 6) && sequences.insert(1, 1, 5));
        sequences.lapse(1, 0, 5);
        assert!(sequences.insert(1, 0, 5));
        assert!(!sequences.insert(1, 0, 6) && !sequences.insert(1, 1, 5));
    }

    proptest! {
        #[test]
        fn runs_equal_a_set(inserted in proptest::collection::vec((0i64..2, 0i32..12), 0..60)) {
            let mut sequences = Sequences::default();
            let mut model = BTreeSet::new();
            for (producer, sequence) in inserted {
                prop_assert_eq!(sequences.insert(producer, 0, sequence), model.insert((producer, sequence)));
            }
        }
    }
}
