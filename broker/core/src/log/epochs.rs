//! Which leader epoch wrote which part of a log (KIP-101). Decides the answer to "where does epoch E end" and where
//! two logs diverge; never reads a record.
//!
//! State: entries `(epoch, start offset)`, both strictly increasing. An entry is added when a leader takes office
//! (kafka-rules 1.1), or when the first batch of a newer epoch is appended; it is cut by truncation. So the cache is
//! a function of the log, but for one last entry of a leader that has not written yet.

/// One leader epoch and the first offset it could write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochStart {
    pub epoch: i32,
    pub start_offset: i64,
}

/// See the file's header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EpochCache {
    entries: Vec<EpochStart>,
}

impl EpochCache {
    /// The newest epoch; `None` for a log that never had one.
    pub fn latest(&self) -> Option<i32> {
        self.entries.last().map(|entry| entry.epoch)
    }

    pub fn entries(&self) -> &[EpochStart] {
        &self.entries
    }

    /// `(epoch, start offset)` ascending: the content of `leader-epoch-checkpoint`.
    pub fn pairs(&self) -> Vec<(i32, i64)> {
        self.entries.iter().map(|entry| (entry.epoch, entry.start_offset)).collect()
    }

    /// Notes that `epoch` writes from `start_offset` on. Entries that contradict it (a newer or equal epoch, or a
    /// start at or behind it) go: they belong to a branch that is gone, or to a leader that wrote nothing.
    /// Returns whether anything changed: an epoch that is already the newest keeps its earlier start.
    pub fn assign(&mut self, epoch: i32, start_offset: i64) -> bool {
        assert!(epoch >= 0, "leader epoch {epoch} is a real one");
        assert!(start_offset >= 0, "epoch {epoch} starts at a real offset, not {start_offset}");
        if let Some(last) = self.entries.last()
            && last.epoch == epoch
            && last.start_offset <= start_offset
        {
            return false;
        }
        self.entries.retain(|entry| entry.epoch < epoch && entry.start_offset < start_offset);
        self.entries.push(EpochStart { epoch, start_offset });
        assert!(self.is_increasing(), "epochs and their starts increase: {:?}", self.entries);
        true
    }

    /// kafka-rules 1.3: the newest epoch at or below `epoch` that this log knows, and the offset where it ends.
    /// `None` when `epoch` is negative, or newer than every epoch this log knows.
    pub fn end_offset_for(&self, epoch: i32, log_end_offset: i64) -> Option<(i32, i64)> {
        if epoch < 0 {
            return None;
        }
        if self.latest() == Some(epoch) {
            return Some((epoch, log_end_offset));
        }
        let newer = self.entries.partition_point(|entry| entry.epoch <= epoch);
        let end_offset = self.entries.get(newer)?.start_offset;
        let found = newer.checked_sub(1).map_or(epoch, |at_or_below| self.entries[at_or_below].epoch);
        assert!(found <= epoch, "the epoch found, {found}, is not newer than {epoch}");
        Some((found, end_offset))
    }

    /// The epoch that wrote `offset`; `None` before the first entry.
    pub fn epoch_for_offset(&self, offset: i64) -> Option<i32> {
        let started = self.entries.partition_point(|entry| entry.start_offset <= offset);
        started.checked_sub(1).map(|index| self.entries[index].epoch)
    }

    /// Cuts entries that start at or behind `offset`; also when the log itself ends before it (kafka-rules 1.6).
    /// Returns whether anything changed.
    pub fn truncate_from(&mut self, offset: i64) -> bool {
        let kept = self.entries.partition_point(|entry| entry.start_offset < offset);
        let changed = kept < self.entries.len();
        self.entries.truncate(kept);
        changed
    }

    /// Forgets everything. Returns whether there was something.
    pub fn clear(&mut self) -> bool {
        let changed = !self.entries.is_empty();
        self.entries.clear();
        changed
    }

    fn is_increasing(&self) -> bool {
        self.entries.is_sorted_by(|one, next| one.epoch < next.epoch && one.start_offset < next.start_offset)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cache(pairs: &[(i32, i64)]) -> EpochCache {
        let mut cache = EpochCache::default();
        for (epoch, start_offset) in pairs {
            cache.assign(*epoch, *start_offset);
        }
        cache
    }

    #[test]
    fn newest_epoch_ends_at_the_log_end() {
        assert_eq!(cache(&[(0, 0), (2, 10)]).end_offset_for(2, 25), Some((2, 25)));
    }

    #[test]
    fn older_epoch_ends_where_the_next_starts() {
        let cache = cache(&[(0, 0), (2, 10), (5, 20)]);
        assert_eq!(cache.end_offset_for(0, 25), Some((0, 10)));
        assert_eq!(cache.end_offset_for(1, 25), Some((0, 10)), "an epoch that wrote nothing here");
        assert_eq!(cache.end_offset_for(4, 25), Some((2, 20)));
    }

    #[test]
    fn epoch_before_the_first_ends_where_the_first_starts() {
        assert_eq!(cache(&[(3, 7)]).end_offset_for(1, 25), Some((1, 7)));
    }

    #[test]
    fn unknown_newer_epoch_has_no_end() {
        assert_eq!(cache(&[(3, 7)]).end_offset_for(4, 25), None);
        assert_eq!(EpochCache::default().end_offset_for(0, 0), None);
        assert_eq!(cache(&[(3, 7)]).end_offset_for(-1, 25), None, "a log without epochs asks with -1");
    }

    #[test]
    fn leader_that_wrote_nothing_leaves_no_entry_behind() {
        assert_eq!(cache(&[(1, 0), (2, 10), (3, 10)]).pairs(), vec![(1, 0), (3, 10)]);
    }

    #[test]
    fn same_epoch_keeps_its_first_start() {
        let mut cache = cache(&[(1, 0)]);
        assert!(!cache.assign(1, 10));
        assert_eq!(cache.pairs(), vec![(1, 0)]);
    }

    #[test]
    fn truncation_at_the_log_end_cuts_the_entry_of_a_leader_that_wrote_nothing() {
        let mut cache = cache(&[(1, 0), (2, 10)]);
        assert!(cache.truncate_from(10));
        assert!(!cache.truncate_from(10));
        assert_eq!(cache.pairs(), vec![(1, 0)]);
    }

    proptest! {
        /// R6 on the model "one epoch per offset": look-ups agree with a walk over the log.
        #[test]
        fn lookups_agree_with_a_walk_over_the_log(runs in prop::collection::vec((1i32..4, 1i64..5), 1..8)) {
            let mut log: Vec<i32> = Vec::new();
            let mut cache = EpochCache::default();
            let mut epoch = -1;
            for (step, count) in runs {
                epoch += step;
                cache.assign(epoch, log.len() as i64);
                log.extend(std::iter::repeat_n(epoch, count as usize));
            }
            let end = log.len() as i64;
            for asked in 0..=epoch {
                let found = log.iter().copied().filter(|written| *written <= asked).max();
                let end_offset = log.iter().filter(|written| **written <= asked).count() as i64;
                prop_assert_eq!(cache.end_offset_for(asked, end), Some((found.unwrap_or(asked), end_offset)));
            }
            for (offset, written) in log.iter().enumerate() {
                prop_assert_eq!(cache.epoch_for_offset(offset as i64), Some(*written));
            }
        }
    }
}
