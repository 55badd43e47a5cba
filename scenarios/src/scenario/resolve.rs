//! From a scenario and the command line's overrides to plans: settings checked by Kafka's names and ranges, times and
//! targets read, faults checked against the kinds that exist.

use std::collections::BTreeMap;
use std::time::Duration;

use acked_core::Rules;
use acked_core::settings::{ProducerSettings, Scope, Settings};
use acked_sim::nemesis;
use acked_sim::plan::{
    Expectation, FaultPlan, NetworkPlan, Plan, ProducerPlan, TimeRange, TopicPlan, Trigger,
};

use super::file::{Expected, Fault, Scenario, ScenarioError, Settings as Given, When};
use super::units;

/// Bounds of what one scenario may ask for, so that a slip of the pen cannot take the machine.
const BROKERS_MAX: u16 = 9;
const CONTROLLERS_MAX: u16 = 7;
const RECORDS_MAX: u64 = 10_000_000;
const VALUE_BYTES_MAX: usize = 1_000_000;
const PARTITIONS_MAX: i32 = 256;
const TOPICS_MAX: usize = 16;
const CLIENTS_MAX: usize = 64;
const FAULTS_MAX: usize = 256;
const ACKED_MIN: u64 = 200;

/// At once.
const ZERO: TimeRange = TimeRange { from: Duration::ZERO, to: Duration::ZERO };

/// What the command line says over the scenario.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// `--set scope.name=value`, in the order given.
    pub settings: Vec<(String, String)>,
    pub rules: Option<Rules>,
    /// Only this configuration.
    pub configuration: Option<String>,
}

/// A setting that is accepted and has no effect here.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SettingNote(pub String);

/// One plan for each configuration asked for, in the order of their names but `default` first.
///
/// # Errors
/// An unknown setting, fault kind, topic or configuration; a value out of range.
pub fn plans(
    path: &str,
    scenario: &Scenario,
    overrides: &Overrides,
) -> Result<(Vec<Plan>, Vec<SettingNote>), ScenarioError> {
    let mut notes = Vec::new();
    let resolved = resolve(scenario, overrides, &mut notes)
        .map_err(|reason| ScenarioError::Content { path: path.to_string(), reason })?;
    notes.sort();
    notes.dedup();
    Ok((resolved, notes))
}

fn resolve(
    scenario: &Scenario,
    overrides: &Overrides,
    notes: &mut Vec<SettingNote>,
) -> Result<Vec<Plan>, String> {
    let mut names: Vec<&String> = scenario.configuration.keys().collect();
    names.sort_by_key(|name| (name.as_str() != "default", name.as_str()));
    if let Some(wanted) = &overrides.configuration {
        names.retain(|name| *name == wanted);
        if names.is_empty() {
            let known: Vec<&str> = scenario.configuration.keys().map(String::as_str).collect();
            return Err(format!("it has no configuration '{wanted}', only {}", known.join(", ")));
        }
    }
    if names.is_empty() {
        return Err("it has no [configuration.default]".into());
    }
    names.into_iter().map(|name| plan(scenario, name, overrides, notes)).collect()
}

fn plan(
    scenario: &Scenario,
    configuration: &str,
    overrides: &Overrides,
    notes: &mut Vec<SettingNote>,
) -> Result<Plan, String> {
    let cluster = &scenario.cluster;
    bounded("[cluster] brokers", cluster.brokers, 1, BROKERS_MAX)?;
    bounded("[cluster] controllers", cluster.controllers, 1, CONTROLLERS_MAX)?;
    let chosen = &scenario.configuration[configuration];
    let mut scoped = Scoped::default();
    for (name, value) in &chosen.settings {
        scoped.add(name, &value.text())?;
    }
    for (name, value) in &overrides.settings {
        scoped.add(name, value)?;
    }

    bounded("the number of topics", scenario.topic.len(), 1, TOPICS_MAX)?;
    bounded("the number of producers", scenario.producer.len(), 1, CLIENTS_MAX)?;
    bounded("[consumer] tailing", usize::from(scenario.consumer.tailing), 0, CLIENTS_MAX)?;
    bounded("the number of faults", scenario.fault.len(), 0, FAULTS_MAX)?;

    let mut topics = Vec::new();
    for (name, topic) in &scenario.topic {
        topic_name(name)?;
        bounded("partitions", topic.partitions, 1, PARTITIONS_MAX)?;
        let mut given = texts(&topic.settings);
        given.extend(scoped.of(Scope::Topic));
        // A parameter of topic creation, no setting of a topic.
        let factor = given.remove("replication.factor").map_or(Ok(3), |text| {
            text.parse::<i16>().map_err(|_| format!("topic.replication.factor: '{text}' is no small number"))
        })?;
        if factor < 1 || factor as u16 > cluster.brokers {
            return Err(format!("topic.replication.factor={factor} needs that many brokers"));
        }
        topics.push(TopicPlan {
            name: name.clone(),
            partitions: topic.partitions,
            replication_factor: factor,
            settings: settings(Scope::Topic, &given, notes)?,
        });
    }
    let mut producers = Vec::new();
    for (name, producer) in &scenario.producer {
        producer_name(name)?;
        bounded("records", producer.records, 1, RECORDS_MAX)?;
        bounded("value_bytes", producer.value_bytes, 32, VALUE_BYTES_MAX)?;
        let topic = producer.topic.clone().unwrap_or_else(|| topics[0].name.clone());
        if topics.iter().all(|known| known.name != topic) {
            return Err(format!(
                "producer {name} writes to topic '{topic}', which the scenario does not have"
            ));
        }
        let mut given = texts(&producer.settings);
        given.extend(scoped.of(Scope::Producer));
        let settings = settings(Scope::Producer, &given, notes)?;
        ProducerSettings::new(&settings).map_err(|error| error.to_string())?;
        producers.push(ProducerPlan {
            name: name.clone(),
            topic,
            records: producer.records,
            rate: units::rate(&producer.rate)?,
            value_bytes: producer.value_bytes,
            keys: producer.keys,
            settings,
        });
    }
    let mut broker = texts(&scenario.broker);
    broker.extend(scoped.of(Scope::Broker));
    let mut consumer = texts(&scenario.consumer.settings);
    consumer.extend(scoped.of(Scope::Consumer));
    // Scopes that nothing here has: checked by name, and noted.
    for scope in [Scope::Admin, Scope::Group] {
        settings(scope, &scoped.of(scope), notes)?;
    }

    let faults = scenario.fault.iter().map(fault).collect::<Result<Vec<_>, _>>()?;
    for (at, fault) in faults.iter().enumerate() {
        // The id names the fault's own random stream.
        if faults[..at].iter().any(|earlier| earlier.id == fault.id) {
            return Err(format!("two faults have the id '{}'", fault.id));
        }
    }
    Ok(Plan {
        scenario: scenario.name.clone(),
        configuration: configuration.to_string(),
        expect: match chosen.expect {
            Expected::Never => Expectation::Never,
            Expected::May => Expectation::May,
            Expected::MustLose => Expectation::MustLose,
        },
        gate: scenario.expect.gate.clone(),
        rules: overrides.rules.unwrap_or(Rules::KAFKA),
        brokers: cluster.brokers,
        controllers: cluster.controllers,
        topics,
        broker: settings(Scope::Broker, &broker, notes)?,
        consumer: settings(Scope::Consumer, &consumer, notes)?,
        producers,
        tailing_consumers: scenario.consumer.tailing,
        faults,
        safety: units::duration(&cluster.safety)?,
        acked_min: scenario.expect.acked.unwrap_or(ACKED_MIN),
        network: match cluster.network.as_str() {
            "same-zone" => NetworkPlan::SameZone,
            "cross-zone" => NetworkPlan::CrossZone,
            other => return Err(format!("network '{other}' is neither same-zone nor cross-zone")),
        },
    })
}

/// Kafka's rule for the names of topics.
fn topic_name(name: &str) -> Result<(), String> {
    let legal = name.bytes().all(|letter| letter.is_ascii_alphanumeric() || b"._-".contains(&letter));
    if !legal || name.is_empty() || name.len() > 249 || name == "." || name == ".." || name.starts_with("__")
    {
        return Err(format!("'{name}' is no name of a topic: up to 249 letters, digits, '.', '_' and '-'"));
    }
    Ok(())
}

/// Producers are hosts beside `b1`, `c1` and `k1`, and faults name them.
fn producer_name(name: &str) -> Result<(), String> {
    let legal = name.len() <= 16 && name.bytes().all(|letter| letter.is_ascii_alphanumeric());
    if !legal || !name.starts_with('p') {
        return Err(format!(
            "'{name}' is no name of a producer: p1, p2 and so on, at most 16 letters and digits"
        ));
    }
    Ok(())
}

fn fault(fault: &Fault) -> Result<FaultPlan, String> {
    let plan = FaultPlan {
        id: fault.id.clone(),
        kind: fault.kind.clone(),
        at: match (&fault.at, &fault.when) {
            (Some(at), _) => units::time_range(at)?,
            (None, Some(_)) => ZERO,
            (None, None) => return Err(format!("fault '{}' needs at or when", fault.id)),
        },
        when: fault.when.as_ref().map(trigger).transpose()?,
        lasts: fault.lasts.as_deref().map_or(Ok(ZERO), units::time_range)?,
        nodes: fault.nodes.clone(),
        sides: fault.sides.clone().map(|[one, other]| (one, other)),
        arguments: texts(&fault.arguments),
        part_of: None,
    };
    nemesis::check(&plan).map_err(|reason| format!("fault '{}': {reason}", fault.id))?;
    Ok(plan)
}

fn trigger(when: &When) -> Result<(Trigger, TimeRange), String> {
    let partition = |text: &str| {
        nemesis::targets::topic_partition(text)
            .ok_or_else(|| format!("when: '{text}' is no partition such as orders-0"))
    };
    let trigger = match (&when.leader_changed, when.times, &when.isr, when.size, when.votes_granted) {
        (Some(text), times, None, None, None) => {
            let (topic, index) = partition(text)?;
            Trigger::LeaderChanged { topic, index, times: times.unwrap_or(1) }
        }
        (None, None, None, None, Some(times)) => Trigger::VotesGranted { times },
        (None, None, Some(text), Some(size), None) => {
            let (topic, index) = partition(text)?;
            Trigger::IsrSize { topic, index, size }
        }
        _ => {
            let known = "{ leader-changed = \"orders-0\", times = 1 }, { isr = \"orders-0\", size = 1 } or \
                         { votes-granted = 1 }";
            return Err(format!("when is {known}, and plus = \"1s\" if it is not to fire at once"));
        }
    };
    Ok((trigger, when.plus.as_deref().map_or(Ok(ZERO), units::time_range)?))
}

/// Settings by scope, as the command line and configurations write them: `topic.min.insync.replicas`.
#[derive(Default)]
struct Scoped(Vec<(Scope, String, String)>);

impl Scoped {
    fn add(&mut self, name: &str, value: &str) -> Result<(), String> {
        let scopes = Scope::ALL.map(Scope::name).join(", ");
        let (scope, rest) = name
            .split_once('.')
            .and_then(|(scope, rest)| Some((Scope::named(scope)?, rest)))
            .ok_or_else(|| format!("setting '{name}' must begin with its scope: one of {scopes}"))?;
        self.0.push((scope, rest.to_string(), value.to_string()));
        Ok(())
    }

    fn of(&self, scope: Scope) -> BTreeMap<String, String> {
        self.0
            .iter()
            .filter(|(of, _, _)| *of == scope)
            .map(|(_, name, value)| (name.clone(), value.clone()))
            .collect()
    }
}

fn texts(given: &Given) -> BTreeMap<String, String> {
    given.iter().map(|(name, value)| (name.clone(), value.text())).collect()
}

fn settings(
    scope: Scope,
    given: &BTreeMap<String, String>,
    notes: &mut Vec<SettingNote>,
) -> Result<Settings, String> {
    let mut settings = Settings::default_for(scope);
    for (name, value) in given {
        let note = settings.set(name, value).map_err(|error| error.to_string())?;
        notes.extend(note.text().map(SettingNote));
    }
    Ok(settings)
}

fn bounded<N: PartialOrd + std::fmt::Display>(what: &str, value: N, least: N, most: N) -> Result<(), String> {
    if value < least || value > most {
        return Err(format!("{what} is {value}, which is not within {least} and {most}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::parse;

    fn resolved(body: &str) -> Result<Vec<Plan>, String> {
        let head = "schema = \"scenario/1\"\nname = \"x\"\nask = \"?\"\n";
        let scenario = parse("x.toml", &format!("{head}{body}")).expect("well-formed");
        plans("x.toml", &scenario, &Overrides::default())
            .map(|(plans, _)| plans)
            .map_err(|error| error.to_string())
    }

    const SOUND: &str = "[topic.orders]\n[producer.p1]\nrecords = 1\nrate = \"1/s\"\n[configuration.default]\nexpect = \"never\"\n";

    #[test]
    fn sound_scenario_resolves_with_kafkas_defaults() {
        let plans = resolved(SOUND).expect("sound");
        assert_eq!((plans.len(), plans[0].topics[0].replication_factor, plans[0].acked_min), (1, 3, 200));
        assert_eq!(plans[0].rules, Rules::KAFKA);
    }

    #[test]
    fn what_cannot_be_run_is_refused_with_its_name() {
        let fault = "[[fault]]\nid = \"a\"\nkind = \"crash\"\nnodes = [\"b1\"]\nat = \"1s\"\n";
        for (body, word) in [
            (SOUND.replace("p1", "b1"), "'b1' is no name of a producer"),
            (SOUND.replace("orders", "\"or/ders\""), "'or/ders' is no name of a topic"),
            (SOUND.replace("records = 1", "records = 0"), "records is 0"),
            (SOUND.replace("[topic.orders]\n", ""), "the number of topics is 0"),
            (format!("{SOUND}{fault}{fault}"), "two faults have the id 'a'"),
            (format!("{SOUND}{}", fault.replace("crash", "crsh")), "there is no fault kind 'crsh'"),
            (format!("{SOUND}{}", fault.replace("\"b1\"", "\"x9\"")), "'x9' names no node"),
            (format!("{SOUND}{}", fault.replace("at = \"1s\"", "")), "needs at or when"),
            (format!("{SOUND}\"topic.replication.factor\" = 4\n"), "replication.factor=4"),
            (format!("{SOUND}\"min.insync.replicas\" = 2\n"), "must begin with its scope"),
        ] {
            let refused = resolved(&body).expect_err(&body);
            assert!(refused.contains(word), "{refused}");
        }
    }
}
