//! Watches every node of a test cluster and says which promise of the quorum was broken: Q1 to Q6 of the invariants.

use std::collections::BTreeMap;

use super::super::metadata_log::StoredBatch;
use super::super::{CommittedBatch, QuorumEffect};
use crate::observation::Observation;
use crate::types::NodeId;

/// What it knows of one incarnation of a node.
#[derive(Debug, Default)]
struct Seen {
    epoch: i32,
    high_watermark: i64,
}

#[derive(Debug, Default)]
pub struct Judge {
    leaders: BTreeMap<i32, NodeId>,
    votes: BTreeMap<(NodeId, i32), NodeId>,
    /// Every batch that any node delivered, with the epoch in which it was first seen committed.
    committed: Vec<(CommittedBatch, i32)>,
    seen: BTreeMap<NodeId, Seen>,
    pub violations: Vec<String>,
    pub elections: usize,
    pub truncations: usize,
    pub resignations: usize,
}

impl Judge {
    /// High watermarks do not outlast a restart, nor do epochs of which nothing was saved nor said.
    pub fn node_started(&mut self, node: NodeId) {
        self.seen.insert(node, Seen::default());
    }

    pub fn observe(&mut self, node: NodeId, observation: &Observation, log: &[StoredBatch]) {
        match *observation {
            Observation::QuorumTruncated { .. } => self.truncations += 1,
            Observation::QuorumLeaderResigned { .. } => self.resignations += 1,
            Observation::QuorumLeaderElected { epoch, .. } => {
                self.elections += 1;
                match self.leaders.insert(epoch, node) {
                    None => {}
                    Some(other) => {
                        self.blame(format!("Q1: {other} and then {node} were elected in epoch {epoch}"))
                    }
                }
                self.check_leader_is_complete(node, epoch, log);
            }
            Observation::VoteGranted { epoch, candidate } => {
                let before = *self.votes.entry((node, epoch)).or_insert(candidate);
                if before != candidate {
                    self.blame(format!("Q2: {node} voted for {before} and {candidate} in epoch {epoch}"));
                }
            }
            Observation::QuorumHighWatermark { to, .. } => {
                let before = std::mem::replace(&mut self.seen.entry(node).or_default().high_watermark, to);
                if to <= before {
                    self.blame(format!("Q6: high watermark of {node} went from {before} to {to}"));
                }
            }
            _ => {}
        }
    }

    pub fn epoch(&mut self, node: NodeId, epoch: i32) {
        let before = std::mem::replace(&mut self.seen.entry(node).or_default().epoch, epoch);
        if epoch < before {
            self.blame(format!("Q3: epoch of {node} fell from {before} to {epoch}"));
        }
    }

    pub fn effect(&mut self, node: NodeId, epoch: i32, effect: &QuorumEffect) {
        match effect {
            QuorumEffect::Committed { batches } => {
                batches.iter().for_each(|batch| self.delivered(node, epoch, batch));
            }
            QuorumEffect::Halt { fault } => self.blame(format!("Q4: {node} halts: {fault}")),
            _ => {}
        }
    }

    fn delivered(&mut self, node: NodeId, epoch: i32, batch: &CommittedBatch) {
        let end = self.committed.last().map_or(0, |(last, _)| last.last_offset + 1);
        let known = self.committed.iter().find(|(known, _)| known.base_offset == batch.base_offset);
        match known {
            Some((known, _)) if known == batch => {}
            None if batch.base_offset == end => self.committed.push((batch.clone(), epoch)),
            _ => {
                self.blame(format!("Q4: {node} applied {batch:?} at an offset where others applied another"))
            }
        }
    }

    /// A leader holds everything that was committed in earlier epochs.
    fn check_leader_is_complete(&mut self, node: NodeId, epoch: i32, log: &[StoredBatch]) {
        let missing =
            self.committed.iter().filter(|(_, committed_in)| *committed_in < epoch).find(|(batch, _)| {
                !log.iter().any(|own| own.base_offset == batch.base_offset && own.epoch == batch.epoch)
            });
        if let Some((batch, committed_in)) = missing {
            let base_offset = batch.base_offset;
            self.blame(format!(
                "Q4: {node} leads epoch {epoch} without the batch at {base_offset}, committed in {committed_in}"
            ));
        }
    }

    /// Equal offset and epoch mean equal prefixes.
    pub fn check_log_matching(&mut self, logs: &BTreeMap<NodeId, Vec<StoredBatch>>) {
        for (left, left_log) in logs {
            for (right, right_log) in logs.range(left..).skip(1) {
                let last_shared = left_log
                    .iter()
                    .zip(right_log)
                    .rposition(|(a, b)| a.base_offset == b.base_offset && a.epoch == b.epoch);
                let Some(last_shared) = last_shared else { continue };
                if left_log[..=last_shared] != right_log[..=last_shared] {
                    self.blame(format!(
                        "Q4: logs of {left} and {right} differ below a batch that they share"
                    ));
                }
            }
        }
    }

    /// `synced_ends`: how much of the leader's log is on the platter of each voter.
    pub fn check_synced_majority(&mut self, leader: NodeId, high_watermark: i64, synced_ends: &[i64]) {
        let holders = synced_ends.iter().filter(|end| **end >= high_watermark).count();
        if holders <= synced_ends.len() / 2 {
            self.blame(format!(
                "Q5: {leader} raised its high watermark to {high_watermark}, synced ends are {synced_ends:?}"
            ));
        }
    }

    pub fn committed_batches(&self) -> usize {
        self.committed.len()
    }

    fn blame(&mut self, violation: String) {
        self.violations.push(violation);
    }
}
