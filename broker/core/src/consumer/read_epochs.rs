//! Which leader epochs a reader has read of a partition, and from where on. With it a reader finds where its log and a
//! leader's part, as a follower does; Kafka's consumer keeps only its last epoch, and may go on behind that place.
//!
//! Decides nothing else. Source: kafka-rules 1.3, 1.5; KIP-279.

use std::collections::VecDeque;

/// Epochs remembered a partition; older ones are forgotten, and then the leader's word alone counts.
const EPOCHS_MAX: usize = 64;

/// Epochs and the first offset read of each, both increasing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadEpochs(VecDeque<(i32, i64)>);

impl ReadEpochs {
    /// A record at `offset`, the highest so far, was written in `epoch`.
    pub fn read(&mut self, epoch: i32, offset: i64) {
        if self.0.back().is_none_or(|(last, from)| *last < epoch && *from < offset) {
            if self.0.len() == EPOCHS_MAX {
                self.0.pop_front();
            }
            self.0.push_back((epoch, offset));
        }
    }

    /// Where this reader's log and a leader's may still be one: the leader's newest epoch that is not above this
    /// reader's last is `epoch`, and ends there at `end_offset`. What this reader read of a newer epoch is not there.
    pub fn shared_end(&self, epoch: i32, end_offset: i64) -> i64 {
        let newer = self.0.iter().find(|(read, _)| *read > epoch);
        newer.map_or(end_offset, |(_, from)| end_offset.min(*from))
    }

    /// Nothing at or behind `offset` was read.
    pub fn cut(&mut self, offset: i64) {
        self.0.retain(|(_, from)| *from < offset);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(epochs: &[(i32, i64)]) -> ReadEpochs {
        let mut read = ReadEpochs::default();
        epochs.iter().for_each(|(epoch, offset)| read.read(*epoch, *offset));
        read
    }

    #[test]
    fn logs_part_where_an_epoch_begins_that_the_leader_lacks() {
        let read = read(&[(1, 0), (1, 4), (3, 5), (3, 8)]);
        assert_eq!(read.shared_end(3, 7), 7, "the leader has less of the last epoch");
        assert_eq!(read.shared_end(1, 20), 5, "the leader has more of the one before");
        assert_eq!(read.shared_end(1, 3), 3);
        assert_eq!(read.shared_end(0, 0), 0);
    }

    #[test]
    fn what_is_cut_or_forgotten_leaves_the_leaders_word() {
        let mut read = read(&[(1, 0), (3, 5)]);
        read.cut(5);
        assert_eq!(read.shared_end(1, 20), 20);
        for epoch in 2..2 + EPOCHS_MAX as i32 {
            read.read(epoch, i64::from(epoch) * 10);
        }
        assert_eq!(read.shared_end(1, 999), 20);
        assert_eq!(read.0.len(), EPOCHS_MAX);
    }
}
