//! Which requests go out now, and what is in them.

use std::collections::BTreeMap;

use acked_wire::api::init_producer_id::InitProducerIdRequest;
use acked_wire::api::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
use acked_wire::{RequestBody, Uuid};
use bytes::Bytes;

use super::machine::{Asked, Attempt, Closing, Identity, Producer, ProducerEffect, Slot};
use super::partition::Ordering;
use crate::client::{ClusterView, Peer};
use crate::settings::Acks;
use crate::{NodeId, Output};

/// A request that is being put together.
#[derive(Default)]
pub(super) struct Draft {
    size: usize,
    topics: Vec<TopicProduceData>,
    attempts: Vec<Attempt>,
}

impl Producer {
    /// Does everything that can be done now.
    pub(super) fn advance(&mut self, out: &mut Output<ProducerEffect>) {
        self.resolve_all(out);
        self.ask_for_identity();
        while self.send_round() {}
        self.ask_for_metadata();
        self.finish(out);
    }

    pub(super) fn resolve_all(&mut self, out: &mut Output<ProducerEffect>) {
        if !matches!(self.identity, Identity::Off) {
            let mut next = self.next_active(None);
            while let Some(slot) = next {
                next = self.next_active(Some(slot));
                self.resolve(slot, out);
            }
        }
    }

    /// Whether a request waits for any broker to be reachable.
    pub(super) fn asks_any(&self) -> bool {
        let identity = matches!(self.identity, Identity::Wanted { not_before } if not_before <= self.now)
            && !self.active.is_empty();
        identity || self.refresh.due(self.now)
    }

    pub(super) fn ask_for_identity(&mut self) {
        let Identity::Wanted { not_before } = self.identity else { return };
        if not_before > self.now || self.active.is_empty() {
            return;
        }
        let Some(peer) = self.links.any(self.now, &self.view, &mut self.network) else { return };
        // Without a transaction every id is a fresh one; epochs after the first are the producer's own to raise.
        let body = RequestBody::InitProducerId(InitProducerIdRequest {
            transactional_id: None,
            transaction_timeout_ms: i32::MAX,
            producer_id: -1,
            producer_epoch: -1,
            ..Default::default()
        });
        self.identity = Identity::Asked;
        self.links.send(self.now, peer, body, true, Asked::ProducerId, &mut self.network);
    }

    pub(super) fn ask_for_metadata(&mut self) {
        if !self.refresh.due(self.now) {
            return;
        }
        let Some(peer) = self.links.any(self.now, &self.view, &mut self.network) else { return };
        let body = RequestBody::Metadata(ClusterView::request(self.topics.iter(), true));
        self.refresh.asked();
        self.links.send(self.now, peer, body, true, Asked::Metadata, &mut self.network);
    }

    /// Sends at most one request to each broker, with at most one batch of each partition. False when nothing was
    /// sent.
    pub(super) fn send_round(&mut self) -> bool {
        let mut drafts: BTreeMap<NodeId, Draft> = BTreeMap::new();
        let mut next = self.next_active(None);
        while let Some(slot) = next {
            next = self.next_active(Some(slot));
            let Some((node, topic)) = self.sendable(slot) else { continue };
            let draft = drafts.entry(node).or_default();
            let size = self.partitions[slot.0].queue.front().map_or(0, |first| first.size_max);
            if draft.size > 0 && draft.size + size > self.settings.max_request_size {
                continue;
            }
            draft.size += size;
            let (attempt, bytes) = self.number_and_take(slot, topic, node);
            draft.add(attempt, bytes);
        }
        let sent = !drafts.is_empty();
        for (node, draft) in drafts {
            self.send_draft(node, draft);
        }
        sent
    }

    /// Where the first queued batch of a partition can go right now.
    pub(super) fn sendable(&mut self, slot: Slot) -> Option<(NodeId, Uuid)> {
        let partition = &self.partitions[slot.0];
        if !partition.is_ready(self.now, self.settings.linger) {
            return None;
        }
        let ordering = match self.identity {
            Identity::Off if self.settings.max_in_flight_requests_per_connection == 1 => Ordering::OneAtATime,
            Identity::Off => Ordering::Free,
            Identity::Known(identity) => Ordering::Idempotent(identity),
            Identity::Wanted { .. } | Identity::Asked => return None,
        };
        let (Some(node), Some(topic)) = (self.leader_of(slot), self.view.topic_id(&partition.topic)) else {
            self.refresh.want();
            return None;
        };
        if !partition.may_send(node, ordering) {
            return None;
        }
        let peer = Peer::Node(node);
        let up = self.links.ensure(self.now, peer, &self.view, &mut self.network);
        let free = self.links.in_flight(peer) < self.settings.max_in_flight_requests_per_connection;
        (up && free).then_some((node, topic))
    }

    pub(super) fn number_and_take(&mut self, slot: Slot, topic: Uuid, node: NodeId) -> (Attempt, Bytes) {
        let identity = self.identity();
        let codec = self.settings.compression;
        let partition = self.partition(slot);
        let mut batch = partition.queue.pop_front().expect("a sendable partition has a queued batch");
        batch.closed = true;
        batch.attempts += 1;
        if let Some(identity) = identity
            && batch.numbering.is_none()
        {
            if partition.sequences.producer() != Some(identity) {
                partition.sequences.start_over(identity);
            }
            let numbering = partition.sequences.assign(batch.count());
            batch.renumber(numbering);
        }
        let bytes = batch.bytes(codec);
        let attempt =
            Attempt { slot, topic, index: partition.index, batch: batch.number, numbering: batch.numbering };
        partition.attempts_on_wire += 1;
        partition.node_on_wire = Some(node);
        let index = partition.in_flight.partition_point(|sent| sent.number < batch.number);
        partition.in_flight.insert(index, batch);
        (attempt, bytes)
    }

    pub(super) fn send_draft(&mut self, node: NodeId, draft: Draft) {
        self.counters.requests += 1;
        self.counters.batches += draft.attempts.len() as u64;
        let timeout_ms = i32::try_from(self.settings.request_timeout.as_millis()).unwrap_or(i32::MAX);
        let body = RequestBody::Produce(ProduceRequest {
            transactional_id: None,
            acks: self.settings.acks.code(),
            timeout_ms,
            topic_data: draft.topics,
            ..Default::default()
        });
        let answered = self.settings.acks != Acks::None;
        let asked = Asked::Produce(draft.attempts);
        self.links.send(self.now, Peer::Node(node), body, answered, asked, &mut self.network);
    }

    pub(super) fn finish(&mut self, out: &mut Output<ProducerEffect>) {
        if !self.flushes.is_empty() {
            let oldest = self.active.iter().filter_map(|slot| self.partitions[slot.0].oldest());
            let oldest = oldest.map(|batch| batch.number).min().unwrap_or(u64::MAX);
            self.flushes.retain(|(flush, first_after)| {
                let done = oldest >= *first_after;
                if done {
                    out.effect(ProducerEffect::Flushed { flush: *flush });
                }
                !done
            });
        }
        if self.closing == Closing::Asked && self.active.is_empty() {
            assert_eq!(self.buffered, 0, "what is done is not buffered");
            self.closing = Closing::Done;
            out.effect(ProducerEffect::Closed);
        }
    }
}

impl Draft {
    fn add(&mut self, attempt: Attempt, bytes: Bytes) {
        let data = PartitionProduceData { index: attempt.index, records: Some(bytes), ..Default::default() };
        match self.topics.last_mut() {
            Some(topic) if topic.topic_id == attempt.topic => topic.partition_data.push(data),
            _ => self.topics.push(TopicProduceData {
                topic_id: attempt.topic,
                partition_data: vec![data],
                ..Default::default()
            }),
        }
        self.attempts.push(attempt);
    }
}
