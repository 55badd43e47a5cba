//! The settings that were given for one scope, as texts. Refuses unknown names and values out of range; says which
//! names have no effect here. The meaning of a value is in the typed views.

use std::collections::BTreeMap;
use std::time::Duration;

use super::definition::{BadValue, parse_boolean};
use super::{DEFINITIONS, Definition, Kind, Scope};

/// Names longer than this are compared by their beginning only, which bounds the work a wrong name can cause.
const NAME_COMPARED_MAX: usize = 128;

/// Why a setting was refused. Worded to follow "failed to".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    #[error("set {scope}.{name}: Apache Kafka 4.3.1 has no such setting{}", hint(nearest, elsewhere))]
    Unknown {
        scope: Scope,
        name: String,
        /// Names of the same scope, nearest first, at most three.
        nearest: Vec<&'static str>,
        /// Other scopes that have exactly this name.
        elsewhere: Vec<Scope>,
    },
    #[error("set {scope}.{name}: {value:?} is not {expected}")]
    WrongType { scope: Scope, name: &'static str, value: String, expected: &'static str },
    #[error("set {scope}.{name}: {value:?} is not in {valid}")]
    OutOfRange { scope: Scope, name: &'static str, value: String, valid: &'static str },
    #[error("use the {scope} settings: {reason}")]
    Conflict { scope: Scope, reason: &'static str },
}

fn hint(nearest: &[&'static str], elsewhere: &[Scope]) -> String {
    let mut hint = String::new();
    if !nearest.is_empty() {
        hint.push_str("; the nearest: ");
        hint.push_str(&nearest.join(", "));
    }
    for scope in elsewhere {
        hint.push_str(&format!("; it is a {scope} setting"));
    }
    hint
}

/// What to tell whoever set a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Note {
    InForce,
    /// Kafka knows the name, this product does not act on it.
    NoEffect(&'static Definition),
}

impl Note {
    /// A sentence to show, if there is something to say.
    pub fn text(&self) -> Option<String> {
        match self {
            Note::InForce => None,
            Note::NoEffect(row) => Some(format!("{}.{} has no effect here", row.scope, row.name)),
        }
    }
}

/// The values given in one scope; everything else has Kafka's default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    scope: Scope,
    given: BTreeMap<&'static str, String>,
}

impl Settings {
    /// Kafka's defaults.
    pub fn default_for(scope: Scope) -> Settings {
        Settings { scope, given: BTreeMap::new() }
    }

    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// Gives `name` a value, replacing one given before.
    pub fn set(&mut self, name: &str, value: &str) -> Result<Note, SettingError> {
        let definition = definition(self.scope, name).ok_or_else(|| unknown(self.scope, name))?;
        let value = value.trim();
        definition.check(value).map_err(|bad| refuse(definition, value, bad))?;
        self.given.insert(definition.name, value.to_string());
        Ok(if definition.modelled() { Note::InForce } else { Note::NoEffect(definition) })
    }

    /// The value in force as a text; `None` for Kafka's null and for names Kafka does not know.
    pub fn get(&self, name: &str) -> Option<&str> {
        match self.given.get(name) {
            Some(value) => Some(value),
            None => definition(self.scope, name)?.default,
        }
    }

    /// Whether the value was given rather than defaulted.
    pub fn is_given(&self, name: &str) -> bool {
        self.given.contains_key(name)
    }

    /// Names and values as given, sorted by name.
    pub fn given(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.given.iter().map(|(name, value)| (*name, value.as_str()))
    }

    /// The text of a modelled setting.
    pub(super) fn text(&self, name: &str) -> &str {
        let row =
            definition(self.scope, name).unwrap_or_else(|| panic!("{}.{name} is in the table", self.scope));
        assert!(row.modelled(), "{}.{name} is read by a view, so it is modelled", self.scope);
        self.get(name).unwrap_or_else(|| panic!("{}.{name} has a default", self.scope))
    }

    pub(super) fn number<N: TryFrom<i64>>(&self, name: &str) -> N {
        let number: i64 = self.text(name).parse().expect("checked when it was set");
        N::try_from(number)
            .unwrap_or_else(|_| panic!("{}.{name}={number} was checked when it was set", self.scope))
    }

    pub(super) fn duration(&self, name: &str) -> Duration {
        Duration::from_millis(self.number(name))
    }

    pub(super) fn boolean(&self, name: &str) -> bool {
        parse_boolean(self.text(name)).expect("checked when it was set")
    }
}

fn definition(scope: Scope, name: &str) -> Option<&'static Definition> {
    let index = DEFINITIONS.binary_search_by(|row| (row.scope, row.name).cmp(&(scope, name))).ok()?;
    Some(&DEFINITIONS[index])
}

fn refuse(definition: &'static Definition, value: &str, bad: BadValue) -> SettingError {
    let Definition { scope, name, kind, valid, .. } = *definition;
    let value = value.to_string();
    match bad {
        BadValue::WrongType => SettingError::WrongType { scope, name, value, expected: kind.describe() },
        BadValue::OutOfRange => {
            let valid = if valid.is_empty() && kind != Kind::Text { "[0,...]" } else { valid };
            SettingError::OutOfRange { scope, name, value, valid }
        }
    }
}

fn unknown(scope: Scope, name: &str) -> SettingError {
    let compared: String = name.chars().take(NAME_COMPARED_MAX).collect();
    let near_max = compared.len() / 3 + 1;
    let mut ranked: Vec<(usize, &'static str)> = DEFINITIONS
        .iter()
        .filter(|row| row.scope == scope)
        .map(|row| (strsim::damerau_levenshtein(&compared, row.name), row.name))
        .filter(|(distance, _)| *distance <= near_max)
        .collect();
    ranked.sort();
    SettingError::Unknown {
        scope,
        name: compared,
        nearest: ranked.into_iter().take(3).map(|(_, name)| name).collect(),
        elsewhere: Scope::ALL.into_iter().filter(|other| definition(*other, name).is_some()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_sorted_and_complete() {
        assert!(DEFINITIONS.is_sorted_by(|one, other| (one.scope, one.name) < (other.scope, other.name)));
        let count = |scope| DEFINITIONS.iter().filter(|row| row.scope == scope).count();
        assert_eq!(Scope::ALL.map(count), [113, 116, 91, 360, 34, 17]);
        assert_eq!(DEFINITIONS.len(), 731);
    }

    #[test]
    fn unknown_name_is_refused_with_the_nearest() {
        let error =
            Settings::default_for(Scope::Producer).set("enable.idempotent", "true").expect_err("unknown");
        let SettingError::Unknown { nearest, elsewhere, .. } = &error else { panic!("{error}") };
        assert_eq!(nearest.first(), Some(&"enable.idempotence"));
        assert!(elsewhere.is_empty());
        assert!(error.to_string().contains("the nearest: enable.idempotence"), "{error}");
    }

    #[test]
    fn name_of_another_scope_says_whose_it_is() {
        let error = Settings::default_for(Scope::Broker).set("flush.messages", "1").expect_err("a topic's");
        assert!(error.to_string().contains("it is a topic setting"), "{error}");
    }

    #[test]
    fn endless_name_is_cut_before_it_is_compared() {
        let error = Settings::default_for(Scope::Broker).set(&"a".repeat(1 << 20), "1").expect_err("unknown");
        assert!(error.to_string().len() < 400);
    }

    #[test]
    fn value_of_the_wrong_type_or_range_is_refused() {
        let mut settings = Settings::default_for(Scope::Producer);
        assert!(matches!(settings.set("linger.ms", "soon"), Err(SettingError::WrongType { .. })));
        assert!(matches!(settings.set("linger.ms", "-1"), Err(SettingError::OutOfRange { .. })));
        assert!(matches!(settings.set("retries", "2147483648"), Err(SettingError::WrongType { .. })));
        assert!(matches!(settings.set("acks", "2"), Err(SettingError::OutOfRange { .. })));
        assert!(matches!(settings.set("enable.idempotence", "yes"), Err(SettingError::WrongType { .. })));
        assert_eq!(settings, Settings::default_for(Scope::Producer), "a refused value leaves no trace");
    }

    #[test]
    fn modelled_number_without_a_range_of_its_own_may_not_be_negative() {
        let mut settings = Settings::default_for(Scope::Broker);
        let error = settings.set("replica.lag.time.max.ms", "-5").expect_err("negative time");
        assert_eq!(error.to_string(), "set broker.replica.lag.time.max.ms: \"-5\" is not in [0,...]");
    }

    #[test]
    fn known_but_unmodelled_name_is_accepted_with_a_note() {
        let mut settings = Settings::default_for(Scope::Broker);
        let note = settings.set("log.retention.hours", " 24 ").expect("known");
        assert_eq!(note.text().as_deref(), Some("broker.log.retention.hours has no effect here"));
        assert_eq!(settings.get("log.retention.hours"), Some("24"));
        assert_eq!(settings.set("min.insync.replicas", "2"), Ok(Note::InForce));
    }
}
