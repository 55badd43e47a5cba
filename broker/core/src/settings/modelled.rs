//! Which settings have an effect here: exactly those that the typed views read. Every other name of Kafka is accepted
//! with a visible note.

use super::Scope;

const PRODUCER: &[&str] = &[
    "acks",
    "batch.size",
    "buffer.memory",
    "compression.gzip.level",
    "compression.type",
    "compression.zstd.level",
    "delivery.timeout.ms",
    "enable.idempotence",
    "linger.ms",
    "max.in.flight.requests.per.connection",
    "max.request.size",
    "metadata.max.age.ms",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "request.timeout.ms",
    "retries",
    "retry.backoff.max.ms",
    "retry.backoff.ms",
    "socket.connection.setup.timeout.ms",
];

const CONSUMER: &[&str] = &[
    "auto.offset.reset",
    "check.crcs",
    "fetch.max.bytes",
    "fetch.max.wait.ms",
    "fetch.min.bytes",
    "isolation.level",
    "max.partition.fetch.bytes",
    "max.poll.records",
    "metadata.max.age.ms",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "request.timeout.ms",
    "retry.backoff.max.ms",
    "retry.backoff.ms",
    "socket.connection.setup.timeout.ms",
];

const ADMIN: &[&str] = &[
    "default.api.timeout.ms",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "request.timeout.ms",
    "retries",
    "retry.backoff.max.ms",
    "retry.backoff.ms",
    "socket.connection.setup.timeout.ms",
];

const BROKER: &[&str] = &[
    "broker.heartbeat.interval.ms",
    "broker.session.timeout.ms",
    "compression.gzip.level",
    "compression.type",
    "compression.zstd.level",
    "controller.quorum.append.linger.ms",
    "controller.quorum.election.backoff.max.ms",
    "controller.quorum.election.timeout.ms",
    "controller.quorum.fetch.timeout.ms",
    "controller.quorum.request.timeout.ms",
    "controller.quorum.retry.backoff.ms",
    "default.replication.factor",
    "fetch.max.bytes",
    "log.flush.interval.messages",
    "log.message.timestamp.after.max.ms",
    "log.message.timestamp.before.max.ms",
    "log.message.timestamp.type",
    "message.max.bytes",
    "min.insync.replicas",
    "num.partitions",
    "replica.fetch.backoff.ms",
    "replica.fetch.max.bytes",
    "replica.fetch.min.bytes",
    "replica.fetch.response.max.bytes",
    "replica.fetch.wait.max.ms",
    "replica.high.watermark.checkpoint.interval.ms",
    "replica.lag.time.max.ms",
    "replica.socket.timeout.ms",
    "request.timeout.ms",
    "socket.connection.setup.timeout.ms",
    "unclean.leader.election.enable",
    "unclean.leader.election.interval.ms",
];

const TOPIC: &[&str] = &[
    "compression.gzip.level",
    "compression.type",
    "compression.zstd.level",
    "flush.messages",
    "max.message.bytes",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.type",
    "min.insync.replicas",
    "unclean.leader.election.enable",
];

/// The modelled names of a scope, sorted.
pub fn modelled_names(scope: Scope) -> &'static [&'static str] {
    match scope {
        Scope::Producer => PRODUCER,
        Scope::Consumer => CONSUMER,
        Scope::Broker => BROKER,
        Scope::Topic => TOPIC,
        Scope::Admin => ADMIN,
        Scope::Group => &[],
    }
}

pub fn is_modelled(scope: Scope, name: &str) -> bool {
    modelled_names(scope).binary_search(&name).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{
        AdminSettings, BrokerSettings, ConsumerSettings, DEFINITIONS, Definition, Kind, ProducerSettings,
        Settings, TopicSettings,
    };

    #[test]
    fn modelled_names_are_sorted_and_known() {
        for scope in Scope::ALL {
            assert!(modelled_names(scope).is_sorted_by(|one, other| one < other), "{scope}");
            for name in modelled_names(scope) {
                assert!(
                    DEFINITIONS.iter().any(|row| row.scope == scope && row.name == *name),
                    "{scope} {name}"
                );
            }
        }
    }

    #[test]
    fn every_modelled_setting_changes_its_view() {
        for definition in DEFINITIONS.iter().filter(|row| row.modelled()) {
            let mut settings = Settings::default_for(definition.scope);
            let codec =
                definition.name.strip_prefix("compression.").and_then(|rest| rest.strip_suffix(".level"));
            if let Some(codec) = codec {
                // A level counts with its own codec only.
                let _ = settings.set("compression.type", codec).expect("a codec");
            }
            let before = view(&settings);
            let _ = settings.set(definition.name, &other_value(definition)).expect("the value is in range");
            assert_ne!(view(&settings), before, "{} {}", definition.scope, definition.name);
        }
    }

    fn view(settings: &Settings) -> String {
        match settings.scope() {
            Scope::Producer => format!("{:?}", ProducerSettings::new(settings)),
            Scope::Consumer => format!("{:?}", ConsumerSettings::new(settings)),
            Scope::Broker => format!("{:?}", BrokerSettings::new(settings)),
            Scope::Topic => {
                format!("{:?}", TopicSettings::new(settings, &Settings::default_for(Scope::Broker)))
            }
            Scope::Admin => format!("{:?}", AdminSettings::new(settings)),
            Scope::Group => String::new(),
        }
    }

    fn other_value(definition: &Definition) -> String {
        let default = definition.default.expect("modelled settings have a default");
        match definition.kind {
            Kind::Boolean => (default == "false").to_string(),
            Kind::Int | Kind::Long | Kind::Short => match default.parse::<i64>().expect("a number") {
                -1..=2 => "3".to_string(),
                number => (number - 1).to_string(),
            },
            _ if definition.name.ends_with("timestamp.type") => "LogAppendTime".to_string(),
            _ if definition.name == "compression.type" => "lz4".to_string(),
            _ if definition.name == "acks" => "1".to_string(),
            _ if definition.name == "isolation.level" => "read_committed".to_string(),
            _ if definition.name == "auto.offset.reset" => "earliest".to_string(),
            _ => panic!("{} needs another value in this test", definition.name),
        }
    }
}
