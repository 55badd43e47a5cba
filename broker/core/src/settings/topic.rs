//! What is in force for one topic: the topic's own setting, else the broker's synonym, else Kafka's default.

use std::time::Duration;

use super::{Scope, Settings};

/// A topic's setting and the broker setting that gives its default.
const SYNONYMS: [(&str, &str); 7] = [
    ("flush.messages", "log.flush.interval.messages"),
    ("max.message.bytes", "message.max.bytes"),
    ("message.timestamp.after.max.ms", "log.message.timestamp.after.max.ms"),
    ("message.timestamp.before.max.ms", "log.message.timestamp.before.max.ms"),
    ("message.timestamp.type", "log.message.timestamp.type"),
    ("min.insync.replicas", "min.insync.replicas"),
    ("unclean.leader.election.enable", "unclean.leader.election.enable"),
];

/// `message.timestamp.type`: who sets the time of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampType {
    /// The producer.
    CreateTime,
    /// The leader, when it appends.
    LogAppendTime,
}

impl TimestampType {
    pub(super) fn named(name: &str) -> TimestampType {
        if name == "LogAppendTime" { TimestampType::LogAppendTime } else { TimestampType::CreateTime }
    }
}

/// A topic's settings, named as Kafka names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicSettings {
    /// Messages after which the log is synced; 1 syncs every append.
    pub flush_messages: i64,
    /// Bytes of the largest batch.
    pub max_message_bytes: i32,
    /// How far a record's timestamp may lie in the broker's future.
    pub message_timestamp_after_max: Duration,
    /// How far a record's timestamp may lie in the broker's past.
    pub message_timestamp_before_max: Duration,
    pub message_timestamp_type: TimestampType,
    pub min_insync_replicas: i32,
    pub unclean_leader_election_enable: bool,
}

impl Default for TopicSettings {
    fn default() -> Self {
        TopicSettings::new(&Settings::default_for(Scope::Topic), &Settings::default_for(Scope::Broker))
    }
}

impl TopicSettings {
    pub fn new(topic: &Settings, broker: &Settings) -> TopicSettings {
        assert_eq!(topic.scope(), Scope::Topic, "topic settings come from the topic's scope");
        assert_eq!(broker.scope(), Scope::Broker, "their defaults come from the broker's scope");
        let mut merged = topic.clone();
        for (name, synonym) in SYNONYMS {
            if !topic.is_given(name) && broker.is_given(synonym) {
                let _ = merged.set(name, broker.text(synonym)).expect("synonyms have the same range");
            }
        }
        TopicSettings {
            flush_messages: merged.number("flush.messages"),
            max_message_bytes: merged.number("max.message.bytes"),
            message_timestamp_after_max: merged.duration("message.timestamp.after.max.ms"),
            message_timestamp_before_max: merged.duration("message.timestamp.before.max.ms"),
            message_timestamp_type: TimestampType::named(merged.text("message.timestamp.type")),
            min_insync_replicas: merged.number("min.insync.replicas"),
            unclean_leader_election_enable: merged.boolean("unclean.leader.election.enable"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topic_setting_beats_the_brokers_which_beats_the_default() {
        let mut topic = Settings::default_for(Scope::Topic);
        let mut broker = Settings::default_for(Scope::Broker);
        assert_eq!(TopicSettings::new(&topic, &broker).flush_messages, i64::MAX);
        let _ = broker.set("log.flush.interval.messages", "1").expect("good value");
        let _ = broker.set("min.insync.replicas", "2").expect("good value");
        let _ = topic.set("min.insync.replicas", "3").expect("good value");
        let settings = TopicSettings::new(&topic, &broker);
        assert_eq!(settings.flush_messages, 1);
        assert_eq!(settings.min_insync_replicas, 3);
        assert_eq!(settings.max_message_bytes, 1_048_588);
    }

    #[test]
    fn synonyms_share_type_range_and_default() {
        let row = |scope, name| {
            *crate::settings::DEFINITIONS
                .iter()
                .find(|row| row.scope == scope && row.name == name)
                .unwrap_or_else(|| panic!("{scope} {name} is in the table"))
        };
        for (name, synonym) in SYNONYMS {
            let (topic, broker) = (row(Scope::Topic, name), row(Scope::Broker, synonym));
            assert_eq!(
                (topic.kind, topic.valid, topic.default),
                (broker.kind, broker.valid, broker.default),
                "{name}"
            );
        }
    }
}
