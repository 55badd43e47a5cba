//! The result of one seed and of a campaign, as they are written and read back: words, fields and their order. Does
//! not decide anything beyond what follows from its own fields, and does not render. Source: reports.md 1 and 2,
//! the verdict words of K7.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What became of one seed. Only `Pass` is green (K7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Pass,
    /// A contract was broken.
    Violation,
    /// The checks could not decide.
    Unknown,
    /// Too little was checked for the scenario's question.
    Vacuous,
    /// The seed did not end within its budget.
    Budget,
    /// The same seed gave two different runs.
    Nondeterministic,
}

impl Verdict {
    /// The word that is printed and stored.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Violation => "violation",
            Verdict::Unknown => "unknown",
            Verdict::Vacuous => "vacuous",
            Verdict::Budget => "budget",
            Verdict::Nondeterministic => "nondeterministic",
        }
    }
}

/// What happened to the data. Later words are worse; a seed's outcome is its worst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Outcome {
    #[default]
    None,
    /// Writes were rejected while promised available.
    Refused,
    /// No progress after all faults healed.
    Stuck,
    /// Acknowledged, beyond what anyone read.
    Unread,
    /// Position moved backwards.
    Replayed,
    /// Committed past an unprocessed record.
    Skipped,
    /// One value at two offsets.
    Dup,
    /// One producer's records in another order.
    Reorder,
    /// Read by someone, later gone; or never sent by anyone.
    Phantom,
    /// One offset, two values.
    Diverged,
    /// Acknowledged, absent below a read offset.
    Lost,
}

impl Outcome {
    /// The word that is printed and stored.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::None => "NONE",
            Outcome::Refused => "REFUSED",
            Outcome::Stuck => "STUCK",
            Outcome::Unread => "UNREAD",
            Outcome::Replayed => "REPLAYED",
            Outcome::Skipped => "SKIPPED",
            Outcome::Dup => "DUP",
            Outcome::Reorder => "REORDER",
            Outcome::Phantom => "PHANTOM",
            Outcome::Diverged => "DIVERGED",
            Outcome::Lost => "LOST",
        }
    }
}

/// Whether a promise was broken. A result's contract is the worst of its parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Contract {
    /// Everything promised was done; a loss was within what the settings promise under the faults that fired.
    #[default]
    Kept,
    /// Nothing was promised for what was lost (acks=0, acks=1).
    NotPromised,
    Broken,
}

impl Contract {
    /// The word that is printed and stored.
    pub fn word(self) -> &'static str {
        match self {
            Contract::Kept => "kept",
            Contract::NotPromised => "not-promised",
            Contract::Broken => "broken",
        }
    }
}

/// One wrong with its evidence; the same cause seen again only raises `count`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Identifier of the invariant or anomaly, for example `S9`.
    pub invariant: String,
    pub outcome: Outcome,
    pub contract: Contract,
    pub topic: Option<String>,
    pub partition: Option<i32>,
    /// First and last offset concerned, both inclusive.
    pub first_offset: Option<i64>,
    pub last_offset: Option<i64>,
    /// Name of the node where it was noticed.
    pub node: Option<String>,
    /// Virtual microseconds since the run began.
    pub time_us: u64,
    pub count: u64,
    pub text: String,
}

/// Neighbouring acknowledged records of one leader epoch that are gone for the same reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostRange {
    pub topic: String,
    pub partition: i32,
    /// Epoch of the leader that appended them, for their offsets may be taken again in a later one; -1 when no log
    /// ever held them.
    pub leader_epoch: i32,
    /// First and last offset, both inclusive.
    pub from: i64,
    pub to: i64,
    pub count: u64,
    pub acks: i16,
    pub contract: Contract,
    /// The rule of the loss oracle that permits it and the fault that made it, or why nothing permits it.
    pub rule: String,
}

/// How often a fault was planned and how often it changed something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultCount {
    pub kind: String,
    pub armed: u64,
    pub fired: u64,
}

/// Everything a run of one seed leaves behind. Field order is the order of the JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeedResult {
    pub scenario: String,
    pub configuration: String,
    pub seed: u64,
    pub token: String,
    pub verdict: Verdict,
    pub outcome: Outcome,
    pub contract: Contract,
    /// Why a seed is unknown, vacuous or out of budget; empty otherwise.
    pub reason: Option<String>,
    pub findings: Vec<Finding>,
    pub lost: Vec<LostRange>,
    pub lost_total: u64,
    pub sent: u64,
    pub acked: u64,
    /// Sends whose outcome the client cannot know.
    pub indeterminate: u64,
    /// Sends refused without effect.
    pub refused: u64,
    /// Distinct records that the final read gave back.
    pub read_back: u64,
    pub faults: Vec<FaultCount>,
    /// Comparisons that each check made: a check that compared nothing is visible.
    pub comparisons: BTreeMap<String, u64>,
    pub events: u64,
    pub virtual_us: u64,
    /// Rolling hash of every event, 16 hexadecimal digits.
    pub hash: String,
}

/// What a campaign over many seeds came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CampaignSummary {
    pub seeds_run: u64,
    pub pass: u64,
    pub violation: u64,
    pub unknown: u64,
    pub vacuous: u64,
    pub budget: u64,
    pub nondeterministic: u64,
    pub acked: u64,
    pub lost_total: u64,
    pub virtual_us: u64,
    pub events: u64,
    /// Seeds by outcome word.
    pub outcomes: BTreeMap<String, u64>,
    /// Seeds with a broken contract, by the identifier of the invariant.
    pub invariants: BTreeMap<String, u64>,
    pub faults: BTreeMap<String, FaultTotals>,
    pub comparisons: BTreeMap<String, u64>,
}

/// Sums over the seeds of a campaign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultTotals {
    pub armed: u64,
    pub fired: u64,
}

impl CampaignSummary {
    /// Adds one seed.
    pub fn add(&mut self, seed: &SeedResult) {
        self.seeds_run += 1;
        *match seed.verdict {
            Verdict::Pass => &mut self.pass,
            Verdict::Violation => &mut self.violation,
            Verdict::Unknown => &mut self.unknown,
            Verdict::Vacuous => &mut self.vacuous,
            Verdict::Budget => &mut self.budget,
            Verdict::Nondeterministic => &mut self.nondeterministic,
        } += 1;
        self.acked += seed.acked;
        self.lost_total += seed.lost_total;
        self.virtual_us += seed.virtual_us;
        self.events += seed.events;
        *self.outcomes.entry(seed.outcome.word().to_owned()).or_default() += 1;
        let mut broken: Vec<&str> = seed
            .findings
            .iter()
            .filter(|finding| finding.contract == Contract::Broken)
            .map(|finding| finding.invariant.as_str())
            .collect();
        broken.sort_unstable();
        broken.dedup();
        for invariant in broken {
            *self.invariants.entry(invariant.to_owned()).or_default() += 1;
        }
        for fault in &seed.faults {
            let totals = self.faults.entry(fault.kind.clone()).or_default();
            totals.armed += fault.armed;
            totals.fired += fault.fired;
        }
        for (check, comparisons) in &seed.comparisons {
            *self.comparisons.entry(check.clone()).or_default() += comparisons;
        }
        assert_eq!(
            self.seeds_run,
            self.pass + self.violation + self.unknown + self.vacuous + self.budget + self.nondeterministic,
            "every seed has exactly one verdict"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seed(verdict: Verdict, outcome: Outcome, contract: Contract) -> SeedResult {
        SeedResult {
            scenario: "leader-crash".to_owned(),
            configuration: "default".to_owned(),
            seed: 7,
            token: "AK1.leader-crash.default.7.0.0".to_owned(),
            verdict,
            outcome,
            contract,
            reason: None,
            findings: vec![Finding {
                invariant: "S9".to_owned(),
                outcome,
                contract,
                topic: Some("orders".to_owned()),
                partition: Some(0),
                first_offset: Some(3),
                last_offset: Some(4),
                node: Some("b1".to_owned()),
                time_us: 12,
                count: 2,
                text: "two records are missing".to_owned(),
            }],
            lost: Vec::new(),
            lost_total: 2,
            sent: 10,
            acked: 9,
            indeterminate: 1,
            refused: 0,
            read_back: 7,
            faults: vec![FaultCount { kind: "crash".to_owned(), armed: 2, fired: 1 }],
            comparisons: BTreeMap::from([("S9".to_owned(), 9)]),
            events: 100,
            virtual_us: 1_000,
            hash: "00000000000000ff".to_owned(),
        }
    }

    #[test]
    fn result_is_read_back_from_its_json_with_fields_in_declared_order() {
        let result = seed(Verdict::Violation, Outcome::Lost, Contract::Broken);
        let text = serde_json::to_string(&result).expect("a result has only string keys");
        assert!(text.starts_with(r#"{"scenario":"leader-crash","configuration":"default","seed":7,"#));
        assert!(text.contains(r#""verdict":"violation","outcome":"LOST","contract":"broken""#));
        assert_eq!(serde_json::from_str::<SeedResult>(&text).expect("just written"), result);
    }

    #[test]
    fn words_match_their_json() {
        for outcome in [Outcome::None, Outcome::Lost, Outcome::Dup, Outcome::Replayed, Outcome::Stuck] {
            assert_eq!(serde_json::to_value(outcome).expect("a unit variant"), outcome.word());
        }
        for contract in [Contract::Kept, Contract::NotPromised, Contract::Broken] {
            assert_eq!(serde_json::to_value(contract).expect("a unit variant"), contract.word());
        }
        for verdict in [Verdict::Pass, Verdict::Nondeterministic, Verdict::Budget] {
            assert_eq!(serde_json::to_value(verdict).expect("a unit variant"), verdict.word());
        }
    }

    #[test]
    fn summary_counts_every_seed_once_and_only_broken_invariants() {
        let mut summary = CampaignSummary::default();
        summary.add(&seed(Verdict::Pass, Outcome::Lost, Contract::Kept));
        summary.add(&seed(Verdict::Violation, Outcome::Lost, Contract::Broken));
        assert_eq!((summary.seeds_run, summary.pass, summary.violation), (2, 1, 1));
        assert_eq!(summary.invariants, BTreeMap::from([("S9".to_owned(), 1)]));
        assert_eq!(summary.faults["crash"], FaultTotals { armed: 4, fired: 2 });
        assert_eq!(summary.outcomes["LOST"], 2);
    }
}
