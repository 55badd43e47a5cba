//! What one scenario in one configuration came to over its seeds: sums, losses by the rule that permits them, and the
//! first seeds of every kind that needs a look.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::result::{CampaignSummary, Contract, SeedResult, Verdict};

/// Failing seeds that are kept whole.
const FAILURES_KEPT: usize = 3;
/// Distinct reasons of vacuous, unknown and budget seeds that are kept.
const REASONS_KEPT: usize = 5;

/// Acknowledged records lost for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    pub contract: Contract,
    /// The rule of the loss oracle, or that nothing permits it.
    pub rule: String,
    /// The fault that made it, in the first seed that lost by it.
    pub fault: Option<String>,
    pub records: u64,
    pub seeds: u64,
}

/// Seeds that proved nothing, for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undecided {
    pub verdict: Verdict,
    pub reason: String,
    pub seeds: u64,
    pub first: Example,
}

/// A seed to look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Example {
    pub seed: u64,
    pub token: String,
}

impl Example {
    fn of(result: &SeedResult) -> Example {
        Example { seed: result.seed, token: result.token.clone() }
    }
}

#[derive(Clone, Debug, Default)]
pub struct CellReport {
    pub scenario: String,
    pub configuration: String,
    /// `never`, `may`, `must-lose`.
    pub expectation: String,
    /// What has to follow the token on a command line: where a scenario of the user's own lies.
    pub token_suffix: String,
    pub first_seed: Option<u64>,
    pub last_seed: Option<u64>,
    pub summary: CampaignSummary,
    pub losses: Vec<Loss>,
    /// First seed in which acknowledged data was lost and no contract broken.
    pub lossy: Option<Example>,
    pub lossy_seeds: u64,
    /// The first failing seeds, whole.
    pub failures: Vec<SeedResult>,
    pub undecided: Vec<Undecided>,
    /// Why the cell says less than its scenario promises.
    pub unmet: Option<String>,
}

impl CellReport {
    pub fn add(&mut self, result: &SeedResult) {
        self.summary.add(result);
        self.first_seed = Some(self.first_seed.map_or(result.seed, |first| first.min(result.seed)));
        self.last_seed = Some(self.last_seed.map_or(result.seed, |last| last.max(result.seed)));
        let mut by_rule: BTreeMap<(Contract, &str), (u64, Option<&str>)> = BTreeMap::new();
        for range in &result.lost {
            // The fault stands in brackets behind the rule.
            let (rule, fault) = match range.rule.split_once(" (") {
                Some((rule, fault)) => (rule, fault.strip_suffix(')')),
                None => (range.rule.as_str(), None),
            };
            by_rule.entry((range.contract, rule)).or_insert((0, fault)).0 += range.count;
        }
        for ((contract, rule), (records, fault)) in by_rule {
            let known = self.losses.iter_mut().find(|loss| loss.contract == contract && loss.rule == rule);
            if let Some(loss) = known {
                loss.records += records;
                loss.seeds += 1;
            } else {
                let (rule, fault) = (rule.to_string(), fault.map(str::to_string));
                self.losses.push(Loss { contract, rule, fault, records, seeds: 1 });
            }
        }
        if result.lost_total > 0 {
            self.lossy_seeds += 1;
            if result.contract != Contract::Broken {
                self.lossy.get_or_insert_with(|| Example::of(result));
            }
        }
        match result.verdict {
            Verdict::Pass => {}
            Verdict::Violation | Verdict::Nondeterministic => {
                if self.failures.len() < FAILURES_KEPT {
                    self.failures.push(result.clone());
                }
            }
            Verdict::Unknown | Verdict::Vacuous | Verdict::Budget => self.add_undecided(result),
        }
    }

    fn add_undecided(&mut self, result: &SeedResult) {
        let reason = result.reason.as_deref().unwrap_or("no reason given");
        let known =
            self.undecided.iter_mut().find(|known| known.verdict == result.verdict && known.reason == reason);
        if let Some(known) = known {
            known.seeds += 1;
        } else if self.undecided.len() < REASONS_KEPT {
            self.undecided.push(Undecided {
                verdict: result.verdict,
                reason: reason.to_string(),
                seeds: 1,
                first: Example::of(result),
            });
        }
    }
}
