//! BrokerHeartbeat (key 63): a registered broker stays alive, asks to be unfenced or to shut down (KIP-631).

use crate::Uuid;
use crate::schema::messages;

messages! {
    /// Says how far a broker is and what it wants.
    pub struct BrokerHeartbeatRequest [versions 0..=2, flexible 0..] {
        broker_id: i32 [0..],
        broker_epoch: i64 [0.., default = -1],
        /// How far the broker has read the metadata log.
        current_metadata_offset: i64 [0..],
        /// Whether the broker wants to stay fenced.
        want_fence: bool [0..],
        want_shut_down: bool [0..],
        offline_log_dirs: Vec<Uuid> [1.., tag 0],
        cordoned_log_dirs: Option<Vec<Uuid>> [2.., nullable 2.., tag 1],
    }

    /// Answer to [`BrokerHeartbeatRequest`].
    pub struct BrokerHeartbeatResponse [versions 0..=2, flexible 0..] {
        throttle_time_ms: i32 [0..],
        error_code: i16 [0..],
        /// Whether the broker has read up to its own registration.
        is_caught_up: bool [0..],
        is_fenced: bool [0.., default = true],
        /// Whether an orderly stop may go on: the broker leads nothing any more.
        should_shut_down: bool [0..],
    }
}
