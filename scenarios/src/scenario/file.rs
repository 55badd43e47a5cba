//! The schema of a scenario file (`scenario/1`). Unknown keys are refused; every mistake is reported with its line and
//! column where TOML knows it. Kafka's names stand in quotes, because an unquoted dotted key is a nested table.

use std::collections::BTreeMap;

use acked_sim::nemesis;
use serde::Deserialize;

/// The only schema this build reads.
const SCHEMA: &str = "scenario/1";

/// A setting's value as TOML writes it; Kafka's own text form is what counts.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Value {
    Boolean(bool),
    Integer(i64),
    Text(String),
}

impl Value {
    pub fn text(&self) -> String {
        match self {
            Value::Boolean(value) => value.to_string(),
            Value::Integer(value) => value.to_string(),
            Value::Text(value) => value.clone(),
        }
    }
}

pub type Settings = BTreeMap<String, Value>;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    pub schema: String,
    pub name: String,
    /// The question that the scenario asks, one or two sentences.
    pub ask: String,
    #[serde(default)]
    pub tags: Vec<String>,
    /// Run only when it is named.
    #[serde(default)]
    pub unlisted: bool,
    /// Bugs of the museum that the brokers have here: the self-check of the detector.
    #[serde(default)]
    pub mutate: Vec<String>,
    #[serde(default)]
    pub cluster: Cluster,
    #[serde(default)]
    pub topic: BTreeMap<String, Topic>,
    #[serde(default)]
    pub broker: Settings,
    #[serde(default)]
    pub producer: BTreeMap<String, Producer>,
    #[serde(default)]
    pub consumer: Consumer,
    #[serde(default)]
    pub fault: Vec<Fault>,
    #[serde(default)]
    pub expect: Expect,
    #[serde(default)]
    pub configuration: BTreeMap<String, Configuration>,
}

impl Scenario {
    /// It plants a mutation or a defect, to check the testbed itself: it must not pass.
    pub fn must_fail(&self) -> bool {
        !self.mutate.is_empty() || self.fault.iter().any(|fault| nemesis::is_planted(&fault.kind))
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Cluster {
    pub brokers: u16,
    pub controllers: u16,
    pub network: String,
    /// How long the safety phase lasts, at least.
    pub safety: String,
}

impl Default for Cluster {
    fn default() -> Self {
        Cluster { brokers: 3, controllers: 3, network: "same-zone".into(), safety: "30s".into() }
    }
}

#[derive(Clone, Debug, Deserialize)]
pub struct Topic {
    #[serde(default = "one")]
    pub partitions: i32,
    #[serde(flatten)]
    pub settings: Settings,
}

fn one() -> i32 {
    1
}

#[derive(Clone, Debug, Deserialize)]
pub struct Producer {
    pub records: u64,
    pub rate: String,
    #[serde(default = "hundred")]
    pub value_bytes: usize,
    /// Distinct keys of its records; 0 where none has a key.
    #[serde(default)]
    pub keys: u64,
    pub topic: Option<String>,
    #[serde(flatten)]
    pub settings: Settings,
}

fn hundred() -> usize {
    100
}

#[derive(Clone, Debug, Default, Deserialize)]
pub struct Consumer {
    #[serde(default)]
    pub tailing: u16,
    #[serde(flatten)]
    pub settings: Settings,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Fault {
    pub id: String,
    pub kind: String,
    /// After the safety phase began; `when` is waited for after it.
    pub at: Option<String>,
    pub when: Option<When>,
    #[serde(rename = "for")]
    pub lasts: Option<String>,
    #[serde(default)]
    pub nodes: Vec<String>,
    pub sides: Option<[Vec<String>; 2]>,
    #[serde(flatten)]
    pub arguments: Settings,
}

/// A state that a fault waits for, `{ leader-changed = "orders-0", times = 1 }`, `{ isr = "orders-0", size = 1 }` or
/// `{ votes-granted = 1 }`, and with `plus` how long after it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct When {
    pub leader_changed: Option<String>,
    pub times: Option<u64>,
    pub isr: Option<String>,
    pub size: Option<usize>,
    pub votes_granted: Option<u64>,
    pub plus: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expect {
    /// Outcome words and invariant ids that fail a run even where the contract is kept.
    pub gate: Vec<String>,
    /// Acknowledged records below which a seed proves nothing.
    pub acked: Option<u64>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Configuration {
    pub expect: Expected,
    /// Settings with the prefix of their scope: `topic.min.insync.replicas`.
    #[serde(flatten)]
    pub settings: Settings,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expected {
    Never,
    May,
    MustLose,
}

/// Why a scenario file cannot be used. `path` names the file as the user did.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    #[error("read {path}: {source}")]
    Read { path: String, source: std::io::Error },
    #[error("parse {path}: {reason}")]
    Parse { path: String, reason: String },
    #[error("use {path}: {reason}")]
    Content { path: String, reason: String },
}

/// Reads a scenario from its text. `path` only names it in messages.
///
/// # Errors
/// Malformed TOML, unknown or missing keys, another schema.
pub fn parse(path: &str, text: &str) -> Result<Scenario, ScenarioError> {
    let scenario: Scenario = toml::from_str(text)
        .map_err(|error| ScenarioError::Parse { path: path.into(), reason: error.to_string() })?;
    if scenario.schema != SCHEMA {
        let reason = format!("its schema is '{}', this build reads '{SCHEMA}'", scenario.schema);
        return Err(ScenarioError::Content { path: path.into(), reason });
    }
    Ok(scenario)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_toml_is_reported_with_line_and_column() {
        let error = parse("x.toml", "schema = \"scenario/1\"\nname = \n").expect_err("refused");
        let text = error.to_string();
        assert!(
            text.contains("parse x.toml") && text.contains("line 2") && text.contains("column"),
            "{text}"
        );
    }

    #[test]
    fn unknown_keys_and_schemas_are_refused() {
        let unknown = "schema = \"scenario/1\"\nname = \"x\"\nask = \"?\"\nfualt = 1\n";
        assert!(parse("x.toml", unknown).expect_err("refused").to_string().contains("fualt"));
        let schema = "schema = \"scenario/2\"\nname = \"x\"\nask = \"?\"\n";
        assert!(parse("x.toml", schema).expect_err("refused").to_string().contains("scenario/2"));
    }
}
