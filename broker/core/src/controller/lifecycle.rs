//! The broker's side of its membership: registers its incarnation, sends heartbeats, learns whether it is fenced, and
//! stops in order.
//!
//! States and what they do:
//! - **Registering**: sends a registration, again after a back-off until one is accepted or
//!   `initial.broker.registration.timeout.ms` passed since the start.
//! - **Fenced**: heartbeats with the metadata offset it reached; asks to stay fenced until `ReadyToUnfence`.
//! - **Unfenced**: heartbeats every `broker.heartbeat.interval.ms`.
//! - **Stopping**: heartbeats that ask for shutdown until the controller agrees or the deadline passes.
//! - **Stopped**, **Failed**: nothing more.
//!
//! Transitions: Registering → Fenced (accepted) ⇄ Unfenced (as the controller answers); Fenced, Unfenced → Registering
//! (STALE_BROKER_EPOCH: another incarnation or a lost registration took its place); any → Stopping (`ShutDown`) →
//! Stopped; Registering → Failed. One request is in flight at a time, and the shell answers each one, if only with a
//! `PeerError`.
//!
//! Not decided here: which node is the controller. Source: KIP-631; kafka-rules 5.

use acked_wire::api::broker_registration::{Feature, Listener};
use acked_wire::{
    BrokerHeartbeatRequest, BrokerHeartbeatResponse, BrokerRegistrationRequest, BrokerRegistrationResponse,
    Str, Uuid, error_code,
};

use super::features::supported_features;
use crate::settings::BrokerSettings;
use crate::types::{NodeId, Output, PeerError, Time};

/// First pause after a failed request; doubles up to the session timeout.
const RETRY_BACKOFF_MIN: Time = Time::from_millis(100);

/// What a broker is registered with.
#[derive(Clone, Debug)]
pub struct LifecycleConfig {
    pub node: NodeId,
    pub cluster_id: Str,
    /// Differs for every start of the process.
    pub incarnation: Uuid,
    pub listeners: Vec<Listener>,
    pub features: Vec<Feature>,
    pub rack: Option<Str>,
    /// `directory.id` of every log directory.
    pub directories: Vec<Uuid>,
    /// From the clean-shutdown file; `None` after an unclean stop.
    pub previous_broker_epoch: Option<i64>,
    /// broker.heartbeat.interval.ms
    pub heartbeat_interval: Time,
    /// broker.session.timeout.ms; the longest pause between two tries.
    pub session_timeout: Time,
    /// initial.broker.registration.timeout.ms
    pub registration_timeout: Time,
    /// How long a controlled shutdown may take before the broker stops without the controller's consent.
    pub shutdown_timeout: Time,
}

impl LifecycleConfig {
    /// From the broker's settings, with this version's features and Kafka's 60 s for the first registration and 5 min
    /// for a controlled shutdown.
    pub fn new(
        node: NodeId,
        cluster_id: Str,
        incarnation: Uuid,
        listeners: Vec<Listener>,
        directories: Vec<Uuid>,
        settings: &BrokerSettings,
    ) -> LifecycleConfig {
        LifecycleConfig {
            node,
            cluster_id,
            incarnation,
            listeners,
            features: supported_features(),
            rack: None,
            directories,
            previous_broker_epoch: None,
            heartbeat_interval: settings.broker_heartbeat_interval,
            session_timeout: settings.broker_session_timeout,
            registration_timeout: Time::from_secs(60),
            shutdown_timeout: Time::from_secs(300),
        }
    }
}

/// What wakes the machine.
#[derive(Clone, Debug)]
pub enum LifecycleInput {
    /// A controller is known, or another one is: try at once.
    ControllerChanged,
    /// The answer to the registration or heartbeat numbered `send`.
    RegistrationResponse {
        send: u64,
        result: Result<BrokerRegistrationResponse, PeerError>,
    },
    HeartbeatResponse {
        send: u64,
        result: Result<BrokerHeartbeatResponse, PeerError>,
    },
    /// The broker's image is replayed through this metadata offset.
    MetadataReached {
        offset: i64,
    },
    /// Logs are recovered; the broker may serve.
    ReadyToUnfence,
    /// Stop in order.
    ShutDown,
    Tick,
}

/// What the shell does for it.
#[derive(Clone, Debug, PartialEq)]
pub enum LifecycleEffect {
    /// Send to the active controller; the answer comes back with the same number.
    SendRegistration {
        send: u64,
        body: BrokerRegistrationRequest,
    },
    SendHeartbeat {
        send: u64,
        body: BrokerHeartbeatRequest,
    },
    /// The registration is accepted. A later one replaces the epoch.
    Registered {
        broker_epoch: i64,
    },
    /// The broker's metadata reached its registration.
    CaughtUp,
    /// What the controller says of this broker changed.
    Fenced {
        fenced: bool,
    },
    /// Close the logs and stop. `granted` is false when the deadline passed first.
    ReadyToStop {
        granted: bool,
        broker_epoch: Option<i64>,
    },
    /// No registration was accepted in time: stop.
    RegistrationFailed {
        last_error: Option<i16>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    Stopping { deadline: Time },
    Ended,
}

/// One broker's membership.
#[derive(Debug)]
pub struct Lifecycle {
    config: LifecycleConfig,
    phase: Phase,
    registered: bool,
    /// Epoch of the last accepted registration.
    broker_epoch: Option<i64>,
    fenced: bool,
    caught_up: bool,
    ready_to_unfence: bool,
    metadata_offset: i64,
    in_flight: Option<u64>,
    sends: u64,
    failures: u32,
    next_send: Time,
    registration_deadline: Option<Time>,
    last_error: Option<i16>,
}

impl Lifecycle {
    /// A broker that starts now and registers on its first `Tick` or `ControllerChanged`.
    pub fn new(config: LifecycleConfig, now: Time) -> Lifecycle {
        assert!(!config.heartbeat_interval.is_zero(), "a heartbeat interval of zero would never rest");
        let registration_deadline = Some(now.saturating_add(config.registration_timeout));
        Lifecycle {
            config,
            phase: Phase::Running,
            registered: false,
            broker_epoch: None,
            fenced: true,
            caught_up: false,
            ready_to_unfence: false,
            metadata_offset: -1,
            in_flight: None,
            sends: 0,
            failures: 0,
            next_send: now,
            registration_deadline,
            last_error: None,
        }
    }

    /// Epoch of the registration in force; `None` while there is none.
    pub fn broker_epoch(&self) -> Option<i64> {
        self.broker_epoch.filter(|_| self.registered)
    }

    /// Whether the controller considers this broker fenced.
    pub fn is_fenced(&self) -> bool {
        self.fenced
    }

    pub fn handle(&mut self, now: Time, input: LifecycleInput, out: &mut Output<LifecycleEffect>) {
        if self.phase == Phase::Ended {
            return;
        }
        match input {
            LifecycleInput::ControllerChanged => {
                // What was sent to the old controller is answered by nobody that matters.
                self.in_flight = None;
                self.failures = 0;
                self.next_send = now;
            }
            LifecycleInput::RegistrationResponse { send, result } => {
                if self.take_answer(send) {
                    self.registration_answered(now, result, out);
                }
            }
            LifecycleInput::HeartbeatResponse { send, result } => {
                if self.take_answer(send) {
                    self.heartbeat_answered(now, result, out);
                }
            }
            LifecycleInput::MetadataReached { offset } => {
                self.metadata_offset = self.metadata_offset.max(offset)
            }
            LifecycleInput::ReadyToUnfence => {
                self.ready_to_unfence = true;
                self.next_send = now;
            }
            LifecycleInput::ShutDown => self.shut_down(now, out),
            LifecycleInput::Tick => {}
        }
        self.check_deadlines(now, out);
        self.send_if_due(now, out);
        assert!(self.fenced || self.broker_epoch.is_some(), "only a registered broker is unfenced");
    }

    /// When the machine wants a `Tick`.
    pub fn next_deadline(&self) -> Option<Time> {
        let stop = match self.phase {
            Phase::Ended => return None,
            Phase::Stopping { deadline } => Some(deadline),
            Phase::Running => self.registration_deadline,
        };
        let send = self.in_flight.is_none().then_some(self.next_send);
        send.into_iter().chain(stop).min()
    }

    fn take_answer(&mut self, send: u64) -> bool {
        let awaited = self.in_flight == Some(send);
        if awaited {
            self.in_flight = None;
        }
        awaited
    }

    fn registration_answered(
        &mut self,
        now: Time,
        result: Result<BrokerRegistrationResponse, PeerError>,
        out: &mut Output<LifecycleEffect>,
    ) {
        match result {
            Ok(response) if response.error_code == error_code::NONE => {
                let broker_epoch = response.broker_epoch;
                self.registered = true;
                self.broker_epoch = Some(broker_epoch);
                self.registration_deadline = None;
                self.caught_up = false;
                self.failures = 0;
                self.next_send = now;
                out.effect(LifecycleEffect::Registered { broker_epoch });
            }
            Ok(response) => {
                self.last_error = Some(response.error_code);
                self.back_off(now);
            }
            Err(_) => self.back_off(now),
        }
    }

    fn heartbeat_answered(
        &mut self,
        now: Time,
        result: Result<BrokerHeartbeatResponse, PeerError>,
        out: &mut Output<LifecycleEffect>,
    ) {
        let response = match result {
            Ok(response) if response.error_code == error_code::NONE => response,
            Ok(response) if response.error_code == error_code::STALE_BROKER_EPOCH => {
                self.registered = false;
                self.learn_fenced(true, out);
                self.failures = 0;
                self.next_send = now;
                return;
            }
            Ok(_) | Err(_) => return self.back_off(now),
        };
        self.failures = 0;
        self.next_send = now.saturating_add(self.config.heartbeat_interval);
        if response.is_caught_up && !self.caught_up {
            self.caught_up = true;
            out.effect(LifecycleEffect::CaughtUp);
        }
        self.learn_fenced(response.is_fenced, out);
        if response.should_shut_down && matches!(self.phase, Phase::Stopping { .. }) {
            self.end(true, out);
        }
    }

    fn learn_fenced(&mut self, fenced: bool, out: &mut Output<LifecycleEffect>) {
        if self.fenced != fenced {
            self.fenced = fenced;
            out.effect(LifecycleEffect::Fenced { fenced });
        }
    }

    fn back_off(&mut self, now: Time) {
        let doubled = RETRY_BACKOFF_MIN.saturating_mul(1 << self.failures.min(16));
        self.failures = self.failures.saturating_add(1);
        self.next_send = now.saturating_add(doubled.min(self.config.session_timeout));
    }

    fn shut_down(&mut self, now: Time, out: &mut Output<LifecycleEffect>) {
        if self.phase != Phase::Running {
            return;
        }
        if !self.registered {
            return self.end(true, out);
        }
        self.phase = Phase::Stopping { deadline: now.saturating_add(self.config.shutdown_timeout) };
        self.next_send = now;
    }

    fn check_deadlines(&mut self, now: Time, out: &mut Output<LifecycleEffect>) {
        match self.phase {
            Phase::Stopping { deadline } if now >= deadline => self.end(false, out),
            Phase::Running if self.registration_deadline.is_some_and(|deadline| now >= deadline) => {
                self.phase = Phase::Ended;
                out.effect(LifecycleEffect::RegistrationFailed { last_error: self.last_error });
            }
            _ => {}
        }
    }

    fn end(&mut self, granted: bool, out: &mut Output<LifecycleEffect>) {
        self.phase = Phase::Ended;
        out.effect(LifecycleEffect::ReadyToStop { granted, broker_epoch: self.broker_epoch() });
    }

    fn send_if_due(&mut self, now: Time, out: &mut Output<LifecycleEffect>) {
        if self.phase == Phase::Ended || self.in_flight.is_some() || now < self.next_send {
            return;
        }
        self.sends += 1;
        let send = self.sends;
        self.in_flight = Some(send);
        if self.registered {
            out.effect(LifecycleEffect::SendHeartbeat { send, body: self.heartbeat() });
        } else {
            out.effect(LifecycleEffect::SendRegistration { send, body: self.registration() });
        }
    }

    fn heartbeat(&self) -> BrokerHeartbeatRequest {
        BrokerHeartbeatRequest {
            broker_id: self.config.node.0,
            broker_epoch: self.broker_epoch.expect("heartbeats follow a registration"),
            current_metadata_offset: self.metadata_offset,
            want_fence: !self.ready_to_unfence,
            want_shut_down: matches!(self.phase, Phase::Stopping { .. }),
            ..BrokerHeartbeatRequest::default()
        }
    }

    fn registration(&self) -> BrokerRegistrationRequest {
        // A process that registers again has lost nothing: it presents the epoch it had.
        let previous = self.broker_epoch.or(self.config.previous_broker_epoch);
        BrokerRegistrationRequest {
            broker_id: self.config.node.0,
            cluster_id: self.config.cluster_id.clone(),
            incarnation_id: self.config.incarnation,
            listeners: self.config.listeners.clone(),
            features: self.config.features.clone(),
            rack: self.config.rack.clone(),
            log_dirs: self.config.directories.clone(),
            previous_broker_epoch: previous.unwrap_or(-1),
            ..BrokerRegistrationRequest::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Time = Time::from_secs(2);

    fn broker() -> Lifecycle {
        let (cluster, incarnation) = (Str::from("cluster"), Uuid([1; 16]));
        let settings = BrokerSettings::default();
        let config =
            LifecycleConfig::new(NodeId(1), cluster, incarnation, Vec::new(), vec![Uuid([2; 16])], &settings);
        Lifecycle::new(LifecycleConfig { previous_broker_epoch: Some(40), ..config }, Time::ZERO)
    }

    fn feed(broker: &mut Lifecycle, now: Time, input: LifecycleInput) -> Vec<LifecycleEffect> {
        let mut out = Output::default();
        broker.handle(now, input, &mut out);
        out.effects
    }

    fn registered(broker: &mut Lifecycle, now: Time, send: u64, broker_epoch: i64) -> Vec<LifecycleEffect> {
        let response = BrokerRegistrationResponse { broker_epoch, ..Default::default() };
        feed(broker, now, LifecycleInput::RegistrationResponse { send, result: Ok(response) })
    }

    fn answered(
        broker: &mut Lifecycle,
        now: Time,
        send: u64,
        fenced: bool,
        stop: bool,
    ) -> Vec<LifecycleEffect> {
        let response = BrokerHeartbeatResponse {
            is_caught_up: true,
            is_fenced: fenced,
            should_shut_down: stop,
            ..Default::default()
        };
        feed(broker, now, LifecycleInput::HeartbeatResponse { send, result: Ok(response) })
    }

    fn heartbeat_of(effects: &[LifecycleEffect]) -> &BrokerHeartbeatRequest {
        match effects.last() {
            Some(LifecycleEffect::SendHeartbeat { body, .. }) => body,
            other => panic!("no heartbeat: {other:?}"),
        }
    }

    /// Registered in epoch 50, unfenced at time zero; the second heartbeat is due after the interval.
    fn serving() -> Lifecycle {
        let mut broker = broker();
        feed(&mut broker, Time::ZERO, LifecycleInput::ReadyToUnfence);
        registered(&mut broker, Time::ZERO, 1, 50);
        let effects = answered(&mut broker, Time::ZERO, 2, false, false);
        assert_eq!(effects, [LifecycleEffect::CaughtUp, LifecycleEffect::Fenced { fenced: false }]);
        broker
    }

    #[test]
    fn registration_presents_the_epoch_of_the_clean_stop() {
        let effects = feed(&mut broker(), Time::ZERO, LifecycleInput::Tick);
        let [LifecycleEffect::SendRegistration { send: 1, body }] = effects.as_slice() else {
            panic!("{effects:?}");
        };
        assert_eq!((body.broker_id, body.previous_broker_epoch), (1, 40));
        assert_eq!(body.features, supported_features());
    }

    #[test]
    fn heartbeats_follow_the_registration_and_tell_what_is_wanted() {
        let mut broker = broker();
        feed(&mut broker, Time::ZERO, LifecycleInput::Tick);
        let effects = registered(&mut broker, Time::ZERO, 1, 50);
        assert_eq!(effects[0], LifecycleEffect::Registered { broker_epoch: 50 });
        let first = heartbeat_of(&effects);
        assert_eq!((first.broker_epoch, first.current_metadata_offset, first.want_fence), (50, -1, true));
        answered(&mut broker, Time::ZERO, 2, true, false);
        assert_eq!(broker.next_deadline(), Some(INTERVAL));
        feed(&mut broker, Time::ZERO, LifecycleInput::MetadataReached { offset: 51 });
        let effects = feed(&mut broker, Time::ZERO, LifecycleInput::ReadyToUnfence);
        let second = heartbeat_of(&effects);
        assert_eq!((second.current_metadata_offset, second.want_fence), (51, false));
    }

    #[test]
    fn refused_registration_is_tried_again_with_growing_pauses_until_the_deadline() {
        let mut broker = broker();
        let mut now = Time::ZERO;
        let mut effects = feed(&mut broker, now, LifecycleInput::Tick);
        let mut pauses = Vec::new();
        let response = BrokerRegistrationResponse {
            error_code: error_code::DUPLICATE_BROKER_REGISTRATION,
            ..Default::default()
        };
        while let Some(LifecycleEffect::SendRegistration { send, .. }) = effects.last() {
            let answer = LifecycleInput::RegistrationResponse { send: *send, result: Ok(response.clone()) };
            assert_eq!(feed(&mut broker, now, answer), []);
            let next = broker.next_deadline().expect("it tries again");
            pauses.push((next - now).as_millis());
            now = next;
            effects = feed(&mut broker, now, LifecycleInput::Tick);
        }
        assert_eq!(pauses[..4], [100, 200, 400, 800]);
        assert!(pauses.iter().all(|pause| *pause <= 9000));
        assert_eq!(now, Time::from_secs(60));
        let last_error = Some(error_code::DUPLICATE_BROKER_REGISTRATION);
        assert_eq!(effects, [LifecycleEffect::RegistrationFailed { last_error }]);
        assert_eq!(broker.next_deadline(), None);
    }

    #[test]
    fn stale_epoch_registers_the_same_incarnation_again() {
        let mut broker = serving();
        feed(&mut broker, INTERVAL, LifecycleInput::Tick);
        let response =
            BrokerHeartbeatResponse { error_code: error_code::STALE_BROKER_EPOCH, ..Default::default() };
        let effects =
            feed(&mut broker, INTERVAL, LifecycleInput::HeartbeatResponse { send: 3, result: Ok(response) });
        assert_eq!(effects[0], LifecycleEffect::Fenced { fenced: true });
        let LifecycleEffect::SendRegistration { body, .. } = &effects[1] else { panic!("{effects:?}") };
        assert_eq!((body.incarnation_id, body.previous_broker_epoch), (Uuid([1; 16]), 50));
        assert_eq!(broker.broker_epoch(), None);
    }

    #[test]
    fn late_answers_count_for_nothing() {
        let mut broker = serving();
        feed(&mut broker, INTERVAL, LifecycleInput::Tick);
        // Another controller: heartbeat 4 goes out, the answer to 3 is nobody's.
        let effects = feed(&mut broker, INTERVAL, LifecycleInput::ControllerChanged);
        assert!(matches!(effects[0], LifecycleEffect::SendHeartbeat { send: 4, .. }));
        assert_eq!(answered(&mut broker, INTERVAL, 3, true, false), []);
        assert!(!broker.is_fenced());
    }

    #[test]
    fn broker_stops_when_the_controller_agrees() {
        let mut broker = serving();
        let effects = feed(&mut broker, Time::ZERO, LifecycleInput::ShutDown);
        assert!(heartbeat_of(&effects).want_shut_down);
        assert_eq!(answered(&mut broker, Time::ZERO, 3, false, false), []);
        let effects = feed(&mut broker, INTERVAL, LifecycleInput::Tick);
        assert!(heartbeat_of(&effects).want_shut_down);
        let effects = answered(&mut broker, INTERVAL, 4, true, true);
        let stop = LifecycleEffect::ReadyToStop { granted: true, broker_epoch: Some(50) };
        assert_eq!(effects, [LifecycleEffect::Fenced { fenced: true }, stop]);
        assert_eq!(feed(&mut broker, INTERVAL, LifecycleInput::Tick), []);
    }

    #[test]
    fn broker_stops_on_its_own_when_no_controller_answers() {
        let mut broker = serving();
        feed(&mut broker, Time::ZERO, LifecycleInput::ShutDown);
        assert_eq!(broker.next_deadline(), Some(Time::from_secs(300)));
        let effects = feed(&mut broker, Time::from_secs(300), LifecycleInput::Tick);
        assert_eq!(effects, [LifecycleEffect::ReadyToStop { granted: false, broker_epoch: Some(50) }]);
    }

    #[test]
    fn unregistered_broker_stops_at_once() {
        let effects = feed(&mut broker(), Time::ZERO, LifecycleInput::ShutDown);
        assert_eq!(effects, [LifecycleEffect::ReadyToStop { granted: true, broker_epoch: None }]);
    }
}
