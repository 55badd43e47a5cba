//! Tokens: one text that fixes a run completely, as long as the same build and the same scenario file are at hand.
//!
//! ```text
//! AK1.<scenario>.<configuration>.<seed>.<scenario hash>.<build>[.<base64url of settings and mutations>]
//! ```

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::base64url;

const VERSION: &str = "AK1";
/// Longer texts are no tokens; bounds the work that a pasted text can cause.
const LENGTH_MAX: usize = 16 << 10;

/// The build that made this binary: a hash of its sources, whatever the profile.
pub const BUILD: &str = env!("ACKED_BUILD");

/// What the command line changed in a scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Changes {
    /// Names of mutations, sorted, none twice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mutate: Vec<String>,
    /// Settings with the prefix of their scope.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, String>,
}

impl Changes {
    pub fn is_empty(&self) -> bool {
        self.mutate.is_empty() && self.set.is_empty()
    }

    /// The same with one more mutation.
    pub fn with_mutation(&self, name: &str) -> Changes {
        let mut changes = self.clone();
        changes.mutate.push(name.to_string());
        changes.mutate.sort();
        changes.mutate.dedup();
        changes
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub scenario: String,
    pub configuration: String,
    pub seed: u64,
    pub scenario_hash: String,
    pub build: String,
    pub changes: Changes,
}

/// Why a text is no token. Worded to stand alone.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    #[error(
        "a token begins with {VERSION}. and looks like {VERSION}.leader-crash.default.7.0badcafe.1234567"
    )]
    Version,
    #[error("a token has six or seven parts joined by dots, this one has {0}")]
    Parts(usize),
    #[error("the token's {part} '{text}' is not {expected}")]
    Part { part: &'static str, text: String, expected: &'static str },
    #[error("the token's settings cannot be read: {0}")]
    Changes(String),
    #[error("the token is longer than {LENGTH_MAX} bytes")]
    Length,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Token { scenario, configuration, seed, scenario_hash, build, changes } = self;
        write!(f, "{VERSION}.{scenario}.{configuration}.{seed}.{scenario_hash}.{build}")?;
        if !changes.is_empty() {
            let text = serde_json::to_string(changes).expect("texts have a JSON form");
            write!(f, ".{}", base64url::encode(text.as_bytes()))?;
        }
        Ok(())
    }
}

impl Token {
    /// Reads a token strictly: what is accepted is written back as the same text.
    ///
    /// # Errors
    /// [`TokenError`].
    pub fn parse(text: &str) -> Result<Token, TokenError> {
        if text.len() > LENGTH_MAX {
            return Err(TokenError::Length);
        }
        let parts: Vec<&str> = text.split('.').collect();
        if parts[0] != VERSION {
            return Err(TokenError::Version);
        }
        let (&[_, scenario, configuration, seed, scenario_hash, build], rest) = parts
            .split_first_chunk::<6>()
            .filter(|(_, rest)| rest.len() <= 1)
            .ok_or(TokenError::Parts(parts.len()))?;
        named("scenario", scenario)?;
        named("configuration", configuration)?;
        hexadecimal("scenario hash", scenario_hash)?;
        hexadecimal("build", build)?;
        let number = seed.parse::<u64>().ok().filter(|number| number.to_string() == seed);
        let expected = "a number from 0 to 18446744073709551615";
        let number = number.ok_or(TokenError::Part { part: "seed", text: seed.into(), expected })?;
        let token = Token {
            scenario: scenario.into(),
            configuration: configuration.into(),
            seed: number,
            scenario_hash: scenario_hash.into(),
            build: build.into(),
            changes: rest.first().map_or(Ok(Changes::default()), |part| changes(part))?,
        };
        if token.to_string() != text {
            return Err(TokenError::Changes("they are not in the form that acked writes".into()));
        }
        Ok(token)
    }
}

/// Whether a scenario's or configuration's name can stand in a token.
pub fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte))
}

fn named(part: &'static str, text: &str) -> Result<(), TokenError> {
    let expected = "a name of small letters, digits and -";
    if is_name(text) { Ok(()) } else { Err(TokenError::Part { part, text: text.into(), expected }) }
}

fn hexadecimal(part: &'static str, text: &str) -> Result<(), TokenError> {
    let good = !text.is_empty() && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let expected = "hexadecimal digits";
    if good { Ok(()) } else { Err(TokenError::Part { part, text: text.into(), expected }) }
}

fn changes(part: &str) -> Result<Changes, TokenError> {
    let bytes =
        base64url::decode(part).ok_or_else(|| TokenError::Changes("they are not base64url".into()))?;
    serde_json::from_slice(&bytes).map_err(|error| TokenError::Changes(error.to_string()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn token() -> Token {
        Token {
            scenario: "leader-crash".into(),
            configuration: "safe".into(),
            seed: 7,
            scenario_hash: "0badcafe".into(),
            build: "1234567".into(),
            changes: Changes::default(),
        }
    }

    #[test]
    fn a_token_is_its_six_parts() {
        assert_eq!(token().to_string(), "AK1.leader-crash.safe.7.0badcafe.1234567");
        assert_eq!(Token::parse("AK1.leader-crash.safe.7.0badcafe.1234567"), Ok(token()));
    }

    #[test]
    fn settings_and_mutations_travel_in_a_seventh() {
        let mut with = token();
        with.changes = with.changes.with_mutation("ack-before-append");
        with.changes.set.insert("topic.min.insync.replicas".into(), "2".into());
        let text = with.to_string();
        assert_eq!(text.split('.').count(), 7);
        assert_eq!(Token::parse(&text), Ok(with));
    }

    #[test]
    fn what_is_not_quite_a_token_is_refused_with_the_part_that_is_wrong() {
        let cases = [
            ("", "begins with"),
            ("AK2.a.b.7.0.0", "begins with"),
            ("AK1.a.b.7.0", "has 5"),
            ("AK1.a.b.7.0.0.x.y", "has 8"),
            ("AK1.A.b.7.0.0", "scenario 'A'"),
            ("AK1.a..7.0.0", "configuration ''"),
            ("AK1.a.b.07.0.0", "seed '07'"),
            ("AK1.a.b.-7.0.0", "seed '-7'"),
            ("AK1.a.b.18446744073709551616.0.0", "seed"),
            ("AK1.a.b.7.G.0", "scenario hash 'G'"),
            ("AK1.a.b.7.0.", "build ''"),
            ("AK1.a.b.7.0.0.", "settings"),
            ("AK1.a.b.7.0.0.!!", "base64url"),
            ("AK1.a.b.7.0.0.e30", "not in the form"),
            ("AK1.a.b.7.0.0.eyJ4IjoxfQ", "unknown field"),
        ];
        for (text, expected) in cases {
            let error = Token::parse(text).expect_err(text).to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        assert_eq!(Token::parse(&"A".repeat(LENGTH_MAX + 1)), Err(TokenError::Length));
    }

    proptest! {
        #[test]
        fn any_text_is_refused_or_written_back_unchanged(text in "(AK1)?[.a-z0-9-]{0,60}") {
            if let Ok(token) = Token::parse(&text) {
                prop_assert_eq!(token.to_string(), text);
            }
        }

        #[test]
        fn any_setting_survives(name in ".{0,20}", value in ".{0,20}", seed: u64) {
            let mut with = token();
            with.seed = seed;
            with.changes.set.insert(name, value);
            prop_assert_eq!(Token::parse(&with.to_string()), Ok(with));
        }
    }
}
