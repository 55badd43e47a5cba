//! Client and follower requests, part by part: what is taken, what is refused, what waits.
//!
//! A partition that has no replica here: NOT_LEADER_OR_FOLLOWER when it lives elsewhere, UNKNOWN_TOPIC_OR_PARTITION
//! when only its topic is known or it was asked for by name, else UNKNOWN_TOPIC_ID.

use acked_wire::{
    FetchRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest, ProduceRequest, ResponseBody, Str, Uuid,
    error_code,
};

use super::epoch_ends;
use super::fetch;
use super::interface::ReplicaEffect;
use super::list_offsets;
use super::manager::ReplicaManager;
use super::produce::{self, Acks, Refused};
use crate::log::Prepared;
use crate::types::{Output, RequestId, Time, TopicPartition};

impl ReplicaManager {
    /// Why there is no replica of a partition here.
    fn absence(&self, partition: TopicPartition) -> i16 {
        let whole_topic =
            TopicPartition { index: i32::MIN, ..partition }..=TopicPartition { index: i32::MAX, ..partition };
        if self.elsewhere.contains(&partition) {
            error_code::NOT_LEADER_OR_FOLLOWER
        } else if partition.topic == Uuid::ZERO
            || self.elsewhere.range(whole_topic.clone()).next().is_some()
            || self.replicas.range(whole_topic).next().is_some()
        {
            error_code::UNKNOWN_TOPIC_OR_PARTITION
        } else {
            error_code::UNKNOWN_TOPIC_ID
        }
    }

    pub(super) fn produce(
        &mut self,
        now: Time,
        request: RequestId,
        version: i16,
        body: ProduceRequest,
        wall_clock_ms: i64,
        out: &mut Output<ReplicaEffect>,
    ) {
        self.append_what_was_acked(out);
        if produce::answers_on_receipt(self.broker.rules.produce_reply)
            && self.promise(now, request, version, &body, wall_clock_ms, out)
        {
            self.acked_before_append.push(body, wall_clock_ms, now);
            return;
        }
        let acks = Acks::from_wire(body.acks);
        let mut pending =
            produce::Pending::new(request, version, acks.unwrap_or(Acks::Leader), now, body.timeout_ms);
        let mut repeated = Vec::new();
        for topic in body.topic_data {
            let id = self.topic_id(topic.topic_id, &topic.name);
            pending.topic(topic.name, topic.topic_id, topic.partition_data.len());
            for data in topic.partition_data {
                let partition = TopicPartition { topic: id, index: data.index };
                let Some(acks) = acks else {
                    pending.refuse(partition, Refused::with(error_code::INVALID_REQUIRED_ACKS), None, out);
                    continue;
                };
                let Some(replica) = self.replicas.get_mut(&partition) else {
                    pending.refuse(partition, Refused::with(self.absence(partition)), None, out);
                    continue;
                };
                let records = data.records.as_ref();
                if produce::is_too_new(version, records) {
                    let refused = Refused::with(error_code::UNSUPPORTED_COMPRESSION_TYPE);
                    pending.refuse(partition, refused, Some(replica), out);
                    continue;
                }
                match produce::examine(replica, records, acks, wall_clock_ms, &self.broker) {
                    Ok(prepared) => {
                        let taken = produce::take(replica, records, prepared, &mut self.broker, out);
                        pending.await_part(replica, taken);
                        if taken.is_duplicate {
                            repeated.push(partition);
                        }
                    }
                    Err(refused) => {
                        produce::after_refusal(replica, records, refused, wall_clock_ms, &self.broker);
                        pending.refuse(partition, refused, Some(replica), out);
                    }
                }
            }
        }
        if pending.is_settled() {
            pending.finish(out);
            return;
        }
        self.produces.insert(pending);
        // A duplicate may have what it waits for already.
        for partition in repeated {
            self.settle(partition, out);
        }
    }

    fn topic_id(&self, id: Uuid, name: &Str) -> Uuid {
        if id == Uuid::ZERO { self.topics.get(name).copied().unwrap_or(Uuid::ZERO) } else { id }
    }

    /// Answers success before anything is appended, if every part would be (museum 0).
    fn promise(
        &self,
        now: Time,
        request: RequestId,
        version: i16,
        body: &ProduceRequest,
        wall_clock_ms: i64,
        out: &mut Output<ReplicaEffect>,
    ) -> bool {
        let Some(acks) = Acks::from_wire(body.acks).filter(|acks| *acks != Acks::None) else { return false };
        let mut pending = produce::Pending::new(request, version, acks, now, body.timeout_ms);
        for topic in &body.topic_data {
            let id = self.topic_id(topic.topic_id, &topic.name);
            pending.topic(topic.name.clone(), topic.topic_id, topic.partition_data.len());
            for data in &topic.partition_data {
                let Some(replica) = self.replicas.get(&TopicPartition { topic: id, index: data.index })
                else {
                    return false;
                };
                let prepared =
                    produce::examine(replica, data.records.as_ref(), acks, wall_clock_ms, &self.broker);
                let Ok(Prepared::Append(prepared)) = prepared else { return false };
                produce::promise(&mut pending, replica, &prepared, &self.broker);
            }
        }
        pending.finish(out);
        true
    }

    pub(super) fn append_what_was_acked(&mut self, out: &mut Output<ReplicaEffect>) {
        for (body, wall_clock_ms) in self.acked_before_append.take() {
            let Some(acks) = Acks::from_wire(body.acks) else { continue };
            for topic in &body.topic_data {
                let id = self.topic_id(topic.topic_id, &topic.name);
                for data in &topic.partition_data {
                    let partition = TopicPartition { topic: id, index: data.index };
                    let Some(replica) = self.replicas.get_mut(&partition) else { continue };
                    let records = data.records.as_ref();
                    if let Ok(prepared) =
                        produce::examine(replica, records, acks, wall_clock_ms, &self.broker)
                    {
                        produce::take(replica, records, prepared, &mut self.broker, out);
                    }
                }
            }
        }
    }

    pub(super) fn fetch(
        &mut self,
        now: Time,
        request: RequestId,
        version: i16,
        body: FetchRequest,
        out: &mut Output<ReplicaEffect>,
    ) {
        let resolve = |name: &Str| self.topics.get(name).copied();
        let read = fetch::Pending::from_wire(request, version, body, now, &self.broker, resolve);
        let mut pending = match read {
            Ok(pending) => pending,
            Err(refused) => return refused.answer(request, out),
        };
        pending.refuse_unknown(|partition| {
            if self.replicas.contains_key(&partition) { None } else { Some(self.absence(partition)) }
        });
        for part in &pending.parts {
            let Some(replica) = self.replicas.get_mut(&part.partition) else { continue };
            let Some(follower) = fetch::record(&pending, part, replica, &self.broker, now) else { continue };
            self.proposals.consider_expansion(replica, follower, &self.broker, out);
            if replica.raise_high_watermark(&self.broker, out) {
                self.after_high_watermark(part.partition, out);
            }
        }
        let must_answer = pending.parts.is_empty()
            || pending.deadline <= now
            || fetch::is_ready(&pending, &self.replicas, &self.broker);
        if must_answer {
            self.fetches.answer(pending, &self.replicas, &mut self.broker, out);
        } else {
            self.fetches.wait(pending, &mut self.replicas);
        }
    }

    pub(super) fn list_offsets(
        &mut self,
        request: RequestId,
        version: i16,
        body: ListOffsetsRequest,
        out: &mut Output<ReplicaEffect>,
    ) {
        let resolve = |name: &Str| self.topics.get(name).copied();
        let find = |partition| self.replicas.get(&partition).ok_or_else(|| self.absence(partition));
        let response = list_offsets::answer(version, body, resolve, find);
        out.effect(ReplicaEffect::Reply { request, body: ResponseBody::ListOffsets(response) });
    }

    pub(super) fn epoch_ends(
        &mut self,
        request: RequestId,
        body: OffsetForLeaderEpochRequest,
        out: &mut Output<ReplicaEffect>,
    ) {
        let resolve = |name: &Str| self.topics.get(name).copied();
        let find = |partition| self.replicas.get(&partition).ok_or_else(|| self.absence(partition));
        let response = epoch_ends::answer(body, resolve, find);
        out.effect(ReplicaEffect::Reply { request, body: ResponseBody::OffsetForLeaderEpoch(response) });
    }
}
