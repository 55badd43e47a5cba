//! Findings, licences and losses: what the judge hands out. A cause is reported once, with its first occurrence and
//! a count.

use std::collections::BTreeMap;

use acked_core::{NodeId, Time, TopicPartition};
use acked_reports::anomalies::Anomaly;
use acked_reports::history::Partition;
use acked_reports::{Contract, Outcome};

use super::checks::Check;

/// One wrong with its evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Identifier as in the registry, for example `S9`.
    pub invariant: &'static str,
    pub outcome: Outcome,
    pub contract: Contract,
    pub partition: Option<TopicPartition>,
    /// Name of the partition's topic, when known.
    pub topic: Option<String>,
    /// First and last offset concerned, both inclusive.
    pub offsets: Option<(i64, i64)>,
    pub node: Option<NodeId>,
    /// When it was first seen.
    pub time: Time,
    /// Records (or events) concerned.
    pub count: u64,
    pub text: String,
}

/// Identity of a record for the ledger: a licence holds for exactly one key, never for an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordKey {
    pub partition: TopicPartition,
    pub offset: i64,
    pub leader_epoch: i32,
    pub content: u64,
}

/// The rule of the loss oracle that permits a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// Rule 1: acks=0 promises nothing.
    AcksZero,
    /// Rule 2: acks=1, a leader of a higher epoch acted without the record.
    AcksOneLeaderChanged,
    /// Rule 2: acks=1, the acking leader itself lost it to power loss or a disk fault.
    AcksOneLeaderLostIt,
    /// Rule 3 (i): unclean election, allowed, with nobody better.
    UncleanElection,
    /// Rule 3 (ii): a last-known leader that had lost the record.
    LastKnownLeaderLostIt,
    /// Rule 3 (iii): the last member of the in-sync set, or the only replica, had lost the record.
    LastReplicaLostIt,
}

impl Rule {
    /// In words, for a reader of the report.
    pub fn text(self) -> &'static str {
        match self {
            Rule::AcksZero => "acks=0 promises nothing",
            Rule::AcksOneLeaderChanged => {
                "acks=1 promises one copy only, and leadership moved to a replica without it"
            }
            Rule::AcksOneLeaderLostIt => {
                "acks=1 promises one copy only, and the leader lost it before it was synced"
            }
            Rule::UncleanElection => {
                "an allowed unclean election chose a replica without it, no in-sync replica being there"
            }
            Rule::LastKnownLeaderLostIt => "the last known leader was elected after it had lost the record",
            Rule::LastReplicaLostIt => {
                "the last in-sync replica had lost the record before it was elected again"
            }
        }
    }

    /// Number of the rule in the loss oracle.
    pub fn number(self) -> &'static str {
        match self {
            Rule::AcksZero => "1",
            Rule::AcksOneLeaderChanged | Rule::AcksOneLeaderLostIt => "2",
            Rule::UncleanElection => "3i",
            Rule::LastKnownLeaderLostIt => "3ii",
            Rule::LastReplicaLostIt => "3iii",
        }
    }

    /// What such a loss says about the promise.
    pub fn contract(self) -> Contract {
        match self {
            Rule::AcksZero | Rule::AcksOneLeaderChanged | Rule::AcksOneLeaderLostIt => Contract::NotPromised,
            Rule::UncleanElection | Rule::LastKnownLeaderLostIt | Rule::LastReplicaLostIt => Contract::Kept,
        }
    }
}

/// Permission to lose one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Licence {
    pub key: RecordKey,
    pub rule: Rule,
    /// The leader that acted without the record, and its epoch.
    pub leader: NodeId,
    pub leader_epoch: i32,
    pub time: Time,
    /// The fault behind it, when the judge was told of one: `power-loss b1 (dark)`.
    pub fault: Option<String>,
    /// With eligible leader replicas on: who could have been elected with the record, and went down uncleanly.
    pub down: Vec<NodeId>,
}

/// An acknowledged record that is not in the final leader's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostRecord {
    pub key: RecordKey,
    /// The acks level at which it was acknowledged; 1 or -1.
    pub acks: i16,
    /// `None`: nothing permits it.
    pub licensed_by: Option<Rule>,
    pub fault: Option<String>,
}

impl LostRecord {
    /// What this loss says about the promise.
    pub fn contract(&self) -> Contract {
        match self.licensed_by {
            None => Contract::Broken,
            // Even once committed, a record sent at acks=1 was promised to nobody.
            Some(_) if self.acks == 1 => Contract::NotPromised,
            Some(rule) => rule.contract(),
        }
    }
}

/// What makes two occurrences one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    pub check: Check,
    pub partition: Option<TopicPartition>,
    pub node: Option<NodeId>,
    /// Leader epoch, quorum epoch, or whatever else tells occurrences apart; 0 when nothing does.
    pub epoch: i64,
}

/// The findings of a run, one a cause, in the order of their first occurrence.
#[derive(Debug, Default)]
pub struct Findings {
    found: Vec<(Cause, Finding)>,
}

impl Findings {
    /// Reports one occurrence. The text is only made for the first of its cause.
    pub fn report(
        &mut self,
        cause: Cause,
        outcome: Outcome,
        time: Time,
        offset: Option<i64>,
        text: impl FnOnce() -> String,
    ) {
        if let Some((_, finding)) = self.found.iter_mut().find(|(known, _)| *known == cause) {
            finding.count += 1;
            if let Some(offset) = offset {
                let (first, last) = finding.offsets.unwrap_or((offset, offset));
                finding.offsets = Some((first.min(offset), last.max(offset)));
            }
            return;
        }
        let finding = Finding {
            invariant: cause.check.id(),
            outcome,
            contract: Contract::Broken,
            partition: cause.partition,
            topic: None,
            offsets: offset.map(|offset| (offset, offset)),
            node: cause.node,
            time,
            count: 1,
            text: text(),
        };
        self.found.push((cause, finding));
    }

    /// Takes over what a check of the client history found.
    pub fn add_anomaly(&mut self, anomaly: Anomaly, ids: &BTreeMap<Partition, TopicPartition>, time: Time) {
        let check = Check::from_id(anomaly.invariant).expect("every anomaly has its row in the registry");
        let partition = ids.get(&anomaly.first.partition).copied();
        let cause = Cause { check, partition, node: None, epoch: 0 };
        let finding = Finding {
            invariant: check.id(),
            outcome: anomaly.outcome,
            contract: anomaly.contract,
            partition,
            topic: None,
            offsets: Some(anomaly.offsets),
            node: None,
            time,
            count: anomaly.count,
            text: anomaly.text,
        };
        self.found.push((cause, finding));
    }

    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// In the order of first occurrence.
    pub fn iter(&self) -> impl Iterator<Item = &Finding> {
        self.found.iter().map(|(_, finding)| finding)
    }

    pub fn into_vec(self) -> Vec<Finding> {
        self.found.into_iter().map(|(_, finding)| finding).collect()
    }
}
