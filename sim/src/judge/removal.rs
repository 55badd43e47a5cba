//! Rule 0 of the loss oracle: records that were removed on purpose. What lies below a log start that a leader legally
//! reached (DeleteRecords, retention), and everything of a deleted topic, is neither lost nor licensed: a later leader
//! may lack it, and a replica that comes back after a crash may still hold it.
//!
//! A removal is of records, never of offsets: another record that is committed at such an offset later is protected.
//! Whether a log start was legal is not judged here (S20); one above the high watermark removes nothing that was not
//! committed.

use acked_core::NodeId;

use super::acks::SentAck;
use super::case::{Court, Gone, PartitionCase, Role};
use super::committed::{Acks, CommittedRecord, Standing};
use super::watermark_bound::Advance;

impl PartitionCase {
    /// A leader raised its log start. A deposed one removes nothing: its successors keep their own.
    pub fn log_start_advanced(&mut self, leader: NodeId, leader_epoch: i32, to: i64, court: &mut Court<'_>) {
        // To raise it is to act: what the leader's log lacks is judged before it could count as removed.
        self.acted_as_leader(leader, leader_epoch, court);
        let leads = self.role(leader).is_none_or(|role| role == Role::Leader(leader_epoch));
        if leads && self.elections.leader_epoch() <= leader_epoch {
            self.remove_committed(to);
        }
    }

    /// The deletion of the topic is committed.
    pub fn topic_deleted(&mut self) {
        self.deleted = true;
        self.remove_committed(i64::MAX);
        for single in std::mem::take(&mut self.single_acks).into_values() {
            self.removed.push(single.entry);
            self.gone.push(Gone { entry: single.entry, acks: Acks { one: true, all: false } });
        }
        assert!(
            self.committed.records().iter().all(|record| !record.is_protected()),
            "a deleted topic has nothing to protect"
        );
    }

    /// What was licensed away or lost before stays that.
    fn remove_committed(&mut self, below: i64) {
        for record in self.committed.below_mut(below).iter_mut().filter(|record| record.is_protected()) {
            record.standing = Standing::Removed;
            self.removed.push(record.entry);
        }
    }

    /// A leader that has not heard of the deletion raised its high watermark. Its followers may have removed their
    /// logs, so nothing is compared with them.
    pub fn committed_after_deletion(&mut self, advance: &Advance<'_>, court: &mut Court<'_>) {
        assert!(self.deleted, "the topic is deleted");
        let Some(log) = court.mirror.log(self.id, advance.leader) else { return };
        for entry in (advance.from..advance.to).filter_map(|offset| log.get(offset)) {
            if self.committed.get(entry.offset).is_some_and(|known| known.entry.same_record(entry)) {
                continue;
            }
            self.removed.push(*entry);
            let displaced = self.committed.put(CommittedRecord {
                entry: *entry,
                committed_in: advance.leader_epoch,
                acted_by_then: self.acting.acted.last_key_value().map_or(-1, |(epoch, _)| *epoch),
                acks: Acks::default(),
                standing: Standing::Removed,
            });
            self.gone.extend(displaced.map(|record| Gone { entry: record.entry, acks: record.acks }));
        }
    }

    /// A leader that has not heard of the deletion sends success.
    pub fn acknowledged_after_deletion(&mut self, ack: &SentAck<'_>, court: &mut Court<'_>) {
        assert!(self.deleted, "the topic is deleted");
        let log = court.mirror.log(self.id, ack.leader);
        for offset in ack.base_offset..=ack.last_offset {
            if let Some(record) = self.committed.get_mut(offset)
                && ack.names(&record.entry)
            {
                record.acks.add(ack.acks);
                continue;
            }
            let entry = log.and_then(|log| log.get(offset)).filter(|entry| ack.names(entry));
            if let Some(entry) = entry {
                let mut acks = Acks::default();
                acks.add(ack.acks);
                self.removed.push(*entry);
                self.gone.push(Gone { entry: *entry, acks });
            }
        }
    }
}
