//! The story of one run: who led, which replicas were in sync, what the faults did, how far the high watermark was.
//! Kept only when a run is to be shown; plain data for the renderer.

use acked_core::observation::Election;
use acked_core::{NodeId, Observation, Time};
use serde::Serialize;

use crate::judge::FaultEvent;

/// One line of the story.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Moment {
    /// Virtual microseconds since the run began.
    pub t_us: u64,
    /// `fault`, `leader`, `isr`, `truncated`, `node`, `quorum`, `high-watermark`, `refused`.
    pub kind: &'static str,
    /// `b1`, `c2`; `network` or a fault's id where no node is meant.
    pub who: String,
    pub partition: Option<String>,
    pub text: String,
}

#[derive(Debug, Default)]
pub struct Timeline {
    pub moments: Vec<Moment>,
    topics: Vec<(acked_wire::Uuid, String)>,
    last_committed_epoch: Vec<(acked_core::TopicPartition, i32)>,
}

/// The most that one timeline keeps; a run that says more is cut, and says so.
const MOMENTS_MAX: usize = 200_000;

/// `b1` or `c1`.
pub fn node_name(node: NodeId) -> String {
    super::cluster::node_name(node)
}

impl Timeline {
    pub fn fault(&mut self, now: Time, event: &FaultEvent<'_>, text: &str) {
        let what = if event.injected { event.kind.to_string() } else { format!("{} healed", event.kind) };
        self.push(now, "fault", event.id.to_string(), None, format!("{what}: {text}"));
    }

    /// What a fault did, found out only when it was done.
    pub fn note(&mut self, now: Time, fault: &str, text: &str) {
        self.push(now, "fault", fault.to_string(), None, text.to_string());
    }

    pub fn observe(&mut self, now: Time, node: NodeId, observation: &Observation) {
        use Observation as O;
        match observation {
            O::TopicCreated { name, topic } => self.topics.push((*topic, name.clone())),
            O::NodeStarted { .. } => self.push(now, "node", node_name(node), None, "started".into()),
            O::NodeStopped => self.push(now, "node", node_name(node), None, "stopped in order".into()),
            O::LogRecovered { partition, found_bytes, kept_bytes, log_end_offset, clean } => {
                let how = if *clean { "clean" } else { "after a crash" };
                let text = format!(
                    "log recovered {how}: kept {kept_bytes} of {found_bytes} bytes, ends at {log_end_offset}"
                );
                self.partition(now, "node", node, *partition, text);
            }
            O::BecameLeader { partition, leader_epoch, log_end_offset, high_watermark } => {
                let text = format!(
                    "leads epoch {leader_epoch}: log ends at {log_end_offset}, high watermark {high_watermark}"
                );
                self.partition(now, "leader", node, *partition, text);
            }
            O::Truncated { partition, from_log_end_offset, to_log_end_offset, .. } => {
                let text = format!("truncates {to_log_end_offset}..{}", from_log_end_offset - 1);
                self.partition(now, "truncated", node, *partition, text);
            }
            O::HighWatermarkAdvanced { partition, leader_epoch, to, .. } => {
                let text = format!("high watermark {to} in epoch {leader_epoch}");
                self.partition(now, "high-watermark", node, *partition, text);
            }
            O::PartitionDecided { state, election, .. } => {
                let isr = names(&state.isr);
                let leader = state.leader.map_or("nobody".to_string(), node_name);
                let how = match election {
                    Some(Election::Created) => "created",
                    Some(Election::Clean) => "elected from the ISR",
                    Some(Election::Preferred) => "elected as preferred",
                    Some(Election::CleanElr) => "elected from the ELR",
                    Some(Election::LastKnownLeader) => "elected as last known leader",
                    Some(Election::Unclean { .. }) => "elected outside the ISR (unclean)",
                    Some(Election::Leaderless) => "nobody can be elected",
                    None => "ISR changed",
                };
                let text = format!("leader {leader} epoch {} ISR {{{isr}}}: {how}", state.leader_epoch);
                self.partition(now, "isr", node, state.partition, text);
            }
            O::PartitionCommitted { state, .. } => {
                let known =
                    self.last_committed_epoch.iter_mut().find(|(partition, _)| *partition == state.partition);
                match known {
                    Some((_, epoch)) if *epoch >= state.partition_epoch => {}
                    Some((_, epoch)) => *epoch = state.partition_epoch,
                    None => self.last_committed_epoch.push((state.partition, state.partition_epoch)),
                }
            }
            O::ProduceRefused { partition, code, appended } => {
                let after = if *appended { " after the append" } else { "" };
                let text = format!("refuses a produce{after}: {}", acked_wire::error_code::name(*code));
                self.partition(now, "refused", node, *partition, text);
            }
            O::QuorumLeaderElected { epoch, .. } => {
                self.push(now, "quorum", node_name(node), None, format!("leads the quorum, epoch {epoch}"));
            }
            O::QuorumLeaderResigned { epoch } => {
                self.push(now, "quorum", node_name(node), None, format!("resigns from quorum epoch {epoch}"));
            }
            O::BrokerFenced { broker } => self.push(now, "node", node_name(*broker), None, "fenced".into()),
            O::BrokerUnfenced { broker } => {
                self.push(now, "node", node_name(*broker), None, "unfenced".into())
            }
            _ => {}
        }
    }

    fn partition(
        &mut self,
        now: Time,
        kind: &'static str,
        node: NodeId,
        partition: acked_core::TopicPartition,
        text: String,
    ) {
        let name = self.topics.iter().find(|(id, _)| *id == partition.topic);
        let name = name.map_or_else(|| partition.topic.to_string(), |(_, name)| name.clone());
        self.push(now, kind, node_name(node), Some(format!("{name}-{}", partition.index)), text);
    }

    fn push(&mut self, now: Time, kind: &'static str, who: String, partition: Option<String>, text: String) {
        if self.moments.len() == MOMENTS_MAX {
            return;
        }
        let t_us = u64::try_from(now.as_micros()).expect("a run is shorter than 2^64 microseconds");
        self.moments.push(Moment { t_us, kind, who, partition, text });
    }
}

fn names(nodes: &[NodeId]) -> String {
    nodes.iter().map(|node| node_name(*node)).collect::<Vec<_>>().join(" ")
}
