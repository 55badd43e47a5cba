//! AllocateProducerIds (key 67): a broker asks the controller for a block of producer ids (KIP-730).

use crate::schema::messages;

messages! {
    /// Asks for the next block.
    pub struct AllocateProducerIdsRequest [versions 0..=0, flexible 0..] {
        broker_id: i32 [0..],
        broker_epoch: i64 [0.., default = -1],
    }

    /// Answer to [`AllocateProducerIdsRequest`].
    pub struct AllocateProducerIdsResponse [versions 0..=0, flexible 0..] {
        throttle_time_ms: i32 [0..],
        error_code: i16 [0..],
        producer_id_start: i64 [0..],
        producer_id_len: i32 [0..],
    }
}
