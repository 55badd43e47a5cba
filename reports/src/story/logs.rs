//! What every replica's log of a partition held at chosen times: offsets and the epochs that wrote them, and how far it
//! was committed. Built from what nodes said of their own appends and cuts.

use std::collections::BTreeMap;

use super::standing::{Place, Standings};
use super::{Change, Moment};

/// Records of one epoch that lie side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    first: i64,
    /// Exclusive.
    end: i64,
    leader_epoch: i32,
}

/// One replica's log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// In offset order, without overlap.
    runs: Vec<Run>,
    /// The last one that it said.
    pub high_watermark: Option<i64>,
}

impl Log {
    /// The epoch in which the record at this offset was written; `None` where there is none.
    pub fn leader_epoch_at(&self, offset: i64) -> Option<i32> {
        let run = self.runs.iter().find(|run| run.first <= offset && offset < run.end)?;
        Some(run.leader_epoch)
    }

    /// The next offset to write.
    pub fn log_end_offset(&self) -> i64 {
        self.runs.last().map_or(0, |run| run.end)
    }

    fn truncate(&mut self, to: i64) {
        self.runs.retain(|run| run.first < to);
        if let Some(last) = self.runs.last_mut() {
            last.end = last.end.min(to);
        }
    }

    fn append(&mut self, run: Run) {
        self.truncate(run.first);
        match self.runs.last_mut() {
            Some(last) if last.end == run.first && last.leader_epoch == run.leader_epoch => {
                last.end = run.end
            }
            _ => self.runs.push(run),
        }
    }

    /// The part of it from `first` to before `end`.
    fn part(&self, first: i64, end: i64) -> Vec<Run> {
        let within = |run: &Run| Run { first: run.first.max(first), end: run.end.min(end), ..*run };
        self.runs.iter().map(within).filter(|run| run.first < run.end).collect()
    }
}

/// All replicas at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    pub t_us: u64,
    pub replicas: BTreeMap<String, (Place, Log)>,
    pub isr: Vec<String>,
}

/// The logs as they were after everything that happened up to each of the times, which ascend.
pub fn at(moments: &[Moment], partition: &str, times_us: &[u64]) -> Vec<Snapshot> {
    assert!(times_us.is_sorted(), "time runs one way");
    let mut standings = Standings::new(moments, partition);
    let mut logs: BTreeMap<&str, Log> = BTreeMap::new();
    let mut leaders: BTreeMap<i32, &str> = BTreeMap::new();
    let mut isr: &[String] = &[];
    let mut next = moments.iter().peekable();
    let mut snapshots = Vec::new();
    for t_us in times_us {
        while let Some(moment) = next.next_if(|moment| moment.t_us <= *t_us) {
            standings.apply(moment);
            if !moment.is_of(partition) {
                continue;
            }
            let who = moment.who.as_str();
            match &moment.change {
                Change::Decided { leader, leader_epoch, isr: now } => {
                    isr = now;
                    if let Some(leader) = leader {
                        leaders.insert(*leader_epoch, leader);
                    }
                }
                Change::Appended { leader_epoch, first, last } => {
                    let end = last.saturating_add(1);
                    let whole = Run { first: *first, end, leader_epoch: *leader_epoch };
                    // A follower copies, and with the records the epochs in which they were written.
                    let leader = leaders.get(leader_epoch).filter(|leader| **leader != who);
                    let copied = leader.and_then(|leader| logs.get(leader)).map(|log| log.part(*first, end));
                    let complete = |runs: &Vec<Run>| {
                        runs.iter().map(|run| run.end - run.first).sum::<i64>() == end - *first
                    };
                    let runs = copied.filter(complete).unwrap_or_else(|| vec![whole]);
                    let log = logs.entry(who).or_default();
                    runs.into_iter().for_each(|run| log.append(run));
                }
                Change::Truncated { to, .. } => logs.entry(who).or_default().truncate(*to),
                Change::Recovered { log_end_offset } => {
                    let log = logs.entry(who).or_default();
                    log.truncate(*log_end_offset);
                    log.high_watermark = None;
                }
                Change::HighWatermark { to } => logs.entry(who).or_default().high_watermark = Some(*to),
                _ => {}
            }
        }
        let replicas = standings
            .places()
            .map(|(name, place)| (name.to_string(), (place, logs.get(name).cloned().unwrap_or_default())))
            .collect();
        snapshots.push(Snapshot { t_us: *t_us, replicas, isr: isr.to_vec() });
    }
    snapshots
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::life::tests::{decided, moment};
    use super::*;

    #[test]
    fn a_follower_copies_the_epochs_with_the_records() {
        let appended = |leader_epoch, first, last| Change::Appended { leader_epoch, first, last };
        let moments = [
            moment(0, "node", "b1", Change::Started),
            moment(0, "node", "b2", Change::Started),
            moment(0, "node", "b3", Change::Started),
            decided(1, Some("b1"), 0, &["b1", "b2"]),
            moment(2, "appended", "b1", appended(0, 0, 4)),
            moment(2, "appended", "b2", appended(0, 0, 2)),
            decided(3, Some("b2"), 1, &["b2"]),
            moment(4, "appended", "b2", appended(1, 3, 3)),
            moment(5, "appended", "b3", appended(1, 0, 3)),
            moment(6, "truncated", "b1", Change::Truncated { from: 5, to: 3 }),
        ];
        let snapshots = at(&moments, "orders-0", &[2_000_000, 5_000_000, 9_000_000]);
        let row = |snapshot: &Snapshot, who: &str| -> Vec<Option<i32>> {
            (0..5).map(|offset| snapshot.replicas[who].1.leader_epoch_at(offset)).collect()
        };
        assert_eq!(row(&snapshots[0], "b1"), [Some(0); 5]);
        assert_eq!(row(&snapshots[1], "b3"), [Some(0), Some(0), Some(0), Some(1), None]);
        assert_eq!(row(&snapshots[2], "b1"), [Some(0), Some(0), Some(0), None, None]);
        assert_eq!(snapshots[2].replicas["b1"].1.log_end_offset(), 3);
        assert_eq!(snapshots[1].isr, ["b2"]);
    }

    proptest! {
        /// The model is a list with one epoch an offset.
        #[test]
        fn a_log_is_what_a_plain_list_would_be(steps in prop::collection::vec((0i64..20, 1i64..6, 0i32..3, any::<bool>()), 0..30)) {
            let mut log = Log::default();
            let mut model: Vec<i32> = Vec::new();
            for (at, count, leader_epoch, append) in steps {
                let at = at.min(model.len() as i64);
                model.truncate(at as usize);
                if append {
                    log.append(Run { first: at, end: at + count, leader_epoch });
                    model.extend(std::iter::repeat_n(leader_epoch, count as usize));
                } else {
                    log.truncate(at);
                }
                prop_assert_eq!(log.log_end_offset(), model.len() as i64);
                for offset in 0..30 {
                    prop_assert_eq!(log.leader_epoch_at(offset), model.get(offset as usize).copied());
                }
            }
        }
    }
}
