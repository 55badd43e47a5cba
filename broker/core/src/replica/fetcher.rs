//! What this broker, as a follower, asks of its leaders, and what it does with their answers.
//!
//! One request is in flight per leader. A fetch asks for every partition that follows that leader and may be asked
//! for, and is sent only once the writes of the answer before have completed: its offsets tell the leader what this
//! follower holds. A partition whose offset is out of the leader's range asks where the leader's log ends and starts.
//!
//! An answer counts for a partition only if it still follows that leader in the leader epoch of the request and its
//! log still ends at the requested offset.
//!
//! | answer for a partition | follower |
//! |---|---|
//! | records | appends them; takes over the high watermark once they are written |
//! | a diverging epoch | truncates, and nothing else |
//! | OFFSET_OUT_OF_RANGE | asks for the leader's end: above ours, for its start |
//! | FENCED_LEADER_EPOCH | stops until metadata brings the newer epoch |
//! | any other error | pauses |
//!
//! Source: kafka-rules 1.2, 1.5, 1.6, 1.7; `AbstractFetcherThread` of Apache Kafka 4.3.1, KIP-595.

use std::collections::{BTreeMap, BTreeSet};

use acked_wire::api::fetch::{FetchPartition, FetchTopic, PartitionData, ReplicaState};
use acked_wire::api::list_offsets::{ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsTopic};
use acked_wire::{FetchRequest, FetchResponse, ListOffsetsRequest, ListOffsetsResponse, error_code};

use super::broker::Broker;
use super::interface::{FetchId, ReplicaEffect};
use super::list_offsets::{EARLIEST, LATEST};
use super::partition::{Replica, Stage};
use crate::types::{NodeId, Output, PeerError, Time, TopicPartition};

/// What was asked of a leader about one partition.
#[derive(Clone, Copy, Debug)]
struct Asked {
    partition: TopicPartition,
    leader_epoch: i32,
    /// Where the log ended when it was asked.
    offset: i64,
    stage: Stage,
}

/// What came back for a request.
#[derive(Debug)]
pub(super) struct Told<Response> {
    pub from: NodeId,
    pub fetch: FetchId,
    pub result: Result<Response, PeerError>,
}

#[derive(Debug)]
struct InFlight {
    fetch: FetchId,
    /// In order of partition.
    asked: Vec<Asked>,
}

/// The partitions that follow one leader.
#[derive(Debug, Default)]
struct Fetcher {
    partitions: BTreeSet<TopicPartition>,
    in_flight: Option<InFlight>,
    /// Nothing is sent before this time, after a failed request.
    not_before: Option<Time>,
    /// When the first of the pausing partitions may be asked about again.
    retry_at: Option<Time>,
}

/// One fetcher for each leader that is followed.
#[derive(Debug, Default)]
pub(super) struct Fetchers {
    by_leader: BTreeMap<NodeId, Fetcher>,
}

impl Fetchers {
    /// Makes a partition follow `leader` and nobody else.
    pub fn follow(&mut self, partition: TopicPartition, leader: Option<NodeId>) {
        self.by_leader.retain(|followed, fetcher| {
            fetcher.partitions.remove(&partition);
            !fetcher.partitions.is_empty() || leader == Some(*followed)
        });
        if let Some(leader) = leader {
            self.by_leader.entry(leader).or_default().partitions.insert(partition);
        }
    }

    pub fn leaders(&self) -> Vec<NodeId> {
        self.by_leader.keys().copied().collect()
    }

    /// The leaders whose pause is over.
    pub fn due(&self, now: Time) -> Vec<NodeId> {
        let is_due = |fetcher: &Fetcher| fetcher.next_deadline().is_some_and(|deadline| deadline <= now);
        self.by_leader.iter().filter(|(_, fetcher)| is_due(fetcher)).map(|(leader, _)| *leader).collect()
    }

    pub fn next_deadline(&self) -> Option<Time> {
        self.by_leader.values().filter_map(Fetcher::next_deadline).min()
    }

    /// Sends the next request to `leader`, unless one is in flight, a pause is due, or writes are under way.
    pub fn send(
        &mut self,
        leader: NodeId,
        replicas: &BTreeMap<TopicPartition, Replica>,
        broker: &mut Broker,
        now: Time,
        out: &mut Output<ReplicaEffect>,
    ) {
        let Some(fetcher) = self.by_leader.get_mut(&leader) else { return };
        if fetcher.in_flight.is_some() || fetcher.not_before.is_some_and(|time| now < time) {
            return;
        }
        fetcher.not_before = None;
        let Some(mut asked) = fetcher.ready(replicas, now) else { return };
        if asked.is_empty() {
            return;
        }
        let fetch = broker.next_fetch();
        if asked.iter().any(|asked| asked.stage != Stage::Fetching) {
            asked.retain(|asked| asked.stage != Stage::Fetching);
            let body = offsets_request(&asked, replicas, broker);
            out.effect(ReplicaEffect::SendListOffsets { to: leader, fetch, body });
        } else {
            let body = fetch_request(&asked, replicas, broker);
            out.effect(ReplicaEffect::SendFetch { to: leader, fetch, body });
        }
        fetcher.in_flight = Some(InFlight { fetch, asked });
    }

    /// Takes a leader's records. Gives the partitions whose high watermark moved.
    pub fn fetched(
        &mut self,
        told: Told<FetchResponse>,
        replicas: &mut BTreeMap<TopicPartition, Replica>,
        broker: &mut Broker,
        now: Time,
        out: &mut Output<ReplicaEffect>,
    ) -> Vec<TopicPartition> {
        let Told { from, fetch, result } = told;
        let mut moved = Vec::new();
        let Some(asked) = self.answered(from, fetch) else { return moved };
        let Some(response) = result.ok().filter(|response| response.error_code == error_code::NONE) else {
            self.pause(from, broker, now);
            return moved;
        };
        for topic in response.responses {
            for data in topic.partitions {
                let partition = TopicPartition { topic: topic.topic_id, index: data.partition_index };
                let Ok(place) = asked.binary_search_by_key(&partition, |asked| asked.partition) else {
                    continue;
                };
                let Some(replica) = replicas.get_mut(&partition) else { continue };
                if still_holds(&asked[place], from, replica) && take_records(data, replica, broker, now, out)
                {
                    moved.push(partition);
                }
            }
        }
        moved
    }

    /// Takes a leader's offsets.
    pub fn offsets_told(
        &mut self,
        told: Told<ListOffsetsResponse>,
        replicas: &mut BTreeMap<TopicPartition, Replica>,
        broker: &mut Broker,
        now: Time,
        out: &mut Output<ReplicaEffect>,
    ) {
        let Told { from, fetch, result } = told;
        let Some(asked) = self.answered(from, fetch) else { return };
        let Ok(response) = result else {
            self.pause(from, broker, now);
            return;
        };
        for asked in &asked {
            let Some(replica) = replicas.get_mut(&asked.partition) else { continue };
            if !still_holds(asked, from, replica) {
                continue;
            }
            let topic = response.topics.iter().find(|topic| topic.name == replica.topic_name);
            let partitions = topic.map_or(&[][..], |topic| &topic.partitions);
            match partitions.iter().find(|told| told.partition_index == asked.partition.index) {
                Some(told) => take_offset(told, replica, broker, now, out),
                None => pause(replica, broker, now),
            }
        }
    }

    /// What the request in flight asked, if `fetch` is that request.
    fn answered(&mut self, from: NodeId, fetch: FetchId) -> Option<Vec<Asked>> {
        let fetcher = self.by_leader.get_mut(&from)?;
        let in_flight = fetcher.in_flight.take_if(|in_flight| in_flight.fetch == fetch)?;
        Some(in_flight.asked)
    }

    fn pause(&mut self, leader: NodeId, broker: &Broker, now: Time) {
        if let Some(fetcher) = self.by_leader.get_mut(&leader) {
            fetcher.not_before = Some(now + broker.config.replica_fetch_backoff);
        }
    }
}

impl Fetcher {
    fn next_deadline(&self) -> Option<Time> {
        if self.in_flight.is_some() {
            return None;
        }
        self.not_before.or(self.retry_at)
    }

    /// What may be asked now; `None` while a write is under way.
    fn ready(&mut self, replicas: &BTreeMap<TopicPartition, Replica>, now: Time) -> Option<Vec<Asked>> {
        self.retry_at = None;
        let mut asked = Vec::with_capacity(self.partitions.len());
        for partition in &self.partitions {
            let Some(replica) = replicas.get(partition) else { continue };
            let Some(following) = replica.following() else { continue };
            if !replica.writes.is_idle() {
                return None;
            }
            if following.stage == Stage::Stopped {
                continue;
            }
            if let Some(time) = following.not_before.filter(|time| now < *time) {
                self.retry_at = Some(self.retry_at.map_or(time, |earliest: Time| earliest.min(time)));
                continue;
            }
            asked.push(Asked {
                partition: *partition,
                leader_epoch: replica.leader_epoch(),
                offset: replica.log.log_end_offset(),
                stage: following.stage,
            });
        }
        Some(asked)
    }
}

/// Whether an answer still concerns the replica that asked.
fn still_holds(asked: &Asked, from: NodeId, replica: &Replica) -> bool {
    let is_same_role = replica
        .following()
        .is_some_and(|following| following.leader == Some(from) && following.stage == asked.stage);
    is_same_role
        && replica.leader_epoch() == asked.leader_epoch
        && replica.log.log_end_offset() == asked.offset
        && replica.writes.is_idle()
}

/// Gives whether the high watermark moved.
fn take_records(
    data: PartitionData,
    replica: &mut Replica,
    broker: &mut Broker,
    now: Time,
    out: &mut Output<ReplicaEffect>,
) -> bool {
    match data.error_code {
        error_code::NONE if data.diverging_epoch.epoch >= 0 => {
            let (epoch, end) = (data.diverging_epoch.epoch, data.diverging_epoch.end_offset);
            replica.truncate(shared_end(replica, epoch, end), broker, out);
            false
        }
        error_code::NONE => {
            if let Some(records) = data.records.filter(|records| !records.is_empty())
                && replica.append_fetched(&records, broker, out).is_err()
            {
                pause(replica, broker, now);
                return false;
            }
            let following = replica.following_mut().expect("the role was checked");
            following.told_high_watermark = Some(data.high_watermark);
            replica.adopt_told_high_watermark(out)
        }
        error_code::OFFSET_OUT_OF_RANGE => {
            go_to(replica, Stage::AskingEnd);
            false
        }
        error_code::FENCED_LEADER_EPOCH => {
            go_to(replica, Stage::Stopped);
            false
        }
        _ => {
            pause(replica, broker, now);
            false
        }
    }
}

/// Where this log and the leader's may still be one, when the leader's `epoch` ends at `end`. If we lack that epoch,
/// the end of our own largest epoch below it, and the next fetch asks again.
fn shared_end(replica: &Replica, epoch: i32, end: i64) -> i64 {
    let own_end = replica.log.log_end_offset();
    let shared = match replica.log.end_offset_for_epoch(epoch) {
        Some((own_epoch, own_epoch_end)) if own_epoch != epoch => own_epoch_end,
        Some((_, own_epoch_end)) => own_epoch_end.min(end),
        None => end,
    };
    shared.clamp(replica.log.log_start_offset(), own_end)
}

fn take_offset(
    told: &ListOffsetsPartitionResponse,
    replica: &mut Replica,
    broker: &mut Broker,
    now: Time,
    out: &mut Output<ReplicaEffect>,
) {
    let own_end = replica.log.log_end_offset();
    let stage = replica.following().expect("the role was checked").stage;
    match (told.error_code, stage) {
        (error_code::NONE, Stage::AskingEnd) if told.offset >= own_end => go_to(replica, Stage::AskingStart),
        (error_code::NONE, Stage::AskingEnd) => {
            replica.truncate(told.offset.max(replica.log.log_start_offset()), broker, out);
            go_to(replica, Stage::Fetching);
        }
        (error_code::NONE, Stage::AskingStart) => {
            if told.offset > own_end {
                replica.restart_at(told.offset, broker, out);
            } else {
                // Neither end explains the error: it has passed, or comes again after the pause.
                pause(replica, broker, now);
            }
            go_to(replica, Stage::Fetching);
        }
        (error_code::FENCED_LEADER_EPOCH, _) => go_to(replica, Stage::Stopped),
        _ => pause(replica, broker, now),
    }
}

fn go_to(replica: &mut Replica, stage: Stage) {
    if let Some(following) = replica.following_mut() {
        following.stage = stage;
    }
}

fn pause(replica: &mut Replica, broker: &Broker, now: Time) {
    if let Some(following) = replica.following_mut() {
        following.not_before = Some(now + broker.config.replica_fetch_backoff);
    }
}

fn fetch_request(
    asked: &[Asked],
    replicas: &BTreeMap<TopicPartition, Replica>,
    broker: &Broker,
) -> FetchRequest {
    let config = &broker.config;
    let mut topics: Vec<FetchTopic> = Vec::new();
    for asked in asked {
        let replica = replicas.get(&asked.partition).expect("it was found to be ready");
        if topics.last().is_none_or(|topic| topic.topic_id != asked.partition.topic) {
            topics.push(FetchTopic { topic_id: asked.partition.topic, ..FetchTopic::default() });
        }
        topics.last_mut().expect("one was pushed").partitions.push(FetchPartition {
            partition: asked.partition.index,
            current_leader_epoch: asked.leader_epoch,
            fetch_offset: asked.offset,
            last_fetched_epoch: replica.last_fetched_epoch(broker.rules.become_follower),
            log_start_offset: replica.log.log_start_offset(),
            partition_max_bytes: config.replica_fetch_max_bytes,
            ..FetchPartition::default()
        });
    }
    FetchRequest {
        replica_state: ReplicaState {
            replica_id: broker.node().0,
            replica_epoch: broker.epoch.unwrap_or(-1),
            ..ReplicaState::default()
        },
        max_wait_ms: i32::try_from(config.replica_fetch_wait_max.as_millis()).unwrap_or(i32::MAX),
        min_bytes: config.replica_fetch_min_bytes,
        max_bytes: config.replica_fetch_response_max_bytes,
        topics,
        ..FetchRequest::default()
    }
}

fn offsets_request(
    asked: &[Asked],
    replicas: &BTreeMap<TopicPartition, Replica>,
    broker: &Broker,
) -> ListOffsetsRequest {
    let mut topics: Vec<ListOffsetsTopic> = Vec::new();
    for asked in asked {
        let replica = replicas.get(&asked.partition).expect("it was found to be ready");
        if topics.last().is_none_or(|topic| topic.name != replica.topic_name) {
            topics.push(ListOffsetsTopic { name: replica.topic_name.clone(), ..ListOffsetsTopic::default() });
        }
        topics.last_mut().expect("one was pushed").partitions.push(ListOffsetsPartition {
            partition_index: asked.partition.index,
            current_leader_epoch: asked.leader_epoch,
            timestamp: if asked.stage == Stage::AskingStart { EARLIEST } else { LATEST },
            ..ListOffsetsPartition::default()
        });
    }
    ListOffsetsRequest { replica_id: broker.node().0, topics, ..ListOffsetsRequest::default() }
}
