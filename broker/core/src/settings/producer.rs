//! What a producer is built from. Enforces Kafka's rules between its settings (`ProducerConfig`, `KafkaProducer`):
//! idempotence needs acks=all, retries and at most five requests in flight, and the delivery timeout covers
//! linger and one request.

use std::time::Duration;

use acked_wire::batch::Codec;

use super::topic::codec;
use super::{Scope, SettingError, Settings};

/// Above this many requests in flight the broker's window of five batches cannot tell duplicates.
pub const IN_FLIGHT_MAX_IDEMPOTENT: usize = 5;

/// `acks`: what must hold before a record counts as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acks {
    /// Nothing; the broker does not even answer.
    None,
    /// The leader has appended it.
    Leader,
    /// The whole in-sync set has it.
    All,
}

impl Acks {
    /// The number in a produce request.
    pub fn code(self) -> i16 {
        match self {
            Acks::None => 0,
            Acks::Leader => 1,
            Acks::All => -1,
        }
    }
}

/// The producer's settings, named as Kafka names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducerSettings {
    pub acks: Acks,
    /// Off when not asked for explicitly and another setting rules it out.
    pub enable_idempotence: bool,
    /// `compression.type` with its level. A batch is full by what its records take before compression.
    pub compression: Codec,
    pub retries: u32,
    pub max_in_flight_requests_per_connection: usize,
    /// From `send()` to the final answer.
    pub delivery_timeout: Duration,
    pub request_timeout: Duration,
    pub linger: Duration,
    /// Bytes of one batch; 0 means a batch per record.
    pub batch_size: usize,
    /// Bytes of one request.
    pub max_request_size: usize,
    /// Bytes of all unsent records.
    pub buffer_memory: usize,
    pub retry_backoff: Duration,
    /// Never below what Kafka applies: a larger first backoff is cut to this.
    pub retry_backoff_max: Duration,
    pub reconnect_backoff: Duration,
    pub reconnect_backoff_max: Duration,
    pub socket_connection_setup_timeout: Duration,
    pub metadata_max_age: Duration,
}

impl Default for ProducerSettings {
    fn default() -> Self {
        ProducerSettings::new(&Settings::default_for(Scope::Producer))
            .expect("Kafka's defaults do not conflict")
    }
}

impl ProducerSettings {
    /// `Conflict` for combinations that Kafka's producer refuses.
    pub fn new(settings: &Settings) -> Result<ProducerSettings, SettingError> {
        assert_eq!(settings.scope(), Scope::Producer, "producer settings come from the producer's scope");
        let retry_backoff_max = settings.duration("retry.backoff.max.ms");
        let mut producer = ProducerSettings {
            acks: match settings.text("acks") {
                "0" => Acks::None,
                "1" => Acks::Leader,
                _ => Acks::All,
            },
            enable_idempotence: settings.boolean("enable.idempotence"),
            compression: codec(settings).expect("a producer names a codec"),
            retries: settings.number("retries"),
            max_in_flight_requests_per_connection: settings.number("max.in.flight.requests.per.connection"),
            delivery_timeout: settings.duration("delivery.timeout.ms"),
            request_timeout: settings.duration("request.timeout.ms"),
            linger: settings.duration("linger.ms"),
            batch_size: settings.number("batch.size"),
            max_request_size: settings.number("max.request.size"),
            buffer_memory: settings.number("buffer.memory"),
            retry_backoff: settings.duration("retry.backoff.ms").min(retry_backoff_max),
            retry_backoff_max,
            reconnect_backoff: settings.duration("reconnect.backoff.ms"),
            reconnect_backoff_max: settings.duration("reconnect.backoff.max.ms"),
            socket_connection_setup_timeout: settings.duration("socket.connection.setup.timeout.ms"),
            metadata_max_age: settings.duration("metadata.max.age.ms"),
        };
        producer.settle_idempotence(settings.is_given("enable.idempotence"))?;
        producer.settle_delivery_timeout(settings.is_given("delivery.timeout.ms"))?;
        Ok(producer)
    }

    fn settle_idempotence(&mut self, asked_for: bool) -> Result<(), SettingError> {
        let obstacle = if self.retries == 0 {
            "enable.idempotence needs retries above 0"
        } else if self.acks != Acks::All {
            "enable.idempotence needs acks=all"
        } else if self.max_in_flight_requests_per_connection > IN_FLIGHT_MAX_IDEMPOTENT {
            "enable.idempotence needs max.in.flight.requests.per.connection of at most 5"
        } else {
            return Ok(());
        };
        if self.enable_idempotence && asked_for {
            return Err(SettingError::Conflict { scope: Scope::Producer, reason: obstacle });
        }
        self.enable_idempotence = false;
        Ok(())
    }

    fn settle_delivery_timeout(&mut self, asked_for: bool) -> Result<(), SettingError> {
        let least =
            self.linger.saturating_add(self.request_timeout).min(Duration::from_millis(i32::MAX as u64));
        if self.delivery_timeout < least {
            if asked_for {
                let reason = "delivery.timeout.ms must be at least linger.ms plus request.timeout.ms";
                return Err(SettingError::Conflict { scope: Scope::Producer, reason });
            }
            self.delivery_timeout = least;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn producer(pairs: &[(&str, &str)]) -> Result<ProducerSettings, SettingError> {
        let mut settings = Settings::default_for(Scope::Producer);
        for (name, value) in pairs {
            let _ = settings.set(name, value).expect("good value");
        }
        ProducerSettings::new(&settings)
    }

    #[test]
    fn defaults_are_kafkas() {
        let settings = ProducerSettings::default();
        assert_eq!(settings.acks, Acks::All);
        assert!(settings.enable_idempotence);
        assert_eq!(settings.retries, 2_147_483_647);
        assert_eq!(settings.max_in_flight_requests_per_connection, 5);
        assert_eq!(settings.linger, Duration::from_millis(5));
        assert_eq!(settings.delivery_timeout, Duration::from_secs(120));
    }

    #[test]
    fn idempotence_nobody_asked_for_gives_way() {
        for pair in [("acks", "1"), ("retries", "0"), ("max.in.flight.requests.per.connection", "6")] {
            assert!(!producer(&[pair]).expect("no conflict").enable_idempotence, "{pair:?}");
        }
        assert!(producer(&[("acks", "-1")]).expect("no conflict").enable_idempotence);
    }

    #[test]
    fn idempotence_asked_for_conflicts() {
        for pair in [("acks", "0"), ("retries", "0"), ("max.in.flight.requests.per.connection", "6")] {
            let result = producer(&[("enable.idempotence", "true"), pair]);
            assert!(matches!(result, Err(SettingError::Conflict { .. })), "{pair:?}");
        }
        assert!(producer(&[("enable.idempotence", "false"), ("acks", "1")]).is_ok());
    }

    #[test]
    fn delivery_timeout_covers_linger_and_one_request() {
        let stretched = producer(&[("linger.ms", "200000")]).expect("stretched");
        assert_eq!(stretched.delivery_timeout, Duration::from_millis(230_000));
        assert!(matches!(producer(&[("delivery.timeout.ms", "1000")]), Err(SettingError::Conflict { .. })));
        assert!(producer(&[("delivery.timeout.ms", "1000"), ("request.timeout.ms", "900")]).is_ok());
    }
}
