//! The producer: an endpoint machine that turns sent records into acknowledged ones, each answered exactly once.
//! Decides batching, order, retries, numbering and when to give up; does not encode frames or touch sockets.
//! Source: kafka-clients 4.3 (`Sender`, `RecordAccumulator`, `TransactionManager`), KIP-91, KIP-98, KIP-360.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use acked_wire::{Uuid, error_code};
use rand_chacha::ChaCha8Rng;

use super::batch::{PendingRecord, RecordId};
use super::counters::ProducerCounters;
use super::partition::Partition;
use super::sequences::{Numbering, ProducerIdentity};
use crate::client::{
    Backoff, ClusterView, Earliest, LinkSettings, Links, NetworkEffect, NetworkInput, Peer, Refresh,
};
use crate::settings::{Acks, ProducerSettings};
use crate::{NodeId, Output, Time};

/// What the producer is told.
#[derive(Debug)]
pub enum ProducerInput {
    /// A record to deliver. `delivery.timeout.ms` counts from here.
    Send {
        record: PendingRecord,
        topic: Arc<str>,
        partition: i32,
    },
    Network(NetworkInput),
    /// Say `Flushed` once every record sent before is done; let nothing linger.
    Flush {
        flush: u64,
    },
    /// Flush, take no more records, then say `Closed`.
    Close,
    /// A deadline passed.
    Tick,
}

/// What the producer asks for.
#[derive(Debug)]
pub enum ProducerEffect {
    Network(NetworkEffect),
    /// What became of a record; said once for each.
    Complete {
        record: RecordId,
        outcome: Outcome,
    },
    Flushed {
        flush: u64,
    },
    Closed,
}

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// `offset` is `None` with acks=0, and when the broker only said that it has the record already.
    Ok { partition: i32, offset: Option<i64>, timestamp_ms: i64 },
    /// `code` is Kafka's. `definite` when the record is in no log and will not get there.
    Failed { code: i16, definite: bool },
}

/// The place of a partition in the producer's list, in order of first use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slot(pub(super) usize);

/// What a request was for.
#[derive(Debug)]
pub(super) enum Asked {
    Metadata,
    ProducerId,
    Produce(Vec<Attempt>),
}

/// One batch in one request.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) slot: Slot,
    pub(super) topic: Uuid,
    pub(super) index: i32,
    pub(super) batch: u64,
    pub(super) numbering: Option<Numbering>,
}

/// Numbering of this producer.
#[derive(Debug)]
pub(super) enum Identity {
    /// `enable.idempotence=false`.
    Off,
    /// To be asked for, not before the given time.
    Wanted {
        not_before: Time,
    },
    Asked,
    Known(ProducerIdentity),
}

/// See the module.
#[derive(Debug)]
pub struct Producer {
    pub(super) settings: ProducerSettings,
    pub(super) retry: Backoff,
    pub(super) rng: ChaCha8Rng,
    pub(super) now: Time,
    pub(super) view: ClusterView,
    pub(super) refresh: Refresh,
    pub(super) links: Links<Asked>,
    pub(super) identity: Identity,
    pub(super) identity_failures: u32,
    pub(super) partitions: Vec<Partition>,
    pub(super) slots: BTreeMap<(Arc<str>, i32), Slot>,
    /// The partitions with batches that are not done.
    pub(super) active: BTreeSet<Slot>,
    /// Topics that records were sent to.
    pub(super) topics: BTreeSet<Arc<str>>,
    /// Bytes of batches that are not done.
    pub(super) buffered: usize,
    pub(super) next_batch: u64,
    /// `(flush, number of the first batch made after it)`.
    pub(super) flushes: Vec<(u64, u64)>,
    pub(super) closing: Closing,
    pub(super) counters: ProducerCounters,
    pub(super) network: Vec<NetworkEffect>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closing {
    No,
    Asked,
    Done,
}

impl Producer {
    /// # Panics
    /// When `bootstrap` is empty, or the settings ask for idempotence with more than five requests in flight.
    pub fn new(settings: ProducerSettings, bootstrap: Vec<(String, u16)>, rng: ChaCha8Rng) -> Producer {
        assert!(settings.max_in_flight_requests_per_connection > 0, "a producer sends something");
        if settings.enable_idempotence {
            assert!(settings.max_in_flight_requests_per_connection <= 5, "the broker remembers five batches");
            assert_eq!(settings.acks, Acks::All, "only acks=all makes sequences safe");
        }
        let retry = Backoff { first: settings.retry_backoff, max: settings.retry_backoff_max };
        let links = LinkSettings {
            request_timeout: settings.request_timeout,
            setup_timeout: settings.socket_connection_setup_timeout,
            reconnect: Backoff { first: settings.reconnect_backoff, max: settings.reconnect_backoff_max },
        };
        Producer {
            retry,
            rng,
            now: Time::ZERO,
            view: ClusterView::default(),
            refresh: Refresh::new(retry, settings.metadata_max_age),
            links: Links::new(links, bootstrap),
            identity: if settings.enable_idempotence {
                Identity::Wanted { not_before: Time::ZERO }
            } else {
                Identity::Off
            },
            identity_failures: 0,
            partitions: Vec::new(),
            slots: BTreeMap::new(),
            active: BTreeSet::new(),
            topics: BTreeSet::new(),
            buffered: 0,
            next_batch: 0,
            flushes: Vec::new(),
            closing: Closing::No,
            counters: ProducerCounters::default(),
            network: Vec::new(),
            settings,
        }
    }

    /// What happened so far.
    pub fn counters(&self) -> &ProducerCounters {
        &self.counters
    }

    /// The id and epoch that new batches get, once known.
    pub fn identity(&self) -> Option<ProducerIdentity> {
        match self.identity {
            Identity::Known(identity) => Some(identity),
            Identity::Off | Identity::Wanted { .. } | Identity::Asked => None,
        }
    }

    pub fn handle(&mut self, now: Time, input: ProducerInput, out: &mut Output<ProducerEffect>) {
        assert!(now >= self.now, "time does not go back");
        assert!(self.network.is_empty(), "every effect of the last call was handed out");
        self.now = now;
        match input {
            ProducerInput::Send { record, topic, partition } => self.accept(record, topic, partition, out),
            ProducerInput::Network(input) => {
                let event = self.links.handle(now, input, &mut self.rng, &mut self.network);
                self.on_link(event, out);
            }
            ProducerInput::Flush { flush } => self.flush(flush),
            ProducerInput::Close => {
                self.close_batches();
                if self.closing == Closing::No {
                    self.closing = Closing::Asked;
                }
            }
            ProducerInput::Tick => {}
        }
        self.expire(out);
        self.advance(out);
        out.effects.extend(self.network.drain(..).map(ProducerEffect::Network));
    }

    /// When to say [`ProducerInput::Tick`] if nothing else happens.
    pub fn next_deadline(&self) -> Option<Time> {
        let mut earliest = Earliest::after(self.now);
        earliest.add(self.links.next_deadline());
        earliest.add(self.refresh.next_deadline());
        if let Identity::Wanted { not_before } = self.identity {
            earliest.add(Some(not_before));
        }
        if self.asks_any() {
            earliest.add(self.links.any_retry_at());
        }
        for slot in &self.active {
            let partition = &self.partitions[slot.0];
            earliest.add(partition.oldest().map(|batch| self.delivery_deadline(batch)));
            if let Some(first) = partition.queue.front() {
                earliest.add(Some(first.retry_at));
                earliest.add(Some(first.created.saturating_add(self.settings.linger)));
                if let Some(node) = self.view.leader_node(&partition.topic, partition.index) {
                    earliest.add(self.links.retry_at(Peer::Node(node)));
                }
            }
        }
        earliest.deadline()
    }

    pub(super) fn accept(
        &mut self,
        record: PendingRecord,
        topic: Arc<str>,
        index: i32,
        out: &mut Output<ProducerEffect>,
    ) {
        self.counters.records += 1;
        let id = record.id;
        let size = record.size_max() + acked_wire::batch::HEADER_SIZE;
        let refusal = if self.closing != Closing::No {
            Some(error_code::INVALID_REQUEST)
        } else if size > self.settings.max_request_size {
            Some(error_code::MESSAGE_TOO_LARGE)
        } else if self.buffered + size > self.settings.buffer_memory {
            Some(error_code::REQUEST_TIMED_OUT)
        } else {
            None
        };
        if let Some(code) = refusal {
            self.fail_record(id, code, true, out);
            return;
        }
        if !self.topics.contains(&topic) {
            self.topics.insert(topic.clone());
            self.refresh.want();
        }
        let slot = self.slot(topic, index);
        let partition = &mut self.partitions[slot.0];
        self.buffered += record.size_max();
        if partition.push(record, self.settings.batch_size, self.next_batch, self.now) {
            self.buffered += acked_wire::batch::HEADER_SIZE;
            self.next_batch += 1;
        }
        self.active.insert(slot);
    }

    pub(super) fn slot(&mut self, topic: Arc<str>, index: i32) -> Slot {
        *self.slots.entry((topic, index)).or_insert_with_key(|(topic, index)| {
            self.partitions.push(Partition::new(topic.clone(), *index));
            Slot(self.partitions.len() - 1)
        })
    }

    pub(super) fn flush(&mut self, flush: u64) {
        self.close_batches();
        self.flushes.push((flush, self.next_batch));
    }

    pub(super) fn close_batches(&mut self) {
        for slot in &self.active {
            let partition = &mut self.partitions[slot.0];
            if let Some(last) = partition.queue.back_mut() {
                last.closed = true;
            }
        }
    }

    pub(super) fn partition(&mut self, slot: Slot) -> &mut Partition {
        &mut self.partitions[slot.0]
    }

    pub(super) fn leader_of(&self, slot: Slot) -> Option<NodeId> {
        let partition = &self.partitions[slot.0];
        self.view.leader_node(&partition.topic, partition.index)
    }

    /// Walks the active partitions while they change.
    pub(super) fn next_active(&self, after: Option<Slot>) -> Option<Slot> {
        match after {
            None => self.active.first().copied(),
            Some(slot) => self.active.range((Bound::Excluded(slot), Bound::Unbounded)).next().copied(),
        }
    }

    pub(super) fn count_error(&mut self, code: i16) {
        *self.counters.errors.entry(code).or_insert(0) += 1;
    }
}
