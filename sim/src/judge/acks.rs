//! S2 ack implies commit and S3 acks=1 contract, at the instant a success is sent; and the other source of the same
//! fact: a success that a client was told must be one that a broker stated, for that very record.

use acked_core::NodeId;
use acked_reports::Outcome;

use super::case::{Court, Gone, PartitionCase, SingleAck};
use super::checks::Check;
use super::committed::{Acks, Standing};
use super::finding::Rule;
use super::mirror::{Entry, sequence_after};
use crate::names::{node_name, node_names};

/// A success answer that leaves a broker.
pub struct SentAck<'a> {
    pub leader: NodeId,
    pub leader_epoch: i32,
    /// 1 or -1 (all).
    pub acks: i16,
    pub base_offset: i64,
    pub last_offset: i64,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub base_sequence: i32,
    pub maximal_isr: &'a [NodeId],
}

impl SentAck<'_> {
    /// The entry is the record of this batch at its offset, as far as producers are known.
    pub fn names(&self, entry: &Entry) -> bool {
        let sequence = sequence_after(self.base_sequence, (entry.offset - self.base_offset) as i32);
        entry.producer_id == self.producer_id
            && (self.producer_id < 0
                || (entry.producer_epoch == self.producer_epoch && entry.sequence == sequence))
    }
}

impl PartitionCase {
    /// A broker sends success.
    pub fn ack_sent(&mut self, ack: &SentAck<'_>, court: &mut Court<'_>) {
        if ack.base_offset < 0 || ack.last_offset < ack.base_offset {
            let check = if ack.acks == 1 { Check::S3 } else { Check::S2 };
            let place = self.place(ack.leader, ack.leader_epoch, ack.base_offset);
            court.reporter.compared(check, 1);
            court.reporter.found(check, Outcome::Lost, place, || {
                format!(
                    "leader {} acknowledged offsets {} to {}",
                    node_name(ack.leader),
                    ack.base_offset,
                    ack.last_offset
                )
            });
            return;
        }
        if self.deleted {
            self.acknowledged_after_deletion(ack, court);
            return;
        }
        if ack.acks != 1 {
            self.check_set_of_ack(ack, court);
            self.check_superset(ack.leader, ack.leader_epoch, ack.maximal_isr, court);
        }
        for offset in ack.base_offset..=ack.last_offset {
            let entry = court
                .mirror
                .log(self.id, ack.leader)
                .and_then(|log| log.get(offset))
                .filter(|entry| ack.names(entry))
                .copied();
            match ack.acks {
                1 => self.ack_one(ack, offset, entry, court),
                _ => self.ack_all(ack, offset, entry, court),
            }
        }
    }

    fn check_set_of_ack(&self, ack: &SentAck<'_>, court: &mut Court<'_>) {
        let wanted = self.laxest_min_insync;
        court.reporter.compared(Check::S2, 1);
        if ack.maximal_isr.len() as i64 >= i64::from(wanted) {
            return;
        }
        let place = self.place(ack.leader, ack.leader_epoch, ack.base_offset);
        court.reporter.found(Check::S2, Outcome::None, place, || {
            format!(
                "leader {} acknowledged at acks=all with in-sync replicas {{{}}}, fewer than min.insync.replicas={wanted}",
                node_name(ack.leader), node_names(ack.maximal_isr)
            )
        });
    }

    fn ack_all(&mut self, ack: &SentAck<'_>, offset: i64, entry: Option<Entry>, court: &mut Court<'_>) {
        court.reporter.compared(Check::S2, 1);
        if let Some(entry) = entry
            && let Some(record) = self.committed.get_mut(offset)
            && record.entry.same_record(&entry)
        {
            record.acks.add(ack.acks);
            self.check_stale_ack(&entry, ack.leader, ack.leader_epoch, court);
            return;
        }
        if self.was_taken_before_its_ack(ack, offset) {
            return;
        }
        let place = self.place(ack.leader, ack.leader_epoch, offset);
        court.reporter.found(Check::S2, Outcome::Lost, place, || {
            let why = match entry {
                None => "its log does not hold that record",
                Some(_) => "it is not committed",
            };
            format!(
                "leader {} of epoch {} acknowledged offset {offset} at acks=all, but {why}",
                node_name(ack.leader),
                ack.leader_epoch
            )
        });
    }

    /// The record was committed, and licensed away or removed before its answer left: the answer of a leader that has
    /// not heard of it, or that waited for other partitions of the same request.
    fn was_taken_before_its_ack(&mut self, ack: &SentAck<'_>, offset: i64) -> bool {
        let is_it = |entry: &Entry| {
            entry.offset == offset && entry.leader_epoch <= ack.leader_epoch && ack.names(entry)
        };
        if let Some(record) = self.committed.get_mut(offset)
            && matches!(record.standing, Standing::Licensed(_) | Standing::Removed)
            && is_it(&record.entry)
        {
            record.acks.add(ack.acks);
            return true;
        }
        match self.gone.iter_mut().find(|gone| is_it(&gone.entry)) {
            Some(gone) => {
                gone.acks.add(ack.acks);
                true
            }
            None => false,
        }
    }

    fn ack_one(&mut self, ack: &SentAck<'_>, offset: i64, entry: Option<Entry>, court: &mut Court<'_>) {
        court.reporter.compared(Check::S3, 1);
        let leads = self.led(ack.leader, ack.leader_epoch);
        let Some(entry) = entry.filter(|_| leads) else {
            let place = self.place(ack.leader, ack.leader_epoch, offset);
            court.reporter.found(Check::S3, Outcome::Lost, place, || {
                let why = if leads { "its log does not hold that record" } else { "it does not lead" };
                format!("broker {} acknowledged offset {offset} at acks=1, but {why}", node_name(ack.leader))
            });
            return;
        };
        if let Some(record) = self.committed.get_mut(offset)
            && record.entry.same_record(&entry)
        {
            record.acks.add(1);
            return;
        }
        let single = SingleAck { entry, leader: ack.leader, leader_epoch: ack.leader_epoch };
        self.single_acks.insert((offset, entry.leader_epoch), single);
        // A leader of a higher epoch that already acts without it will not be asked again.
        if let Some((acted_in, acting)) =
            self.acting.acted.last_key_value().map(|(epoch, node)| (*epoch, *node))
            && acted_in > ack.leader_epoch
        {
            self.judge_single_acks(acting, acted_in, court);
        }
    }

    /// A leader acts: what was acknowledged at acks=1 in lower epochs and is not in its log may be lost (rule 2).
    pub fn judge_single_acks(&mut self, leader: NodeId, leader_epoch: i32, court: &mut Court<'_>) {
        if self.single_acks.is_empty() {
            return;
        }
        let log = court.mirror.log(self.id, leader);
        let lacking: Vec<(i64, i32)> = self
            .single_acks
            .iter()
            .filter(|(_, single)| {
                single.leader_epoch < leader_epoch && !log.is_some_and(|log| log.holds(&single.entry))
            })
            .map(|(key, _)| *key)
            .collect();
        for key in lacking {
            let Some(single) = self.single_acks.remove(&key) else { continue };
            self.license_single_ack(&single, leader, leader_epoch, court);
        }
    }

    fn license_single_ack(
        &mut self,
        single: &SingleAck,
        leader: NodeId,
        leader_epoch: i32,
        court: &mut Court<'_>,
    ) {
        let lost_by_itself = single.leader == leader
            && court.mirror.log(self.id, leader).is_some_and(|log| log.lost(&single.entry));
        let rule = if lost_by_itself { Rule::AcksOneLeaderLostIt } else { Rule::AcksOneLeaderChanged };
        self.license(&single.entry, rule, leader, leader_epoch, court);
        self.gone.push(Gone { entry: single.entry, acks: Acks { one: true, all: false } });
    }

    /// A record was committed: an acks=1 success for it is protected by rule 3 from now on, and one for another
    /// record at its offset is lost to the leader that committed it.
    pub fn settle_single_acks(
        &mut self,
        entry: &Entry,
        leader: NodeId,
        leader_epoch: i32,
        court: &mut Court<'_>,
    ) {
        if self.single_acks.is_empty() {
            return;
        }
        let at_offset: Vec<(i64, i32)> = self
            .single_acks
            .range((entry.offset, i32::MIN)..=(entry.offset, i32::MAX))
            .map(|(key, _)| *key)
            .collect();
        for key in at_offset {
            let Some(single) = self.single_acks.get(&key).copied() else { continue };
            if single.entry.same_record(entry) {
                if let Some(record) = self.committed.get_mut(entry.offset) {
                    record.acks.add(1);
                }
                self.single_acks.remove(&key);
            } else if single.leader_epoch < leader_epoch {
                self.single_acks.remove(&key);
                self.license_single_ack(&single, leader, leader_epoch, court);
            }
        }
    }

    /// A broker stated success for this content at this offset.
    pub fn was_acknowledged(&self, offset: i64, content: u64) -> bool {
        let committed = self
            .committed
            .get(offset)
            .is_some_and(|record| record.entry.content == content && record.acks.any());
        let single = || {
            self.single_acks
                .range((offset, i32::MIN)..=(offset, i32::MAX))
                .any(|(_, single)| single.entry.content == content)
        };
        let gone = || {
            self.gone
                .iter()
                .any(|gone| gone.entry.offset == offset && gone.entry.content == content && gone.acks.any())
        };
        committed || single() || gone()
    }

    /// A client was told success for this content at this offset.
    pub fn client_was_told(&self, offset: i64, content: u64, acks: i16, court: &mut Court<'_>) {
        let check = if acks == 1 { Check::S3 } else { Check::S2 };
        court.reporter.compared(check, 1);
        if self.deleted || self.was_acknowledged(offset, content) {
            return;
        }
        let place =
            super::reporter::Place { partition: Some(self.id), node: None, epoch: -1, offset: Some(offset) };
        court.reporter.found(check, Outcome::Lost, place, || {
            format!(
                "a producer was told success at acks={acks} for offset {offset}, where no broker acknowledged its record"
            )
        });
    }
}
