//! What each event does to a replica's log: appends, truncations, completed and failed writes.
//!
//! The log's state runs ahead of its file; what followers, readers and acknowledgements see is the end of the writes
//! that completed.

use bytes::Bytes;

use super::replica::{Replica, Role};
use crate::log::{AppendError, PreparedAppend};
use crate::observation::Observation;
use crate::replica::broker::Broker;
use crate::replica::interface::{ReplicaEffect, WriteId};
use crate::types::Output;

impl Replica {
    /// Appends a validated batch as leader. Offsets are assigned now; the end is published by its write.
    pub fn append(&mut self, prepared: PreparedAppend, broker: &mut Broker, out: &mut Output<ReplicaEffect>) {
        assert!(self.leading().is_some(), "append to {:?} without leading it", self.id);
        out.observe(Observation::AppendedAsLeader {
            partition: self.id,
            leader_epoch: self.state.leader_epoch,
            base_offset: prepared.base_offset,
            last_offset: prepared.last_offset,
            producer_id: prepared.producer_id,
            producer_epoch: prepared.producer_epoch,
            base_sequence: prepared.base_sequence,
        });
        let appended = self.log.commit_append(prepared);
        let records = appended.last_offset - appended.base_offset + 1;
        self.write(appended.position, appended.bytes, records, broker, out);
        if appended.epochs_changed {
            self.save_epochs(broker, out);
        }
    }

    /// Appends what the leader of this epoch sent. Gives whether anything was appended.
    pub fn append_fetched(
        &mut self,
        records: &Bytes,
        broker: &mut Broker,
        out: &mut Output<ReplicaEffect>,
    ) -> Result<bool, AppendError> {
        let Some(appended) = self.log.append_as_follower(records, self.state.leader_epoch)? else {
            return Ok(false);
        };
        out.observe(Observation::AppendedAsFollower {
            partition: self.id,
            leader_epoch: self.state.leader_epoch,
            base_offset: appended.base_offset,
            last_offset: appended.last_offset,
        });
        let records = appended.last_offset - appended.base_offset + 1;
        self.write(appended.position, appended.bytes, records, broker, out);
        if appended.epochs_changed {
            self.save_epochs(broker, out);
        }
        Ok(true)
    }

    fn write(
        &mut self,
        position: u64,
        bytes: Bytes,
        records: i64,
        broker: &mut Broker,
        out: &mut Output<ReplicaEffect>,
    ) {
        let write = broker.next_write();
        let sync = self.is_sync_due(records);
        self.writes.append(write, self.log.log_end_offset());
        out.effect(ReplicaEffect::Append { partition: self.id, write, position, bytes, sync });
    }

    fn is_sync_due(&mut self, records: i64) -> bool {
        self.unsynced_records = self.unsynced_records.saturating_add(records);
        let is_due = self.unsynced_records >= self.flush_messages;
        if is_due {
            self.unsynced_records = 0;
        }
        is_due
    }

    /// Cuts everything at and beyond `offset`; batches go whole. A cut at or beyond the end still drops epochs that
    /// start there, or an ex-leader that wrote nothing would diverge for ever.
    pub fn truncate(&mut self, offset: i64, broker: &mut Broker, out: &mut Output<ReplicaEffect>) {
        let from = self.log.log_end_offset();
        let cut = self.log.truncate_to(offset.min(from));
        let to = cut.log_end_offset;
        assert!(to <= from, "a truncation lengthened {:?}", self.id);
        if to < from {
            self.cuts += 1;
            self.writes.cut(to);
            self.lower_high_watermark(to, out);
            self.truncated(from, to, cut.size, broker, out);
        }
        if cut.epochs_changed {
            self.save_epochs(broker, out);
        }
        self.check();
    }

    /// Drops everything and starts anew at the leader's log start.
    pub fn restart_at(
        &mut self,
        log_start_offset: i64,
        broker: &mut Broker,
        out: &mut Output<ReplicaEffect>,
    ) {
        let from = self.log.log_end_offset();
        self.log.reset_to(log_start_offset);
        self.cuts += 1;
        self.writes.restart(log_start_offset);
        self.set_follower_high_watermark(log_start_offset, out);
        self.truncated(from, log_start_offset, 0, broker, out);
        self.save_epochs(broker, out);
        self.check();
    }

    fn truncated(
        &mut self,
        from: i64,
        to: i64,
        size: u64,
        broker: &mut Broker,
        out: &mut Output<ReplicaEffect>,
    ) {
        out.observe(Observation::Truncated {
            partition: self.id,
            leader_epoch: self.state.leader_epoch,
            from_log_end_offset: from,
            to_log_end_offset: to,
        });
        let write = broker.next_write();
        self.writes.change(write);
        out.effect(ReplicaEffect::Truncate { partition: self.id, write, size, log_end_offset: to });
    }

    pub(super) fn save_epochs(&mut self, broker: &mut Broker, out: &mut Output<ReplicaEffect>) {
        let write = broker.next_write();
        self.writes.change(write);
        let epochs = self.log.epochs().pairs();
        out.observe(Observation::EpochsChanged {
            partition: self.id,
            log_start_offset: self.log.log_start_offset(),
            log_end_offset: self.log.log_end_offset(),
            epochs: epochs.clone(),
        });
        out.effect(ReplicaEffect::SaveEpochs { partition: self.id, write, epochs });
    }

    /// A queued write completed. Gives whether the published log end moved.
    pub fn written(&mut self, write: WriteId, out: &mut Output<ReplicaEffect>) -> bool {
        let has_advanced = self.writes.complete(write);
        if has_advanced {
            let log_end_offset = self.writes.end();
            out.observe(Observation::LogEndAdvanced { partition: self.id, log_end_offset });
        }
        self.check();
        has_advanced
    }

    /// A write failed: what the file holds beyond the published end is unknown, so nothing is appended any more.
    pub fn go_offline(&mut self, out: &mut Output<ReplicaEffect>) {
        self.role = Role::Offline;
        out.observe(Observation::LogOffline { partition: self.id });
    }
}
