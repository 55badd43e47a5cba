//! What a consumer of assigned partitions is built from.

use std::time::Duration;

use super::{Scope, SettingError, Settings};

/// `auto.offset.reset`: where to go when a position is missing or out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetReset {
    Latest,
    Earliest,
    /// `by_duration:PnDTnHnMn.nS`: to the first record that is not older than this (KIP-1106).
    ByDuration(Duration),
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
    /// `Conflict` for an `auto.offset.reset=by_duration:…` that is no duration.
    pub fn new(settings: &Settings) -> Result<ConsumerSettings, SettingError> {
        assert_eq!(settings.scope(), Scope::Consumer, "consumer settings come from the consumer's scope");
        let retry_backoff_max = settings.duration("retry.backoff.max.ms");
        Ok(ConsumerSettings {
            auto_offset_reset: match settings.text("auto.offset.reset") {
                "latest" => OffsetReset::Latest,
                "earliest" => OffsetReset::Earliest,
                "none" => OffsetReset::None,
                text => {
                    let age = text.strip_prefix("by_duration:").and_then(parse_duration);
                    let reason = "auto.offset.reset is by_duration of no ISO 8601 duration such as P1DT2H";
                    let conflict = SettingError::Conflict { scope: Scope::Consumer, reason };
                    OffsetReset::ByDuration(age.ok_or(conflict)?)
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

/// Reads an ISO 8601 duration of days and smaller units that is not negative: `PnDTnHnMn.nS`, with one unit at least.
fn parse_duration(text: &str) -> Option<Duration> {
    let text = text.strip_prefix(['P', 'p'])?;
    let (days, time) = match text.split_once(['T', 't']) {
        Some((_, "")) => return None,
        Some((days, time)) => (days, time),
        None => (text, ""),
    };
    let mut parts = Vec::new();
    for (text, units) in [(days, &[('D', 86_400)][..]), (time, &[('H', 3_600), ('M', 60), ('S', 1)][..])] {
        let mut units = units.iter();
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
            let unit = rest[end..].chars().next()?.to_ascii_uppercase();
            // Units come in this order, each once.
            let (_, seconds) = units.find(|(known, _)| *known == unit)?;
            parts.push(parse_amount(&rest[..end], *seconds)?);
            rest = &rest[end + 1..];
        }
    }
    if parts.is_empty() {
        return None;
    }
    parts.into_iter().try_fold(Duration::ZERO, Duration::checked_add)
}

/// Only seconds have a fraction, of at most nine digits.
fn parse_amount(text: &str, unit_seconds: u64) -> Option<Duration> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let seconds = whole.parse::<u64>().ok()?.checked_mul(unit_seconds)?;
    if fraction.len() > 9 || (text.contains('.') && unit_seconds != 1) {
        return None;
    }
    let nanoseconds = format!("{fraction:0<9}").parse().ok()?;
    Some(Duration::new(seconds, nanoseconds))
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

    fn reset(text: &str) -> Result<OffsetReset, SettingError> {
        let mut settings = Settings::default_for(Scope::Consumer);
        let _ = settings.set("auto.offset.reset", text).expect("Kafka knows it");
        ConsumerSettings::new(&settings).map(|settings| settings.auto_offset_reset)
    }

    #[test]
    fn reset_by_duration_takes_iso_durations_and_nothing_else() {
        for (text, seconds) in [
            ("P1D", 86_400.0),
            ("PT1H", 3_600.0),
            ("p2dt3h4m5.25s", 183_845.25),
            ("PT0S", 0.0),
            ("PT90M", 5_400.0),
        ] {
            let age = Duration::from_secs_f64(seconds);
            assert_eq!(reset(&format!("by_duration:{text}")), Ok(OffsetReset::ByDuration(age)), "{text}");
        }
        for text in [
            "P", "PT", "P1DT", "1D", "PT-1S", "P1H", "PT1D", "PT1M1H", "PT1.5M", "PT.S", "PTS", "P1Y",
            "PTé1S",
        ] {
            assert!(reset(&format!("by_duration:{text}")).is_err(), "{text}");
        }
        assert!(Settings::default_for(Scope::Consumer).set("auto.offset.reset", "by_duration").is_err());
    }
}
