//! One partition replica: which role it plays in which leader epoch. Does not answer requests and does not talk to
//! other brokers.
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

use super::leading::Leading;
use super::writes::Writes;
use crate::log::{AppendLimits, Log};
use crate::observation::{Observation, PartitionState};
use crate::replica::broker::Broker;
use crate::replica::interface::{PartitionAssignment, ReplicaEffect};
use crate::rules::{BecomeFollower, ElectedHighWatermark};
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
    /// After so many records the log is synced.
    pub(super) flush_messages: i64,
    pub(super) unsynced_records: i64,
    min_insync_replicas: i32,
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
        self.high_watermark = self.elected_high_watermark(broker.rules.elected_high_watermark);
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

    /// Rule seam: where the high watermark of a new leader begins.
    fn elected_high_watermark(&self, rule: ElectedHighWatermark) -> i64 {
        match rule {
            ElectedHighWatermark::Kept => self.high_watermark,
            ElectedHighWatermark::JumpsToEnd => self.writes.end(),
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

    /// What holds after every transition, whatever the rules.
    pub(super) fn check(&self) {
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
