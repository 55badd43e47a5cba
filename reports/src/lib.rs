//! Histories of client operations, verdicts on them, and the serialisable result of a run. Knows no simulator and no
//! broker: everything here also works on a history recorded elsewhere.

pub mod anomalies;
pub mod document;
pub mod history;
pub mod render;
pub mod result;
pub mod story;
pub mod verifiable;

pub use history::{History, Key, Operation};
pub use result::{CampaignSummary, Contract, Finding, Outcome, SeedResult, Verdict};
