//! The handle of a consumer of assigned partitions.

use std::time::Duration;

use acked_core::consumer::{Polled, Start};
use acked_core::settings::ConsumerSettings;
use acked_env::Env;

/// Why a question to the brokers was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("ask brokers: error code {code}")]
pub struct ConsumerError {
    /// Kafka's error code; 7 (REQUEST_TIMED_OUT) when the time was up.
    pub code: i16,
}

/// Reads assigned partitions. Dropping it ends its task.
#[derive(Debug)]
pub struct Consumer {}

impl Consumer {
    /// Starts the consumer's task. `bootstrap` lists host and port of brokers to ask first, in order of preference.
    pub fn new<E: Env>(
        env: &E,
        client_id: &str,
        settings: ConsumerSettings,
        bootstrap: Vec<(String, u16)>,
    ) -> Consumer {
        let _ = (env, client_id, settings, bootstrap);
        Consumer {}
    }

    /// Reads `partition` of `topic` from `start` on, besides those assigned before; assigning again moves it there.
    pub fn assign(&self, topic: &str, partition: i32, start: Start) {
        let _ = (topic, partition, start);
    }

    /// Stops reading a partition; what was fetched of it and not handed out is dropped.
    pub fn unassign(&self, topic: &str, partition: i32) {
        let _ = (topic, partition);
    }

    /// Moves an assigned partition to `offset`; the next poll starts there. `leader_epoch` is that of the record
    /// before it, when known: the leader then finds out whether the log was truncated in between.
    pub fn seek(&self, topic: &str, partition: i32, offset: i64, leader_epoch: Option<i32>) {
        let _ = (topic, partition, offset, leader_epoch);
    }

    /// Records and events as soon as there are any, at most `max.poll.records`; empty after `max_wait`.
    pub async fn poll(&mut self, max_wait: Duration) -> Polled {
        let _ = max_wait;
        Polled::default()
    }

    /// The first retained offset of each partition, in the order asked; gives up after `max_wait`.
    ///
    /// # Errors
    /// The code of the first partition that could not be answered.
    pub async fn beginning_offsets(
        &self,
        partitions: &[(&str, i32)],
        max_wait: Duration,
    ) -> Result<Vec<i64>, ConsumerError> {
        let _ = (partitions, max_wait);
        Err(ConsumerError { code: 7 })
    }

    /// The offset after the last one that a consumer may read (the high watermark) of each partition, in the order
    /// asked; gives up after `max_wait`.
    ///
    /// # Errors
    /// The code of the first partition that could not be answered.
    pub async fn end_offsets(
        &self,
        partitions: &[(&str, i32)],
        max_wait: Duration,
    ) -> Result<Vec<i64>, ConsumerError> {
        let _ = (partitions, max_wait);
        Err(ConsumerError { code: 7 })
    }
}
