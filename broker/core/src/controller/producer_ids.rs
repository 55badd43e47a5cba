//! Gives producers their ids: the broker's side. Ids come in blocks from the controller; the next block is asked for
//! when nine tenths of the current one are given out, and requests wait while there is none.
//!
//! States: empty or serving a block; nothing, or one request for a block in flight. Not decided here: transactions. A
//! request with a transactional id is answered COORDINATOR_NOT_AVAILABLE, as no coordinator of transactions exists.
//! Source: KIP-98, KIP-730.

use std::collections::VecDeque;

use acked_wire::{
    AllocateProducerIdsRequest, AllocateProducerIdsResponse, InitProducerIdRequest, InitProducerIdResponse,
    error_code,
};

use crate::types::{NodeId, Output, PeerError, RequestId, Time};

/// Requests that may wait for a block; further ones are told to come again.
const WAITING_MAX: usize = 1000;

/// What the machine is built from.
#[derive(Clone, Debug)]
pub struct ProducerIdsConfig {
    pub node: NodeId,
    /// How long a request waits for a block before it is told to come again.
    pub wait_max: Time,
    /// Pause after a failed request for a block.
    pub retry_backoff: Time,
}

/// What wakes the machine.
#[derive(Clone, Debug)]
pub enum ProducerIdsInput {
    InitProducerId {
        request: RequestId,
        body: InitProducerIdRequest,
    },
    /// The answer to the request numbered `send`.
    Allocated {
        send: u64,
        result: Result<AllocateProducerIdsResponse, PeerError>,
    },
    /// The broker's registration, which requests for blocks carry.
    Registered {
        broker_epoch: i64,
    },
    Tick,
}

/// What the shell does for it.
#[derive(Clone, Debug, PartialEq)]
pub enum ProducerIdsEffect {
    /// Send to the active controller; the answer comes back with the same number.
    SendAllocate {
        send: u64,
        body: AllocateProducerIdsRequest,
    },
    Reply {
        request: RequestId,
        body: InitProducerIdResponse,
    },
}

/// Ids `next..end` of one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    next: i64,
    end: i64,
    /// From this id on the following block is asked for.
    refill_at: i64,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    request: RequestId,
    until: Time,
}

/// The producer ids of one broker.
#[derive(Debug)]
pub struct ProducerIds {
    config: ProducerIdsConfig,
    broker_epoch: Option<i64>,
    current: Option<Block>,
    following: Option<Block>,
    in_flight: Option<u64>,
    sends: u64,
    retry_at: Time,
    waiting: VecDeque<Waiting>,
}

impl ProducerIds {
    pub fn new(config: ProducerIdsConfig) -> ProducerIds {
        ProducerIds {
            config,
            broker_epoch: None,
            current: None,
            following: None,
            in_flight: None,
            sends: 0,
            retry_at: Time::ZERO,
            waiting: VecDeque::new(),
        }
    }

    pub fn handle(&mut self, now: Time, input: ProducerIdsInput, out: &mut Output<ProducerIdsEffect>) {
        match input {
            ProducerIdsInput::InitProducerId { request, body } => self.init(now, request, &body, out),
            ProducerIdsInput::Allocated { send, result } => {
                if self.in_flight == Some(send) {
                    self.in_flight = None;
                    self.allocated(now, result);
                }
            }
            ProducerIdsInput::Registered { broker_epoch } => {
                self.broker_epoch = Some(broker_epoch);
                self.retry_at = now;
            }
            ProducerIdsInput::Tick => {}
        }
        self.serve_waiting(now, out);
        self.ask_if_needed(now, out);
        assert!(self.waiting.is_empty() || self.current.is_none(), "nobody waits while there are ids");
        assert!(self.waiting.len() <= WAITING_MAX, "the queue is bounded");
    }

    /// When the machine wants a `Tick`.
    pub fn next_deadline(&self) -> Option<Time> {
        let retry = (self.in_flight.is_none() && self.broker_epoch.is_some() && self.wants_block())
            .then_some(self.retry_at);
        let give_up = self.waiting.front().map(|first| first.until);
        retry.into_iter().chain(give_up).min()
    }

    fn init(
        &mut self,
        now: Time,
        request: RequestId,
        body: &InitProducerIdRequest,
        out: &mut Output<ProducerIdsEffect>,
    ) {
        let refusal = match &body.transactional_id {
            Some(id) if id.is_empty() => Some(error_code::INVALID_REQUEST),
            _ if (body.producer_id == -1) != (body.producer_epoch == -1) => Some(error_code::INVALID_REQUEST),
            Some(_) => Some(error_code::COORDINATOR_NOT_AVAILABLE),
            None if self.waiting.len() >= WAITING_MAX => Some(error_code::COORDINATOR_LOAD_IN_PROGRESS),
            None => None,
        };
        match refusal {
            Some(code) => out.effect(refuse(request, code)),
            // Without a transactional id a producer always gets a fresh id, whatever it had before.
            None => {
                let until = now.saturating_add(self.config.wait_max);
                self.waiting.push_back(Waiting { request, until });
            }
        }
    }

    fn allocated(&mut self, now: Time, result: Result<AllocateProducerIdsResponse, PeerError>) {
        let block = result
            .ok()
            .filter(|answer| answer.error_code == error_code::NONE)
            .and_then(|answer| block(&answer));
        match block {
            Some(block) if self.current.is_none() => self.current = Some(block),
            Some(block) => self.following = Some(block),
            None => self.retry_at = now.saturating_add(self.config.retry_backoff),
        }
    }

    fn serve_waiting(&mut self, now: Time, out: &mut Output<ProducerIdsEffect>) {
        while let Some(first) = self.waiting.front().copied() {
            if let Some(producer_id) = self.take() {
                let body = InitProducerIdResponse { producer_id, producer_epoch: 0, ..Default::default() };
                out.effect(ProducerIdsEffect::Reply { request: first.request, body });
            } else if now >= first.until {
                out.effect(refuse(first.request, error_code::COORDINATOR_LOAD_IN_PROGRESS));
            } else {
                return;
            }
            self.waiting.pop_front();
        }
    }

    fn take(&mut self) -> Option<i64> {
        let block = self.current.as_mut()?;
        let id = block.next;
        block.next += 1;
        if block.next == block.end {
            self.current = self.following.take();
        }
        Some(id)
    }

    fn wants_block(&self) -> bool {
        self.following.is_none()
            && match self.current {
                None => !self.waiting.is_empty(),
                Some(block) => block.next >= block.refill_at,
            }
    }

    fn ask_if_needed(&mut self, now: Time, out: &mut Output<ProducerIdsEffect>) {
        let Some(broker_epoch) = self.broker_epoch else { return };
        if self.in_flight.is_some() || now < self.retry_at || !self.wants_block() {
            return;
        }
        self.sends += 1;
        self.in_flight = Some(self.sends);
        let body = AllocateProducerIdsRequest {
            broker_id: self.config.node.0,
            broker_epoch,
            ..AllocateProducerIdsRequest::default()
        };
        out.effect(ProducerIdsEffect::SendAllocate { send: self.sends, body });
    }
}

/// A block that can be given out; `None` when the answer makes no sense.
fn block(answer: &AllocateProducerIdsResponse) -> Option<Block> {
    let length = i64::from(answer.producer_id_len);
    let end = answer.producer_id_start.checked_add(length)?;
    let sound = answer.producer_id_start >= 0 && length > 0;
    sound.then(|| Block { next: answer.producer_id_start, end, refill_at: end - length / 10 })
}

fn refuse(request: RequestId, error_code: i16) -> ProducerIdsEffect {
    let body = InitProducerIdResponse { error_code, ..InitProducerIdResponse::default() };
    ProducerIdsEffect::Reply { request, body }
}

#[cfg(test)]
mod tests {
    use super::*;
    use acked_wire::Str;

    const WAIT: Time = Time::from_secs(30);

    fn machine() -> ProducerIds {
        let retry_backoff = Time::from_millis(100);
        ProducerIds::new(ProducerIdsConfig { node: NodeId(1), wait_max: WAIT, retry_backoff })
    }

    fn feed(ids: &mut ProducerIds, now: Time, input: ProducerIdsInput) -> Vec<ProducerIdsEffect> {
        let mut out = Output::default();
        ids.handle(now, input, &mut out);
        out.effects
    }

    fn ask(ids: &mut ProducerIds, request: u64) -> Vec<ProducerIdsEffect> {
        let body = InitProducerIdRequest { transactional_id: None, ..Default::default() };
        feed(ids, Time::ZERO, ProducerIdsInput::InitProducerId { request: RequestId(request), body })
    }

    fn allocated(ids: &mut ProducerIds, send: u64, start: i64, length: i32) -> Vec<ProducerIdsEffect> {
        let answer = AllocateProducerIdsResponse {
            producer_id_start: start,
            producer_id_len: length,
            ..Default::default()
        };
        feed(ids, Time::ZERO, ProducerIdsInput::Allocated { send, result: Ok(answer) })
    }

    fn given(effects: &[ProducerIdsEffect]) -> Vec<(u64, i64, i16)> {
        let reply = |effect: &ProducerIdsEffect| match effect {
            ProducerIdsEffect::Reply { request, body } => {
                Some((request.0, body.producer_id, body.error_code))
            }
            ProducerIdsEffect::SendAllocate { .. } => None,
        };
        effects.iter().filter_map(reply).collect()
    }

    fn sent(effects: &[ProducerIdsEffect]) -> usize {
        effects.iter().filter(|effect| matches!(effect, ProducerIdsEffect::SendAllocate { .. })).count()
    }

    #[test]
    fn requests_wait_for_the_registration_and_the_first_block() {
        let mut ids = machine();
        assert_eq!(ask(&mut ids, 1), []);
        assert_eq!(sent(&feed(&mut ids, Time::ZERO, ProducerIdsInput::Registered { broker_epoch: 5 })), 1);
        assert_eq!(ask(&mut ids, 2), []);
        assert_eq!(given(&allocated(&mut ids, 1, 3000, 1000)), [(1, 3000, 0), (2, 3001, 0)]);
    }

    #[test]
    fn ids_are_never_given_twice_and_blocks_are_fetched_ahead() {
        let mut ids = machine();
        feed(&mut ids, Time::ZERO, ProducerIdsInput::Registered { broker_epoch: 5 });
        let mut seen = Vec::new();
        let mut sends = 0;
        for request in 0..100 {
            let mut effects = ask(&mut ids, request);
            while sent(&effects) > 0 {
                seen.extend(given(&effects));
                sends += 1;
                effects = allocated(&mut ids, sends, i64::try_from(sends).expect("few") * 20, 20);
            }
            seen.extend(given(&effects));
        }
        let ids: Vec<i64> = seen.iter().map(|(_, id, _)| *id).collect();
        assert_eq!(ids, (20..120).collect::<Vec<i64>>());
    }

    #[test]
    fn failed_allocation_is_tried_again_and_requests_are_told_in_time() {
        let mut ids = machine();
        feed(&mut ids, Time::ZERO, ProducerIdsInput::Registered { broker_epoch: 5 });
        assert_eq!(sent(&ask(&mut ids, 1)), 1);
        let failed = ProducerIdsInput::Allocated { send: 1, result: Err(PeerError::TimedOut) };
        assert_eq!(feed(&mut ids, Time::ZERO, failed), []);
        let retry = ids.next_deadline().expect("it tries again");
        assert_eq!(retry, Time::from_millis(100));
        assert_eq!(sent(&feed(&mut ids, retry, ProducerIdsInput::Tick)), 1);
        assert_eq!(ids.next_deadline(), Some(WAIT));
        let effects = feed(&mut ids, WAIT, ProducerIdsInput::Tick);
        assert_eq!(given(&effects), [(1, -1, error_code::COORDINATOR_LOAD_IN_PROGRESS)]);
    }

    #[test]
    fn blocks_that_make_no_sense_are_not_used() {
        for (start, length) in [(-1, 10), (0, 0), (0, -1), (i64::MAX, 10)] {
            let mut ids = machine();
            feed(&mut ids, Time::ZERO, ProducerIdsInput::Registered { broker_epoch: 5 });
            ask(&mut ids, 1);
            assert_eq!(given(&allocated(&mut ids, 1, start, length)), [], "{start} {length}");
        }
    }

    #[test]
    fn transactional_and_inconsistent_requests_are_refused() {
        let mut ids = machine();
        let mut code = |transactional_id: Option<&str>, producer_id| {
            let body = InitProducerIdRequest {
                transactional_id: transactional_id.map(Str::from),
                producer_id,
                ..Default::default()
            };
            let input = ProducerIdsInput::InitProducerId { request: RequestId(1), body };
            given(&feed(&mut ids, Time::ZERO, input))[0].2
        };
        assert_eq!(code(Some("t"), -1), error_code::COORDINATOR_NOT_AVAILABLE);
        assert_eq!(code(Some(""), -1), error_code::INVALID_REQUEST);
        assert_eq!(code(None, 7), error_code::INVALID_REQUEST, "an id without its epoch");
    }

    #[test]
    fn queue_of_waiting_requests_is_bounded() {
        let mut ids = machine();
        for request in 0..1000 {
            assert_eq!(ask(&mut ids, request), []);
        }
        assert_eq!(given(&ask(&mut ids, 1000)), [(1000, -1, error_code::COORDINATOR_LOAD_IN_PROGRESS)]);
    }
}
