//! A campaign as one document (`result/1`): what was planned, what ran, what was found, by cause, and the one seed whose
//! story is told. Written to the local store, read back by every report. Nothing of the wall clock is in it, so that the
//! same campaign gives the same bytes; what is left out is counted in `limits`. Source: reports.md 2.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::render::CellReport;
use crate::render::cell::{Loss, Undecided};
use crate::result::{CampaignSummary, Contract, FaultTotals, LostRange, Outcome, SeedResult, Verdict};

/// Name and version of the format.
pub const SCHEMA: &str = "result/1";
/// Of the plan in it, which also stands alone.
pub const PLAN_SCHEMA: &str = "plan/1";

/// Seeds of one finding that are listed.
const SEEDS_LISTED: usize = 50;
/// Lost ranges of one finding that are listed.
const RANGES_LISTED: usize = 100;
/// Findings that are kept.
const GROUPS_KEPT: usize = 200;
/// Seeds of one cell in its strip.
const STRIP_MAX: usize = 2_000;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    pub name: String,
    pub version: String,
    /// Hash of the sources.
    pub build: String,
}

/// What was asked for. It and the build fix everything that does not hang on time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    pub schema: String,
    pub tool: Tool,
    pub cells: Vec<PlannedCell>,
    /// Settings from the command line.
    pub set: BTreeMap<String, String>,
    /// Planted bugs.
    pub mutate: Vec<String>,
    /// Seeds of all cells together; 0 where only time ends the campaign.
    pub seeds: u64,
    pub budget: Budget,
}

/// What may end a campaign early.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    pub wall_ms: Option<u64>,
    /// 0 never ends it.
    pub max_fail: u64,
    pub min_seeds: u64,
}

/// A scenario in one configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedCell {
    pub scenario: String,
    pub ask: String,
    pub hash: String,
    /// The scenario's file, and the line in it where the configuration begins.
    pub path: String,
    pub line: u64,
    pub configuration: String,
    /// `never`, `may`, `must-lose`.
    pub expect: String,
    pub first_seed: Option<u64>,
    pub last_seed: Option<u64>,
    /// Every setting that is not left at Kafka's default, with its scope.
    pub settings: BTreeMap<String, String>,
    /// Those of them that have no effect here.
    pub unmodelled: Vec<String>,
    pub faults: Vec<PlannedFault>,
    /// What has to follow a token on a command line.
    pub token_suffix: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedFault {
    pub id: String,
    pub kind: String,
}

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    pub seeds_run: u64,
    pub not_run: u64,
    pub virtual_us: u64,
    pub events: u64,
    pub faults: BTreeMap<String, FaultTotals>,
}

/// One property, and what it came to over the whole campaign.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    pub id: String,
    pub name: String,
    /// When it holds.
    pub text: String,
    /// How often it was looked at.
    pub comparisons: u64,
    /// Seeds in which it was violated.
    pub violated: u64,
}

/// What one cell came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellRecord {
    pub summary: CampaignSummary,
    pub lossy_seeds: u64,
    pub losses: Vec<Loss>,
    pub undecided: Vec<Undecided>,
    /// Why it says less than its scenario promises.
    pub unmet: Option<String>,
    /// A letter a seed, in order: `.` pass, `l` pass with a licensed loss, `F` violation, `N` nondeterministic,
    /// `v` vacuous, `u` unknown, `b` out of budget.
    pub strip: String,
}

/// What was found for one reason in one cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindingGroup {
    /// Eight hexadecimal digits; the same for the same cause in every campaign.
    pub signature: String,
    /// Index into the plan's cells.
    pub cell: usize,
    /// The invariant, or `loss` where the loss oracle licensed it.
    pub invariant: String,
    pub outcome: Outcome,
    pub contract: Contract,
    /// In the simplest seed.
    pub text: String,
    /// Seeds in which it was found.
    pub count: u64,
    pub seeds: Vec<u64>,
    pub first_seed: u64,
    pub simplest: Simplest,
    /// Of the simplest seed.
    pub lost: Vec<LostRange>,
    pub lost_total: u64,
}

/// The seed that is the easiest to understand: with the fewest faults, then with the fewest events.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Simplest {
    /// Faults that fired.
    pub faults: u64,
    pub events: u64,
    pub seed: u64,
    pub acked: u64,
    pub token: String,
}

impl Simplest {
    fn of(result: &SeedResult) -> Simplest {
        Simplest {
            faults: result.faults.iter().map(|fault| fault.fired).sum(),
            events: result.events,
            seed: result.seed,
            acked: result.acked,
            token: result.token.clone(),
        }
    }
}

/// The seed whose story is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// Index into the plan's cells.
    pub cell: usize,
    /// Why this one.
    pub why: String,
    pub result: SeedResult,
}

/// What the same seeds do with one setting changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repair {
    /// `topic.min.insync.replicas=2`; empty for the run as it was.
    pub set: String,
    pub seeds: u64,
    /// Seeds that lost acknowledged records, and the records.
    pub lossy_seeds: u64,
    pub lost: u64,
    /// Seeds that broke a contract.
    pub broken: u64,
    pub acked: u64,
    /// Sends refused without effect.
    pub refused: u64,
    /// The longest time in which nothing was acknowledged, of all seeds.
    pub pause_us: u64,
    /// Of the first seed.
    pub token: String,
}

/// What is not in the document though it happened: never silently short.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    pub truncated: Vec<Truncated>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Truncated {
    pub what: String,
    pub kept: u64,
    pub total: u64,
}

/// The whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    pub schema: String,
    pub tool: Tool,
    pub run_id: String,
    /// Seconds since 1970, only where SOURCE_DATE_EPOCH gives them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<u64>,
    pub plan: Plan,
    pub work: Work,
    /// How it ended, in a word, and the exit code.
    pub verdict: String,
    pub exit: u8,
    pub summary: CampaignSummary,
    pub checks: Vec<Check>,
    /// In the order of the plan's cells.
    pub cells: Vec<CellRecord>,
    pub findings: Vec<FindingGroup>,
    pub told: Option<Told>,
    #[serde(default)]
    pub whatif: Vec<Repair>,
    pub limits: Limits,
}

/// How a campaign ended.
#[derive(Clone, Debug)]
pub struct Ended<'a> {
    pub run_id: String,
    pub verdict: &'a str,
    pub exit: u8,
    pub not_run: u64,
    pub created: Option<u64>,
    /// Identifier, name, and when it holds, of every check there is.
    pub known_checks: &'a [(&'a str, &'a str, &'a str)],
}

impl Document {
    /// The cell whose story is told.
    pub fn told_cell(&self) -> Option<&PlannedCell> {
        self.plan.cells.get(self.told.as_ref()?.cell)
    }

    /// Seeds that broke a contract or were not deterministic.
    pub fn failures(&self) -> u64 {
        self.summary.violation + self.summary.nondeterministic
    }

    /// The worst of all findings.
    pub fn summary_contract(&self) -> Contract {
        self.findings.iter().map(|group| group.contract).max().unwrap_or_default()
    }

    /// What became of the data, in one sentence.
    pub fn headline(&self) -> String {
        let Some(Told { result, .. }) = &self.told else { return "Nothing ran.".to_string() };
        let records = crate::render::words::thousands;
        if result.lost_total > 0 {
            let (lost, acked) = (records(result.lost_total), records(result.acked));
            return format!("{lost} of {acked} acknowledged records lost");
        }
        if let Some(finding) = result.findings.iter().max_by_key(|finding| finding.contract) {
            return format!("{}: {}", finding.invariant, finding.text);
        }
        match &result.reason {
            Some(reason) => reason.clone(),
            None => format!("all {} acknowledged records are accounted for", records(result.acked)),
        }
    }
}

/// Collects seeds while they come in, in the order of the plan.
#[derive(Debug, Default)]
pub struct Gathering {
    groups: BTreeMap<(usize, String, Outcome, Contract, String), FindingGroup>,
    groups_left_out: u64,
    strips: Vec<String>,
    seeds_left_out: u64,
    told: Option<(u8, Simplest, Told)>,
}

impl Gathering {
    pub fn new(cells: usize) -> Gathering {
        Gathering { strips: vec![String::new(); cells], ..Gathering::default() }
    }

    /// Adds a seed of a cell.
    pub fn add(&mut self, cell: usize, result: &SeedResult) {
        let strip = &mut self.strips[cell];
        if strip.len() < STRIP_MAX {
            strip.push(letter(result));
        } else {
            self.seeds_left_out += 1;
        }
        let simplest = Simplest::of(result);
        let (rank, why) = interest(result);
        let better = |(known, than, _): &(u8, Simplest, Told)| (rank, &simplest) < (*known, than);
        if self.told.as_ref().is_none_or(better) {
            let told = Told { cell, why: why.to_string(), result: result.clone() };
            self.told = Some((rank, simplest.clone(), told));
        }
        self.group(cell, result, &simplest);
    }

    fn group(&mut self, cell: usize, result: &SeedResult, simplest: &Simplest) {
        let mut seen: Vec<(String, Outcome, Contract, String, String)> = Vec::new();
        for finding in &result.findings {
            let (invariant, text) = (finding.invariant.clone(), finding.text.clone());
            seen.push((invariant, finding.outcome, finding.contract, String::new(), text));
        }
        for range in &result.lost {
            // The fault stands in brackets behind the rule.
            let rule = range.rule.split_once(" (").map_or(range.rule.as_str(), |(rule, _)| rule);
            seen.push(("loss".into(), Outcome::Lost, range.contract, rule.into(), range.rule.clone()));
        }
        seen.sort();
        seen.dedup_by(|later, earlier| {
            (&later.0, later.1, later.2, &later.3) == (&earlier.0, earlier.1, earlier.2, &earlier.3)
        });
        for (invariant, outcome, contract, rule, text) in seen {
            let key = (cell, invariant, outcome, contract, rule);
            if !self.groups.contains_key(&key) && self.groups.len() >= GROUPS_KEPT {
                self.groups_left_out += 1;
                continue;
            }
            let group = self.groups.entry(key).or_insert_with_key(|key| FindingGroup {
                signature: signature(&result.scenario, &result.configuration, &key.1, key.2, key.3, &key.4),
                cell,
                invariant: key.1.clone(),
                outcome,
                contract,
                text: text.clone(),
                count: 0,
                seeds: Vec::new(),
                first_seed: result.seed,
                simplest: simplest.clone(),
                lost: Vec::new(),
                lost_total: 0,
            });
            group.count += 1;
            if group.seeds.len() < SEEDS_LISTED {
                group.seeds.push(result.seed);
            }
            group.first_seed = group.first_seed.min(result.seed);
            if *simplest < group.simplest || group.count == 1 {
                group.simplest = simplest.clone();
                group.text = text;
                group.lost = result.lost.iter().take(RANGES_LISTED).cloned().collect();
                group.lost_total = result.lost_total;
            }
        }
    }

    /// The document of everything that was added.
    pub fn finish(
        self,
        plan: Plan,
        reports: &[CellReport],
        summary: &CampaignSummary,
        ended: &Ended<'_>,
    ) -> Document {
        assert_eq!(plan.cells.len(), reports.len(), "every cell has its report");
        assert_eq!(plan.cells.len(), self.strips.len(), "every cell has its strip");
        let mut truncated = Vec::new();
        let mut left_out = |what: &str, kept: u64, left_out: u64| {
            if left_out > 0 {
                truncated.push(Truncated { what: what.to_string(), kept, total: kept + left_out });
            }
        };
        left_out("findings", self.groups.len() as u64, self.groups_left_out);
        let drawn = self.strips.iter().map(|strip| strip.len() as u64).sum();
        left_out("seeds in the strips", drawn, self.seeds_left_out);
        let listed = self.groups.values().map(|group| group.seeds.len() as u64).sum();
        let found: u64 = self.groups.values().map(|group| group.count).sum();
        left_out("seeds of findings", listed, found - listed);
        let mut findings: Vec<FindingGroup> = self.groups.into_values().collect();
        findings.sort_by_key(|group| (std::cmp::Reverse(group.contract), group.cell, group.simplest.clone()));
        let cells = reports.iter().zip(self.strips).map(|(report, strip)| CellRecord {
            summary: report.summary.clone(),
            lossy_seeds: report.lossy_seeds,
            losses: report.losses.clone(),
            undecided: report.undecided.clone(),
            unmet: report.unmet.clone(),
            strip,
        });
        let check = |(id, name, text): &(&str, &str, &str)| Check {
            id: (*id).to_string(),
            name: (*name).to_string(),
            text: (*text).to_string(),
            comparisons: summary.comparisons.get(*id).copied().unwrap_or(0),
            violated: summary.invariants.get(*id).copied().unwrap_or(0),
        };
        Document {
            schema: SCHEMA.to_string(),
            tool: plan.tool.clone(),
            run_id: ended.run_id.clone(),
            created: ended.created,
            work: Work {
                seeds_run: summary.seeds_run,
                not_run: ended.not_run,
                virtual_us: summary.virtual_us,
                events: summary.events,
                faults: summary.faults.clone(),
            },
            verdict: ended.verdict.to_string(),
            exit: ended.exit,
            summary: summary.clone(),
            checks: ended.known_checks.iter().map(check).collect(),
            cells: cells.collect(),
            findings,
            told: self.told.map(|(_, _, told)| told),
            whatif: Vec::new(),
            limits: Limits { truncated },
            plan,
        }
    }
}

fn letter(result: &SeedResult) -> char {
    match result.verdict {
        Verdict::Pass if result.lost_total > 0 => 'l',
        Verdict::Pass => '.',
        Verdict::Violation => 'F',
        Verdict::Nondeterministic => 'N',
        Verdict::Vacuous => 'v',
        Verdict::Unknown => 'u',
        Verdict::Budget => 'b',
    }
}

/// How much a seed has to tell; smaller is more.
fn interest(result: &SeedResult) -> (u8, &'static str) {
    match result.verdict {
        Verdict::Violation if result.contract == Contract::Broken => {
            (0, "the simplest seed that broke a contract")
        }
        Verdict::Violation | Verdict::Nondeterministic => (1, "the simplest seed that failed"),
        Verdict::Pass if result.lost_total > 0 => (2, "the simplest seed that lost acknowledged records"),
        Verdict::Vacuous | Verdict::Unknown | Verdict::Budget => (3, "the simplest seed that proved nothing"),
        Verdict::Pass => (4, "the simplest seed"),
    }
}

fn signature(
    scenario: &str,
    configuration: &str,
    invariant: &str,
    outcome: Outcome,
    contract: Contract,
    rule: &str,
) -> String {
    let parts = [scenario, configuration, invariant, outcome.word(), contract.word(), rule];
    short_hash(&parts.join("\n"))
}

/// Eight hexadecimal digits of FNV-1a: names things, protects nothing.
pub fn short_hash(text: &str) -> String {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{:08x}", hash >> 32)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::story::life::tests::story;

    /// Two cells; the first has a licensed loss and a broken contract, the second passes.
    pub fn document() -> Document {
        let (lossy, _) = story();
        let mut broken = lossy.clone();
        broken.seed = 9;
        broken.contract = Contract::Broken;
        broken.verdict = Verdict::Violation;
        broken.faults = vec![crate::result::FaultCount { kind: "crash".into(), armed: 2, fired: 2 }];
        broken.findings = vec![crate::result::Finding {
            invariant: "V1".into(),
            outcome: Outcome::Lost,
            contract: Contract::Broken,
            topic: Some("orders".into()),
            partition: Some(0),
            first_offset: Some(7),
            last_offset: Some(7),
            node: None,
            time_us: 39_000_000,
            count: 1,
            text: "orders-0@7 was acknowledged & is <gone>".into(),
        }];
        broken.comparisons = BTreeMap::from([("V1".to_string(), 12)]);
        let mut green = lossy.clone();
        (green.outcome, green.lost_total) = (Outcome::None, 0);
        green.lost.clear();
        green.configuration = "safe".into();
        let cell = |configuration: &str, expect: &str| PlannedCell {
            scenario: "unclean-election".into(),
            ask: "What does it cost?".into(),
            hash: "30fcc501".into(),
            path: "scenarios/catalogue/durability/unclean-election.toml".into(),
            line: 38,
            configuration: configuration.into(),
            expect: expect.into(),
            first_seed: Some(7),
            last_seed: Some(9),
            settings: BTreeMap::from([
                ("topic.unclean.leader.election.enable".to_string(), "true".to_string()),
                ("broker.num.io.threads".to_string(), "4".to_string()),
            ]),
            unmodelled: vec!["broker.num.io.threads".into()],
            faults: vec![
                PlannedFault { id: "dark".into(), kind: "crash".into() },
                PlannedFault { id: "never".into(), kind: "pause".into() },
            ],
            token_suffix: String::new(),
        };
        let tool = Tool { name: "acked".into(), version: "0.1.0".into(), build: "c60fc73".into() };
        let plan = Plan {
            schema: PLAN_SCHEMA.into(),
            tool,
            cells: vec![cell("default", "must-lose"), cell("safe", "never")],
            seeds: 3,
            ..Plan::default()
        };
        let mut gathering = Gathering::new(2);
        let mut reports = vec![CellReport::default(); 2];
        let mut summary = CampaignSummary::default();
        for (at, result) in [(0, &lossy), (0, &broken), (1, &green)] {
            gathering.add(at, result);
            reports[at].add(result);
            summary.add(result);
        }
        let ended = Ended {
            run_id: "0123456789ab".into(),
            verdict: "violated",
            exit: 1,
            not_run: 0,
            created: None,
            known_checks: &[
                ("V1", "lost write", "an acknowledged record is read"),
                ("Q1", "election safety", "one leader"),
            ],
        };
        gathering.finish(plan, &reports, &summary, &ended)
    }

    #[test]
    fn the_document_is_read_back_from_its_json() {
        let document = document();
        let text = serde_json::to_string_pretty(&document).expect("string keys only");
        assert!(text.starts_with("{\n  \"schema\": \"result/1\""), "{text}");
        assert_eq!(serde_json::from_str::<Document>(&text).expect("just written"), document);
    }

    #[test]
    fn findings_are_grouped_by_cause_the_broken_first_and_the_failing_seed_is_told() {
        let document = document();
        let words: Vec<(&str, Contract, u64)> = document
            .findings
            .iter()
            .map(|group| (group.invariant.as_str(), group.contract, group.count))
            .collect();
        assert_eq!(words, [("V1", Contract::Broken, 1), ("loss", Contract::Kept, 2)]);
        let told = document.told.as_ref().expect("a seed is told");
        assert_eq!((told.cell, told.result.seed), (0, 9));
        assert_eq!(document.headline(), "1 of 8 acknowledged records lost");
        assert_eq!(document.cells[0].strip, "lF");
        assert_eq!((document.checks[0].comparisons, document.checks[0].violated), (12, 1));
    }

    #[test]
    fn what_is_too_much_is_counted() {
        let (lossy, _) = story();
        let mut gathering = Gathering::new(1);
        for seed in 0..STRIP_MAX as u64 + 5 {
            gathering.add(0, &SeedResult { seed, ..lossy.clone() });
        }
        assert_eq!((gathering.strips[0].len(), gathering.seeds_left_out), (STRIP_MAX, 5));
        let group = gathering.groups.values().next().expect("one cause");
        assert_eq!((group.seeds.len(), group.count), (SEEDS_LISTED, STRIP_MAX as u64 + 5));
    }
}
