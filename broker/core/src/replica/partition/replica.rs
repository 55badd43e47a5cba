//! One partition replica: which role it plays in which leader epoch, and what each event does to its log.
//! Does not answer requests and does not talk to other brokers.
//!
//! | role | enters by | does |
//! |---|---|---|
//! | unassigned | creation | waits for its first assignment |
//! | leading | a newer leader epoch that names this broker | appends, tracks followers, raises the high watermark |
//! | following | a newer leader epoch that names another broker, or none | copies the leader's log, truncates where it diverges |
//! | offline | a failed write | nothing; no further append, whatever metadata says |
//!
//! Source: kafka-rules 1, 2, 10; `Partition` of Apache Kafka 4.3.1.

use std::collections::VecDeque;

use acked_wire::Str;
use bytes::Bytes;

use super::leading::Leading;
use super::writes::Writes;
use crate::log::{AppendError, AppendLimits, Log, PreparedAppend};
use crate::observation::{Observation, PartitionState};
use crate::replica::broker::Broker;
use crate::replica::interface::{PartitionAssignment, ReplicaEffect, WriteId};
use crate::rules::BecomeFollower;
use crate::types::{NodeId, Output, RequestId, Time, TopicPartition};

/// What a follower is about to ask its leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::replica) enum Stage {
    Fetching,
    /// Its offset was out of the leader's range: where does the leader's log end?
    AskingEnd,
    /// The leader's log does not end before its own: where does it start?
    AskingStart,
    /// The leader knows a newer epoch: nothing until metadata tells it too.
    Stopped,
}

/// A follower's own state, of one leader epoch.
#[derive(Debug)]
pub(in crate::replica) struct Following {
    /// `None` while the partition has no leader.
    pub leader: Option<NodeId>,
    pub stage: Stage,
    /// Not asked about before this time, after an error.
    pub not_before: Option<Time>,
    /// Told by the leader with records whose write has not completed.
    pub told_high_watermark: Option<i64>,
}

#[derive(Debug)]
pub(in crate::replica) enum Role {
    Unassigned,
    Leading(Leading),
    Following(Following),
    Offline,
}

/// What an assignment changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::replica) enum Applied {
    /// Nothing, or nothing that anybody waits for.
    Nothing,
    /// ISR, replicas or settings of the same leader epoch.
    SameEpoch,
    /// The leader epoch, and with it the role.
    NewEpoch,
}

/// One part of a produce request that waits until an offset is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::replica) struct Waiter {
    /// Exclusive end of the batch.
    pub required: i64,
    pub request: RequestId,
    pub part: usize,
}

/// One partition replica.
#[derive(Debug)]
pub(in crate::replica) struct Replica {
    pub id: TopicPartition,
    pub topic_name: Str,
    /// The newest known committed state.
    pub state: PartitionState,
    pub log: Log,
    pub writes: Writes,
    pub high_watermark: i64,
    pub role: Role,
    /// Grows whenever bytes that were in the log leave it.
    pub cuts: u64,
    /// Produce parts that wait for the high watermark, by required offset.
    pub awaiting_commit: VecDeque<Waiter>,
    /// Produce parts that wait for the leader's own write, by required offset.
    pub awaiting_write: VecDeque<Waiter>,
    /// Fetches that wait for news of this partition.
    pub awaiting_news: Vec<RequestId>,
    pub limits: AppendLimits,
    min_insync_replicas: i32,
    flush_messages: i64,
    unsynced_records: i64,
}

impl Replica {
    /// A replica whose log this broker holds. `high_watermark` is the checkpointed one.
    pub fn recovered(assignment: &PartitionAssignment, log: Log, high_watermark: i64) -> Replica {
        let log_end_offset = log.log_end_offset();
        assert!(log.log_start_offset() <= log_end_offset, "a log starts after its end");
        Replica {
            id: assignment.state.partition,
            topic_name: assignment.topic_name.detached(),
            state: assignment.state.clone(),
            high_watermark: high_watermark.clamp(log.log_start_offset(), log_end_offset),
            log,
            writes: Writes::new(log_end_offset),
            role: Role::Unassigned,
            cuts: 0,
            awaiting_commit: VecDeque::new(),
            awaiting_write: VecDeque::new(),
            awaiting_news: Vec::new(),
            limits: AppendLimits::from(&assignment.settings),
            min_insync_replicas: assignment.settings.min_insync_replicas,
            flush_messages: assignment.settings.flush_messages,
            unsynced_records: 0,
        }
    }

    /// A replica that is new to this broker.
    pub fn created(
        assignment: &PartitionAssignment,
        broker: &mut Broker,
        out: &mut Output<ReplicaEffect>,
    ) -> Replica {
        let mut replica = Replica::recovered(assignment, Log::empty(), 0);
        let write = broker.next_write();
        replica.writes.change(write);
        let topic_name = replica.topic_name.clone();
        out.effect(ReplicaEffect::CreateLog { partition: replica.id, write, topic_name });
        replica
    }

    // ---- what it is

    pub fn leader_epoch(&self) -> i32 {
        self.state.leader_epoch
    }

    pub fn leading(&self) -> Option<&Leading> {
        match &self.role {
            Role::Leading(leading) => Some(leading),
            Role::Unassigned | Role::Following(_) | Role::Offline => None,
        }
    }

    pub fn leading_mut(&mut self) -> Option<&mut Leading> {
        match &mut self.role {
            Role::Leading(leading) => Some(leading),
            Role::Unassigned | Role::Following(_) | Role::Offline => None,
        }
    }

    pub fn following(&self) -> Option<&Following> {
        match &self.role {
            Role::Following(following) => Some(following),
            Role::Unassigned | Role::Leading(_) | Role::Offline => None,
        }
    }

    pub fn following_mut(&mut self) -> Option<&mut Following> {
        match &mut self.role {
            Role::Following(following) => Some(following),
            Role::Unassigned | Role::Leading(_) | Role::Offline => None,
        }
    }

    pub fn is_offline(&self) -> bool {
        matches!(self.role, Role::Offline)
    }

    /// m: never more than there are replicas.
    pub fn min_insync(&self) -> usize {
        let configured = usize::try_from(self.min_insync_replicas).unwrap_or(0);
        configured.min(self.state.replicas.len())
    }

    // ---- metadata

    /// Takes over a newer assignment. An older partition epoch is ignored: this leader already heard of a later
    /// change. An equal one brings settings only, so it does not end a pending change.
    pub fn apply(
        &mut self,
        assignment: &PartitionAssignment,
        broker: &mut Broker,
        now: Time,
        out: &mut Output<ReplicaEffect>,
    ) -> Applied {
        assert_eq!(assignment.state.partition, self.id, "an assignment of another partition");
        self.limits = AppendLimits::from(&assignment.settings);
        self.min_insync_replicas = assignment.settings.min_insync_replicas;
        self.flush_messages = assignment.settings.flush_messages;

        let next = &assignment.state;
        let is_first = matches!(self.role, Role::Unassigned);
        if !is_first {
            if next.partition_epoch < self.state.partition_epoch
                || next.leader_epoch < self.state.leader_epoch
            {
                return Applied::Nothing;
            }
            if next.leader_epoch == self.state.leader_epoch {
                if next.partition_epoch > self.state.partition_epoch {
                    self.state = next.clone();
                    self.adopted(broker, now, out);
                }
                return Applied::SameEpoch;
            }
        }
        self.state = next.clone();
        if self.is_offline() {
            return Applied::NewEpoch;
        }
        if self.state.leader == Some(broker.node()) {
            self.become_leader(broker, now, out);
        } else {
            self.become_follower(broker, out);
        }
        self.check();
        Applied::NewEpoch
    }

    /// The controller's answer to a proposed change. Gives whether anything was adopted.
    pub fn adopt_isr(
        &mut self,
        isr: Vec<NodeId>,
        partition_epoch: i32,
        recovering: bool,
        broker: &Broker,
        now: Time,
        out: &mut Output<ReplicaEffect>,
    ) -> bool {
        if self.leading().is_none() || partition_epoch < self.state.partition_epoch {
            return false;
        }
        self.state.isr = isr;
        self.state.partition_epoch = partition_epoch;
        self.state.recovering = recovering;
        self.adopted(broker, now, out);
        true
    }

    fn adopted(&mut self, broker: &Broker, now: Time, out: &mut Output<ReplicaEffect>) {
        let Role::Leading(leading) = &mut self.role else { return };
        leading.change = None;
        leading.cover(broker.node(), &self.state.replicas, &self.state.isr, now);
        out.observe(Observation::IsrAdopted {
            partition: self.id,
            leader_epoch: self.state.leader_epoch,
            partition_epoch: self.state.partition_epoch,
            isr: self.state.isr.clone(),
        });
    }

    fn become_leader(&mut self, broker: &mut Broker, now: Time, out: &mut Output<ReplicaEffect>) {
        let epoch_start_offset = self.log.log_end_offset();
        let before = match std::mem::replace(&mut self.role, Role::Unassigned) {
            Role::Leading(leading) => Some(leading),
            Role::Unassigned | Role::Following(_) | Role::Offline => None,
        };
        let mut leading = Leading::new(epoch_start_offset);
        leading.keep_positions(broker.rules.positions_on_new_epoch, before);
        leading.cover(broker.node(), &self.state.replicas, &self.state.isr, now);
        self.role = Role::Leading(leading);
        out.observe(Observation::BecameLeader {
            partition: self.id,
            leader_epoch: self.state.leader_epoch,
            log_end_offset: epoch_start_offset,
            high_watermark: self.high_watermark,
        });
        if self.log.assign_epoch_start(self.state.leader_epoch) {
            self.save_epochs(broker, out);
        }
    }

    fn become_follower(&mut self, broker: &mut Broker, out: &mut Output<ReplicaEffect>) {
        let leader = self.state.leader;
        self.role = Role::Following(Following {
            leader,
            stage: Stage::Fetching,
            not_before: None,
            told_high_watermark: None,
        });
        out.observe(Observation::BecameFollower {
            partition: self.id,
            leader_epoch: self.state.leader_epoch,
            leader,
            log_end_offset: self.log.log_end_offset(),
        });
        self.reconcile_as_new_follower(broker, out);
    }

    /// Rule seam: what a new follower cuts before it knows anything of the leader's log.
    fn reconcile_as_new_follower(&mut self, broker: &mut Broker, out: &mut Output<ReplicaEffect>) {
        match broker.rules.become_follower {
            BecomeFollower::TruncateOnDivergence => {}
            BecomeFollower::TruncateToHighWatermark => self.truncate(self.high_watermark, broker, out),
        }
    }

    /// Rule seam: the epoch that a follower's fetch lets the leader compare, -1 for none.
    pub fn last_fetched_epoch(&self, rule: BecomeFollower) -> i32 {
        match rule {
            BecomeFollower::TruncateOnDivergence => self.log.latest_epoch().unwrap_or(-1),
            BecomeFollower::TruncateToHighWatermark => -1,
        }
    }

    // ---- the log

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

    fn save_epochs(&mut self, broker: &mut Broker, out: &mut Output<ReplicaEffect>) {
        let write = broker.next_write();
        self.writes.change(write);
        let epochs = self.log.epochs().pairs();
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

    // ---- the high watermark

    /// As leader, raises it as far as everybody who counts has got. Gives whether it moved.
    pub fn raise_high_watermark(&mut self, broker: &Broker, out: &mut Output<ReplicaEffect>) -> bool {
        let Role::Leading(leading) = &self.role else { return false };
        let rule = broker.rules.isr_shrink;
        let (isr, own_end, min_insync) = (&self.state.isr, self.writes.end(), self.min_insync());
        let Some(to) = leading.committable(rule, isr, broker.node(), own_end, min_insync) else {
            return false;
        };
        if to <= self.high_watermark {
            return false;
        }
        out.observe(Observation::HighWatermarkAdvanced {
            partition: self.id,
            leader_epoch: self.state.leader_epoch,
            from: self.high_watermark,
            to,
            isr: self.state.isr.clone(),
            maximal_isr: leading.maximal_isr(rule, isr).collect(),
            min_insync: i32::try_from(min_insync).expect("bounded by the configured value"),
        });
        self.high_watermark = to;
        self.check();
        true
    }

    /// As follower, takes over what the leader told, once its records are written. Gives whether it moved.
    pub fn adopt_told_high_watermark(&mut self, out: &mut Output<ReplicaEffect>) -> bool {
        let is_idle = self.writes.is_idle();
        let Some(following) = self.following_mut() else { return false };
        if !is_idle {
            return false;
        }
        let Some(told) = following.told_high_watermark.take() else { return false };
        let to = told.clamp(self.log.log_start_offset(), self.writes.end());
        self.set_follower_high_watermark(to, out)
    }

    fn lower_high_watermark(&mut self, log_end_offset: i64, out: &mut Output<ReplicaEffect>) {
        if self.high_watermark > log_end_offset {
            self.set_follower_high_watermark(log_end_offset, out);
        }
    }

    fn set_follower_high_watermark(&mut self, to: i64, out: &mut Output<ReplicaEffect>) -> bool {
        let from = self.high_watermark;
        if from == to {
            return false;
        }
        self.high_watermark = to;
        let leader_epoch = self.state.leader_epoch;
        out.observe(Observation::FollowerHighWatermark { partition: self.id, leader_epoch, from, to });
        true
    }

    /// What holds after every transition, whatever the rules.
    fn check(&self) {
        let id = self.id;
        assert!(
            self.high_watermark <= self.writes.end(),
            "high watermark of {id:?} beyond its published end"
        );
        assert!(self.writes.end() <= self.log.log_end_offset(), "published end of {id:?} beyond its log");
        assert!(
            !self.writes.is_idle() || self.writes.end() == self.log.log_end_offset(),
            "{id:?} has unpublished records and no write queued"
        );
        assert!(
            self.leading().is_none_or(|leading| leading.epoch_start_offset <= self.log.log_end_offset()),
            "{id:?} ends before its leader epoch starts"
        );
    }
}
