//! - `appends`: what a leader accepts, refuses and recognises, and what a follower takes over.
//! - `model`: the whole log against a plain list of batches (R6, R8).
//! - `recovered`: every row of the recovery table, and damage at every position (R3, R10, R11).

mod appends;
mod model;
mod recovered;

use acked_wire::batch::BatchBuilder;
use bytes::Bytes;

const NOW_MS: i64 = 1_700_000_000_000;

/// `count` records of a few bytes, as a client sends them.
fn client_batch(count: i64) -> BatchBuilder {
    let mut builder = BatchBuilder::new(NOW_MS);
    for index in 0..count {
        builder.push(NOW_MS + index, Some(b"key"), Some(format!("value-{index}").as_bytes()), &[]);
    }
    builder
}

fn idempotent_batch(producer_id: i64, producer_epoch: i16, base_sequence: i32, count: i64) -> Bytes {
    client_batch(count).producer(producer_id, producer_epoch, base_sequence).build().freeze()
}

/// A batch as it lies in a log.
fn stored_batch(base_offset: i64, leader_epoch: i32, count: i64) -> Bytes {
    client_batch(count).base_offset(base_offset).leader_epoch(leader_epoch).build().freeze()
}
