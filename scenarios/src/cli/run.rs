//! `acked run`: scenarios over seeds.

use std::collections::BTreeMap;
use std::time::Duration;

use acked_reports::render::{self, CellReport, Style, lines};
use acked_reports::{CampaignSummary, SeedResult, Verdict};
use acked_sim::plan::Expectation;
use clap::{Args, ValueEnum};

use super::options::{ChangeOptions, WorkOptions, duration};
use crate::campaign::{
    Cell, CellTally, Delivered, Ending, Flow, Job, Pool, SeedBase, Seeds, Selection, Stop, exit, seeds,
    select,
};
use crate::exit::{Exit, Failure};
use crate::output::{self, Progress, Sink, Written};
use crate::token::BUILD;

/// Seeds of every cell when nobody says how many: enough to see every demonstration, few enough for ten seconds.
const SEEDS_DEFAULT: Seeds = Seeds::Count(3);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    #[default]
    Human,
    /// One document at the end
    Json,
    /// One object a line: plan, seeds in order, violations, summary
    Jsonl,
}

#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    /// Names, globs over the listed scenarios, or paths of .toml files
    #[arg(value_name = "SCENARIO")]
    pub scenarios: Vec<String>,
    /// Only this configuration
    #[arg(long, value_name = "NAME", env = "ACKED_CONFIGURATION")]
    configuration: Option<String>,
    #[command(flatten)]
    changes: ChangeOptions,
    /// That many seeds for each scenario and configuration, or a range: 4000..4999, both included
    #[arg(long, value_name = "N|A..B", env = "ACKED_SEEDS", conflicts_with_all = ["seed", "total"])]
    seeds: Option<Seeds>,
    /// One seed
    #[arg(long, value_name = "N", env = "ACKED_SEED", conflicts_with_all = ["total", "seed_base"])]
    seed: Option<u64>,
    /// That many seeds, spread over scenarios and configurations
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), env = "ACKED_TOTAL")]
    total: Option<u64>,
    /// The first seed: a number, auto (from the clock) or commit (from the commit's hash)
    #[arg(long, value_name = "N|auto|commit", default_value = "1", env = "ACKED_SEED_BASE")]
    seed_base: SeedBase,
    /// No seed starts later than this; without a number of seeds, seeds run until then
    #[arg(long = "for", value_name = "DURATION", value_parser = duration, env = "ACKED_FOR")]
    budget: Option<Duration>,
    /// Ends the campaign after so many failing seeds; 0 never does
    #[arg(long, value_name = "N", default_value_t = 0, env = "ACKED_MAX_FAIL")]
    max_fail: u64,
    /// How results are written to standard output
    #[arg(long, value_enum, default_value_t, env = "ACKED_FORMAT")]
    format: Format,
    #[command(flatten)]
    work: WorkOptions,
}

/// # Errors
/// Bad usage, nothing selected, workers that do not start, an output that fails.
pub fn run(arguments: &RunArgs) -> Result<Exit, Failure> {
    let changes = arguments.changes.changes();
    let selection = Selection {
        names: arguments.scenarios.clone(),
        configuration: arguments.configuration.clone(),
        changes: changes.clone(),
    };
    let selected = select(&selection)?;
    if !arguments.work.quiet {
        for note in &selected.notes {
            output::note(&note.0);
        }
        if !changes.set.is_empty() {
            output::note("with --set, what the scenarios expect of their own settings is not asked for");
        }
    }
    let cells = &selected.cells;
    let base = arguments.seed_base.first().map_err(Failure::usage)?;
    let endless = arguments.budget.is_some() && arguments.total.is_none();
    let spans = match (arguments.seed, arguments.seeds, arguments.total) {
        (Some(seed), _, _) => seeds::spans(Seeds::Range { first: seed, last: seed }, base, cells.len()),
        (_, Some(seeds), _) => seeds::spans(seeds, base, cells.len()),
        (_, _, Some(total)) => seeds::spread(total, base, cells.len()),
        (None, None, None) if endless => {
            seeds::spans(Seeds::Range { first: base, last: u64::MAX }, base, cells.len())
        }
        (None, None, None) => seeds::spans(SEEDS_DEFAULT, base, cells.len()),
    };
    let planned = seeds::count(&spans);
    let open_ended = endless && arguments.seed.is_none() && arguments.seeds.is_none();
    let stop = Stop::default();
    stop.listen()?;
    let mut campaign = Campaign {
        cells,
        format: arguments.format,
        style: output::style(arguments.work.color),
        max_fail: arguments.max_fail,
        sink: Sink::stdout(),
        reports: cells.iter().map(report).collect(),
        tallies: cells.iter().map(|cell| CellTally::new(cell.expectation())).collect(),
        summary: CampaignSummary::default(),
        kept: Vec::new(),
        printed: 0,
        in_turn: arguments.budget.is_none(),
    };
    campaign.open(&changes.set, &changes.mutate, &spans, if open_ended { 0 } else { planned })?;
    let pool = Pool {
        cells,
        workers: arguments.work.workers(),
        seed_timeout: arguments.work.seed_timeout,
        budget: arguments.budget,
        stop: &stop,
    };
    let progress = Progress::new(arguments.work.progress(), (!open_ended).then_some(planned));
    let progress = std::cell::RefCell::new(progress);
    let jobs: Box<dyn Iterator<Item = Job> + Send> = if arguments.budget.is_some() {
        Box::new(seeds::round_robin(spans))
    } else {
        Box::new(seeds::cell_by_cell(spans))
    };
    let out_of_time = pool.run(
        jobs,
        |result| progress.borrow_mut().arrived(result),
        |delivered| campaign.take(delivered, &progress.borrow()),
    )?;
    progress.borrow().end(arguments.work.quiet);
    let ending = Ending {
        signalled: stop.signalled(),
        out_of_time: out_of_time && !open_ended,
        reader_gone: campaign.sink.reader_gone() && campaign.summary.seeds_run < planned,
    };
    let exit = exit(&campaign.tallies, ending);
    let not_run = if open_ended { 0 } else { planned - campaign.summary.seeds_run };
    campaign.close(exit, not_run)?;
    Ok(exit)
}

/// What is counted and written while results come in.
struct Campaign<'a> {
    cells: &'a [Cell],
    format: Format,
    style: Style,
    max_fail: u64,
    sink: Sink,
    reports: Vec<CellReport>,
    tallies: Vec<CellTally>,
    summary: CampaignSummary,
    /// Every result, for the one JSON document.
    kept: Vec<SeedResult>,
    /// Cells that are written already.
    printed: usize,
    /// Whether cells come one after the other, so that one that is over can be written.
    in_turn: bool,
}

impl Campaign<'_> {
    fn open(
        &mut self,
        set: &BTreeMap<String, String>,
        mutate: &[String],
        spans: &[seeds::Span],
        seeds: u64,
    ) -> Result<(), Failure> {
        if self.format != Format::Jsonl {
            return Ok(());
        }
        let plan = plan_line(self.cells, set, mutate, spans, seeds);
        self.sink.write(&lines::line("plan", &plan))?;
        Ok(())
    }

    fn take(&mut self, delivered: Delivered, progress: &Progress) -> Result<Flow, Failure> {
        let Delivered { job, result, died } = delivered;
        self.tallies[job.cell].add(&result, died);
        self.reports[job.cell].add(&result);
        self.summary.add(&result);
        let written = match self.format {
            Format::Human if self.in_turn && self.printed < job.cell => {
                progress.aside(|| self.print_before(job.cell))?
            }
            Format::Human => Written::Yes,
            Format::Jsonl => progress.aside(|| self.sink.write(&lines::seed(&result)))?,
            Format::Json => {
                self.kept.push(result.clone());
                Written::Yes
            }
        };
        let failing = matches!(result.verdict, Verdict::Violation | Verdict::Nondeterministic);
        let enough = failing && self.max_fail > 0 && self.summary.violation >= self.max_fail;
        Ok(if written == Written::ReaderGone || enough { Flow::Stop } else { Flow::Continue })
    }

    /// Writes the cells that come before this one.
    fn print_before(&mut self, cell: usize) -> Result<Written, Failure> {
        while self.printed < cell {
            let number = self.printed;
            self.printed += 1;
            self.reports[number].unmet = self.tallies[number].unmet().map(str::to_string);
            if self.tallies[number].seeds_run > 0 {
                let text = render::campaign::cell(&self.reports[number], self.style);
                if self.sink.write(&text)? == Written::ReaderGone {
                    return Ok(Written::ReaderGone);
                }
            }
        }
        Ok(Written::Yes)
    }

    fn close(&mut self, exit: Exit, not_run: u64) -> Result<(), Failure> {
        for (report, tally) in self.reports.iter_mut().zip(&self.tallies) {
            report.unmet = tally.unmet().map(str::to_string);
        }
        let (verdict, code) = (exit.word(), exit.code());
        match self.format {
            Format::Human => {
                self.print_before(self.cells.len())?;
                let closing =
                    render::campaign::Closing { summary: &self.summary, verdict, exit: code, not_run };
                self.sink.write(&format!("\n{}", render::campaign::closing(&closing, self.style)))?;
            }
            Format::Jsonl => {
                let summary = summary_line(&self.reports, &self.summary, exit, not_run);
                self.sink.write(&lines::line("summary", &summary))?;
            }
            Format::Json => {
                let summary = summary_line(&self.reports, &self.summary, exit, not_run);
                let document = serde_json::json!({
                    "schema": lines::SCHEMA,
                    "version": env!("CARGO_PKG_VERSION"),
                    "build": BUILD,
                    "seeds": self.kept,
                    "summary": summary,
                });
                let text = serde_json::to_string_pretty(&document).expect("results have string keys only");
                self.sink.write(&format!("{text}\n"))?;
            }
        }
        Ok(())
    }
}

pub fn word(expectation: Expectation) -> &'static str {
    match expectation {
        Expectation::Never => "never",
        Expectation::May => "may",
        Expectation::MustLose => "must-lose",
    }
}

/// An empty report of a cell.
pub fn report(cell: &Cell) -> CellReport {
    CellReport {
        scenario: cell.name().to_string(),
        configuration: cell.configuration.clone(),
        expectation: word(cell.expectation()).to_string(),
        token_suffix: token_suffix(cell),
        ..CellReport::default()
    }
}

/// What a token needs beside itself on a command line.
fn token_suffix(cell: &Cell) -> String {
    if cell.source.own_file { format!(" --scenario {}", cell.source.path) } else { String::new() }
}

fn plan_line<'a>(
    cells: &'a [Cell],
    set: &'a BTreeMap<String, String>,
    mutate: &'a [String],
    spans: &[seeds::Span],
    seeds: u64,
) -> lines::Plan<'a> {
    lines::Plan {
        schema: lines::SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        build: BUILD,
        seeds,
        set,
        mutate,
        cells: cells
            .iter()
            .zip(spans)
            .map(|(cell, span)| lines::PlannedCell {
                scenario: cell.name(),
                hash: &cell.source.hash,
                configuration: &cell.configuration,
                expect: word(cell.expectation()),
                first_seed: span.map(|(first, _)| first),
                last_seed: span.map(|(_, last)| last),
            })
            .collect(),
    }
}

fn summary_line<'a>(
    reports: &'a [CellReport],
    sums: &'a CampaignSummary,
    exit: Exit,
    not_run: u64,
) -> lines::Summary<'a> {
    let cells = reports.iter().map(lines::SummaryCell::from).collect();
    lines::Summary { verdict: exit.word(), exit: exit.code(), not_run, sums, cells }
}
