//! Takes each input to the part that it concerns, and sees to what else becomes due by it:
//!
//! | news of a partition | then |
//! |---|---|
//! | a write completed | raise the high watermark; settle produces; wake fetches; a follower asks for more |
//! | the high watermark moved | settle produces; wake fetches |
//! | the leader epoch grew, the replica went offline or away | fail produces; wake fetches; follow the new leader |
//! | an ISR was adopted or proposed | raise the high watermark |
//!
//! Does not decide any of it.

use std::collections::{BTreeMap, BTreeSet};

use acked_wire::{Str, Uuid, error_code};

use super::broker::Broker;
use super::fetch::{self, FetchPurgatory};
use super::fetcher::{Fetchers, Told};
use super::interface::{
    MetadataUpdate, PartitionAssignment, ReplicaConfig, ReplicaEffect, ReplicaInput, WriteId,
};
use super::isr::IsrProposals;
use super::partition::{Applied, Replica, Waiter};
use super::produce::{self, AckedBeforeAppend, ProducePurgatory, Verdict};
use crate::log::Log;
use crate::log::recovery::RecoveredLog;
use crate::rules::Rules;
use crate::types::{Output, RequestId, Time, TopicPartition};

/// Every partition replica of one broker.
///
/// Sources: `ReplicaManager` of Apache Kafka 4.3.1 and what the module's page names.
#[derive(Debug)]
pub struct ReplicaManager {
    pub(super) broker: Broker,
    pub(super) replicas: BTreeMap<TopicPartition, Replica>,
    /// Partitions that exist but have no replica here.
    pub(super) elsewhere: BTreeSet<TopicPartition>,
    pub(super) topics: BTreeMap<Str, Uuid>,
    /// Logs found at start that no assignment has claimed, with their checkpointed high watermarks.
    unclaimed: BTreeMap<TopicPartition, (RecoveredLog, i64)>,
    /// Assignments that came before this incarnation was registered.
    unregistered: BTreeMap<TopicPartition, PartitionAssignment>,
    pub(super) produces: ProducePurgatory,
    pub(super) acked_before_append: AckedBeforeAppend,
    pub(super) fetches: FetchPurgatory,
    fetchers: Fetchers,
    pub(super) proposals: IsrProposals,
    next_isr_check: Option<Time>,
    next_checkpoint: Option<Time>,
    saved_marks: Vec<(TopicPartition, i64)>,
}

impl ReplicaManager {
    /// `recovered` holds what recovery made of each log found at start, and its checkpointed high watermark. Its
    /// replica takes the log over with its first assignment.
    pub fn new(
        config: ReplicaConfig,
        rules: Rules,
        recovered: BTreeMap<TopicPartition, (RecoveredLog, i64)>,
    ) -> ReplicaManager {
        ReplicaManager {
            broker: Broker::new(config, rules),
            replicas: BTreeMap::new(),
            elsewhere: BTreeSet::new(),
            topics: BTreeMap::new(),
            unclaimed: recovered,
            unregistered: BTreeMap::new(),
            produces: ProducePurgatory::default(),
            acked_before_append: AckedBeforeAppend::default(),
            fetches: FetchPurgatory::default(),
            fetchers: Fetchers::default(),
            proposals: IsrProposals::default(),
            next_isr_check: None,
            next_checkpoint: None,
            saved_marks: Vec::new(),
        }
    }

    /// Takes one input. `now` never goes back.
    pub fn handle(&mut self, now: Time, input: ReplicaInput, out: &mut Output<ReplicaEffect>) {
        match input {
            ReplicaInput::Metadata(update) => self.metadata(now, update, out),
            ReplicaInput::Produce { request, version, body, wall_clock_ms } => {
                self.produce(now, request, version, body, wall_clock_ms, out);
            }
            ReplicaInput::Fetch { request, version, body } => self.fetch(now, request, version, body, out),
            ReplicaInput::ListOffsets { request, version, body } => {
                self.list_offsets(request, version, body, out)
            }
            ReplicaInput::OffsetForLeaderEpoch { request, body } => self.epoch_ends(request, body, out),
            ReplicaInput::Abandoned { request } => {
                self.produces.abandon(request, &mut self.replicas);
                self.fetches.abandon(request, &mut self.replicas);
            }
            ReplicaInput::Written { partition, write } => self.written(now, partition, write, out),
            ReplicaInput::WriteFailed { partition, write } => self.write_failed(now, partition, write, out),
            ReplicaInput::ReadDone { read, result } => {
                self.fetches.read_done(read, result, &self.replicas, out)
            }
            ReplicaInput::FetchResponse { from, fetch, result } => {
                let (fetchers, replicas, broker) = (&mut self.fetchers, &mut self.replicas, &mut self.broker);
                for partition in fetchers.fetched(Told { from, fetch, result }, replicas, broker, now, out) {
                    self.after_high_watermark(partition, out);
                }
                self.fetchers.send(from, &self.replicas, &mut self.broker, now, out);
            }
            ReplicaInput::ListOffsetsResponse { from, fetch, result } => {
                let (fetchers, replicas, broker) = (&mut self.fetchers, &mut self.replicas, &mut self.broker);
                fetchers.offsets_told(Told { from, fetch, result }, replicas, broker, now, out);
                self.fetchers.send(from, &self.replicas, &mut self.broker, now, out);
            }
            ReplicaInput::AlterPartitionResponse { result } => {
                let changed = self.proposals.answered(result, &mut self.replicas, &self.broker, now, out);
                for partition in changed {
                    self.raise_high_watermark(partition, out);
                }
            }
            ReplicaInput::Tick => {}
        }
        self.due(now, out);
        self.proposals.send(&self.replicas, &self.broker, now, out);
    }

    /// When the machine wants a `Tick`, if nothing comes before.
    pub fn next_deadline(&self) -> Option<Time> {
        [
            self.produces.next_deadline(),
            self.acked_before_append.next_deadline(),
            self.fetches.next_deadline(),
            self.fetchers.next_deadline(),
            self.proposals.next_deadline(),
            self.next_isr_check,
            self.next_checkpoint,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Where each usable log ends, appends whose write has not completed included: what an orderly stop, after the last
    /// write, has made durable.
    pub fn log_end_offsets(&self) -> Vec<(TopicPartition, i64)> {
        let claimed = self.replicas.iter().filter(|(_, replica)| !replica.is_offline());
        let claimed = claimed.map(|(partition, replica)| (*partition, replica.log.log_end_offset()));
        let unclaimed = self.unclaimed.iter().map(|(partition, (log, _))| (*partition, log.log_end_offset()));
        claimed.chain(unclaimed).collect()
    }

    /// The high watermark of every online replica: what a clean stop checkpoints last.
    pub fn high_watermarks(&self) -> Vec<(TopicPartition, i64)> {
        let online = self.replicas.values().filter(|replica| !replica.is_offline());
        online.map(|replica| (replica.id, replica.high_watermark)).collect()
    }

    fn due(&mut self, now: Time, out: &mut Output<ReplicaEffect>) {
        if self.acked_before_append.next_deadline().is_some_and(|due| due <= now) {
            self.append_what_was_acked(out);
        }
        self.produces.expire(&mut self.replicas, now, out);
        while let Some(request) = self.fetches.next_expired(now) {
            self.answer_fetch(request, out);
        }
        if self.fetchers.next_deadline().is_some_and(|due| due <= now) {
            for leader in self.fetchers.due(now) {
                self.fetchers.send(leader, &self.replicas, &mut self.broker, now, out);
            }
        }
        if is_due(&mut self.next_isr_check, self.broker.config.replica_lag_time_max / 2, now) {
            self.check_isr(now, out);
        }
        if is_due(&mut self.next_checkpoint, self.broker.config.high_watermark_checkpoint_interval, now) {
            self.checkpoint_high_watermarks(out);
        }
    }

    fn check_isr(&mut self, now: Time, out: &mut Output<ReplicaEffect>) {
        let mut proposed = Vec::new();
        for replica in self.replicas.values_mut() {
            if self.proposals.consider_shrink(replica, &self.broker, now, out) {
                proposed.push(replica.id);
            }
        }
        // A proposed shrink changes nothing yet, unless a rule says so.
        for partition in proposed {
            self.raise_high_watermark(partition, out);
        }
    }

    fn checkpoint_high_watermarks(&mut self, out: &mut Output<ReplicaEffect>) {
        let marks = self.high_watermarks();
        if marks != self.saved_marks {
            self.saved_marks.clone_from(&marks);
            out.effect(ReplicaEffect::SaveHighWatermarks { marks });
        }
    }

    fn metadata(&mut self, now: Time, update: MetadataUpdate, out: &mut Output<ReplicaEffect>) {
        self.broker.registered = update.brokers;
        if update.broker_epoch.is_some() {
            self.broker.epoch = update.broker_epoch;
        }
        for assignment in update.partitions {
            self.unregistered.insert(assignment.state.partition, assignment);
        }
        for partition in update.removed {
            self.unregistered.remove(&partition);
            self.topics.retain(|_, id| *id != partition.topic);
            self.elsewhere.remove(&partition);
            let has_log =
                self.unclaimed.remove(&partition).is_some() || self.replicas.contains_key(&partition);
            if has_log {
                self.remove(partition, out);
            }
        }
        if self.broker.epoch.is_none() {
            return;
        }
        for assignment in std::mem::take(&mut self.unregistered).into_values() {
            self.assign(now, &assignment, out);
        }
        self.send_fetches(now, out);
    }

    fn send_fetches(&mut self, now: Time, out: &mut Output<ReplicaEffect>) {
        for leader in self.fetchers.leaders() {
            self.fetchers.send(leader, &self.replicas, &mut self.broker, now, out);
        }
    }

    fn assign(&mut self, now: Time, assignment: &PartitionAssignment, out: &mut Output<ReplicaEffect>) {
        let partition = assignment.state.partition;
        if self.topics.get(&assignment.topic_name) != Some(&partition.topic) {
            self.topics.insert(assignment.topic_name.detached(), partition.topic);
        }
        if !assignment.state.replicas.contains(&self.broker.node()) {
            self.elsewhere.insert(partition);
            let has_log =
                self.unclaimed.remove(&partition).is_some() || self.replicas.contains_key(&partition);
            if has_log {
                self.remove(partition, out);
            }
            return;
        }
        self.elsewhere.remove(&partition);
        let (unclaimed, broker) = (&mut self.unclaimed, &mut self.broker);
        let replica = self.replicas.entry(partition).or_insert_with(|| match unclaimed.remove(&partition) {
            Some((log, high_watermark)) => {
                Replica::recovered(assignment, Log::from_recovered(log), high_watermark)
            }
            None => Replica::created(assignment, broker, out),
        });
        match replica.apply(assignment, &mut self.broker, now, out) {
            Applied::Nothing => {}
            Applied::SameEpoch => self.raise_high_watermark(partition, out),
            Applied::NewEpoch => {
                let failed = produce::failed_by_new_epoch(self.broker.rules.pending_produce, replica);
                let leader = replica.following().and_then(|following| following.leader);
                self.fetchers.follow(partition, leader);
                self.fail(failed, error_code::NOT_LEADER_OR_FOLLOWER, partition, out);
                self.raise_high_watermark(partition, out);
                self.wake_fetches(partition, out);
            }
        }
    }

    /// The replica has to go: its topic is deleted, or it is assigned elsewhere.
    fn remove(&mut self, partition: TopicPartition, out: &mut Output<ReplicaEffect>) {
        self.fetchers.follow(partition, None);
        if let Some(mut replica) = self.replicas.remove(&partition) {
            let failed = produce::failed_by_end(&mut replica);
            self.fail(failed, error_code::NOT_LEADER_OR_FOLLOWER, partition, out);
            for request in replica.awaiting_news {
                self.answer_fetch(request, out);
            }
        }
        out.effect(ReplicaEffect::DeleteLog { partition });
    }

    fn written(
        &mut self,
        now: Time,
        partition: TopicPartition,
        write: WriteId,
        out: &mut Output<ReplicaEffect>,
    ) {
        let Some(replica) = self.replicas.get_mut(&partition) else { return };
        let has_advanced = replica.written(write, out);
        let has_moved =
            replica.adopt_told_high_watermark(out) | replica.raise_high_watermark(&self.broker, out);
        let follows = replica.following().and_then(|following| following.leader);
        if has_advanced || has_moved {
            self.settle(partition, out);
            self.wake_fetches(partition, out);
        }
        if let Some(leader) = follows {
            self.fetchers.send(leader, &self.replicas, &mut self.broker, now, out);
        }
    }

    fn write_failed(
        &mut self,
        now: Time,
        partition: TopicPartition,
        write: WriteId,
        out: &mut Output<ReplicaEffect>,
    ) {
        let Some(replica) = self.replicas.get_mut(&partition) else { return };
        if replica.is_offline() || !replica.writes.is_queued(write) {
            return;
        }
        replica.go_offline(out);
        let failed = produce::failed_by_end(replica);
        self.fetchers.follow(partition, None);
        self.fail(failed, error_code::KAFKA_STORAGE_ERROR, partition, out);
        self.wake_fetches(partition, out);
        self.send_fetches(now, out);
    }

    fn raise_high_watermark(&mut self, partition: TopicPartition, out: &mut Output<ReplicaEffect>) {
        let Some(replica) = self.replicas.get_mut(&partition) else { return };
        if replica.raise_high_watermark(&self.broker, out) {
            self.after_high_watermark(partition, out);
        }
    }

    pub(super) fn after_high_watermark(
        &mut self,
        partition: TopicPartition,
        out: &mut Output<ReplicaEffect>,
    ) {
        self.settle(partition, out);
        self.wake_fetches(partition, out);
    }

    /// Settles every waiting produce part whose condition holds now.
    pub(super) fn settle(&mut self, partition: TopicPartition, out: &mut Output<ReplicaEffect>) {
        let Some(replica) = self.replicas.get_mut(&partition) else { return };
        while let Some((waiter, verdict)) = produce::next_settled(replica, &self.broker) {
            self.produces.settle(waiter, verdict, Some(replica), out);
        }
    }

    fn fail(
        &mut self,
        waiters: Vec<Waiter>,
        code: i16,
        partition: TopicPartition,
        out: &mut Output<ReplicaEffect>,
    ) {
        for waiter in waiters {
            let replica = self.replicas.get(&partition);
            self.produces.settle(waiter, Verdict::Failed(code), replica, out);
        }
    }

    /// Answers the fetches that wait for this partition and have something to be told now.
    fn wake_fetches(&mut self, partition: TopicPartition, out: &mut Output<ReplicaEffect>) {
        let Some(replica) = self.replicas.get(&partition) else { return };
        if replica.awaiting_news.is_empty() {
            return;
        }
        for request in replica.awaiting_news.clone() {
            // A request that names a partition twice is gone by its second turn.
            let Some(pending) = self.fetches.waiting(request) else { continue };
            if fetch::is_ready(pending, &self.replicas, &self.broker) {
                self.answer_fetch(request, out);
            }
        }
    }

    fn answer_fetch(&mut self, request: RequestId, out: &mut Output<ReplicaEffect>) {
        if let Some(pending) = self.fetches.take(request, &mut self.replicas) {
            self.fetches.answer(pending, &self.replicas, &mut self.broker, out);
        }
    }
}

/// Whether a periodic task is due; sets when it is next. The first time only starts the clock.
fn is_due(next: &mut Option<Time>, period: Time, now: Time) -> bool {
    match *next {
        Some(due) if now < due => false,
        before => {
            *next = Some(now + period);
            before.is_some()
        }
    }
}
