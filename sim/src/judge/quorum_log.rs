//! The metadata quorum's log: Q3 epoch monotonic, Q4 log matching, leader completeness and state-machine safety, Q5
//! quorum-held watermark, Q6 watermark monotonic. What logs hold and what of them is synced comes from the disks; that
//! something is committed, and who leads, from the nodes.
//!
//! - Q3: the epochs that a node reaches never fall, also across its starts; neither do those of batches along a log;
//!   and a leader's epoch is above every epoch in its log.
//! - Q4: two batches at one offset with one epoch are one batch, behind one batch; whoever is elected holds the last
//!   committed one; nobody cuts a committed one; and what a node counts as committed is what was committed there.
//! - Q5: when a leader raises its high watermark, a majority of the voters has everything below it on its platter.
//! - Q6: a node's high watermark never falls while its process lives.
//!
//! Prefixes that went into snapshots are no longer compared. Each batch of a log is looked at once.

use std::collections::BTreeMap;

use acked_core::NodeId;
use acked_reports::Outcome;

use super::checks::Check;
use super::metadata_log::{Batch, MetadataLog, segment_of};
use super::reporter::{Place, Reporter};
use crate::names::{node_name, node_names};
use crate::world::tap::DiskChange;

/// Base offset and epoch of a batch.
type Written = (i64, i32);

/// The metadata logs of all nodes, and what is known to be committed in them.
#[derive(Debug, Default)]
pub struct QuorumLogs {
    logs: BTreeMap<NodeId, MetadataLog>,
    /// The first batch seen with a base offset and epoch, and the base offset and epoch of the one before it.
    written: BTreeMap<Written, (Batch, Option<Written>)>,
    /// By base offset.
    committed: BTreeMap<i64, Batch>,
    committed_end: i64,
    /// Of the process that runs.
    watermarks: BTreeMap<NodeId, i64>,
    /// How far a node's log is compared with what is committed.
    matched: BTreeMap<NodeId, i64>,
    epochs: BTreeMap<NodeId, i32>,
    leaders: BTreeMap<i32, NodeId>,
    voters: Vec<NodeId>,
}

impl QuorumLogs {
    pub fn new(voters: &[NodeId]) -> QuorumLogs {
        QuorumLogs { voters: voters.to_vec(), ..QuorumLogs::default() }
    }

    /// A file of `node` changed.
    pub fn on_disk(&mut self, node: NodeId, change: &DiskChange<'_>, reporter: &mut Reporter) {
        let path = match *change {
            DiskChange::Written { path, .. }
            | DiskChange::Truncated { path, .. }
            | DiskChange::Synced { path }
            | DiskChange::Removed { path }
            | DiskChange::Replaced { path, .. } => path,
            DiskChange::Renamed { .. } => return,
        };
        let Some(base) = segment_of(path) else { return };
        let done = self.logs.entry(node).or_default().changed(base, change);
        for batch in &done.removed {
            self.was_cut(node, batch, reporter);
        }
        if let Some((_, first)) = done.appended.first()
            && let Some(matched) = self.matched.get_mut(&node)
        {
            *matched = (*matched).min(first.base_offset);
        }
        for (before, batch) in done.appended {
            self.was_appended(node, before, batch, reporter);
        }
    }

    fn was_cut(&self, node: NodeId, batch: &Batch, reporter: &mut Reporter) {
        reporter.compared(Check::Q4, 1);
        if self.committed.get(&batch.base_offset) != Some(batch) {
            return;
        }
        let place = place(node, batch.epoch, batch.base_offset);
        reporter.found(Check::Q4, Outcome::Lost, place, || {
            format!("{} cuts metadata offset {}, which is committed", node_name(node), batch.base_offset)
        });
    }

    fn was_appended(&mut self, node: NodeId, before: Option<Batch>, batch: Batch, reporter: &mut Reporter) {
        let at = place(node, batch.epoch, batch.base_offset);
        reporter.compared(Check::Q3, 1);
        reporter.compared(Check::Q4, 1);
        if let Some(before) = before.filter(|before| before.epoch > batch.epoch) {
            reporter.found(Check::Q3, Outcome::Diverged, at, || {
                format!(
                    "{} holds metadata offset {} of epoch {} behind one of epoch {}",
                    node_name(node),
                    batch.base_offset,
                    batch.epoch,
                    before.epoch
                )
            });
        }
        let before = before.map(|before| (before.base_offset, before.epoch));
        let Some((known, known_before)) = self.written.get_mut(&(batch.base_offset, batch.epoch)) else {
            self.written.insert((batch.base_offset, batch.epoch), (batch, before));
            return;
        };
        let same_front = known_before.is_none() || before.is_none() || *known_before == before;
        *known_before = known_before.or(before);
        if *known == batch && same_front {
            return;
        }
        let what = if *known == batch { "behind another batch" } else { "with another content" };
        reporter.found(Check::Q4, Outcome::Diverged, at, || {
            format!(
                "{} holds metadata offset {} of epoch {} {what} than another node",
                node_name(node),
                batch.base_offset,
                batch.epoch
            )
        });
    }

    /// The process of a node began.
    pub fn node_started(&mut self, node: NodeId) {
        self.watermarks.remove(&node);
    }

    /// A node lost its disk: it is a new one.
    pub fn disk_wiped(&mut self, node: NodeId) {
        self.epochs.remove(&node);
        self.matched.remove(&node);
    }

    /// The set of voters in force.
    pub fn voters(&mut self, voters: &[NodeId]) {
        self.voters = voters.to_vec();
    }

    pub fn epoch_reached(&mut self, node: NodeId, epoch: i32, reporter: &mut Reporter) {
        reporter.compared(Check::Q3, 1);
        let before = self.epochs.insert(node, epoch).filter(|before| *before > epoch);
        let Some(before) = before else { return };
        reporter.found(Check::Q3, Outcome::None, place(node, epoch, 0), || {
            format!("{} went from quorum epoch {before} back to {epoch}", node_name(node))
        });
    }

    pub fn leader_elected(&mut self, node: NodeId, epoch: i32, reporter: &mut Reporter) {
        self.leaders.entry(epoch).or_insert(node);
        let log = self.logs.entry(node).or_default();
        reporter.compared(Check::Q3, 1);
        if let Some(last) = log.last().filter(|last| last.epoch >= epoch) {
            reporter.found(Check::Q3, Outcome::None, place(node, epoch, last.base_offset), || {
                format!("{} leads quorum epoch {epoch} with a log of epoch {}", node_name(node), last.epoch)
            });
        }
        reporter.compared(Check::Q4, 1);
        let Some((_, last)) = self.committed.last_key_value() else { return };
        // What lies below the first batch is in a snapshot.
        let is_in_snapshot = log.first().is_some_and(|first| first.base_offset > last.last_offset);
        if is_in_snapshot || log.get(last.base_offset) == Some(*last) {
            return;
        }
        let at = place(node, epoch, last.base_offset);
        reporter.found(Check::Q4, Outcome::Lost, at, || {
            format!(
                "{} leads quorum epoch {epoch} without metadata offset {}, committed in epoch {}",
                node_name(node),
                last.base_offset,
                last.epoch
            )
        });
    }

    /// A node counts everything below `to` as committed.
    pub fn high_watermark(&mut self, node: NodeId, epoch: i32, to: i64, reporter: &mut Reporter) {
        reporter.compared(Check::Q6, 1);
        let before = self.watermarks.insert(node, to).filter(|before| *before > to);
        if let Some(before) = before {
            reporter.found(Check::Q6, Outcome::None, place(node, epoch, to), || {
                format!("metadata high watermark of {} fell from {before} to {to}", node_name(node))
            });
        }
        if self.leaders.get(&epoch) == Some(&node) {
            self.check_majority(node, epoch, to, reporter);
            self.commit(node, to);
        }
        self.check_applied(node, epoch, to, reporter);
    }

    fn check_majority(&self, leader: NodeId, epoch: i32, to: i64, reporter: &mut Reporter) {
        reporter.compared(Check::Q5, 1);
        let last = self.logs.get(&leader).and_then(|log| log.before(to));
        let holds = |voter: &&NodeId| {
            let Some(log) = self.logs.get(*voter) else { return false };
            log.synced_end() >= to && last.is_some_and(|last| log.get(last.base_offset) == Some(last))
        };
        let holders: Vec<NodeId> = self.voters.iter().filter(holds).copied().collect();
        if holders.len() * 2 > self.voters.len() {
            return;
        }
        reporter.found(Check::Q5, Outcome::None, place(leader, epoch, to), || {
            format!(
                "{} raised the metadata high watermark to {to} in epoch {epoch}, and only {{{}}} of {} voters have \
                 that synced",
                node_name(leader),
                node_names(&holders),
                self.voters.len()
            )
        });
    }

    fn commit(&mut self, leader: NodeId, to: i64) {
        if to <= self.committed_end {
            return;
        }
        let Some(log) = self.logs.get(&leader) else { return };
        for batch in log.between(self.committed_end, to) {
            self.committed.entry(batch.base_offset).or_insert(batch);
        }
        self.committed_end = to;
    }

    fn check_applied(&mut self, node: NodeId, epoch: i32, to: i64, reporter: &mut Reporter) {
        let from = self.matched.get(&node).copied().unwrap_or(0);
        if to <= from {
            return;
        }
        self.matched.insert(node, to);
        if to > self.committed_end {
            reporter.compared(Check::Q4, 1);
            reporter.found(Check::Q4, Outcome::Diverged, place(node, epoch, to), || {
                format!(
                    "{} counts metadata below {to} as committed, and no leader committed beyond {}",
                    node_name(node),
                    self.committed_end
                )
            });
        }
        let Some(log) = self.logs.get(&node) else { return };
        for batch in log.between(from, to) {
            reporter.compared(Check::Q4, 1);
            match self.committed.get(&batch.base_offset) {
                Some(committed) if *committed != batch => {
                    let at = place(node, epoch, batch.base_offset);
                    reporter.found(Check::Q4, Outcome::Diverged, at, || {
                        format!(
                            "{} applies another batch at metadata offset {} (epoch {}) than was committed (epoch {})",
                            node_name(node),
                            batch.base_offset,
                            batch.epoch,
                            committed.epoch
                        )
                    });
                }
                _ => {}
            }
        }
    }
}

fn place(node: NodeId, epoch: i32, offset: i64) -> Place {
    Place { partition: None, node: Some(node), epoch, offset: Some(offset) }
}

#[cfg(test)]
mod tests {
    use acked_wire::batch::BatchBuilder;

    use super::super::checks::Checks;
    use super::*;

    const C1: NodeId = NodeId(101);
    const C2: NodeId = NodeId(102);
    const C3: NodeId = NodeId(103);
    const PATH: &str = "data/__cluster_metadata-0/00000000000000000000.log";

    struct Stage {
        logs: QuorumLogs,
        reporter: Reporter,
        files: BTreeMap<NodeId, Vec<Vec<u8>>>,
    }

    impl Stage {
        /// Three voters with empty logs; C1 leads epoch 1.
        fn new() -> Stage {
            let voters = [C1, C2, C3];
            let mut stage = Stage {
                logs: QuorumLogs::new(&voters),
                reporter: Reporter::new(Checks::ALL),
                files: voters.into_iter().map(|voter| (voter, Vec::new())).collect(),
            };
            stage.elected(C1, 1);
            stage
        }

        /// Every batch has one record.
        fn append(&mut self, node: NodeId, epoch: i32, value: &str, sync: bool) {
            let file = self.files.get_mut(&node).expect("a voter");
            let position = file.iter().map(|batch| batch.len() as u64).sum();
            let mut builder = BatchBuilder::new(0).base_offset(file.len() as i64).leader_epoch(epoch);
            builder.push(0, None, Some(value.as_bytes()), &[]);
            let bytes = builder.build().to_vec();
            file.push(bytes.clone());
            self.disk(node, &DiskChange::Written { path: PATH, position, bytes: &bytes });
            if sync {
                self.disk(node, &DiskChange::Synced { path: PATH });
            }
        }

        fn cut(&mut self, node: NodeId, end: usize) {
            let file = self.files.get_mut(&node).expect("a voter");
            file.truncate(end);
            let size = file.iter().map(|batch| batch.len() as u64).sum();
            self.disk(node, &DiskChange::Truncated { path: PATH, size });
        }

        fn disk(&mut self, node: NodeId, change: &DiskChange<'_>) {
            self.logs.on_disk(node, change, &mut self.reporter);
        }

        fn elected(&mut self, node: NodeId, epoch: i32) {
            self.logs.epoch_reached(node, epoch, &mut self.reporter);
            self.logs.leader_elected(node, epoch, &mut self.reporter);
        }

        fn commits(&mut self, node: NodeId, epoch: i32, to: i64) {
            self.logs.high_watermark(node, epoch, to, &mut self.reporter);
        }

        fn found(&self) -> Vec<&'static str> {
            self.reporter.findings.iter().map(|finding| finding.invariant).collect()
        }
    }

    #[test]
    fn correct_replication_over_a_change_of_leader_is_clean() {
        let mut stage = Stage::new();
        for node in [C1, C2] {
            stage.append(node, 1, "a", true);
        }
        stage.commits(C1, 1, 1);
        stage.commits(C2, 1, 1);
        stage.append(C1, 1, "uncommitted", true);
        stage.elected(C2, 2);
        for node in [C2, C3] {
            if node == C3 {
                stage.append(node, 1, "a", true);
            }
            stage.append(node, 2, "b", true);
        }
        stage.commits(C2, 2, 2);
        stage.cut(C1, 1);
        stage.append(C1, 2, "b", true);
        stage.commits(C1, 2, 2);
        assert_eq!(stage.found(), [""; 0]);
        for check in [Check::Q3, Check::Q4, Check::Q5, Check::Q6] {
            assert!(stage.reporter.comparisons.of(check) > 0, "{}", check.id());
        }
    }

    #[test]
    fn q3_epoch_that_falls() {
        let mut stage = Stage::new();
        stage.logs.epoch_reached(C2, 4, &mut stage.reporter);
        stage.logs.node_started(C2);
        stage.logs.epoch_reached(C2, 3, &mut stage.reporter);
        assert_eq!(stage.found(), ["Q3"]);
    }

    #[test]
    fn q3_epoch_that_falls_along_a_log() {
        let mut stage = Stage::new();
        stage.append(C2, 2, "a", true);
        stage.append(C2, 1, "b", true);
        assert_eq!(stage.found(), ["Q3"]);
    }

    #[test]
    fn q3_leader_with_a_log_of_its_own_epoch() {
        let mut stage = Stage::new();
        stage.append(C2, 2, "a", true);
        stage.elected(C2, 2);
        assert_eq!(stage.found(), ["Q3"]);
    }

    #[test]
    fn q4_two_contents_at_one_offset_of_one_epoch() {
        let mut stage = Stage::new();
        stage.append(C1, 1, "a", true);
        stage.append(C2, 1, "b", true);
        assert_eq!(stage.found(), ["Q4"]);
    }

    #[test]
    fn q4_same_batch_behind_different_ones() {
        let mut stage = Stage::new();
        stage.append(C1, 1, "a", true);
        stage.append(C1, 3, "c", true);
        stage.append(C2, 2, "b", true);
        assert_eq!(stage.found(), [""; 0]);
        stage.append(C2, 3, "c", true);
        assert_eq!(stage.found(), ["Q4"]);
    }

    #[test]
    fn q4_leader_without_what_is_committed() {
        let mut stage = Stage::new();
        for node in [C1, C2] {
            stage.append(node, 1, "a", true);
        }
        stage.commits(C1, 1, 1);
        stage.elected(C3, 2);
        assert_eq!(stage.found(), ["Q4"]);
    }

    #[test]
    fn q4_node_that_applies_what_nobody_committed_or_something_else() {
        let mut stage = Stage::new();
        for node in [C1, C2] {
            stage.append(node, 1, "a", true);
        }
        stage.append(C3, 0, "old", true);
        stage.commits(C1, 1, 1);
        stage.commits(C3, 1, 1);
        assert_eq!(stage.found(), ["Q4"]);
        let mut stage = Stage::new();
        stage.append(C2, 1, "a", true);
        stage.commits(C2, 1, 1);
        assert_eq!(stage.found(), ["Q4"]);
    }

    #[test]
    fn q4_committed_batch_that_is_cut() {
        let mut stage = Stage::new();
        for node in [C1, C2] {
            stage.append(node, 1, "a", true);
        }
        stage.commits(C1, 1, 1);
        stage.cut(C2, 0);
        assert_eq!(stage.found(), ["Q4"]);
    }

    #[test]
    fn q5_watermark_that_only_a_minority_has_synced() {
        let mut stage = Stage::new();
        stage.append(C1, 1, "a", true);
        stage.append(C2, 1, "a", false);
        stage.commits(C1, 1, 1);
        assert_eq!(stage.found(), ["Q5"]);
    }

    #[test]
    fn q6_watermark_that_falls_in_one_process_only() {
        let mut stage = Stage::new();
        for value in ["a", "b"] {
            for node in [C1, C2] {
                stage.append(node, 1, value, true);
            }
        }
        stage.commits(C1, 1, 2);
        stage.logs.node_started(C1);
        stage.commits(C1, 1, 1);
        assert_eq!(stage.found(), [""; 0], "a new process begins low");
        stage.commits(C1, 1, 2);
        stage.commits(C1, 1, 1);
        assert_eq!(stage.found(), ["Q6"]);
    }
}
