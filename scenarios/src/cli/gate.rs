//! `acked gate`: what continuous integration asks. The detector must see the canary fail, seeds must give the same run
//! twice, every mutation must be killed by its scenario, and every scenario must hold in every configuration. The
//! museum's scenarios run without their mutation too, over the very seeds that killed it.

use std::cell::RefCell;
use std::time::Duration;

use acked_reports::render::{self, CellReport};
use acked_reports::{CampaignSummary, SeedResult, Verdict};
use clap::Args;
use serde::Serialize;

use super::mutants::{self, Hunt};
use super::options::{Format, MutateOption, WorkOptions};
use super::run::report;
use crate::campaign::{
    Cell, CellTally, Ending, Flow, Job, Pool, Seeds, Selection, Stop, everything, exit, seeds, select,
};
use crate::exit::{Exit, Failure};
use crate::mutations::{self, CANARY};
use crate::output::{self, Progress, Sink};
use crate::stopwatch::Stopwatch;
use crate::token::{BUILD, Changes};

/// Seeds within which the canary must fail.
const CANARY_SEEDS: u64 = 10;
/// Scenarios that plant a defect of the code under test, and what must come of it.
const PLANTED: [(&str, Planted); 3] = [
    ("planted-panic", Planted::Finding("PANIC")),
    ("planted-spin", Planted::Finding("SPIN")),
    ("planted-hang", Planted::Budget),
];
/// Wall time after which a worker that hangs on purpose is ended, unless the command line says less.
const HANG_TIMEOUT: Duration = Duration::from_secs(5);
/// Seeds that run twice, in processes that share nothing.
const TWICE_SEEDS: u64 = 20;
/// Seeds of every scenario and configuration.
const SEEDS_EACH: u64 = 10;

/// What the testbed must make of a planted defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Planted {
    /// A finding with this identifier.
    Finding(&'static str),
    /// The seed is out of budget.
    Budget,
}

#[derive(Clone, Debug, Args)]
pub struct GateArgs {
    #[command(flatten)]
    mutate: MutateOption,
    /// How the result is written to standard output
    #[arg(long, value_enum, default_value_t, env = "ACKED_FORMAT")]
    format: Format,
    #[command(flatten)]
    work: WorkOptions,
}

/// What one stage came to.
#[derive(Clone, Debug, Serialize)]
struct Stage {
    stage: &'static str,
    ok: bool,
    exit: u8,
    text: String,
    /// More to know, for people.
    #[serde(skip)]
    details: String,
}

impl Stage {
    fn new(stage: &'static str, exit: Exit, text: String) -> Stage {
        Stage { stage, ok: exit == Exit::Held, exit: exit.code(), text, details: String::new() }
    }
}

struct Gate<'a> {
    changes: Changes,
    work: &'a WorkOptions,
    stop: &'a Stop,
}

/// What has been found so far, written as it comes.
struct Protocol {
    format: Format,
    style: render::Style,
    quiet: bool,
    sink: Sink,
    started: Stopwatch,
    stages: Vec<Stage>,
    worst: Exit,
}

impl Protocol {
    /// Takes one stage down; whether the following ones still mean something.
    fn add(&mut self, (stage, exit): (Stage, Exit)) -> Result<bool, Failure> {
        if self.format == Format::Human {
            let word = if stage.ok { self.style.green("ok") } else { self.style.red("FAIL") };
            self.sink.write(&format!("{:12} {word:4}  {}\n{}", stage.stage, stage.text, stage.details))?;
        }
        if !self.quiet {
            output::say(&format!("{} done after {:.1} s", stage.stage, self.started.elapsed().as_secs_f64()));
        }
        self.stages.push(stage);
        if self.worst == Exit::Held || exit == Exit::Broken {
            self.worst = exit;
        }
        // A broken detector, or runs that do not repeat, make everything after them worthless.
        Ok(!matches!(exit, Exit::CanaryPassed | Exit::Nondeterministic))
    }

    fn close(&mut self, changes: &Changes, hunts: &[Hunt], exit: Exit) -> Result<(), Failure> {
        let word = exit.word();
        match self.format {
            Format::Human => {
                let line = format!("gate: {}", word.to_uppercase());
                let line = if exit == Exit::Held { self.style.green(&line) } else { self.style.red(&line) };
                self.sink.write(&format!("{line}\n"))?;
            }
            Format::Json => {
                let document = serde_json::json!({
                    "build": BUILD,
                    "mutate": changes.mutate,
                    "verdict": word,
                    "exit": exit.code(),
                    "stages": self.stages,
                    "mutants": hunts,
                });
                let text = serde_json::to_string_pretty(&document).map_err(std::io::Error::from)?;
                self.sink.write(&format!("{text}\n"))?;
            }
        }
        Ok(())
    }
}

/// # Errors
/// Scenarios that are missing, workers that do not start, an output that fails.
pub fn run(arguments: &GateArgs) -> Result<Exit, Failure> {
    let stop = Stop::default();
    stop.listen()?;
    let gate = Gate { changes: arguments.mutate.changes(), work: &arguments.work, stop: &stop };
    let mut protocol = Protocol {
        format: arguments.format,
        style: output::style(arguments.work.color),
        quiet: arguments.work.quiet,
        sink: Sink::stdout(),
        started: Stopwatch::start(),
        stages: Vec::new(),
        worst: Exit::Held,
    };
    let mut hunts = Vec::new();
    if let Some(unprovoked) = gate.unprovoked() {
        protocol.add(unprovoked)?;
    }
    let mut goes_on = protocol.add(gate.canary()?)? && stop.signalled().is_none();
    if goes_on {
        goes_on = protocol.add(gate.planted()?)? && stop.signalled().is_none();
    }
    if goes_on {
        goes_on = protocol.add(gate.twice()?)? && stop.signalled().is_none();
    }
    if goes_on {
        let (stage, exit, hunted) = gate.mutants()?;
        hunts = hunted;
        goes_on = protocol.add((stage, exit))? && stop.signalled().is_none();
    }
    if goes_on {
        protocol.add(gate.scenarios(&hunts, protocol.style)?)?;
    }
    let exit = stop.signalled().unwrap_or(protocol.worst);
    protocol.close(&gate.changes, &hunts, exit)?;
    Ok(exit)
}

impl Gate<'_> {
    /// A gate that is asked to notice what no scenario provokes would be green without meaning it.
    fn unprovoked(&self) -> Option<(Stage, Exit)> {
        let name = self
            .changes
            .mutate
            .iter()
            .find(|name| mutations::find(name).is_some_and(|mutation| mutation.provoked_by.is_none()))?;
        let exit = Exit::Inconclusive;
        Some((Stage::new("mutation", exit, format!("no scenario provokes {name} yet")), exit))
    }

    /// leader-crash under the plainest bug there is, which the canary's own file plants, must fail.
    fn canary(&self) -> Result<(Stage, Exit), Failure> {
        let selection = Selection {
            names: vec![CANARY.to_string()],
            configuration: Some("default".to_string()),
            changes: self.changes.clone(),
        };
        let cells = select(&selection)?.cells;
        let mut failed: Option<SeedResult> = None;
        let jobs = seeds::cell_by_cell(seeds::spans(Seeds::Count(CANARY_SEEDS), 1, 1));
        self.pool(&cells, jobs, CANARY_SEEDS, self.work.seed_timeout, |_, result, _| {
            let black_box = |finding: &acked_reports::Finding| {
                finding.contract == acked_reports::Contract::Broken
                    && mutants::is_black_box(&finding.invariant)
            };
            if result.verdict == Verdict::Violation && result.findings.iter().any(black_box) {
                failed = Some(result);
                return Flow::Stop;
            }
            Flow::Continue
        })?;
        Ok(match failed {
            Some(result) => {
                let text = format!("{CANARY} fails, as it must: seed {}", result.seed);
                (Stage::new("canary", Exit::Held, text), Exit::Held)
            }
            None => {
                let text = format!("{CANARY} passes {CANARY_SEEDS} seeds");
                (Stage::new("canary", Exit::CanaryPassed, text), Exit::CanaryPassed)
            }
        })
    }

    /// A panic, an endless loop and a hung thread must each be noticed, and only cost their own seed.
    fn planted(&self) -> Result<(Stage, Exit), Failure> {
        let names = PLANTED.iter().map(|(name, _)| (*name).to_string()).collect();
        let selection = Selection { names, configuration: None, changes: self.changes.clone() };
        let cells = select(&selection)?.cells;
        let jobs = seeds::cell_by_cell(seeds::spans(Seeds::Count(1), 1, cells.len()));
        let timeout = self.work.seed_timeout.min(HANG_TIMEOUT);
        let mut seen = 0;
        self.pool(&cells, jobs, cells.len() as u64, timeout, |job, result, _| {
            seen += usize::from(match PLANTED[job.cell].1 {
                Planted::Budget => result.verdict == Verdict::Budget,
                Planted::Finding(id) => result.findings.iter().any(|finding| finding.invariant == id),
            });
            Flow::Continue
        })?;
        let exit = if seen == PLANTED.len() { Exit::Held } else { Exit::CanaryPassed };
        let text = format!(
            "{seen} of {} planted defects seen: a panic, an endless loop, a hung thread",
            PLANTED.len()
        );
        Ok((Stage::new("defects", exit, text), exit))
    }

    /// The same seeds in two sets of processes, in two orders.
    fn twice(&self) -> Result<(Stage, Exit), Failure> {
        let cells = select(&Selection { changes: self.changes.clone(), ..Selection::default() })?.cells;
        let spans = seeds::spread(TWICE_SEEDS, 1, cells.len());
        let jobs: Vec<Job> = seeds::cell_by_cell(spans).collect();
        let mut first: Vec<(Job, SeedResult)> = Vec::new();
        let timeout = self.work.seed_timeout;
        self.pool(&cells, jobs.clone().into_iter(), TWICE_SEEDS, timeout, |job, result, _| {
            first.push((job, result));
            Flow::Continue
        })?;
        let mut differing: Option<(SeedResult, SeedResult)> = None;
        let mut compared = 0;
        self.pool(&cells, jobs.into_iter().rev(), TWICE_SEEDS, timeout, |job, result, _| {
            let known = first.iter().find(|(known, _)| *known == job).map(|(_, known)| known);
            compared += usize::from(known.is_some());
            match known {
                Some(known) if *known != result && known.verdict != Verdict::Budget => {
                    differing = Some((known.clone(), result));
                    Flow::Stop
                }
                _ => Flow::Continue,
            }
        })?;
        if let Some((one, other)) = differing {
            let text = format!("one seed, two runs: hash {} and {}", one.hash, other.hash);
            let mut stage = Stage::new("determinism", Exit::Nondeterministic, text);
            stage.details = format!("repro   acked repro {}\n", one.token);
            return Ok((stage, Exit::Nondeterministic));
        }
        let exit = if compared as u64 == TWICE_SEEDS { Exit::Held } else { Exit::Inconclusive };
        Ok((Stage::new("determinism", exit, format!("{compared} seeds run twice, equal")), exit))
    }

    /// Every mutation must be killed.
    fn mutants(&self) -> Result<(Stage, Exit, Vec<Hunt>), Failure> {
        let mut hunts = Vec::new();
        for (mutation, provocation) in mutants::provoked() {
            if self.stop.signalled().is_none() {
                hunts.push(mutants::hunt(mutation, provocation, &self.changes, self.work, self.stop)?);
            }
        }
        let killed = hunts.iter().filter(|hunt| hunt.killed.is_some()).count();
        let exit = if killed == hunts.len() { Exit::Held } else { Exit::Broken };
        let text = format!("{killed} of {} mutations killed", hunts.len());
        let mut stage = Stage::new("mutants", exit, text);
        stage.details = hunts
            .iter()
            .map(|hunt| match &hunt.killed {
                Some(kill) => {
                    let seeds = render::words::count(kill.seeds, "seed");
                    format!("    {:34} {} in {seeds}\n", hunt.mutation, kill.sighting.invariant)
                }
                None => mutants::human(hunt),
            })
            .collect();
        Ok((stage, exit, hunts))
    }

    /// Every scenario in every configuration; a museum's scenario over every seed that its mutation needed.
    fn scenarios(&self, hunts: &[Hunt], style: render::Style) -> Result<(Stage, Exit), Failure> {
        let cells = everything(&self.changes)?;
        let spans: Vec<seeds::Span> = cells
            .iter()
            .map(|cell| {
                let hunted = hunts.iter().filter(|hunt| hunt.scenario == cell.name());
                let needed = hunted.filter_map(|hunt| hunt.killed.as_ref()).map(|kill| kill.seeds).max();
                Some((1, needed.unwrap_or(0).max(SEEDS_EACH)))
            })
            .collect();
        let total = seeds::count(&spans);
        let mut reports: Vec<CellReport> = cells.iter().map(report).collect();
        let mut tallies: Vec<CellTally> =
            cells.iter().map(|cell| CellTally::new(cell.expectation())).collect();
        let mut summary = CampaignSummary::default();
        self.pool(&cells, seeds::cell_by_cell(spans), total, self.work.seed_timeout, |job, result, died| {
            tallies[job.cell].add(&result, died);
            reports[job.cell].add(&result);
            summary.add(&result);
            Flow::Continue
        })?;
        let mut details = String::new();
        for (report, tally) in reports.iter_mut().zip(&tallies) {
            report.unmet = tally.unmet().map(str::to_string);
            let green = report.unmet.is_none() && report.failures.is_empty() && report.undecided.is_empty();
            if !green || !report.losses.is_empty() {
                details.push_str(&render::campaign::cell(report, style));
            }
        }
        let exit = exit(&tallies, Ending { signalled: self.stop.signalled(), ..Ending::default() });
        let text = format!(
            "{} cells, {} seeds: {} pass, {} violation, {} undecided",
            cells.len(),
            summary.seeds_run,
            summary.pass,
            summary.violation + summary.nondeterministic,
            summary.unknown + summary.vacuous + summary.budget
        );
        let mut stage = Stage::new("scenarios", exit, text);
        stage.details = details;
        Ok((stage, exit))
    }

    fn pool(
        &self,
        cells: &[Cell],
        jobs: impl Iterator<Item = Job> + Send,
        total: u64,
        seed_timeout: Duration,
        mut take: impl FnMut(Job, SeedResult, bool) -> Flow,
    ) -> Result<(), Failure> {
        let stop = self.stop.afresh();
        let workers = self.work.workers();
        let pool = Pool { cells, workers, seed_timeout, budget: None, stop: &stop };
        let progress = RefCell::new(Progress::new(self.work.progress(), Some(total)));
        pool.run(
            jobs,
            |result| progress.borrow_mut().arrived(result),
            |delivered| Ok(take(delivered.job, delivered.result, delivered.died)),
        )?;
        progress.borrow().end(true);
        Ok(())
    }
}
