//! ControllerRegistration (key 70): a controller tells the active one where it listens and what it supports
//! (KIP-919).

use crate::schema::messages;
use crate::{Str, Uuid};

messages! {
    /// Registers one incarnation of a controller.
    pub struct ControllerRegistrationRequest [versions 0..=0, flexible 0..] {
        controller_id: i32 [0..],
        /// New at each start of the process.
        incarnation_id: Uuid [0..],
        zk_migration_ready: bool [0..],
        listeners: Vec<Listener> [0..],
        features: Vec<Feature> [0..],
    }

    /// See [`ControllerRegistrationRequest`].
    pub struct Listener {
        name: Str [0..],
        host: Str [0..],
        port: u16 [0..],
        security_protocol: i16 [0..],
    }

    /// See [`ControllerRegistrationRequest`].
    pub struct Feature {
        name: Str [0..],
        min_supported_version: i16 [0..],
        max_supported_version: i16 [0..],
    }

    /// Answer to [`ControllerRegistrationRequest`].
    pub struct ControllerRegistrationResponse [versions 0..=0, flexible 0..] {
        throttle_time_ms: i32 [0..],
        error_code: i16 [0..],
        error_message: Option<Str> [0.., nullable 0.., default = Some(Str::default())],
    }
}
