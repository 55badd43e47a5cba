//! What a start makes of a log. R2 process-crash neutrality: after a process ended and its page cache survived, the
//! recovered log is the log before. R3 power-loss prefix: after a power loss it is the longest front of the log before
//! that the disk still has, neither more (zeroes, stale or torn tails are cut) nor less.
//!
//! A log that was not recovered but kept away from service is not judged, and neither is one that another fault than
//! a power loss damaged: whether that is noticed is R9's question.

use acked_core::NodeId;
use acked_reports::Outcome;

use super::case::{Court, PartitionCase};
use super::checks::Check;
use super::mirror::Entry;
use crate::names::node_name;

/// What is expected of a log at its node's next start.
#[derive(Clone, Copy, Debug)]
struct Expected {
    check: Check,
    log_end_offset: i64,
}

/// What is known of the logs of one partition on nodes that are down or start.
#[derive(Debug, Default)]
pub struct Recoveries {
    /// The log as it was when the node lost power.
    before_power_loss: Vec<(NodeId, Vec<Entry>)>,
    /// Damaged by something else than a power loss.
    damaged: Vec<NodeId>,
    expected: Vec<(NodeId, Expected)>,
}

impl PartitionCase {
    /// A node loses power now; its disk has not changed yet.
    pub fn loses_power(&mut self, node: NodeId, court: &Court<'_>) {
        let Some(log) = court.mirror.log(self.id, node) else { return };
        // A second loss before the start leaves a front of what the first one left.
        if !self.recoveries.before_power_loss.iter().any(|(known, _)| *known == node) {
            self.recoveries.before_power_loss.push((node, log.entries().to_vec()));
        }
    }

    /// A fault other than a power loss changed a file of the node.
    pub fn damaged(&mut self, node: NodeId) {
        if !self.recoveries.damaged.contains(&node) {
            self.recoveries.damaged.push(node);
        }
    }

    /// A node's process begins now; it has not looked at its disk yet.
    pub fn node_begins(&mut self, node: NodeId, court: &Court<'_>) {
        self.recoveries.expected.retain(|(known, _)| *known != node);
        let before = self.recoveries.before_power_loss.iter().position(|(known, _)| *known == node);
        let before = before.map(|position| self.recoveries.before_power_loss.swap_remove(position).1);
        let Some(log) = court.mirror.log(self.id, node) else { return };
        if self.deleted || self.recoveries.damaged.contains(&node) {
            return;
        }
        let expected = match before {
            None => Expected { check: Check::R2, log_end_offset: log.log_end_offset() },
            Some(before) => {
                let pairs = before.iter().zip(log.entries());
                let kept = pairs.take_while(|(before, after)| before.same_record(after)).count();
                let last = kept.checked_sub(1).map(|last| before[last].offset);
                Expected { check: Check::R3, log_end_offset: last.map_or(0, |last| last + 1) }
            }
        };
        // An empty log says nothing of where it begins.
        if expected.log_end_offset > 0 {
            self.recoveries.expected.push((node, expected));
        }
    }

    /// The node says how it recovered the log.
    pub fn recovered(&mut self, node: NodeId, log_end_offset: i64, court: &mut Court<'_>) {
        let known = self.recoveries.expected.iter().position(|(known, _)| *known == node);
        let Some((_, expected)) = known.map(|known| self.recoveries.expected.swap_remove(known)) else {
            return;
        };
        court.reporter.compared(expected.check, 1);
        let really = court.mirror.log(self.id, node).map_or(0, |log| log.log_end_offset());
        if log_end_offset == expected.log_end_offset && really == log_end_offset {
            return;
        }
        let place = self.place(node, 0, expected.log_end_offset.min(log_end_offset));
        court.reporter.found(expected.check, Outcome::Lost, place, || {
            let after = if expected.check == Check::R2 { "a process end" } else { "a power loss" };
            format!(
                "{} recovered its log up to {log_end_offset} after {after}; its disk has it up to {}, and now up to \
                 {really}",
                node_name(node),
                expected.log_end_offset
            )
        });
    }
}
