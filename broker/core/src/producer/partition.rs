//! The batches of one partition, and which of them may be sent next. Order is the order of creation: a batch that has
//! to be sent again goes back to its place.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::batch::{Batch, PendingRecord};
use super::sequences::{ProducerIdentity, Sequences};
use crate::{NodeId, Time};

/// Batches that one partition may have numbered since the oldest that is not done, that one included: the broker
/// remembers five (KIP-98). Not the batches that are not done: the oldest may be refused again and again while later
/// ones are appended, and a broker that has forgotten it no longer sees that a retry is its second copy.
const WINDOW: u64 = 5;

/// Batches of one partition.
///
/// A batch is in `queue` until it is sent, in `in_flight` until it is answered or lost; then it is done, or back in
/// `queue`. A batch that is given up leaves either at once.
#[derive(Debug)]
pub struct Partition {
    pub topic: Arc<str>,
    pub index: i32,
    /// Not on the wire, in creation order; only the last may be open.
    pub queue: VecDeque<Batch>,
    /// On the wire and not given up, in creation order.
    pub in_flight: VecDeque<Batch>,
    /// Attempts without an answer, those of batches that were given up included.
    pub attempts_on_wire: usize,
    /// Where these attempts went.
    pub node_on_wire: Option<NodeId>,
    pub sequences: Sequences,
    /// Numbering must start over, and the identity for it has not come yet.
    pub waits_for_identity: bool,
}

impl Partition {
    pub fn new(topic: Arc<str>, index: i32) -> Partition {
        Partition {
            topic,
            index,
            queue: VecDeque::new(),
            in_flight: VecDeque::new(),
            attempts_on_wire: 0,
            node_on_wire: None,
            sequences: Sequences::default(),
            waits_for_identity: false,
        }
    }

    pub fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.in_flight.is_empty()
    }

    /// The oldest batch that is not done.
    pub fn oldest(&self) -> Option<&Batch> {
        match (self.queue.front(), self.in_flight.front()) {
            (Some(queued), Some(sent)) => Some(if queued.number < sent.number { queued } else { sent }),
            (queued, sent) => queued.or(sent),
        }
    }

    /// Adds a record to the open batch if it fits, else to a new one. True when a batch was made.
    pub fn push(&mut self, record: PendingRecord, size_max: usize, number: u64, now: Time) -> bool {
        if let Some(last) = self.queue.back_mut() {
            if !last.closed && last.size_max + record.size_max() <= size_max {
                last.push(record);
                return false;
            }
            last.closed = true;
        }
        let mut batch = Batch::new(number, now, record);
        batch.closed = batch.size_max >= size_max;
        self.queue.push_back(batch);
        true
    }

    /// Puts a batch back where it belongs.
    pub fn requeue(&mut self, batch: Batch) {
        let index = self.queue.partition_point(|queued| queued.number < batch.number);
        self.queue.insert(index, batch);
    }

    pub fn take_in_flight(&mut self, number: u64) -> Option<Batch> {
        let index = self.in_flight.iter().position(|batch| batch.number == number)?;
        self.in_flight.remove(index)
    }

    /// Whether the first queued batch may be sent as far as retry, linger and the batches before it are concerned.
    pub fn is_ready(&self, now: Time, linger: Duration) -> bool {
        self.queue.front().is_some_and(|first| {
            first.retry_at <= now
                && (first.closed || self.queue.len() > 1 || first.created.saturating_add(linger) <= now)
        })
    }

    /// Whether the partition's order allows to send its first queued batch to `node` now.
    pub fn may_send(&self, node: NodeId, ordering: Ordering) -> bool {
        let Some(first) = self.queue.front() else { return false };
        match ordering {
            Ordering::Free => true,
            Ordering::OneAtATime => self.attempts_on_wire == 0,
            Ordering::Idempotent(identity) => {
                // Another leader would refuse it as long as the ones before it are not known to be there.
                let elsewhere = self.attempts_on_wire > 0 && self.node_on_wire != Some(node);
                if elsewhere || self.waits_for_identity {
                    return false;
                }
                match first.numbering {
                    // A retry: only the oldest, for the broker refuses any other.
                    Some(_) => self.in_flight.front().is_none_or(|sent| sent.number > first.number),
                    None => self.may_number(identity),
                }
            }
        }
    }

    /// Whether a new batch may get the next sequence.
    fn may_number(&self, identity: ProducerIdentity) -> bool {
        if self.sequences.is_unresolved() {
            return false;
        }
        let Some(oldest) = self.oldest_unacked() else { return true };
        let same_identity = self.sequences.producer() == Some(identity);
        same_identity && self.sequences.is_known() && self.sequences.batches() - oldest < WINDOW
    }

    /// The index of the oldest batch that is numbered and not done.
    pub fn oldest_unacked(&self) -> Option<u64> {
        let batches = self.queue.front().into_iter().chain(self.in_flight.front());
        batches.filter_map(|batch| batch.numbering).map(|numbering| numbering.index).min()
    }

    pub fn has_unacked_before(&self, number: u64) -> bool {
        let mut all = self.queue.iter().chain(&self.in_flight);
        all.any(|batch| batch.numbering.is_some() && batch.number < number)
    }

    /// An attempt of a batch that was given up has no answer yet.
    pub fn waits_for_given_up(&self) -> bool {
        self.attempts_on_wire > self.in_flight.len()
    }

    /// Numbers every unacknowledged batch anew, oldest first, under an identity new to this partition. With
    /// `give_up_unknown` those that may be in the log already are taken out and returned instead: a second copy
    /// would be appended.
    pub fn start_over(&mut self, identity: ProducerIdentity, give_up_unknown: bool) -> Vec<Batch> {
        self.waits_for_identity = false;
        self.sequences.start_over(identity);
        let mut given_up = Vec::new();
        let numbered = self.queue.iter().chain(&self.in_flight).filter(|batch| batch.numbering.is_some());
        let mut order: Vec<u64> = numbered.map(|batch| batch.number).collect();
        order.sort_unstable();
        for number in order {
            let queued = self.queue.iter().position(|batch| batch.number == number);
            if let Some(index) = queued
                && give_up_unknown
                && self.queue[index].may_have_effect
            {
                given_up.extend(self.queue.remove(index));
                continue;
            }
            let batch = match queued {
                Some(index) => &mut self.queue[index],
                None => self
                    .in_flight
                    .iter_mut()
                    .find(|batch| batch.number == number)
                    .expect("an unacknowledged batch is queued or in flight"),
            };
            let numbering = self.sequences.assign(batch.count());
            batch.renumber(numbering);
        }
        given_up
    }
}

/// What keeps the batches of a partition in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ordering {
    /// Nothing: retries may overtake.
    Free,
    /// `max.in.flight.requests.per.connection=1`: the partition is muted while a batch is on its way.
    OneAtATime,
    /// The broker checks sequences.
    Idempotent(ProducerIdentity),
}
