//! The end of a run: S1 and S5 over the final logs and the final read, the anomalies of the client history, and the
//! list of what was acknowledged and is gone, each with the licence that permits it.

use std::collections::{BTreeMap, BTreeSet};

use acked_core::{NodeId, TopicPartition};
use acked_reports::anomalies::{self, Licences, Seen};
use acked_reports::history::{Completion, Partition};
use acked_reports::{Key, Outcome};

use super::case::PartitionCase;
use super::checks::Check;
use super::clients::Clients;
use super::finding::{LostRecord, RecordKey, Rule};
use super::ledger::Ledger;
use super::mirror::{LogMirror, Mirror};
use super::reporter::{Place, Reporter};
use crate::names::node_name;

/// A partition as the run ended.
pub struct Ended<'a> {
    pub case: &'a PartitionCase,
    /// How clients name it.
    pub partition: Partition,
    pub leader: Option<NodeId>,
    pub read_to: Option<i64>,
}

/// Counts and losses of the whole run.
#[derive(Debug, Default)]
pub struct Balance {
    pub sent: u64,
    pub acked: u64,
    pub indeterminate: u64,
    pub refused: u64,
    pub read_back: u64,
    pub unread: u64,
    pub removed: u64,
    pub lost: Vec<LostRecord>,
}

/// S1: every protected committed record is in the final leader's log, and the final read gave it back.
pub fn committed_durability(ended: &Ended<'_>, seen: &Seen, mirror: &Mirror, reporter: &mut Reporter) {
    let Some(leader) = ended.leader else { return };
    let log = mirror.log(ended.case.id, leader);
    for record in ended.case.committed.records() {
        if !record.is_protected() {
            continue;
        }
        let offset = record.entry.offset;
        let place = Place { partition: Some(ended.case.id), node: None, epoch: 0, offset: Some(offset) };
        reporter.compared(Check::S1, 1);
        if !log.is_some_and(|log| log.holds(&record.entry)) {
            reporter.found(Check::S1, Outcome::Lost, place, || {
                format!(
                    "committed offset {offset} (epoch {}) is not in the log of the final leader {}",
                    record.entry.leader_epoch,
                    node_name(leader)
                )
            });
            continue;
        }
        let key = Key { partition: ended.partition, offset, content: record.entry.content };
        if ended.read_to.is_some_and(|read_to| read_to > offset)
            && !record.entry.control
            && !seen.read_back(&key)
        {
            reporter.found(Check::S1, Outcome::Lost, place, || {
                format!("committed offset {offset} is in the final leader's log, and was not read back")
            });
        }
    }
}

/// S5: every electable replica holds the protected committed records. Gives how many logs were compared.
pub fn log_matching(ended: &Ended<'_>, mirror: &Mirror, reporter: &mut Reporter) -> u64 {
    let Some(state) = ended.case.elections.current() else { return 0 };
    for member in &state.isr {
        let log = mirror.log(ended.case.id, *member);
        for record in ended.case.committed.records() {
            if !record.is_protected() {
                continue;
            }
            reporter.compared(Check::S5, 1);
            if log.is_some_and(|log| log.holds(&record.entry) || log.lost(&record.entry)) {
                continue;
            }
            let place = Place {
                partition: Some(ended.case.id),
                node: Some(*member),
                epoch: 0,
                offset: Some(record.entry.offset),
            };
            reporter.found(Check::S5, Outcome::Diverged, place, || {
                let what = match log.and_then(|log| log.get(record.entry.offset)) {
                    Some(_) => "holds another record than was committed",
                    None => "lacks what was committed",
                };
                format!("in-sync replica {} {what} at offset {}", node_name(*member), record.entry.offset)
            });
        }
    }
    mirror.replicas(ended.case.id).len() as u64
}

/// What was removed on purpose, as clients name it.
#[derive(Debug, Default)]
pub struct Removed {
    /// Below a log start.
    below_start: BTreeSet<Key>,
    of_deleted_topics: BTreeSet<Key>,
}

impl Removed {
    #[cfg(test)]
    pub fn of(keys: impl IntoIterator<Item = Key>) -> Removed {
        Removed { below_start: keys.into_iter().collect(), of_deleted_topics: BTreeSet::new() }
    }

    pub fn contains(&self, key: &Key) -> bool {
        self.below_start.contains(key) || self.of_deleted_topics.contains(key)
    }
}

/// The records that were removed on purpose.
pub fn removed_keys(cases: &[PartitionCase], names: &BTreeMap<TopicPartition, Partition>) -> Removed {
    let mut removed = Removed::default();
    for case in cases {
        let Some(partition) = names.get(&case.id).copied() else { continue };
        let keys =
            case.removed.iter().map(|entry| Key { partition, offset: entry.offset, content: entry.content });
        if case.deleted {
            removed.of_deleted_topics.extend(keys);
        } else {
            removed.below_start.extend(keys);
        }
    }
    removed
}

/// Records that were licensed away, and that the final leader has all the same: no branch that is gone.
pub fn returned_keys(
    ledger: &Ledger,
    ended: &[Ended<'_>],
    mirror: &Mirror,
    names: &BTreeMap<TopicPartition, Partition>,
) -> BTreeSet<Key> {
    let returned = ledger.licences.iter().filter_map(|licence| {
        let partition = *names.get(&licence.key.partition)?;
        let ended = ended.iter().find(|ended| ended.case.id == licence.key.partition)?;
        let key = Key { partition, offset: licence.key.offset, content: licence.key.content };
        present(mirror.log(ended.case.id, ended.leader?)?, &key).then_some(key)
    });
    returned.collect()
}

/// The keys whose absence is no wrong, as clients name them. A topic that was created again under the name of a
/// deleted one may hold copies of its records at the same or at other offsets: to a client, the records of a deleted
/// topic are like licensed ones.
pub fn client_licences(
    ledger: &Ledger,
    names: &BTreeMap<TopicPartition, Partition>,
    removed: &Removed,
    returned: &BTreeSet<Key>,
) -> Licences {
    let licensed = ledger.licences.iter().filter_map(|licence| {
        let partition = *names.get(&licence.key.partition)?;
        Some(Key { partition, offset: licence.key.offset, content: licence.key.content })
    });
    Licences::new(licensed)
        .with_returned(returned.iter().copied())
        .with_deleted(removed.of_deleted_topics.iter().copied())
        .with_removed(removed.below_start.iter().copied())
}

/// V1, V3, V4, V9, V11, V13, V17, V20.
pub fn history_anomalies(
    clients: &Clients,
    seen: &Seen,
    licences: &Licences,
    ids: &BTreeMap<Partition, TopicPartition>,
    reporter: &mut Reporter,
) {
    for (check, judge) in [
        (Check::V1, anomalies::lost_write as fn(&_, &_, &_) -> _),
        (Check::V3, anomalies::duplicate),
        (Check::V4, anomalies::inconsistent_offsets),
        (Check::V9, anomalies::poll_skip),
        (Check::V11, |history, _: &Seen, licences| anomalies::nonmonotonic_poll(history, licences)),
        (Check::V13, |history, _: &Seen, licences| anomalies::nonmonotonic_send(history, licences)),
        (Check::V17, anomalies::phantom),
        (Check::V20, |history, _: &Seen, licences| anomalies::silent_branch_switch(history, licences)),
    ] {
        if !reporter.is_on(check) {
            continue;
        }
        let report = judge(&clients.history, seen, licences);
        reporter.compared(check, report.comparisons);
        for anomaly in report.anomalies {
            reporter.findings.add_anomaly(anomaly, ids, reporter.now);
        }
    }
}

/// Sorts every send into its count, and lists what was acknowledged and is gone from the final leaders' logs.
pub fn balance(
    clients: &Clients,
    seen: &Seen,
    ended: &[Ended<'_>],
    ledger: &Ledger,
    mirror: &Mirror,
    removed: &Removed,
    reporter: &mut Reporter,
) -> Balance {
    let by_name: BTreeMap<Partition, &Ended<'_>> =
        ended.iter().map(|ended| (ended.partition, ended)).collect();
    let licensed: BTreeMap<(TopicPartition, i64, u64), (Rule, Option<&str>)> = ledger
        .licences
        .iter()
        .map(|licence| {
            let key = licence.key;
            ((key.partition, key.offset, key.content), (licence.rule, licence.fault.as_deref()))
        })
        .collect();
    let mut balance = Balance { sent: clients.history.sends.len() as u64, ..Balance::default() };
    for send in &clients.history.sends {
        match send.completion {
            Completion::Ok => balance.acked += 1,
            Completion::Info | Completion::Open => balance.indeterminate += 1,
            Completion::Fail => balance.refused += 1,
        }
    }
    for (send, key) in clients.history.acknowledged() {
        reporter.compared(Check::V2, 1);
        let read_back = seen.read_back(&key);
        balance.read_back += u64::from(read_back);
        if removed.contains(&key) {
            balance.removed += u64::from(!read_back);
            continue;
        }
        let Some(ended) = by_name.get(&key.partition) else {
            balance.unread += u64::from(!read_back);
            continue;
        };
        let log = ended.leader.and_then(|leader| mirror.log(ended.case.id, leader));
        let present = log.map(|log| present(log, &key));
        if present != Some(false) {
            balance.unread += u64::from(!read_back);
            continue;
        }
        let licence = licensed.get(&(ended.case.id, key.offset, key.content));
        if licence.is_none() {
            let place =
                Place { partition: Some(ended.case.id), node: None, epoch: 0, offset: Some(key.offset) };
            reporter.found(Check::S1, Outcome::Lost, place, || {
                format!(
                    "offset {} was acknowledged at acks={} and is not in the final leader's log; nothing permits that",
                    key.offset, send.acks
                )
            });
        }
        balance.lost.push(LostRecord {
            key: RecordKey {
                partition: ended.case.id,
                offset: key.offset,
                leader_epoch: epoch_of(ended.case, &key, mirror),
                content: key.content,
            },
            acks: send.acks,
            licensed_by: licence.map(|(rule, _)| *rule),
            fault: licence.and_then(|(_, fault)| fault.map(str::to_owned)),
        });
    }
    balance.lost.sort_by_key(|lost| lost.key);
    balance.lost.dedup_by_key(|lost| lost.key);
    balance
}

fn present(log: &LogMirror, key: &Key) -> bool {
    log.get(key.offset).is_some_and(|entry| entry.content == key.content)
}

/// The leader epoch of a record that is gone, -1 when no broker ever held it.
fn epoch_of(case: &PartitionCase, key: &Key, mirror: &Mirror) -> i32 {
    let committed = case.committed.get(key.offset).map(|record| record.entry);
    let logs = || mirror.replicas(case.id).iter().map(|(_, log)| mirror.log_at(*log));
    committed
        .into_iter()
        .chain(case.gone.iter().map(|gone| gone.entry))
        .chain(logs().filter_map(|log| log.get(key.offset).copied()))
        .chain(logs().filter_map(|log| log.lost_at(key.offset).copied()))
        .find(|entry| entry.offset == key.offset && entry.content == key.content)
        .map(|entry| entry.leader_epoch)
        .or_else(|| case.cut_off.get(&(key.offset, key.content)).copied())
        .unwrap_or(-1)
}
