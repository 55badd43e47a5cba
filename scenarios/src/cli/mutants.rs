//! `acked mutants`: every mutation must be killed by its own scenario, within its budget of seeds, by a check that sees
//! only clients and logs; where the mutation says so, by one of the metadata quorum's too. What the white-box checks say, and when, is reported beside it.

use std::io;

use acked_reports::render::words::seconds;
use acked_reports::{Contract, Finding, SeedResult};
use acked_sim::judge::{INVARIANTS, View};
use clap::Args;
use serde::Serialize;

use super::options::{Format, MutateOption, WorkOptions};
use crate::campaign::{Cell, Flow, Pool, Seeds, Selection, Stop, seeds, select};
use crate::exit::{Exit, Failure};
use crate::mutations::{self, MUTATIONS, Mutation, Provocation};
use crate::output::{self, Progress, Sink, Written};
use crate::token::Changes;

#[derive(Clone, Debug, Args)]
pub struct MutantsArgs {
    /// Only these; all that have a scenario without a name
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    beside: MutateOption,
    /// How the result is written to standard output
    #[arg(long, value_enum, default_value_t, env = "ACKED_FORMAT")]
    format: Format,
    #[command(flatten)]
    work: WorkOptions,
}

/// What became of one mutation.
#[derive(Clone, Debug, Serialize)]
pub struct Hunt {
    pub mutation: &'static str,
    pub museum: &'static str,
    pub scenario: &'static str,
    pub configuration: &'static str,
    pub budget: u64,
    pub seeds_run: u64,
    /// `None` when it survived.
    pub killed: Option<Kill>,
    pub first_white_box: Option<Sighting>,
    /// Seeds that gave no verdict; they kill nothing.
    pub undecided: u64,
    /// Whether a check of the metadata quorum kills it as well.
    #[serde(skip)]
    quorum_checks_kill: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct Kill {
    /// How many seeds it took.
    pub seeds: u64,
    #[serde(flatten)]
    pub sighting: Sighting,
}

/// The first finding of a kind, and where to see it again.
#[derive(Clone, Debug, Serialize)]
pub struct Sighting {
    pub invariant: String,
    pub seed: u64,
    /// Virtual microseconds since the run began.
    pub time_us: u64,
    pub text: String,
    pub token: String,
}

/// # Errors
/// Unknown names, workers that do not start, an output that fails.
pub fn run(arguments: &MutantsArgs) -> Result<Exit, Failure> {
    let mut chosen = Vec::new();
    for name in &arguments.names {
        mutations::rules(std::slice::from_ref(name)).map_err(Failure::usage)?;
        let mutation = mutations::find(name).expect("its rules exist");
        let provocation = mutation
            .provoked_by
            .ok_or_else(|| Failure::usage(format!("no scenario provokes '{name}' yet")))?;
        chosen.push((mutation, provocation));
    }
    if arguments.names.is_empty() {
        chosen = provoked().collect();
    }
    let stop = Stop::default();
    stop.listen()?;
    let mut sink = Sink::stdout();
    let mut hunts = Vec::new();
    for (mutation, provocation) in chosen {
        let hunted = hunt(mutation, provocation, &arguments.beside.changes(), &arguments.work, &stop)?;
        if arguments.format == Format::Human && sink.write(&human(&hunted))? == Written::ReaderGone {
            return Ok(Exit::InputOutput);
        }
        hunts.push(hunted);
        if let Some(exit) = stop.signalled() {
            return Ok(exit);
        }
    }
    if arguments.format == Format::Json {
        let text = serde_json::to_string_pretty(&hunts).map_err(io::Error::from)?;
        sink.write(&format!("{text}\n"))?;
    }
    Ok(if hunts.iter().all(|hunt| hunt.killed.is_some()) { Exit::Held } else { Exit::Broken })
}

/// The mutations that have a scenario.
pub fn provoked() -> impl Iterator<Item = (&'static Mutation, Provocation)> {
    MUTATIONS.iter().filter_map(|mutation| Some((mutation, mutation.provoked_by?)))
}

/// The cell that provokes a mutation, with the mutation or without.
///
/// # Errors
/// A scenario that is missing, or does not fit.
pub fn provoking_cell(provocation: Provocation, changes: Changes) -> Result<Cell, Failure> {
    let selection = Selection {
        names: vec![provocation.scenario.to_string()],
        configuration: Some(provocation.configuration.to_string()),
        changes,
    };
    Ok(select(&selection)?.cells.remove(0))
}

/// Runs seed after seed until one kills the mutation.
///
/// # Errors
/// A scenario that is missing, workers that do not start.
pub fn hunt(
    mutation: &'static Mutation,
    provocation: Provocation,
    beside: &Changes,
    work: &WorkOptions,
    stop: &Stop,
) -> Result<Hunt, Failure> {
    let cells = [provoking_cell(provocation, beside.with_mutation(mutation.name))?];
    let stop = stop.afresh();
    let pool = Pool {
        cells: &cells,
        workers: work.workers(),
        seed_timeout: work.seed_timeout,
        budget: None,
        stop: &stop,
    };
    let mut hunt = Hunt {
        mutation: mutation.name,
        museum: mutation.museum,
        scenario: provocation.scenario,
        configuration: provocation.configuration,
        budget: provocation.seeds,
        seeds_run: 0,
        killed: None,
        first_white_box: None,
        undecided: 0,
        quorum_checks_kill: provocation.quorum_checks_kill,
    };
    let spans = seeds::spans(Seeds::Count(provocation.seeds), 1, 1);
    let progress = std::cell::RefCell::new(Progress::new(work.progress(), None));
    pool.run(
        seeds::cell_by_cell(spans),
        |result| progress.borrow_mut().arrived(result),
        |delivered| {
            hunt.look_at(&delivered.result);
            Ok(if hunt.killed.is_some() { Flow::Stop } else { Flow::Continue })
        },
    )?;
    progress.borrow().end(true);
    Ok(hunt)
}

impl Hunt {
    fn look_at(&mut self, result: &SeedResult) {
        self.seeds_run += 1;
        let earliest = |wanted: &dyn Fn(&str) -> bool| {
            let broken = result
                .findings
                .iter()
                .filter(|finding| finding.contract == Contract::Broken && wanted(&finding.invariant));
            broken.min_by_key(|finding| finding.time_us).map(|finding| sighting(result, finding))
        };
        if self.first_white_box.is_none() {
            self.first_white_box = earliest(&is_white_box);
        }
        let by_quorum = self.quorum_checks_kill;
        let kills = |invariant: &str| is_black_box(invariant) || by_quorum && is_of_quorum(invariant);
        if let Some(sighting) = earliest(&kills) {
            self.killed = Some(Kill { seeds: self.seeds_run, sighting });
        } else if result.reason.is_some() {
            self.undecided += 1;
        }
    }
}

fn sighting(result: &SeedResult, finding: &Finding) -> Sighting {
    Sighting {
        invariant: finding.invariant.clone(),
        seed: result.seed,
        time_us: finding.time_us,
        text: finding.text.clone(),
        token: result.token.clone(),
    }
}

/// Whether the check sees only clients and logs. A panic or whatever else is no check, and kills nothing.
pub fn is_black_box(invariant: &str) -> bool {
    view(invariant) == Some(View::BlackBox)
}

/// Whether the check is one of the metadata quorum's.
fn is_of_quorum(invariant: &str) -> bool {
    invariant.starts_with('Q') && view(invariant).is_some()
}

fn is_white_box(invariant: &str) -> bool {
    view(invariant) == Some(View::WhiteBox)
}

fn view(invariant: &str) -> Option<View> {
    INVARIANTS.iter().find(|known| known.id == invariant).map(|known| known.view)
}

/// A few lines about one mutation.
pub fn human(hunt: &Hunt) -> String {
    let mut text = match &hunt.killed {
        Some(kill) => format!(
            "{:32} killed by {} in {} of {} seeds, at {} s of seed {}\n",
            hunt.mutation,
            kill.sighting.invariant,
            kill.seeds,
            hunt.budget,
            seconds(kill.sighting.time_us),
            kill.sighting.seed
        ),
        None => format!("{:32} SURVIVED {} of {} seeds\n", hunt.mutation, hunt.seeds_run, hunt.budget),
    };
    if let Some(kill) = &hunt.killed {
        text.push_str(&format!("    {}\n    show  acked show {}\n", kill.sighting.text, kill.sighting.token));
    }
    match &hunt.first_white_box {
        Some(seen) => text.push_str(&format!(
            "    white box: {} at {} s of seed {}: {}\n",
            seen.invariant,
            seconds(seen.time_us),
            seen.seed,
            seen.text
        )),
        None => text.push_str("    white box: nothing\n"),
    }
    if hunt.undecided > 0 {
        output::note(&format!("{}: {} seeds gave no verdict", hunt.mutation, hunt.undecided));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_of_the_quorum_kills_only_what_says_so() {
        assert!(is_of_quorum("Q1") && !is_of_quorum("QUIT") && !is_of_quorum("S1"));
        let allowed: Vec<&str> = provoked()
            .filter(|(_, provocation)| provocation.quorum_checks_kill)
            .map(|(mutation, _)| mutation.name)
            .collect();
        assert_eq!(allowed, ["raft-ack-before-flush", "raft-vote-not-persisted"]);
    }

    #[test]
    fn only_checks_of_clients_and_logs_kill() {
        assert!(is_black_box("S1") && is_black_box("V1"));
        assert!(!is_black_box("S2") && !is_black_box("PANIC"));
        assert!(is_white_box("S2") && !is_white_box("PANIC"));
    }
}
