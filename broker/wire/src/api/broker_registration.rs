//! BrokerRegistration (key 62): a starting broker asks the controller for its epoch (KIP-631).

use crate::schema::messages;
use crate::{Str, Uuid};

messages! {
    /// Introduces an incarnation of a broker.
    pub struct BrokerRegistrationRequest [versions 0..=4, flexible 0..] {
        broker_id: i32 [0..],
        cluster_id: Str [0..],
        /// New for every start of the process.
        incarnation_id: Uuid [0..],
        listeners: Vec<Listener> [0..],
        features: Vec<Feature> [0..],
        rack: Option<Str> [0.., nullable 0.., default = Some(Str::default())],
        is_migrating_zk_broker: bool [1..],
        log_dirs: Vec<Uuid> [2..; ignorable],
        /// The epoch before an orderly stop, -1 if not known (KIP-966).
        previous_broker_epoch: i64 [3.., default = -1; ignorable],
    }

    /// See [`BrokerRegistrationRequest`].
    pub struct Listener {
        name: Str [0..],
        host: Str [0..],
        port: u16 [0..],
        security_protocol: i16 [0..],
    }

    /// See [`BrokerRegistrationRequest`].
    pub struct Feature {
        name: Str [0..],
        min_supported_version: i16 [0..],
        max_supported_version: i16 [0..],
    }

    /// Answer to [`BrokerRegistrationRequest`].
    pub struct BrokerRegistrationResponse [versions 0..=4, flexible 0..] {
        throttle_time_ms: i32 [0..],
        error_code: i16 [0..],
        broker_epoch: i64 [0.., default = -1],
    }
}
