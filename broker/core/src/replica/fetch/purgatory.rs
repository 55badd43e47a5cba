//! Which fetches wait, and what is read for those that are answered.

use std::collections::{BTreeMap, BTreeSet};

use acked_wire::api::fetch::{FetchableTopicResponse, PartitionData};
use acked_wire::{FetchResponse, error_code};
use bytes::Bytes;

use super::answer::{Answer, Served, answered, leave, refusal};
use super::offer::{Offer, offer};
use super::request::{Part, Pending};
use crate::replica::broker::Broker;
use crate::replica::interface::{ReadFailed, ReadId, ReplicaEffect};
use crate::replica::partition::Replica;
use crate::types::{Output, RequestId, Time, TopicPartition};

/// Fetches that wait for news, and answers that wait for their reads.
#[derive(Debug, Default)]
pub(in crate::replica) struct FetchPurgatory {
    waiting: BTreeMap<RequestId, Pending>,
    deadlines: BTreeSet<(Time, RequestId)>,
    answering: BTreeMap<RequestId, Answer>,
    reads: BTreeMap<ReadId, (RequestId, usize)>,
}

impl FetchPurgatory {
    /// Lets a fetch wait for news of its partitions.
    pub fn wait(&mut self, pending: Pending, replicas: &mut BTreeMap<TopicPartition, Replica>) {
        for part in &pending.parts {
            if let Some(replica) = replicas.get_mut(&part.partition) {
                replica.awaiting_news.push(pending.request);
            }
        }
        self.deadlines.insert((pending.deadline, pending.request));
        let before = self.waiting.insert(pending.request, pending);
        assert!(before.is_none(), "a request waits twice");
    }

    pub fn waiting(&self, request: RequestId) -> Option<&Pending> {
        self.waiting.get(&request)
    }

    /// Ends the wait of a fetch.
    pub fn take(
        &mut self,
        request: RequestId,
        replicas: &mut BTreeMap<TopicPartition, Replica>,
    ) -> Option<Pending> {
        let pending = self.waiting.remove(&request)?;
        self.deadlines.remove(&(pending.deadline, request));
        for part in &pending.parts {
            if let Some(replica) = replicas.get_mut(&part.partition) {
                replica.awaiting_news.retain(|waiting| *waiting != request);
            }
        }
        Some(pending)
    }

    pub fn next_deadline(&self) -> Option<Time> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    pub fn next_expired(&self, now: Time) -> Option<RequestId> {
        self.deadlines.first().filter(|(deadline, _)| *deadline <= now).map(|(_, request)| *request)
    }

    /// Forgets a request whose connection is gone; its reads come back to nobody.
    pub fn abandon(&mut self, request: RequestId, replicas: &mut BTreeMap<TopicPartition, Replica>) {
        self.take(request, replicas);
        if self.answering.remove(&request).is_some() {
            self.reads.retain(|_, (reader, _)| *reader != request);
        }
    }

    /// Plans the answer from what the replicas hold now and starts its reads.
    pub fn answer(
        &mut self,
        pending: Pending,
        replicas: &BTreeMap<TopicPartition, Replica>,
        broker: &mut Broker,
        out: &mut Output<ReplicaEffect>,
    ) {
        let mut answer = Answer {
            version: pending.version,
            fetcher: pending.fetcher,
            response: FetchResponse::default(),
            served: Vec::with_capacity(pending.parts.len()),
            reads: 0,
        };
        let mut left = pending.max_bytes;
        let mut parts = pending.parts.iter();
        for (topic, (name, topic_id, count)) in pending.topics.iter().enumerate() {
            let mut partitions = Vec::with_capacity(*count);
            for (slot, part) in parts.by_ref().take(*count).enumerate() {
                let place = (topic, slot);
                partitions.push(self.answer_part(
                    part,
                    place,
                    &pending,
                    &mut answer,
                    &mut left,
                    replicas,
                    broker,
                    out,
                ));
            }
            answer.response.responses.push(FetchableTopicResponse {
                topic: name.clone(),
                topic_id: *topic_id,
                partitions,
                ..FetchableTopicResponse::default()
            });
        }
        if answer.reads == 0 {
            leave(pending.request, answer, replicas, out);
        } else {
            self.answering.insert(pending.request, answer);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one step of a loop, split out to be read alone")]
    fn answer_part(
        &mut self,
        part: &Part,
        (topic, slot): (usize, usize),
        pending: &Pending,
        answer: &mut Answer,
        left: &mut usize,
        replicas: &BTreeMap<TopicPartition, Replica>,
        broker: &mut Broker,
        out: &mut Output<ReplicaEffect>,
    ) -> PartitionData {
        let index = part.partition.index;
        if let Some(code) = part.refused {
            return refusal(index, code, None, pending.version);
        }
        let Some(replica) = replicas.get(&part.partition) else {
            return refusal(index, error_code::NOT_LEADER_OR_FOLLOWER, None, pending.version);
        };
        let mut served = Served {
            partition: part.partition,
            leader_epoch: replica.leader_epoch(),
            cuts: replica.cuts,
            fetch_offset: part.offset,
            end_offset: part.offset,
            diverging: None,
            topic,
            slot,
        };
        match offer(replica, part, pending, broker) {
            Offer::Refused(code) => return refusal(index, code, Some(replica), pending.version),
            Offer::Diverging(epoch, end) => served.diverging = Some((epoch, end)),
            Offer::Below(end) if part.offset < end => {
                let is_first = answer.reads == 0;
                let slice = replica.log.locate(part.offset, end, part.max_bytes.min(*left), is_first);
                if let Some(slice) = slice.filter(|slice| slice.length > 0) {
                    served.end_offset = slice.end_offset;
                    *left = left.saturating_sub(slice.length);
                    let read = broker.next_read();
                    self.reads.insert(read, (pending.request, answer.served.len()));
                    answer.reads += 1;
                    let (position, length) = (slice.position, slice.length);
                    out.effect(ReplicaEffect::Read { partition: part.partition, read, position, length });
                }
            }
            Offer::Below(_) => {}
        }
        let answered = answered(index, &served, replica, pending);
        answer.served.push(served);
        answered
    }

    /// Takes bytes that were read; the answer leaves with the last of them.
    pub fn read_done(
        &mut self,
        read: ReadId,
        result: Result<Bytes, ReadFailed>,
        replicas: &BTreeMap<TopicPartition, Replica>,
        out: &mut Output<ReplicaEffect>,
    ) {
        let Some((request, place)) = self.reads.remove(&read) else { return };
        let answer = self.answering.get_mut(&request).expect("reads of an abandoned answer were forgotten");
        assert!(answer.reads > 0, "{request:?} got more reads than it asked for");
        answer.reads -= 1;
        let served = &answer.served[place];
        let data = &mut answer.response.responses[served.topic].partitions[served.slot];
        match result {
            Ok(bytes) => data.records = Some(bytes),
            Err(ReadFailed) => {
                let version = answer.version;
                *data = refusal(data.partition_index, error_code::KAFKA_STORAGE_ERROR, None, version);
            }
        }
        if answer.reads == 0 {
            let answer = self.answering.remove(&request).expect("it was found above");
            leave(request, answer, replicas, out);
        }
    }
}
