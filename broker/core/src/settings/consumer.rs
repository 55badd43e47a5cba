//! What a consumer of assigned partitions is built from.

use std::time::Duration;

use super::{Scope, SettingError, Settings};

/// `auto.offset.reset`: where to go when a position is missing or out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetReset {
    Latest,
    Earliest,
    /// Report it to the application.
    None,
}

/// `isolation.level`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsolationLevel {
    ReadUncommitted,
    ReadCommitted,
}

impl IsolationLevel {
    /// The number in fetch and list-offsets requests.
    pub fn code(self) -> i8 {
        match self {
            IsolationLevel::ReadUncommitted => 0,
            IsolationLevel::ReadCommitted => 1,
        }
    }
}

/// The consumer's settings, named as Kafka names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerSettings {
    pub auto_offset_reset: OffsetReset,
    pub isolation_level: IsolationLevel,
    /// Verify the CRC of what was fetched.
    pub check_crcs: bool,
    /// Bytes of one response.
    pub fetch_max_bytes: i32,
    pub fetch_min_bytes: i32,
    pub fetch_max_wait: Duration,
    /// Bytes of one partition in a response.
    pub max_partition_fetch_bytes: i32,
    pub max_poll_records: usize,
    pub request_timeout: Duration,
    pub retry_backoff: Duration,
    pub retry_backoff_max: Duration,
    pub reconnect_backoff: Duration,
    pub reconnect_backoff_max: Duration,
    pub socket_connection_setup_timeout: Duration,
    pub metadata_max_age: Duration,
}

impl Default for ConsumerSettings {
    fn default() -> Self {
        ConsumerSettings::new(&Settings::default_for(Scope::Consumer))
            .expect("Kafka's defaults do not conflict")
    }
}

impl ConsumerSettings {
    /// `Conflict` for `auto.offset.reset=by_duration:…`, which is not modelled.
    pub fn new(settings: &Settings) -> Result<ConsumerSettings, SettingError> {
        assert_eq!(settings.scope(), Scope::Consumer, "consumer settings come from the consumer's scope");
        let retry_backoff_max = settings.duration("retry.backoff.max.ms");
        Ok(ConsumerSettings {
            auto_offset_reset: match settings.text("auto.offset.reset") {
                "latest" => OffsetReset::Latest,
                "earliest" => OffsetReset::Earliest,
                "none" => OffsetReset::None,
                _ => {
                    let reason = "auto.offset.reset by duration is not modelled";
                    return Err(SettingError::Conflict { scope: Scope::Consumer, reason });
                }
            },
            isolation_level: match settings.text("isolation.level") {
                "read_committed" => IsolationLevel::ReadCommitted,
                _ => IsolationLevel::ReadUncommitted,
            },
            check_crcs: settings.boolean("check.crcs"),
            fetch_max_bytes: settings.number("fetch.max.bytes"),
            fetch_min_bytes: settings.number("fetch.min.bytes"),
            fetch_max_wait: settings.duration("fetch.max.wait.ms"),
            max_partition_fetch_bytes: settings.number("max.partition.fetch.bytes"),
            max_poll_records: settings.number("max.poll.records"),
            request_timeout: settings.duration("request.timeout.ms"),
            retry_backoff: settings.duration("retry.backoff.ms").min(retry_backoff_max),
            retry_backoff_max,
            reconnect_backoff: settings.duration("reconnect.backoff.ms"),
            reconnect_backoff_max: settings.duration("reconnect.backoff.max.ms"),
            socket_connection_setup_timeout: settings.duration("socket.connection.setup.timeout.ms"),
            metadata_max_age: settings.duration("metadata.max.age.ms"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_kafkas() {
        let settings = ConsumerSettings::default();
        assert_eq!(settings.auto_offset_reset, OffsetReset::Latest);
        assert_eq!(settings.isolation_level, IsolationLevel::ReadUncommitted);
        assert_eq!(settings.fetch_max_wait, Duration::from_millis(500));
        assert_eq!(settings.max_poll_records, 500);
    }

    #[test]
    fn reset_by_duration_is_known_but_refused() {
        let mut settings = Settings::default_for(Scope::Consumer);
        let _ = settings.set("auto.offset.reset", "by_duration:P1D").expect("Kafka knows it");
        assert!(matches!(ConsumerSettings::new(&settings), Err(SettingError::Conflict { .. })));
        assert!(settings.set("auto.offset.reset", "by_duration").is_err());
    }
}
