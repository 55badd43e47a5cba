//! From what a run left behind to the result of its seed: verdict, outcome, contract, and whether enough was checked.

use std::collections::BTreeMap;

use acked_reports::result::{FaultCount, LostRange};
use acked_reports::{Contract, Finding, Outcome, SeedResult, Verdict};
use acked_wire::Uuid;

use super::phases::Phased;
use super::recorder::Failure;
use crate::judge::{Judgement, LostRecord, micros};
use crate::names::node_name;
use crate::plan::{FaultPlan, Plan};

/// What the simulated world says at its end.
#[derive(Clone, Debug, Default)]
pub struct WorldEnd {
    pub hash: u64,
    pub events: u64,
    pub failures: Vec<Failure>,
}

/// The judgement of a run as its seed's result.
pub fn assemble(
    plan: &Plan,
    seed: u64,
    phased: &Phased,
    judgement: &Judgement,
    end: &WorldEnd,
    token: &str,
) -> SeedResult {
    let mut findings: Vec<Finding> = judgement.findings.iter().map(finding).collect();
    // A panic, an endless loop or a node that stopped by itself is a broken contract of ours, whatever became of the data.
    findings.extend(end.failures.iter().map(|failure| Finding {
        invariant: failure.cause.id().to_string(),
        outcome: Outcome::Stuck,
        contract: Contract::Broken,
        topic: None,
        partition: None,
        first_offset: None,
        last_offset: None,
        node: failure.who.clone(),
        time_us: micros(failure.at),
        count: 1,
        text: failure.text.clone(),
    }));
    let lost = ranges(&judgement.lost, &judgement.topics);
    let outcome = findings
        .iter()
        .map(|finding| finding.outcome)
        .chain((!lost.is_empty()).then_some(Outcome::Lost))
        .chain((judgement.unread > 0).then_some(Outcome::Unread))
        .max()
        .unwrap_or_default();
    let contract = findings
        .iter()
        .map(|finding| finding.contract)
        .chain(lost.iter().map(|range| range.contract))
        .max()
        .unwrap_or_default();
    let gated = plan
        .gate
        .iter()
        .any(|word| word == outcome.word() || findings.iter().any(|finding| finding.invariant == *word));
    let vacuous = vacuity(plan, phased, judgement);
    let (verdict, reason) = if contract == Contract::Broken {
        (Verdict::Violation, None)
    } else if gated {
        (Verdict::Violation, Some(format!("[expect] gate names {}", outcome.word())))
    } else if let Some(reason) = &phased.broken_off {
        (Verdict::Violation, Some(reason.clone()))
    } else if judgement.unread > 0 {
        (
            Verdict::Unknown,
            Some(format!("{} acknowledged records were not reached by the final read", judgement.unread)),
        )
    } else if let Some(reason) = vacuous {
        (Verdict::Vacuous, Some(reason))
    } else {
        (Verdict::Pass, None)
    };
    SeedResult {
        scenario: plan.scenario.clone(),
        configuration: plan.configuration.clone(),
        seed,
        token: token.to_string(),
        verdict,
        outcome,
        contract,
        reason,
        findings,
        lost_total: judgement.lost.len() as u64,
        lost,
        sent: judgement.sent,
        acked: judgement.acked,
        indeterminate: judgement.indeterminate,
        refused: judgement.refused,
        read_back: judgement.read_back,
        faults: fault_counts(&phased.fired),
        comparisons: judgement.comparisons.iter().map(|(id, count)| ((*id).to_string(), *count)).collect(),
        events: end.events,
        virtual_us: micros(phased.now),
        hash: format!("{:016x}", end.hash),
    }
}

/// Why a seed proves nothing, if it does not.
fn vacuity(plan: &Plan, phased: &Phased, judgement: &Judgement) -> Option<String> {
    if judgement.acked < plan.acked_min {
        return Some(format!("{} records were acknowledged, {} are needed", judgement.acked, plan.acked_min));
    }
    let changed = |fault: &FaultPlan| {
        let same = |other: &FaultPlan| fault.part_of.is_some() && other.part_of == fault.part_of;
        phased.fired.iter().any(|(other, effect)| *effect > 0 && (other.id == fault.id || same(other)))
    };
    if let Some((fault, _)) = phased.fired.iter().find(|(fault, _)| !changed(fault)) {
        return Some(format!("fault {} ({}) changed nothing", fault.id, fault.kind));
    }
    if let Some(replica) = phased.out_of_sync.first() {
        return Some(format!("the log of {replica} was not compared: it was not in sync at the end"));
    }
    let end = phased.end.as_ref()?;
    if let Some(partition) = end.partitions.iter().find(|partition| partition.read_to.is_none()) {
        return Some(format!("{}-{} was not read back", partition.topic, partition.index));
    }
    None
}

fn fault_counts(fired: &[(FaultPlan, u64)]) -> Vec<FaultCount> {
    let mut counts: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (fault, effect) in fired {
        let count = counts.entry(&fault.kind).or_default();
        count.0 += 1;
        count.1 += u64::from(*effect > 0);
    }
    counts
        .into_iter()
        .map(|(kind, (armed, fired))| FaultCount { kind: kind.to_string(), armed, fired })
        .collect()
}

fn finding(finding: &crate::judge::Finding) -> Finding {
    Finding {
        invariant: finding.invariant.to_string(),
        outcome: finding.outcome,
        contract: finding.contract,
        topic: finding.topic.clone(),
        partition: finding.partition.map(|partition| partition.index),
        first_offset: finding.offsets.map(|(first, _)| first),
        last_offset: finding.offsets.map(|(_, last)| last),
        node: finding.node.map(node_name),
        time_us: micros(finding.time),
        count: finding.count,
        text: finding.text.clone(),
    }
}

/// Neighbouring lost records of one partition and leader epoch, lost for one reason, as one range.
fn ranges(lost: &[LostRecord], topics: &BTreeMap<Uuid, String>) -> Vec<LostRange> {
    let topic_name = |record: &LostRecord| {
        let topic = record.key.partition.topic;
        topics.get(&topic).cloned().unwrap_or_else(|| topic.to_string())
    };
    let mut ranges: Vec<LostRange> = Vec::new();
    let mut last: Option<&LostRecord> = None;
    for record in lost {
        let joins = last.is_some_and(|last| {
            last.key.partition == record.key.partition
                && last.key.leader_epoch == record.key.leader_epoch
                && last.key.offset + 1 == record.key.offset
                && last.acks == record.acks
                && last.licensed_by == record.licensed_by
                && last.fault == record.fault
        });
        if joins {
            let range = ranges.last_mut().expect("a record joined it");
            range.to = record.key.offset;
            range.count += 1;
        } else {
            ranges.push(LostRange {
                topic: topic_name(record),
                partition: record.key.partition.index,
                leader_epoch: record.key.leader_epoch,
                from: record.key.offset,
                to: record.key.offset,
                count: 1,
                acks: record.acks,
                contract: record.contract(),
                rule: rule(record),
            });
        }
        last = Some(record);
    }
    ranges
}

fn rule(record: &LostRecord) -> String {
    let Some(rule) = record.licensed_by else { return "nothing permits it".to_string() };
    let fault = record.fault.as_ref().map(|fault| format!(" ({fault})")).unwrap_or_default();
    format!("rule {}: {}{fault}", rule.number(), rule.text())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use acked_core::TopicPartition;

    use super::*;
    use crate::judge::RecordKey;

    #[test]
    fn lost_ranges_do_not_join_across_leader_epochs() {
        let topic = Uuid([9; 16]);
        let lost = |offset, leader_epoch| LostRecord {
            key: RecordKey {
                partition: TopicPartition { topic, index: 0 },
                offset,
                leader_epoch,
                content: 0,
            },
            acks: -1,
            licensed_by: None,
            fault: None,
        };
        let lost = [lost(3, 0), lost(4, 0), lost(5, 1), lost(7, 1)];
        let topics = BTreeMap::from([(topic, "orders".to_string())]);
        let ranges: Vec<(i32, i64, i64, u64)> = ranges(&lost, &topics)
            .iter()
            .map(|range| (range.leader_epoch, range.from, range.to, range.count))
            .collect();
        assert_eq!(ranges, [(0, 3, 4, 2), (1, 5, 5, 1), (1, 7, 7, 1)]);
    }
}
