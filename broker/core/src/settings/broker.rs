//! What a broker or controller is built from.

use std::time::Duration;

use super::{Scope, SettingError, Settings, TimestampType, TopicCompression};

/// The settings of a broker and of a controller, named as Kafka names them. The per-topic ones among them are only
/// defaults: [`super::TopicSettings`] says what is in force for a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerSettings {
    // Liveness of brokers, as the controller judges it.
    pub broker_heartbeat_interval: Duration,
    pub broker_session_timeout: Duration,

    // The metadata quorum.
    pub controller_quorum_append_linger: Duration,
    pub controller_quorum_election_backoff_max: Duration,
    pub controller_quorum_election_timeout: Duration,
    pub controller_quorum_fetch_timeout: Duration,
    pub controller_quorum_request_timeout: Duration,
    pub controller_quorum_retry_backoff: Duration,

    // New topics, and elections in all of them.
    pub num_partitions: i32,
    pub default_replication_factor: i16,
    pub min_insync_replicas: i32,
    pub unclean_leader_election_enable: bool,
    pub unclean_leader_election_interval: Duration,

    // Replication.
    pub replica_lag_time_max: Duration,
    pub replica_fetch_wait_max: Duration,
    pub replica_fetch_backoff: Duration,
    pub replica_socket_timeout: Duration,
    pub replica_fetch_min_bytes: i32,
    /// Bytes of one partition in a follower's fetch.
    pub replica_fetch_max_bytes: i32,
    /// Bytes of a whole answer to a follower.
    pub replica_fetch_response_max_bytes: i32,
    pub replica_high_watermark_checkpoint_interval: Duration,

    // Logs.
    /// Messages after which a log is synced; 1 syncs every append.
    pub compression: TopicCompression,
    pub log_flush_interval_messages: i64,
    pub log_message_timestamp_after_max: Duration,
    pub log_message_timestamp_before_max: Duration,
    pub log_message_timestamp_type: TimestampType,
    /// Bytes of the largest batch.
    pub message_max_bytes: i32,

    // Requests.
    /// Bytes of a fetch answer, whatever the client asks for.
    pub fetch_max_bytes: i32,
    pub request_timeout: Duration,
    pub socket_connection_setup_timeout: Duration,
}

impl Default for BrokerSettings {
    fn default() -> Self {
        BrokerSettings::new(&Settings::default_for(Scope::Broker)).expect("Kafka's defaults do not conflict")
    }
}

impl BrokerSettings {
    /// `Conflict` for combinations that Kafka's broker refuses to start with (`KafkaConfig.validateValues`).
    pub fn new(settings: &Settings) -> Result<BrokerSettings, SettingError> {
        assert_eq!(settings.scope(), Scope::Broker, "broker settings come from the broker's scope");
        let broker = BrokerSettings {
            broker_heartbeat_interval: settings.duration("broker.heartbeat.interval.ms"),
            broker_session_timeout: settings.duration("broker.session.timeout.ms"),
            controller_quorum_append_linger: settings.duration("controller.quorum.append.linger.ms"),
            controller_quorum_election_backoff_max: settings
                .duration("controller.quorum.election.backoff.max.ms"),
            controller_quorum_election_timeout: settings.duration("controller.quorum.election.timeout.ms"),
            controller_quorum_fetch_timeout: settings.duration("controller.quorum.fetch.timeout.ms"),
            controller_quorum_request_timeout: settings.duration("controller.quorum.request.timeout.ms"),
            controller_quorum_retry_backoff: settings.duration("controller.quorum.retry.backoff.ms"),
            num_partitions: settings.number("num.partitions"),
            default_replication_factor: i16::try_from(settings.number::<i64>("default.replication.factor"))
                .unwrap_or(i16::MAX),
            min_insync_replicas: settings.number("min.insync.replicas"),
            unclean_leader_election_enable: settings.boolean("unclean.leader.election.enable"),
            unclean_leader_election_interval: settings.duration("unclean.leader.election.interval.ms"),
            replica_lag_time_max: settings.duration("replica.lag.time.max.ms"),
            replica_fetch_wait_max: settings.duration("replica.fetch.wait.max.ms"),
            replica_fetch_backoff: settings.duration("replica.fetch.backoff.ms"),
            replica_socket_timeout: settings.duration("replica.socket.timeout.ms"),
            replica_fetch_min_bytes: settings.number("replica.fetch.min.bytes"),
            replica_fetch_max_bytes: settings.number("replica.fetch.max.bytes"),
            replica_fetch_response_max_bytes: settings.number("replica.fetch.response.max.bytes"),
            replica_high_watermark_checkpoint_interval: settings
                .duration("replica.high.watermark.checkpoint.interval.ms"),
            compression: TopicCompression::new(settings),
            log_flush_interval_messages: settings.number("log.flush.interval.messages"),
            log_message_timestamp_after_max: settings.duration("log.message.timestamp.after.max.ms"),
            log_message_timestamp_before_max: settings.duration("log.message.timestamp.before.max.ms"),
            log_message_timestamp_type: TimestampType::named(settings.text("log.message.timestamp.type")),
            message_max_bytes: settings.number("message.max.bytes"),
            fetch_max_bytes: settings.number("fetch.max.bytes"),
            request_timeout: settings.duration("request.timeout.ms"),
            socket_connection_setup_timeout: settings.duration("socket.connection.setup.timeout.ms"),
        };
        if broker.replica_fetch_wait_max > broker.replica_lag_time_max {
            let reason = "replica.fetch.wait.max.ms must not exceed replica.lag.time.max.ms, \
                          or followers of quiet partitions leave the ISR";
            return Err(SettingError::Conflict { scope: Scope::Broker, reason });
        }
        Ok(broker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_kafkas() {
        let settings = BrokerSettings::default();
        assert_eq!(settings.replica_lag_time_max, Duration::from_secs(30));
        assert_eq!(settings.broker_session_timeout, Duration::from_secs(9));
        assert_eq!(settings.controller_quorum_fetch_timeout, Duration::from_secs(2));
        assert_eq!(settings.min_insync_replicas, 1);
        assert!(!settings.unclean_leader_election_enable);
        assert_eq!(settings.log_flush_interval_messages, i64::MAX);
    }

    #[test]
    fn fetch_wait_above_the_lag_limit_conflicts() {
        let mut settings = Settings::default_for(Scope::Broker);
        let _ = settings.set("replica.lag.time.max.ms", "400").expect("good value");
        assert!(matches!(BrokerSettings::new(&settings), Err(SettingError::Conflict { .. })));
    }
}
