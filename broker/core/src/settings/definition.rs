//! One setting of Kafka: where it applies, of what type it is, and whether a text is a value of it.
//! Decides nothing about what the value does.

use std::fmt;

/// Whose setting it is. Controllers share the scope of brokers, as in Kafka.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    Producer,
    Consumer,
    Admin,
    Broker,
    Topic,
    Group,
}

impl Scope {
    pub const ALL: [Scope; 6] =
        [Scope::Producer, Scope::Consumer, Scope::Admin, Scope::Broker, Scope::Topic, Scope::Group];

    /// The word used in front of a setting's name: `producer.acks`.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Producer => "producer",
            Scope::Consumer => "consumer",
            Scope::Admin => "admin",
            Scope::Broker => "broker",
            Scope::Topic => "topic",
            Scope::Group => "group",
        }
    }

    /// The scope of that name.
    pub fn named(name: &str) -> Option<Scope> {
        Scope::ALL.into_iter().find(|scope| scope.name() == name)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Kafka's type of a setting (`ConfigDef.Type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Boolean,
    /// 16 bits.
    Short,
    /// 32 bits.
    Int,
    /// 64 bits.
    Long,
    Double,
    Text,
    /// Texts separated by commas.
    List,
    /// The name of a Java class.
    Class,
    Password,
}

impl Kind {
    /// What a value of this type looks like, for error messages.
    pub fn describe(self) -> &'static str {
        match self {
            Kind::Boolean => "true or false",
            Kind::Short => "a whole number of 16 bits",
            Kind::Int => "a whole number of 32 bits",
            Kind::Long => "a whole number of 64 bits",
            Kind::Double => "a number",
            Kind::Text | Kind::Password => "a text",
            Kind::List => "texts separated by commas",
            Kind::Class => "the name of a class",
        }
    }
}

/// One row of the table. The fields are Kafka's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition {
    pub scope: Scope,
    pub name: &'static str,
    pub kind: Kind,
    /// `None` is Kafka's null; a list is joined by commas.
    pub default: Option<&'static str>,
    /// Kafka's text for the values it takes; empty when every value of the type is good.
    pub valid: &'static str,
}

/// Why a text is not a value of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadValue {
    WrongType,
    OutOfRange,
}

impl Definition {
    /// Whether the setting has an effect in this product.
    pub fn modelled(&self) -> bool {
        super::modelled::is_modelled(self.scope, self.name)
    }

    /// Checks a text, already trimmed, against type and range.
    pub fn check(&self, text: &str) -> Result<(), BadValue> {
        // `share.acquire.mode` writes its default in another case than its range.
        if self.default == Some(text) && !text.is_empty() {
            return Ok(());
        }
        match self.kind {
            Kind::Boolean => parse_boolean(text).map(drop).ok_or(BadValue::WrongType),
            Kind::Short => self.check_number(text.parse::<i16>().ok().map(f64::from)),
            Kind::Int => self.check_number(text.parse::<i32>().ok().map(f64::from)),
            // A double rounds a long's last digits; every bound in the table is exact in it.
            Kind::Long => self.check_number(text.parse::<i64>().ok().map(|number| number as f64)),
            Kind::Double => self.check_number(text.parse::<f64>().ok().filter(|number| !number.is_nan())),
            Kind::Text | Kind::Class | Kind::Password => self.check_text(text),
            Kind::List => self.check_list(text),
        }
    }

    fn check_number(&self, number: Option<f64>) -> Result<(), BadValue> {
        let number = number.ok_or(BadValue::WrongType)?;
        let good = match Valid::of(self.valid) {
            Valid::Between { least, most, or } => (least <= number && number <= most) || or == Some(number),
            // Kafka lets these be negative and misbehaves; a modelled number has a meaning only from 0 on.
            _ => !self.modelled() || number >= 0.0,
        };
        if good { Ok(()) } else { Err(BadValue::OutOfRange) }
    }

    fn check_text(&self, text: &str) -> Result<(), BadValue> {
        let good = match Valid::of(self.valid) {
            Valid::OneOf { choices, ignoring_case } => is_choice(&choices, ignoring_case, text),
            Valid::NonEmpty => !text.is_empty(),
            _ => true,
        };
        if good { Ok(()) } else { Err(BadValue::OutOfRange) }
    }

    fn check_list(&self, text: &str) -> Result<(), BadValue> {
        let mut items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        let good = match Valid::of(self.valid) {
            Valid::OneOf { choices, ignoring_case } => {
                items.all(|item| is_choice(&choices, ignoring_case, item))
            }
            Valid::NonEmpty => items.next().is_some(),
            _ => true,
        };
        if good { Ok(()) } else { Err(BadValue::OutOfRange) }
    }
}

/// Kafka takes `true` and `false` in any case, and nothing else.
pub fn parse_boolean(text: &str) -> Option<bool> {
    if text.eq_ignore_ascii_case("true") {
        Some(true)
    } else if text.eq_ignore_ascii_case("false") {
        Some(false)
    } else {
        None
    }
}

fn is_choice(choices: &[&str], ignoring_case: bool, text: &str) -> bool {
    choices.iter().any(|choice| match choice.split_once(':') {
        // `by_duration:PnDTnHnMn.nS` stands for a whole family.
        Some((family, _)) => {
            text.split_once(':').is_some_and(|(given, rest)| given == family && !rest.is_empty())
        }
        None if ignoring_case => choice.eq_ignore_ascii_case(text),
        None => *choice == text,
    })
}

/// What Kafka's text for the good values says.
#[derive(Clone, Debug, PartialEq)]
enum Valid {
    Anything,
    /// Bounds inclusive; `or` is one more good value.
    Between {
        least: f64,
        most: f64,
        or: Option<f64>,
    },
    OneOf {
        choices: Vec<&'static str>,
        ignoring_case: bool,
    },
    NonEmpty,
}

impl Valid {
    /// Reads `[0,...]`, `[0,...,9]`, `[1,...,9] or -1`, `[a, b]`, `(case insensitive) [A, B]`, `non-empty …`.
    fn of(text: &'static str) -> Valid {
        if text.starts_with("non-empty") {
            return Valid::NonEmpty;
        }
        let (ignoring_case, text) = match text.strip_prefix("(case insensitive) ") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (text, or) = match text.split_once("] or ") {
            Some((range, other)) => (range, other.parse().ok()),
            None => (text.strip_suffix(']').unwrap_or(""), None),
        };
        let Some(inside) = text.strip_prefix('[') else { return Valid::Anything };
        match inside.split_once(",...") {
            Some((least, most)) => {
                let Ok(least) = least.parse() else { return Valid::Anything };
                let most = most.strip_prefix(',').map_or(Ok(f64::INFINITY), str::parse);
                let Ok(most) = most else { return Valid::Anything };
                Valid::Between { least, most, or }
            }
            None => Valid::OneOf { choices: inside.split(", ").collect(), ignoring_case },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::DEFINITIONS;

    #[test]
    fn every_default_is_a_value_of_its_setting() {
        for definition in &DEFINITIONS {
            let Some(default) = definition.default else { continue };
            // Two lists are empty by default and may not be set empty: Kafka checks them only when they are given.
            if default.is_empty() && Valid::of(definition.valid) == Valid::NonEmpty {
                continue;
            }
            assert_eq!(definition.check(default), Ok(()), "{} {}", definition.scope, definition.name);
        }
    }

    #[test]
    fn ranges_are_read_as_kafka_writes_them() {
        assert_eq!(Valid::of(""), Valid::Anything);
        assert_eq!(Valid::of("[1,...]"), Valid::Between { least: 1.0, most: f64::INFINITY, or: None });
        assert_eq!(Valid::of("[0.5,...,1.0]"), Valid::Between { least: 0.5, most: 1.0, or: None });
        assert_eq!(Valid::of("[1,...,9] or -1"), Valid::Between { least: 1.0, most: 9.0, or: Some(-1.0) });
        assert_eq!(Valid::of("[a, b]"), Valid::OneOf { choices: vec!["a", "b"], ignoring_case: false });
        assert_eq!(
            Valid::of("(case insensitive) [A, B]"),
            Valid::OneOf { choices: vec!["A", "B"], ignoring_case: true }
        );
        assert_eq!(Valid::of("non-empty string"), Valid::NonEmpty);
        assert_eq!(Valid::of("non-null string"), Valid::Anything);
        assert_eq!(Valid::of("[partitionId]:[brokerId],[partitionId]:[brokerId],..."), Valid::Anything);
    }

    #[test]
    fn every_numeric_range_of_the_table_is_understood() {
        for definition in &DEFINITIONS {
            if definition.valid.contains("...") && !definition.valid.contains("Id]") {
                assert!(
                    matches!(Valid::of(definition.valid), Valid::Between { .. }),
                    "{} {}",
                    definition.name,
                    definition.valid
                );
            }
        }
    }
}
