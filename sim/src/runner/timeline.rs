//! The story of one run: who led, which replicas were in sync, what the faults did, how far the high watermark was.
//! Kept only when a run is to be shown; plain data for the renderer.

use std::collections::BTreeMap;

use acked_core::observation::Election;
use acked_core::{NodeId, Observation, Time};
use acked_reports::story::Change;
pub use acked_reports::story::Moment;

use crate::judge::{FaultEvent, micros};
use crate::names::{node_name, node_names};
use crate::nemesis;

#[derive(Debug, Default)]
pub struct Timeline {
    pub moments: Vec<Moment>,
    topics: Vec<(acked_wire::Uuid, String)>,
    fenced: BTreeMap<NodeId, bool>,
    last_committed_epoch: Vec<(acked_core::TopicPartition, i32)>,
}

/// The most that one timeline keeps; a run that says more is cut, and says so.
const MOMENTS_MAX: usize = 200_000;

impl Timeline {
    pub fn fault(&mut self, now: Time, event: &FaultEvent<'_>, text: &str) {
        let what = if event.injected { event.kind.to_string() } else { format!("{} healed", event.kind) };
        let change = if event.injected {
            let takes_down = nemesis::takes_down(event.kind);
            let nodes = event.nodes.iter().map(|node| node_name(*node)).collect();
            Change::FaultBegan { kind: event.kind.to_string(), nodes, takes_down }
        } else {
            Change::FaultEnded
        };
        self.push(now, "fault", event.id.to_string(), None, format!("{what}: {text}"), change);
    }

    /// What a fault did, found out only when it was done.
    pub fn note(&mut self, now: Time, fault: &str, text: &str) {
        self.push(now, "fault", fault.to_string(), None, text.to_string(), Change::Told);
    }

    pub fn observe(&mut self, now: Time, node: NodeId, observation: &Observation) {
        use Observation as O;
        match observation {
            O::TopicCreated { name, topic } => {
                let known = self.topics.iter().any(|(known, _)| known == topic);
                if !known {
                    self.topics.push((*topic, name.clone()));
                    self.name_earlier(&topic.to_string(), name);
                }
            }
            O::NodeStarted { .. } => {
                self.push(now, "node", node_name(node), None, "started".into(), Change::Started);
            }
            O::NodeStopped => {
                self.push(now, "node", node_name(node), None, "stopped in order".into(), Change::Stopped);
            }
            O::LogRecovered { partition, found_bytes, kept_bytes, log_end_offset, clean, .. } => {
                let how = if *clean { "clean" } else { "after a crash" };
                let text = format!(
                    "log recovered {how}: kept {kept_bytes} of {found_bytes} bytes, ends at {log_end_offset}"
                );
                let change = Change::Recovered { log_end_offset: *log_end_offset };
                self.partition(now, "node", node, *partition, text, change);
            }
            O::AppendedAsLeader { partition, leader_epoch, base_offset, last_offset, .. }
            | O::AppendedAsFollower { partition, leader_epoch, base_offset, last_offset } => {
                let text = format!("has {base_offset}..{last_offset} of epoch {leader_epoch}");
                let change =
                    Change::Appended { leader_epoch: *leader_epoch, first: *base_offset, last: *last_offset };
                self.partition(now, "appended", node, *partition, text, change);
            }
            O::AckSent { partition, leader_epoch, base_offset, last_offset, acks, .. } => {
                let text = format!("acknowledges {base_offset}..{last_offset} at acks={acks}");
                let change =
                    Change::Acked { leader_epoch: *leader_epoch, first: *base_offset, last: *last_offset };
                self.partition(now, "acked", node, *partition, text, change);
            }
            O::BecameLeader { partition, leader_epoch, log_end_offset, high_watermark } => {
                let text = format!(
                    "leads epoch {leader_epoch}: log ends at {log_end_offset}, high watermark {high_watermark}"
                );
                self.partition(now, "leader", node, *partition, text, Change::Told);
            }
            O::Truncated { partition, from_log_end_offset, to_log_end_offset, .. } => {
                let text = format!("truncates {to_log_end_offset}..{}", from_log_end_offset - 1);
                let change = Change::Truncated { from: *from_log_end_offset, to: *to_log_end_offset };
                self.partition(now, "truncated", node, *partition, text, change);
            }
            O::HighWatermarkAdvanced { partition, leader_epoch, to, .. } => {
                let text = format!("high watermark {to} in epoch {leader_epoch}");
                self.partition(
                    now,
                    "high-watermark",
                    node,
                    *partition,
                    text,
                    Change::HighWatermark { to: *to },
                );
            }
            O::PartitionDecided { state, election, .. } => {
                let isr = node_names(&state.isr);
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
                let change = Change::Decided {
                    leader: state.leader.map(node_name),
                    leader_epoch: state.leader_epoch,
                    isr: state.isr.iter().map(|node| node_name(*node)).collect(),
                };
                self.partition(now, "isr", node, state.partition, text, change);
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
                self.partition(now, "refused", node, *partition, text, Change::Told);
            }
            O::QuorumLeaderElected { epoch, .. } => {
                let text = format!("leads the quorum, epoch {epoch}");
                self.push(now, "quorum", node_name(node), None, text, Change::Told);
            }
            O::QuorumLeaderResigned { epoch } => {
                let text = format!("resigns from quorum epoch {epoch}");
                self.push(now, "quorum", node_name(node), None, text, Change::Told);
            }
            O::BrokerFenced { broker } => self.fencing(now, *broker, true),
            O::BrokerUnfenced { broker } => self.fencing(now, *broker, false),
            _ => {}
        }
    }

    /// The partitions of a topic are decided before its name is replayed.
    fn name_earlier(&mut self, id: &str, name: &str) {
        for moment in &mut self.moments {
            if let Some(index) = moment.partition.as_deref().and_then(|partition| partition.strip_prefix(id))
            {
                moment.partition = Some(format!("{name}{index}"));
            }
        }
    }

    /// Every controller says so when it replays the record; the first counts.
    fn fencing(&mut self, now: Time, broker: NodeId, fenced: bool) {
        if self.fenced.insert(broker, fenced) != Some(fenced) {
            let text = if fenced { "fenced" } else { "unfenced" };
            self.push(now, "node", node_name(broker), None, text.into(), Change::Told);
        }
    }

    fn partition(
        &mut self,
        now: Time,
        kind: &'static str,
        node: NodeId,
        partition: acked_core::TopicPartition,
        text: String,
        change: Change,
    ) {
        let name = self.topics.iter().find(|(id, _)| *id == partition.topic);
        let name = name.map_or_else(|| partition.topic.to_string(), |(_, name)| name.clone());
        self.push(now, kind, node_name(node), Some(format!("{name}-{}", partition.index)), text, change);
    }

    fn push(
        &mut self,
        now: Time,
        kind: &'static str,
        who: String,
        partition: Option<String>,
        text: String,
        change: Change,
    ) {
        if self.moments.len() >= MOMENTS_MAX {
            return;
        }
        let t_us = micros(now);
        self.moments.push(Moment { t_us, kind: kind.into(), who, partition, text, change });
        if self.moments.len() == MOMENTS_MAX - 1 {
            let text = format!("more than {MOMENTS_MAX} moments: the rest is left out");
            let (who, partition, change) = ("acked".into(), None, Change::Told);
            self.moments.push(Moment { t_us, kind: "cut".into(), who, partition, text, change });
        }
    }
}
