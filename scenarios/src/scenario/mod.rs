//! Scenario files: their schema, the catalogue that ships, and how a scenario becomes plans.

mod catalogue;
mod file;
mod resolve;
mod units;

pub use catalogue::{CATALOGUE, find};
pub use file::{Expected, Scenario, ScenarioError, parse};
pub use resolve::{Overrides, SettingNote, plans};
