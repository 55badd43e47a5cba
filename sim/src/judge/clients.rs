//! What clients do, gathered while it happens: the history, which contents were attempted where, and which calls are
//! open. Judges nothing.

use std::collections::{BTreeMap, BTreeSet};

use acked_core::Time;
use acked_reports::history::{Completion, Partition, Read, ReadPurpose, Reset, Send};
use acked_reports::{History, Key};

use super::input::ClientEvent;
use super::liveness::Calls;

/// A call that has not ended.
#[derive(Clone, Copy, Debug)]
struct Call {
    client: u32,
    name: &'static str,
    began: Time,
    /// Index of its send in the history.
    send: Option<usize>,
    purpose: ReadPurpose,
}

/// A success that a client was told, with its position.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    pub key: Key,
    pub acks: i16,
}

/// Client operations of one run.
#[derive(Debug, Default)]
pub struct Clients {
    pub history: History,
    attempts: BTreeMap<Partition, BTreeSet<u64>>,
    calls: BTreeMap<u64, Call>,
    ended: u64,
    longest: Option<(Time, u32, &'static str)>,
}

static NO_ATTEMPTS: BTreeSet<u64> = BTreeSet::new();

impl Clients {
    /// Takes one event. Gives the success that it tells, if it does.
    pub fn take(&mut self, now: Time, event: &ClientEvent<'_>) -> Option<Told> {
        match *event {
            ClientEvent::SendInvoked {
                client,
                operation,
                topic,
                index,
                content,
                acks,
                idempotent,
                ordered,
            } => {
                let partition = Partition { topic: self.history.topic(topic), index };
                self.attempts.entry(partition).or_default().insert(content);
                let send = self.history.sends.len();
                self.history.sends.push(Send {
                    client,
                    partition,
                    content,
                    acks,
                    idempotent,
                    ordered,
                    offset: None,
                    completion: Completion::Open,
                    invoked_us: micros(now),
                    completed_us: 0,
                });
                self.begin(operation, client, "send", now, Some(send), ReadPurpose::Workload);
                None
            }
            ClientEvent::SendOk { operation, offset } => {
                let send = self.end_send(operation, now, Completion::Ok)?;
                send.offset = (offset >= 0).then_some(offset);
                let key = Key { partition: send.partition, offset, content: send.content };
                (offset >= 0).then_some(Told { key, acks: send.acks })
            }
            ClientEvent::SendFailed { operation, .. } => {
                self.end_send(operation, now, Completion::Fail);
                None
            }
            ClientEvent::SendInfo { operation, .. } => {
                self.end_send(operation, now, Completion::Info);
                None
            }
            ClientEvent::PollInvoked { client, operation, purpose } => {
                self.begin(operation, client, "poll", now, None, purpose);
                None
            }
            ClientEvent::Records { operation, topic, index, records, position } => {
                let call = self.calls.get(&operation);
                assert!(call.is_some(), "records belong to an open poll, operation {operation}");
                let (client, purpose) =
                    call.map_or((0, ReadPurpose::Workload), |call| (call.client, call.purpose));
                let partition = Partition { topic: self.history.topic(topic), index };
                self.history.reads.push(Read {
                    client,
                    partition,
                    purpose,
                    records: records.to_vec(),
                    position,
                    at_us: micros(now),
                });
                None
            }
            ClientEvent::PositionReset { client, topic, index, from, to, reason } => {
                let partition = Partition { topic: self.history.topic(topic), index };
                let (reads_before, at_us) = (self.history.reads.len(), micros(now));
                self.history.resets.push(Reset { client, partition, from, to, reason, reads_before, at_us });
                None
            }
            ClientEvent::PollEnded { operation, .. } | ClientEvent::CallEnded { operation, .. } => {
                self.end(operation, now);
                None
            }
            ClientEvent::CallInvoked { client, operation, name } => {
                self.begin(operation, client, name, now, None, ReadPurpose::Workload);
                None
            }
        }
    }

    /// Contents that clients tried to send to a partition.
    pub fn attempts(&self, partition: Option<Partition>) -> &BTreeSet<u64> {
        partition.and_then(|partition| self.attempts.get(&partition)).unwrap_or(&NO_ATTEMPTS)
    }

    /// The open calls of one client, with their names.
    pub fn open_calls(&self, client: u32) -> Vec<(u64, &'static str)> {
        let own = self.calls.iter().filter(|(_, call)| call.client == client);
        own.map(|(operation, call)| (*operation, call.name)).collect()
    }

    pub fn is_open(&self, operation: u64) -> bool {
        self.calls.contains_key(&operation)
    }

    /// The calls so far.
    pub fn calls(&self) -> Calls {
        Calls {
            ended: self.ended,
            open: self
                .calls
                .iter()
                .map(|(operation, call)| (*operation, call.client, call.name, call.began))
                .collect(),
            longest: self.longest,
        }
    }

    fn begin(
        &mut self,
        operation: u64,
        client: u32,
        name: &'static str,
        now: Time,
        send: Option<usize>,
        purpose: ReadPurpose,
    ) {
        let before = self.calls.insert(operation, Call { client, name, began: now, send, purpose });
        assert!(before.is_none(), "operation numbers are unique, {operation} is open already");
    }

    fn end(&mut self, operation: u64, now: Time) -> Option<usize> {
        let call = self.calls.remove(&operation);
        assert!(call.is_some(), "only an open call ends, operation {operation}");
        let call = call?;
        self.ended += 1;
        let duration = now.saturating_sub(call.began);
        if self.longest.is_none_or(|(longest, ..)| duration > longest) {
            self.longest = Some((duration, call.client, call.name));
        }
        call.send
    }

    fn end_send(&mut self, operation: u64, now: Time, completion: Completion) -> Option<&mut Send> {
        let send = self.end(operation, now);
        assert!(send.is_some(), "operation {operation} is a send");
        let send = &mut self.history.sends[send?];
        send.completion = completion;
        send.completed_us = micros(now);
        Some(send)
    }
}

/// Microseconds of a time since the run began.
pub fn micros(time: Time) -> u64 {
    u64::try_from(time.as_micros()).expect("a run lasts less than 2^64 microseconds")
}
