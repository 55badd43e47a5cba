//! InitProducerId (key 22): an id and epoch for an idempotent or transactional producer (KIP-98, KIP-360).

use crate::Str;
use crate::schema::messages;

messages! {
    /// Asks for a producer id.
    pub struct InitProducerIdRequest [versions 0..=5, flexible 2..] {
        /// Null for a producer that is only idempotent.
        transactional_id: Option<Str> [0.., nullable 0.., default = Some(Str::default())],
        transaction_timeout_ms: i32 [0..],
        /// -1 for a new one, else the one whose epoch is to grow (KIP-360).
        producer_id: i64 [3.., default = -1],
        producer_epoch: i16 [3.., default = -1],
    }

    /// Answer to [`InitProducerIdRequest`].
    pub struct InitProducerIdResponse [versions 0..=5, flexible 2..] {
        throttle_time_ms: i32 [0..],
        error_code: i16 [0..],
        producer_id: i64 [0.., default = -1],
        producer_epoch: i16 [0..],
    }
}
