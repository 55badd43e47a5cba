//! Requests of clients that only the active controller can answer, carried to it inside an Envelope (KIP-590). Tried
//! again, on whoever leads by then, until the time is up.

use std::collections::BTreeMap;
use std::time::Duration;

use acked_core::controller::ControllerBody;
use acked_core::{NodeId, Observer, PeerError, RequestId, Time};
use acked_env::Env;
use acked_wire::{EnvelopeRequest, RequestBody, ResponseBody, error_code};
use bytes::Bytes;

use crate::link::Purpose;
use crate::shell::Shell;

/// Pause before a forward is tried again.
const RETRY_BACKOFF: Duration = Duration::from_millis(100);

struct Forward {
    request: RequestId,
    frame: Bytes,
    /// What the client is told when nobody answers in time.
    refusal: ResponseBody,
    deadline: Time,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    InFlight { token: u64 },
    WaitsUntil(Time),
}

pub struct Forwards {
    wait_max: Duration,
    forwards: BTreeMap<u64, Forward>,
    next: u64,
}

impl Forwards {
    pub fn new(wait_max: Duration) -> Forwards {
        Forwards { wait_max, forwards: BTreeMap::new(), next: 0 }
    }

    pub fn next_deadline(&self) -> Option<Time> {
        let due = |forward: &Forward| match forward.state {
            State::InFlight { .. } => forward.deadline,
            State::WaitsUntil(at) => at.min(forward.deadline),
        };
        self.forwards.values().map(due).min()
    }

    /// Begins to forward `frame`, the client's request with its header.
    pub fn begin<E: Env, O: Observer>(
        &mut self,
        shell: &mut Shell<E, O>,
        leader: Option<NodeId>,
        request: RequestId,
        body: &RequestBody,
        frame: Bytes,
    ) {
        let refusal = ControllerBody::try_from(body.clone())
            .expect("only requests of the controller are forwarded")
            .refusal(error_code::REQUEST_TIMED_OUT);
        let now = shell.now();
        self.next += 1;
        let state = State::WaitsUntil(now);
        self.forwards
            .insert(self.next, Forward { request, frame, refusal, deadline: now + self.wait_max, state });
        self.tick(shell, leader);
    }

    /// Sends what is due, and gives up what is late.
    pub fn tick<E: Env, O: Observer>(&mut self, shell: &mut Shell<E, O>, leader: Option<NodeId>) {
        let now = shell.now();
        let late: Vec<u64> =
            self.forwards.iter().filter(|(_, forward)| forward.deadline <= now).map(|(id, _)| *id).collect();
        for id in late {
            let forward = self.forwards.remove(&id).expect("collected just above");
            shell.requests.answer(forward.request, &forward.refusal);
        }
        let address = leader.and_then(|leader| Some((leader, shell.config.voters.get(&leader)?.clone())));
        for forward in self.forwards.values_mut() {
            if !matches!(forward.state, State::WaitsUntil(at) if at <= now) {
                continue;
            }
            forward.state = match &address {
                None => State::WaitsUntil(now + RETRY_BACKOFF),
                Some((leader, (host, port))) => {
                    let envelope = EnvelopeRequest {
                        request_data: forward.frame.clone(),
                        // No principals and no authorisation: everybody is anonymous, from nowhere.
                        request_principal: Some(Bytes::new()),
                        client_host_address: Bytes::from_static(&[127, 0, 0, 1]),
                        ..EnvelopeRequest::default()
                    };
                    let body = RequestBody::Envelope(envelope);
                    State::InFlight { token: shell.send(*leader, Purpose::Forward, (host, *port), &body) }
                }
            };
        }
    }

    pub fn response<E: Env, O: Observer>(
        &mut self,
        shell: &mut Shell<E, O>,
        leader: Option<NodeId>,
        token: u64,
        result: Result<Bytes, PeerError>,
    ) {
        let result = shell.decode(token, result);
        let found = self.forwards.iter().find(|(_, forward)| forward.state == State::InFlight { token });
        // Given up meanwhile.
        let Some(id) = found.map(|(id, _)| *id) else { return };
        if let Ok(ResponseBody::Envelope(envelope)) = result
            && envelope.error_code == error_code::NONE
            && let Some(response) = &envelope.response_data
        {
            let forward = self.forwards.remove(&id).expect("found just above");
            shell.requests.answer_forwarded(forward.request, response);
            return;
        }
        let forward = self.forwards.get_mut(&id).expect("found just above");
        forward.state = State::WaitsUntil(shell.now() + RETRY_BACKOFF);
        self.tick(shell, leader);
    }
}
