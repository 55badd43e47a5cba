//! Flags that several commands share, and how their texts are read.

use std::num::NonZeroUsize;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::mutations;
use crate::output::{Colour, ProgressKind};
use crate::token::Changes;

/// How a command that gives one document writes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    #[default]
    Human,
    Json,
}

/// What is changed in the scenarios.
#[derive(Clone, Debug, Default, Args)]
pub struct ChangeOptions {
    /// Changes a setting: scope.name=value, scope being broker, topic, producer, consumer, admin or group
    #[arg(long = "set", value_name = "SCOPE.NAME=VALUE", value_parser = setting, env = "ACKED_SET")]
    set: Vec<(String, String)>,
    /// Runs the broker with a bug of the museum (acked list mutations)
    #[arg(long, value_name = "NAME", value_parser = mutation, env = "ACKED_MUTATE")]
    mutate: Vec<String>,
}

impl ChangeOptions {
    pub fn changes(&self) -> Changes {
        let mut changes = Changes::default();
        for name in &self.mutate {
            changes = changes.with_mutation(name);
        }
        changes.set.extend(self.set.iter().cloned());
        changes
    }
}

/// Only which mutation.
#[derive(Clone, Debug, Default, Args)]
pub struct MutateOption {
    /// Runs the broker with a bug of the museum (acked list mutations)
    #[arg(long, value_name = "NAME", value_parser = mutation, env = "ACKED_MUTATE")]
    mutate: Vec<String>,
}

impl MutateOption {
    pub fn changes(&self) -> Changes {
        self.mutate.iter().fold(Changes::default(), |changes, name| changes.with_mutation(name))
    }
}

/// How work is done and shown.
#[derive(Clone, Debug, Args)]
pub struct WorkOptions {
    /// Worker processes; all cores without it
    #[arg(short, long, value_name = "N", env = "ACKED_JOBS")]
    jobs: Option<NonZeroUsize>,
    /// A seed that gives no result for so long is ended
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration, env = "ACKED_SEED_TIMEOUT")]
    pub seed_timeout: Duration,
    /// How progress is shown on standard error
    #[arg(long, value_enum, default_value_t, env = "ACKED_PROGRESS")]
    pub progress: ProgressKind,
    /// Whether results are coloured
    #[arg(long, value_enum, default_value_t, env = "ACKED_COLOR")]
    pub color: Colour,
    /// Only results and errors
    #[arg(short, long, env = "ACKED_QUIET")]
    pub quiet: bool,
}

impl WorkOptions {
    pub fn workers(&self) -> usize {
        let cores = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        self.jobs.unwrap_or_else(cores).get()
    }

    pub fn progress(&self) -> ProgressKind {
        if self.quiet { ProgressKind::None } else { self.progress }
    }
}

/// How a token is used.
#[derive(Clone, Debug, Args)]
pub struct TokenOptions {
    /// What `acked run` printed for the run
    pub token: String,
    /// The scenario file, where the token is of one that does not ship with acked
    #[arg(long, value_name = "FILE", env = "ACKED_SCENARIO")]
    pub scenario: Option<String>,
    /// Tries a token of another build; the run may differ
    #[arg(long, env = "ACKED_ALLOW_BUILD_MISMATCH")]
    pub allow_build_mismatch: bool,
    /// Whether results are coloured
    #[arg(long, value_enum, default_value_t, env = "ACKED_COLOR")]
    pub color: Colour,
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) =
        text.split_once('=').ok_or("write it as scope.name=value, as in topic.min.insync.replicas=2")?;
    Ok((name.trim().to_string(), value.trim().to_string()))
}

fn mutation(text: &str) -> Result<String, String> {
    mutations::rules(&[text.to_string()]).map(|_| text.to_string())
}

/// A number and a unit: `500ms`, `30s`, `5m`, `2h`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("'{text}' is no duration: write a whole number and ms, s, m or h, as in 30s");
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let each = match &text[digits.len()..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(wrong()),
    };
    let millis = number.checked_mul(each).filter(|millis| *millis > 0 && *millis <= 1_000 * 3_600_000);
    millis.map(Duration::from_millis).ok_or_else(|| format!("'{text}' is nothing, or longer than 1000 hours"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("5m"), Ok(Duration::from_secs(300)));
        for text in ["", "30", "s", "0s", "-1s", "1.5s", "5d", "99999999999999999999s", "1001h"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn settings_have_a_name_and_a_value() {
        assert_eq!(setting("topic.a=b=c"), Ok(("topic.a".into(), "b=c".into())));
        assert!(setting("topic.a").is_err());
    }
}
