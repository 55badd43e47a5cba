//! When a waiting part is settled: by the end of what is written, by the high watermark, by the end of its leader
//! epoch, by its timeout.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use acked_wire::error_code;

use super::pending::{Pending, Verdict};
use crate::replica::broker::Broker;
use crate::replica::interface::ReplicaEffect;
use crate::replica::partition::{Leading, Replica, Waiter};
use crate::rules::PendingProduce;
use crate::types::{NodeId, Output, RequestId, Time, TopicPartition};

/// Keeps a queue in order of required offsets. Originals come in that order; only a duplicate may go before others.
pub(super) fn enqueue(queue: &mut VecDeque<Waiter>, waiter: Waiter) {
    let place = match queue.back() {
        Some(last) if last.required > waiter.required => {
            queue.partition_point(|queued| queued.required <= waiter.required)
        }
        Some(_) | None => queue.len(),
    };
    queue.insert(place, waiter);
}

/// The next waiting part of a replica that is settled by where its log and high watermark now are.
pub(in crate::replica) fn next_settled(replica: &mut Replica, broker: &Broker) -> Option<(Waiter, Verdict)> {
    let written = replica.writes.end();
    if let Some(waiter) = replica.awaiting_write.pop_front_if(|waiter| waiter.required <= written) {
        return Some((waiter, acked(replica, broker)));
    }
    let committed = replica.high_watermark;
    let waiter = replica.awaiting_commit.pop_front_if(|waiter| waiter.required <= committed)?;
    let in_sync = replica.leading().map(|leading| maximal_isr(leading, replica, broker).count());
    if in_sync.is_some_and(|in_sync| in_sync < replica.min_insync()) {
        return Some((waiter, Verdict::Failed(error_code::NOT_ENOUGH_REPLICAS_AFTER_APPEND)));
    }
    Some((waiter, acked(replica, broker)))
}

pub(super) fn acked(replica: &Replica, broker: &Broker) -> Verdict {
    let maximal_isr = match replica.leading() {
        Some(leading) => maximal_isr(leading, replica, broker).collect(),
        // Only a rule that lets produces outlive the leadership comes here: nobody's position is known then.
        None => Vec::new(),
    };
    let min_insync = i32::try_from(replica.min_insync()).expect("bounded by the configured value");
    Verdict::Acked { maximal_isr, min_insync }
}

fn maximal_isr<'a>(
    leading: &'a Leading,
    replica: &'a Replica,
    broker: &Broker,
) -> impl Iterator<Item = NodeId> + 'a {
    leading.maximal_isr(&broker.rules, &replica.state.isr)
}

/// Rule seam: the waiting parts that fail because the leader epoch of their append has ended.
pub(in crate::replica) fn failed_by_new_epoch(rule: PendingProduce, replica: &mut Replica) -> Vec<Waiter> {
    let mut failed: Vec<Waiter> = replica.awaiting_write.drain(..).collect();
    match rule {
        PendingProduce::FailOnDemotion => failed.extend(replica.awaiting_commit.drain(..)),
        PendingProduce::FailUnlessStillLeader if replica.leading().is_some() => {}
        PendingProduce::FailUnlessStillLeader => failed.extend(replica.awaiting_commit.drain(..)),
        PendingProduce::CompleteByHighWatermark => {}
    }
    failed
}

/// Every waiting part, whatever the rules: the replica is gone.
pub(in crate::replica) fn failed_by_end(replica: &mut Replica) -> Vec<Waiter> {
    replica.awaiting_write.drain(..).chain(replica.awaiting_commit.drain(..)).collect()
}

/// Produce requests that wait.
#[derive(Debug, Default)]
pub(in crate::replica) struct ProducePurgatory {
    waiting: BTreeMap<RequestId, Pending>,
    deadlines: BTreeSet<(Time, RequestId)>,
}

impl ProducePurgatory {
    pub fn insert(&mut self, pending: Pending) {
        assert!(!pending.is_settled(), "{:?} has nothing to wait for", pending.request);
        self.deadlines.insert((pending.deadline, pending.request));
        let before = self.waiting.insert(pending.request, pending);
        assert!(before.is_none(), "a request waits twice");
    }

    /// Settles one part, and answers when it was the last.
    pub fn settle(
        &mut self,
        waiter: Waiter,
        verdict: Verdict,
        replica: Option<&Replica>,
        out: &mut Output<ReplicaEffect>,
    ) {
        let pending = self.waiting.get_mut(&waiter.request).expect("what waits in a replica waits here");
        pending.settle(waiter.part, verdict, replica, out);
        if pending.is_settled() {
            let pending = self.remove(waiter.request).expect("it was found above");
            pending.finish(out);
        }
    }

    fn remove(&mut self, request: RequestId) -> Option<Pending> {
        let pending = self.waiting.remove(&request)?;
        self.deadlines.remove(&(pending.deadline, request));
        Some(pending)
    }

    pub fn next_deadline(&self) -> Option<Time> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// Answers every request whose timeout passed.
    pub fn expire(
        &mut self,
        replicas: &mut BTreeMap<TopicPartition, Replica>,
        now: Time,
        out: &mut Output<ReplicaEffect>,
    ) {
        while let Some((deadline, request)) = self.deadlines.first().copied() {
            if now < deadline {
                return;
            }
            let mut pending = self.remove(request).expect("every deadline has its request");
            for part in 0..pending.parts.len() {
                if pending.parts[part].verdict.is_none() {
                    let replica = replicas.get_mut(&pending.parts[part].partition);
                    stop_waiting(replica, request);
                    pending.settle(part, Verdict::Failed(error_code::REQUEST_TIMED_OUT), None, out);
                }
            }
            pending.finish(out);
        }
    }

    /// Forgets a request whose connection is gone. What it appended stays.
    pub fn abandon(&mut self, request: RequestId, replicas: &mut BTreeMap<TopicPartition, Replica>) {
        let Some(pending) = self.remove(request) else { return };
        for part in &pending.parts {
            stop_waiting(replicas.get_mut(&part.partition), request);
        }
    }
}

fn stop_waiting(replica: Option<&mut Replica>, request: RequestId) {
    let Some(replica) = replica else { return };
    replica.awaiting_commit.retain(|waiter| waiter.request != request);
    replica.awaiting_write.retain(|waiter| waiter.request != request);
}
