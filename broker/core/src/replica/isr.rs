//! Who is proposed to leave or to join the in-sync replicas, and what the controller's answers mean.
//! One change of a partition is pending at a time, and one request of a broker in flight.
//!
//! | answer for a partition | the pending change |
//! |---|---|
//! | none (success) | adopt the committed ISR, if the leader epoch still holds and it is not older than ours |
//! | INELIGIBLE_REPLICA, OPERATION_NOT_ATTEMPTED | dropped: back to the committed ISR |
//! | FENCED_LEADER_EPOCH, INVALID_UPDATE_VERSION, INVALID_REQUEST, UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, NEW_LEADER_ELECTED | stays pending, is not sent again, until metadata ends it |
//! | any other, NOT_CONTROLLER included | stays pending, the same request is sent again |
//!
//! Source: kafka-rules 3; KIP-497, KIP-903; `AlterPartitionManager` of Apache Kafka 4.3.1.

use std::collections::{BTreeMap, BTreeSet};

use acked_wire::api::alter_partition::request::{BrokerState, PartitionData, TopicData};
use acked_wire::api::alter_partition::response;
use acked_wire::{AlterPartitionRequest, AlterPartitionResponse, error_code};

use super::broker::Broker;
use super::interface::ReplicaEffect;
use super::partition::{IsrChange, Leading, Replica, Role};
use crate::observation::Observation;
use crate::rules::IsrJoin;
use crate::types::{NodeId, Output, PeerError, Time, TopicPartition};

/// `LeaderRecoveryState` of KIP-704: the leader may lack committed records, or does not.
const RECOVERED: i8 = 0;
const RECOVERING: i8 = 1;

/// Proposed changes on their way to the controller.
#[derive(Debug, Default)]
pub(super) struct IsrProposals {
    unsent: BTreeSet<TopicPartition>,
    in_flight: Option<Vec<Asked>>,
    not_before: Option<Time>,
}

/// What the request in flight asked for.
#[derive(Clone, Copy, Debug)]
struct Asked {
    partition: TopicPartition,
    leader_epoch: i32,
    partition_epoch: i32,
}

impl IsrProposals {
    /// Sends what is proposed, unless a request is in flight or a pause is due.
    pub fn send(
        &mut self,
        replicas: &BTreeMap<TopicPartition, Replica>,
        broker: &Broker,
        now: Time,
        out: &mut Output<ReplicaEffect>,
    ) {
        let Some(broker_epoch) = broker.epoch else { return };
        if self.unsent.is_empty()
            || self.in_flight.is_some()
            || self.not_before.is_some_and(|time| now < time)
        {
            return;
        }
        self.not_before = None;
        let mut asked = Vec::new();
        let mut topics: Vec<TopicData> = Vec::new();
        for partition in std::mem::take(&mut self.unsent) {
            let Some(replica) = replicas.get(&partition) else { continue };
            let Some(change) = replica.leading().and_then(|leading| leading.change.as_ref()) else {
                continue;
            };
            let (leader_epoch, partition_epoch) = (replica.leader_epoch(), change.partition_epoch);
            asked.push(Asked { partition, leader_epoch, partition_epoch });
            if topics.last().is_none_or(|topic| topic.topic_id != partition.topic) {
                topics.push(TopicData { topic_id: partition.topic, ..TopicData::default() });
            }
            let topic = topics.last_mut().expect("one was pushed");
            topic.partitions.push(proposal(partition, leader_epoch, change));
        }
        if asked.is_empty() {
            return;
        }
        self.in_flight = Some(asked);
        let broker_id = broker.node().0;
        let body =
            AlterPartitionRequest { broker_id, broker_epoch, topics, ..AlterPartitionRequest::default() };
        out.effect(ReplicaEffect::SendAlterPartition { body });
    }

    /// Takes the answer to the request in flight. Gives the partitions whose ISR may count differently now.
    pub fn answered(
        &mut self,
        result: Result<AlterPartitionResponse, PeerError>,
        replicas: &mut BTreeMap<TopicPartition, Replica>,
        broker: &Broker,
        now: Time,
        out: &mut Output<ReplicaEffect>,
    ) -> Vec<TopicPartition> {
        let Some(asked) = self.in_flight.take() else { return Vec::new() };
        let answers = match result {
            Ok(response) if response.error_code == error_code::NONE => by_partition(response),
            Ok(_) | Err(_) => BTreeMap::new(),
        };
        let mut changed = Vec::new();
        for asked in asked {
            let Some(replica) = replicas.get_mut(&asked.partition) else { continue };
            match outcome(answers.get(&asked.partition)) {
                Outcome::Adopt(answer) => {
                    if replica.leader_epoch() == answer.leader_epoch
                        && adopt(answer, replica, broker, now, out)
                    {
                        changed.push(asked.partition);
                    }
                }
                Outcome::Drop if is_pending(replica, asked) => {
                    drop_change(replica);
                    changed.push(asked.partition);
                }
                Outcome::Retry if is_pending(replica, asked) => {
                    self.unsent.insert(asked.partition);
                    self.not_before = Some(now + broker.config.alter_partition_backoff);
                }
                Outcome::Drop | Outcome::Retry | Outcome::AwaitMetadata => {}
            }
        }
        changed
    }

    pub fn next_deadline(&self) -> Option<Time> {
        if self.in_flight.is_some() || self.unsent.is_empty() { None } else { self.not_before }
    }

    fn propose(&mut self, replica: &mut Replica, isr: Vec<(NodeId, i64)>, out: &mut Output<ReplicaEffect>) {
        let (partition, leader_epoch) = (replica.id, replica.leader_epoch());
        let partition_epoch = replica.state.partition_epoch;
        let Role::Leading(leading) = &mut replica.role else { return };
        assert!(leading.change.is_none(), "a second pending ISR change of {partition:?}");
        out.observe(Observation::IsrProposed {
            partition,
            leader_epoch,
            partition_epoch,
            isr: isr.iter().map(|(member, _)| *member).collect(),
        });
        leading.change = Some(IsrChange { proposed: isr, partition_epoch });
        self.unsent.insert(partition);
    }

    /// Proposes to take out every follower that lags. Gives whether it did.
    pub fn consider_shrink(
        &mut self,
        replica: &mut Replica,
        broker: &Broker,
        now: Time,
        out: &mut Output<ReplicaEffect>,
    ) -> bool {
        let Some(leading) = replica.leading().filter(|leading| leading.change.is_none()) else {
            return false;
        };
        let isr = &replica.state.isr;
        let lagging = leading.lagging(isr, replica.writes.end(), broker.config.replica_lag_time_max, now);
        if lagging.is_empty() {
            return false;
        }
        let kept = isr.iter().filter(|member| !lagging.contains(member));
        let proposed = kept.map(|member| (*member, judged_epoch(replica, *member, broker))).collect();
        self.propose(replica, proposed, out);
        true
    }

    /// Proposes to take in a follower that has just fetched. Gives whether it did.
    pub fn consider_expansion(
        &mut self,
        replica: &mut Replica,
        follower: NodeId,
        broker: &Broker,
        out: &mut Output<ReplicaEffect>,
    ) -> bool {
        if replica.state.isr.contains(&follower) || !may_join(replica, follower, broker) {
            return false;
        }
        let members = replica.state.isr.iter().copied().chain([follower]);
        let proposed = members.map(|member| (member, judged_epoch(replica, member, broker))).collect();
        self.propose(replica, proposed, out);
        true
    }
}

/// Whether a follower outside the ISR holds everything that may be committed, and is who it was when it fetched.
fn may_join(replica: &Replica, follower: NodeId, broker: &Broker) -> bool {
    let Some(leading) = replica.leading().filter(|leading| leading.change.is_none()) else { return false };
    let Some(position) = leading.position(follower) else { return false };
    let Some(log_end_offset) = position.log_end_offset else { return false };
    let Some(view) = broker.registered.get(&follower) else { return false };
    !view.fenced
        && !view.in_controlled_shutdown
        && position.broker_epoch == Some(view.broker_epoch)
        && log_end_offset >= replica.high_watermark
        && log_end_offset >= least_end_to_join(broker.rules.isr_join, leading)
}

/// Rule seam: where a follower's log must end besides the high watermark.
fn least_end_to_join(rule: IsrJoin, leading: &Leading) -> i64 {
    match rule {
        IsrJoin::AtEpochStart => leading.epoch_start_offset,
        IsrJoin::AtHighWatermark => 0,
    }
}

fn judged_epoch(replica: &Replica, member: NodeId, broker: &Broker) -> i64 {
    if member == broker.node() {
        return broker.epoch.unwrap_or(-1);
    }
    replica.leading().map_or(-1, |leading| leading.judged_epoch(member))
}

fn proposal(partition: TopicPartition, leader_epoch: i32, change: &IsrChange) -> PartitionData {
    let member = |(member, epoch): &(NodeId, i64)| BrokerState {
        broker_id: member.0,
        broker_epoch: *epoch,
        ..Default::default()
    };
    PartitionData {
        partition_index: partition.index,
        leader_epoch,
        new_isr_with_epochs: change.proposed.iter().map(member).collect(),
        // A leader that asks for a change has what it needs: its log is the partition's.
        leader_recovery_state: RECOVERED,
        partition_epoch: change.partition_epoch,
        ..PartitionData::default()
    }
}

fn by_partition(response: AlterPartitionResponse) -> BTreeMap<TopicPartition, response::PartitionData> {
    let mut answers = BTreeMap::new();
    for topic in response.topics {
        for answer in topic.partitions {
            answers.insert(TopicPartition { topic: topic.topic_id, index: answer.partition_index }, answer);
        }
    }
    answers
}

enum Outcome<'a> {
    Adopt(&'a response::PartitionData),
    Drop,
    AwaitMetadata,
    Retry,
}

fn outcome(answer: Option<&response::PartitionData>) -> Outcome<'_> {
    let Some(answer) = answer else { return Outcome::Retry };
    match answer.error_code {
        error_code::NONE => Outcome::Adopt(answer),
        error_code::INELIGIBLE_REPLICA | error_code::OPERATION_NOT_ATTEMPTED => Outcome::Drop,
        error_code::FENCED_LEADER_EPOCH
        | error_code::INVALID_UPDATE_VERSION
        | error_code::INVALID_REQUEST
        | error_code::UNKNOWN_TOPIC_ID
        | error_code::UNKNOWN_TOPIC_OR_PARTITION
        | error_code::NEW_LEADER_ELECTED => Outcome::AwaitMetadata,
        _ => Outcome::Retry,
    }
}

fn adopt(
    answer: &response::PartitionData,
    replica: &mut Replica,
    broker: &Broker,
    now: Time,
    out: &mut Output<ReplicaEffect>,
) -> bool {
    let isr = answer.isr.iter().map(|member| NodeId(*member)).collect();
    let recovering = answer.leader_recovery_state == RECOVERING;
    replica.adopt_isr(isr, answer.partition_epoch, recovering, broker, now, out)
}

/// Whether the change that was asked for is still the pending one.
fn is_pending(replica: &Replica, asked: Asked) -> bool {
    let change = replica.leading().and_then(|leading| leading.change.as_ref());
    replica.leader_epoch() == asked.leader_epoch
        && change.is_some_and(|change| change.partition_epoch == asked.partition_epoch)
}

fn drop_change(replica: &mut Replica) {
    if let Role::Leading(leading) = &mut replica.role {
        leading.change = None;
    }
}
