//! UnregisterBroker (key 64): a broker is forgotten for good (KIP-631).

use crate::Str;
use crate::schema::messages;

messages! {
    /// Asks for the registration of a broker to be removed.
    pub struct UnregisterBrokerRequest [versions 0..=0, flexible 0..] {
        broker_id: i32 [0..],
    }

    /// Answer to [`UnregisterBrokerRequest`].
    pub struct UnregisterBrokerResponse [versions 0..=0, flexible 0..] {
        throttle_time_ms: i32 [0..],
        error_code: i16 [0..],
        error_message: Option<Str> [0.., nullable 0.., default = Some(Str::default())],
    }
}
