//! One cell of a campaign: a scenario in one configuration, with what the command line changed.

use std::io::Read;
use std::sync::Arc;

use acked_reports::document::short_hash;
use acked_sim::plan::{Expectation, Plan};

use crate::exit::Failure;
use crate::mutations;
use crate::scenario::{self, Overrides, Scenario, SettingNote};
use crate::token::{BUILD, Changes, Token, is_name};

/// Bytes of the longest scenario file that is read.
const TEXT_MAX: u64 = 1 << 20;

/// A scenario file as it was found.
#[derive(Clone, Debug)]
pub struct Source {
    /// How the user names the file.
    pub path: String,
    pub text: String,
    pub hash: String,
    /// Whether the file came from the command line rather than with the binary.
    pub own_file: bool,
    pub scenario: Scenario,
}

impl Source {
    /// # Errors
    /// A text that is no scenario, or a name that cannot stand in a token.
    pub fn new(path: &str, text: &str, own_file: bool) -> Result<Source, Failure> {
        let scenario = scenario::parse(path, text)?;
        for name in std::iter::once(&scenario.name).chain(scenario.configuration.keys()) {
            if !is_name(name) {
                let reason = "a name has only small letters, digits, - and _";
                return Err(Failure::usage(format!("failed to use {path}: '{name}': {reason}")));
            }
        }
        let (path, text) = (path.to_string(), text.to_string());
        Ok(Source { hash: short_hash(&text), path, text, own_file, scenario })
    }

    /// The scenario of that name among those that ship.
    pub fn shipped(name: &str) -> Option<Result<Source, Failure>> {
        scenario::find(name).map(|entry| Source::new(entry.path, entry.text, false))
    }

    /// # Errors
    /// A file that cannot be read or is no scenario.
    pub fn read(path: &str) -> Result<Source, Failure> {
        let text = read_bounded(path).map_err(|source| {
            Failure::from(scenario::ScenarioError::Read { path: path.to_string(), source })
        })?;
        Source::new(path, &text, true)
    }
}

/// A file that is not longer than any scenario needs to be.
fn read_bounded(path: &str) -> std::io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(TEXT_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > TEXT_MAX {
        let reason = format!("it is longer than {TEXT_MAX} bytes");
        return Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, reason));
    }
    Ok(text)
}

/// A scenario in one configuration, ready to run.
#[derive(Clone, Debug)]
pub struct Cell {
    pub source: Arc<Source>,
    pub configuration: String,
    pub changes: Changes,
    pub plan: Plan,
}

impl Cell {
    /// One cell for each configuration, `default` first; only `configuration` if one is named.
    ///
    /// # Errors
    /// Unknown settings, mutations or configurations, values out of range.
    pub fn all(
        source: &Arc<Source>,
        configuration: Option<&str>,
        changes: &Changes,
    ) -> Result<(Vec<Cell>, Vec<SettingNote>), Failure> {
        let mutated = [&source.scenario.mutate[..], &changes.mutate[..]].concat();
        let overrides = Overrides {
            settings: changes.set.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
            rules: Some(mutations::rules(&mutated).map_err(Failure::usage)?),
            configuration: configuration.map(str::to_string),
        };
        let (plans, notes) = scenario::plans(&source.path, &source.scenario, &overrides)?;
        let cells = plans
            .into_iter()
            .map(|plan| Cell {
                source: source.clone(),
                configuration: plan.configuration.clone(),
                changes: changes.clone(),
                plan,
            })
            .collect();
        Ok((cells, notes))
    }

    pub fn name(&self) -> &str {
        &self.source.scenario.name
    }

    /// What is expected of acknowledged data. Settings from the command line void what the scenario says of its own.
    pub fn expectation(&self) -> Expectation {
        if self.changes.set.is_empty() { self.plan.expect } else { Expectation::May }
    }

    /// The token of one seed of this cell.
    pub fn token(&self, seed: u64) -> String {
        Token {
            scenario: self.name().to_string(),
            configuration: self.configuration.clone(),
            seed,
            scenario_hash: self.source.hash.clone(),
            build: BUILD.to_string(),
            changes: self.changes.clone(),
        }
        .to_string()
    }
}
