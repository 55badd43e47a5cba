//! Results as JSON lines: one object a line, `type` first. Types `plan`, `seed`, `violation`, `summary`. Fields are
//! only added within a version; readers ignore what they do not know. Nothing of the wall clock is in them.

use std::collections::BTreeMap;

use serde::Serialize;

use super::cell::{CellReport, Loss, Undecided};
use crate::result::{CampaignSummary, Contract, Finding, LostRange, Outcome, SeedResult};

/// Name and version of the format, in the `plan` line.
pub const SCHEMA: &str = "acked-lines/1";

/// What is about to run.
#[derive(Clone, Debug, Serialize)]
pub struct Plan<'a> {
    pub schema: &'static str,
    pub version: &'a str,
    pub build: &'a str,
    pub seeds: u64,
    pub set: &'a BTreeMap<String, String>,
    pub mutate: &'a [String],
    pub cells: Vec<PlannedCell<'a>>,
}

#[derive(Clone, Debug, Serialize)]
pub struct PlannedCell<'a> {
    pub scenario: &'a str,
    pub hash: &'a str,
    pub configuration: &'a str,
    pub expect: &'a str,
    pub first_seed: Option<u64>,
    pub last_seed: Option<u64>,
}

/// How a campaign ended.
#[derive(Clone, Debug, Serialize)]
pub struct Summary<'a> {
    pub verdict: &'a str,
    pub exit: u8,
    pub not_run: u64,
    #[serde(flatten)]
    pub sums: &'a CampaignSummary,
    pub cells: Vec<SummaryCell<'a>>,
}

#[derive(Clone, Debug, Serialize)]
pub struct SummaryCell<'a> {
    pub scenario: &'a str,
    pub configuration: &'a str,
    pub expect: &'a str,
    pub unmet: Option<&'a str>,
    pub lossy_seeds: u64,
    pub losses: &'a [Loss],
    pub undecided: &'a [Undecided],
    #[serde(flatten)]
    pub sums: &'a CampaignSummary,
}

impl<'a> From<&'a CellReport> for SummaryCell<'a> {
    fn from(report: &'a CellReport) -> SummaryCell<'a> {
        SummaryCell {
            scenario: &report.scenario,
            configuration: &report.configuration,
            expect: &report.expectation,
            unmet: report.unmet.as_deref(),
            lossy_seeds: report.lossy_seeds,
            losses: &report.losses,
            undecided: &report.undecided,
            sums: &report.summary,
        }
    }
}

#[derive(Serialize)]
struct Violation<'a> {
    scenario: &'a str,
    configuration: &'a str,
    seed: u64,
    token: &'a str,
    outcome: Outcome,
    contract: Contract,
    why: String,
    invariants: Vec<&'a str>,
    findings: &'a [Finding],
    lost: &'a [LostRange],
}

#[derive(Serialize)]
struct Line<'a, T> {
    r#type: &'a str,
    #[serde(flatten)]
    content: &'a T,
}

/// One object of the given type, with its line end.
pub fn line<T: Serialize>(kind: &str, content: &T) -> String {
    let mut text =
        serde_json::to_string(&Line { r#type: kind, content }).expect("results have string keys only");
    text.push('\n');
    text
}

/// The lines of one seed: itself, and what it violated.
pub fn seed(result: &SeedResult) -> String {
    let mut text = line("seed", result);
    if result.verdict == crate::result::Verdict::Violation {
        let mut invariants: Vec<&str> = result
            .findings
            .iter()
            .filter(|finding| finding.contract == Contract::Broken)
            .map(|finding| finding.invariant.as_str())
            .collect();
        invariants.sort_unstable();
        invariants.dedup();
        text.push_str(&line(
            "violation",
            &Violation {
                scenario: &result.scenario,
                configuration: &result.configuration,
                seed: result.seed,
                token: &result.token,
                outcome: result.outcome,
                contract: result.contract,
                why: super::seed::why(result),
                invariants,
                findings: &result.findings,
                lost: &result.lost,
            },
        ));
    }
    text
}
