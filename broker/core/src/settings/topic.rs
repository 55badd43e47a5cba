//! What is in force for one topic: the topic's own setting, else the broker's synonym, else Kafka's default.

use std::time::Duration;

use acked_wire::batch::{Codec, Compression};

use super::{Scope, Settings};

/// A topic's setting and the broker setting that gives its default.
const SYNONYMS: [(&str, &str); 10] = [
    ("compression.gzip.level", "compression.gzip.level"),
    ("compression.type", "compression.type"),
    ("compression.zstd.level", "compression.zstd.level"),
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

/// `compression.type` of a topic: how its batches lie in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicCompression {
    /// As the producer sent them.
    Producer,
    /// In this way; the leader compresses anew what came in another.
    Fixed(Codec),
}

impl TopicCompression {
    /// Of a topic's settings, or of the broker's defaults for them.
    pub(super) fn new(settings: &Settings) -> TopicCompression {
        codec(settings).map_or(TopicCompression::Producer, TopicCompression::Fixed)
    }
}

/// A topic's settings, named as Kafka names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicSettings {
    pub compression: TopicCompression,
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
            compression: TopicCompression::new(&merged),
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

/// The codec that `compression.type` names, with the level of its own setting; `None` for `producer`.
pub(super) fn codec(settings: &Settings) -> Option<Codec> {
    let compression = Compression::named(settings.text("compression.type"))?;
    let level: Option<i32> = match compression {
        // -1 is the word for gzip's default.
        Compression::Gzip => Some(settings.number("compression.gzip.level")).filter(|level| *level != -1),
        Compression::Zstd => Some(settings.number("compression.zstd.level")),
        Compression::None | Compression::Snappy | Compression::Lz4 | Compression::Unknown => None,
    };
    Some(Codec { compression, level })
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
    fn compression_is_the_producers_unless_a_codec_is_named() {
        let mut topic = Settings::default_for(Scope::Topic);
        let broker = Settings::default_for(Scope::Broker);
        let compression = |topic: &Settings| TopicSettings::new(topic, &broker).compression;
        assert_eq!(compression(&topic), TopicCompression::Producer);
        for (name, codec) in [
            ("uncompressed", Codec::NONE),
            ("gzip", Codec { compression: Compression::Gzip, level: None }),
            ("lz4", Codec { compression: Compression::Lz4, level: None }),
            ("zstd", Codec { compression: Compression::Zstd, level: Some(3) }),
        ] {
            let _ = topic.set("compression.type", name).expect("good value");
            assert_eq!(compression(&topic), TopicCompression::Fixed(codec));
        }
        let _ = topic.set("compression.zstd.level", "-7").expect("good value");
        let codec = Codec { compression: Compression::Zstd, level: Some(-7) };
        assert_eq!(compression(&topic), TopicCompression::Fixed(codec));
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
