//! Requests that any broker can answer, for administrators: an endpoint machine that finds a broker, asks again when an
//! answer is lost or no controller was found, and gives up in time. Source: kafka-clients 4.3 (`KafkaAdminClient`).

use std::collections::BTreeMap;

use acked_wire::{RequestBody, ResponseBody, error_code};
use rand_chacha::ChaCha8Rng;

use super::{Backoff, ClusterView, Earliest, LinkEvent, LinkSettings, Links, NetworkEffect, NetworkInput};
use crate::settings::AdminSettings;
use crate::{Output, Time};

/// What the caller is told.
#[derive(Debug)]
pub enum CallerInput {
    /// A request to send to any broker; `call` is used once.
    Call {
        call: u64,
        body: RequestBody,
    },
    Network(NetworkInput),
    /// A deadline passed.
    Tick,
}

/// What the caller asks for.
#[derive(Debug)]
pub enum CallerEffect {
    Network(NetworkEffect),
    /// The answer, or Kafka's code of why there is none: REQUEST_TIMED_OUT (7) after `default.api.timeout.ms`,
    /// NETWORK_EXCEPTION (13) when no retry is left, UNSUPPORTED_VERSION (35) when the broker cannot understand it.
    Answered {
        call: u64,
        answer: Result<ResponseBody, i16>,
    },
}

#[derive(Debug)]
struct Call {
    body: RequestBody,
    deadline: Time,
    retry_at: Time,
    failures: u32,
    on_its_way: bool,
}

/// See the module.
#[derive(Debug)]
pub struct Caller {
    settings: AdminSettings,
    retry: Backoff,
    rng: ChaCha8Rng,
    now: Time,
    view: ClusterView,
    links: Links<u64>,
    calls: BTreeMap<u64, Call>,
    network: Vec<NetworkEffect>,
}

impl Caller {
    /// # Panics
    /// When `bootstrap` is empty.
    pub fn new(settings: AdminSettings, bootstrap: Vec<(String, u16)>, rng: ChaCha8Rng) -> Caller {
        let links = LinkSettings {
            request_timeout: settings.request_timeout,
            setup_timeout: settings.socket_connection_setup_timeout,
            reconnect: Backoff { first: settings.reconnect_backoff, max: settings.reconnect_backoff_max },
        };
        Caller {
            retry: Backoff { first: settings.retry_backoff, max: settings.retry_backoff_max },
            rng,
            now: Time::ZERO,
            view: ClusterView::default(),
            links: Links::new(links, bootstrap),
            calls: BTreeMap::new(),
            network: Vec::new(),
            settings,
        }
    }

    pub fn handle(&mut self, now: Time, input: CallerInput, out: &mut Output<CallerEffect>) {
        assert!(now >= self.now, "time does not go back");
        assert!(self.network.is_empty(), "every effect of the last call was handed out");
        self.now = now;
        match input {
            CallerInput::Call { call, body } => self.accept(call, body),
            CallerInput::Network(input) => {
                let event = self.links.handle(now, input, &mut self.rng, &mut self.network);
                self.on_link(event, out);
            }
            CallerInput::Tick => {}
        }
        while let Some(event) = self.links.expire(now, &mut self.rng, &mut self.network) {
            self.on_link(event, out);
        }
        self.expire(out);
        self.send();
        out.effects.extend(self.network.drain(..).map(CallerEffect::Network));
    }

    /// When to say [`CallerInput::Tick`] if nothing else happens.
    pub fn next_deadline(&self) -> Option<Time> {
        let mut earliest = Earliest::after(self.now);
        earliest.add(self.links.next_deadline());
        for call in self.calls.values() {
            earliest.add(Some(call.deadline));
            if !call.on_its_way {
                earliest.add(Some(call.retry_at));
                earliest.add(self.links.any_retry_at());
            }
        }
        earliest.deadline()
    }

    fn accept(&mut self, call: u64, body: RequestBody) {
        let deadline = self.now.saturating_add(self.settings.default_api_timeout);
        let accepted = Call { body, deadline, retry_at: self.now, failures: 0, on_its_way: false };
        let before = self.calls.insert(call, accepted);
        assert!(before.is_none(), "the number of a call is used once");
    }

    fn on_link(&mut self, event: LinkEvent<u64>, out: &mut Output<CallerEffect>) {
        match event {
            LinkEvent::Stale | LinkEvent::Up(_) | LinkEvent::Written { .. } => {}
            LinkEvent::Down { lost, .. } => {
                for call in lost {
                    self.try_again(call, Err(error_code::NETWORK_EXCEPTION), out);
                }
            }
            LinkEvent::Unsupported { what, .. } => {
                self.finish(what, Err(error_code::UNSUPPORTED_VERSION), out);
            }
            LinkEvent::Answer { what, body, .. } => self.on_answer(what, body, out),
        }
    }

    fn on_answer(&mut self, call: u64, body: ResponseBody, out: &mut Output<CallerEffect>) {
        if let ResponseBody::Metadata(answer) = &body
            && self.view.update(answer)
        {
            self.links.drop_bootstrap(&mut self.network);
        }
        let Some(asked) = self.calls.get(&call) else { return };
        if asked.body.key() != body.key() {
            self.try_again(call, Err(error_code::NETWORK_EXCEPTION), out);
        } else if found_no_controller(&body) {
            self.try_again(call, Ok(body), out);
        } else {
            self.finish(call, Ok(body), out);
        }
    }

    /// Sends a call again later; with no retry left, `answer` is what there is to say.
    fn try_again(&mut self, number: u64, answer: Result<ResponseBody, i16>, out: &mut Output<CallerEffect>) {
        let Some(call) = self.calls.get_mut(&number) else { return };
        call.failures = call.failures.saturating_add(1);
        if call.failures > self.settings.retries {
            self.finish(number, answer, out);
            return;
        }
        call.on_its_way = false;
        call.retry_at = self.now.saturating_add(self.retry.delay(call.failures, &mut self.rng));
    }

    fn finish(&mut self, call: u64, answer: Result<ResponseBody, i16>, out: &mut Output<CallerEffect>) {
        if self.calls.remove(&call).is_some() {
            out.effect(CallerEffect::Answered { call, answer });
        }
    }

    fn expire(&mut self, out: &mut Output<CallerEffect>) {
        self.calls.retain(|number, call| {
            let over = call.deadline <= self.now;
            if over {
                let answer = Err(error_code::REQUEST_TIMED_OUT);
                out.effect(CallerEffect::Answered { call: *number, answer });
            }
            !over
        });
    }

    fn send(&mut self) {
        for (number, call) in &mut self.calls {
            if call.on_its_way || call.retry_at > self.now {
                continue;
            }
            let Some(peer) = self.links.any(self.now, &self.view, &mut self.network) else { return };
            call.on_its_way = true;
            self.links.send(self.now, peer, call.body.clone(), true, *number, &mut self.network);
        }
    }
}

/// The broker could not pass the request on to an active controller; nothing was done.
fn found_no_controller(body: &ResponseBody) -> bool {
    let missing = |code: i16| code == error_code::NOT_CONTROLLER;
    match body {
        ResponseBody::CreateTopics(answer) => answer.topics.iter().any(|topic| missing(topic.error_code)),
        ResponseBody::ElectLeaders(answer) => {
            let mut partitions =
                answer.replica_election_results.iter().flat_map(|topic| &topic.partition_result);
            missing(answer.error_code) || partitions.any(|partition| missing(partition.error_code))
        }
        ResponseBody::DeleteTopics(answer) => answer.responses.iter().any(|topic| missing(topic.error_code)),
        ResponseBody::IncrementalAlterConfigs(answer) => {
            answer.responses.iter().any(|resource| missing(resource.error_code))
        }
        ResponseBody::AlterPartitionReassignments(answer) => missing(answer.error_code),
        ResponseBody::ListPartitionReassignments(answer) => missing(answer.error_code),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use acked_wire::api::create_topics::{CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse};
    use rand::SeedableRng;

    use super::super::ConnectionId;
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn caller() -> Caller {
        let bootstrap = vec![("x".to_string(), 1), ("y".to_string(), 2)];
        Caller::new(AdminSettings::default(), bootstrap, ChaCha8Rng::seed_from_u64(1))
    }

    fn tell(caller: &mut Caller, now: Time, input: CallerInput) -> Vec<CallerEffect> {
        let mut out = Output::default();
        caller.handle(now, input, &mut out);
        out.effects
    }

    fn create() -> CallerInput {
        CallerInput::Call { call: 1, body: RequestBody::CreateTopics(CreateTopicsRequest::default()) }
    }

    fn connect(effects: &[CallerEffect]) -> ConnectionId {
        match effects {
            [CallerEffect::Network(NetworkEffect::Connect { connection, .. })] => *connection,
            other => panic!("expected one connect: {other:?}"),
        }
    }

    fn sent(effects: &[CallerEffect]) -> (ConnectionId, i32) {
        match effects {
            [CallerEffect::Network(NetworkEffect::Send { connection, correlation, .. })] => {
                (*connection, *correlation)
            }
            other => panic!("expected one send: {other:?}"),
        }
    }

    fn answer(code: i16) -> ResponseBody {
        let topic = CreatableTopicResult { error_code: code, ..Default::default() };
        ResponseBody::CreateTopics(CreateTopicsResponse { topics: vec![topic], ..Default::default() })
    }

    #[test]
    fn call_is_sent_again_until_a_controller_answers() {
        let mut caller = caller();
        let connection = connect(&tell(&mut caller, Time::ZERO, create()));
        let connected = CallerInput::Network(NetworkInput::Connected { connection });
        let (connection, correlation) = sent(&tell(&mut caller, Time::ZERO, connected));
        let body = answer(error_code::NOT_CONTROLLER);
        let input = NetworkInput::Answer { connection, correlation, body };
        assert!(tell(&mut caller, SECOND, CallerInput::Network(input)).is_empty());
        let retry = caller.next_deadline().expect("backs off");
        let (connection, correlation) = sent(&tell(&mut caller, retry, CallerInput::Tick));
        let input = NetworkInput::Answer { connection, correlation, body: answer(error_code::NONE) };
        let effects = tell(&mut caller, retry, CallerInput::Network(input));
        assert!(matches!(effects[..], [CallerEffect::Answered { call: 1, answer: Ok(_) }]));
    }

    #[test]
    fn broker_that_is_down_yields_to_the_next_and_time_ends_the_call() {
        let mut caller = caller();
        let connection = connect(&tell(&mut caller, Time::ZERO, create()));
        let refused = CallerInput::Network(NetworkInput::Disconnected { connection });
        let second = connect(&tell(&mut caller, Time::ZERO, refused));
        assert_ne!(connection, second);
        let effects = tell(&mut caller, 60 * SECOND, CallerInput::Tick);
        let timed_out = |effect: &CallerEffect| {
            matches!(effect, CallerEffect::Answered { call: 1, answer: Err(error_code::REQUEST_TIMED_OUT) })
        };
        assert!(effects.iter().any(timed_out));
    }
}
