//! `acked repro TOKEN`: one exact run, the same bytes on standard output every time.

use std::sync::Arc;

use acked_reports::Verdict;
use acked_reports::render::{lines, seed};
use clap::{Args, ValueEnum};
use tracing_subscriber::filter::LevelFilter;

use super::options::TokenOptions;
use super::run::Format;
use crate::campaign::{Cell, Source};
use crate::exit::{Exit, Failure};
use crate::output::{self, Sink};
use crate::token::{BUILD, Token};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Level {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

#[derive(Clone, Debug, Args)]
pub struct ReproArgs {
    #[command(flatten)]
    token: TokenOptions,
    /// How the result is written to standard output
    #[arg(long, value_enum, default_value_t, env = "ACKED_FORMAT")]
    format: Format,
    /// Writes what the nodes log, down to this level, to standard error
    #[arg(long, value_enum, value_name = "LEVEL", env = "ACKED_LOG")]
    log: Option<Level>,
}

/// # Errors
/// A token that is none, or of another build or scenario; an output that fails.
pub fn run(arguments: &ReproArgs) -> Result<Exit, Failure> {
    let meant = meant(&arguments.token)?;
    if let Some(level) = arguments.log {
        log(level);
    }
    let output = acked_sim::runner::run(&meant.cell.plan, meant.seed, &meant.cell.token(meant.seed), false);
    let result = output.result;
    let text = match arguments.format {
        Format::Human => seed::whole(&result, &meant.suffix, output::style(arguments.token.color)),
        Format::Jsonl => lines::seed(&result),
        Format::Json => serde_json::to_string_pretty(&result).expect("results have string keys only") + "\n",
    };
    Sink::stdout().write(&text)?;
    Ok(of_verdict(result.verdict))
}

/// The exit code of a single seed, of which nothing is expected beyond itself.
fn of_verdict(verdict: Verdict) -> Exit {
    match verdict {
        Verdict::Pass => Exit::Held,
        Verdict::Violation => Exit::Broken,
        Verdict::Nondeterministic => Exit::Nondeterministic,
        Verdict::Unknown | Verdict::Vacuous | Verdict::Budget => Exit::Inconclusive,
    }
}

/// A run that a token means.
pub struct Meant {
    pub cell: Cell,
    pub seed: u64,
    /// What has to follow the token on a command line.
    pub suffix: String,
}

/// Finds what a token means in this build.
///
/// # Errors
/// A token that is none, of another build, of a scenario or configuration that is not at hand.
pub fn meant(options: &TokenOptions) -> Result<Meant, Failure> {
    let token = Token::parse(&options.token).map_err(|error| Failure::usage(error.to_string()))?;
    if token.build != BUILD {
        let text = format!("the token is of build {}, this is build {BUILD}", token.build);
        if !options.allow_build_mismatch {
            return Err(Failure::usage(format!(
                "{text}: check that build out, or try it here with --allow-build-mismatch"
            )));
        }
        output::note(&format!("{text}; the run may differ"));
    }
    let source = match &options.scenario {
        Some(path) => Source::read(path)?,
        None => Source::shipped(&token.scenario).ok_or_else(|| {
            Failure::usage(format!(
                "no scenario '{}' ships with acked: give its file (hash {}) with --scenario FILE",
                token.scenario, token.scenario_hash
            ))
        })??,
    };
    if source.scenario.name != token.scenario {
        return Err(Failure::usage(format!(
            "the token is of scenario '{}', and {} is '{}'",
            token.scenario, source.path, source.scenario.name
        )));
    }
    if source.hash != token.scenario_hash {
        return Err(Failure::usage(format!(
            "the token needs scenario '{}' with hash {}, and {} has hash {}: give the right file with \
             --scenario FILE",
            token.scenario, token.scenario_hash, source.path, source.hash
        )));
    }
    let suffix = options.scenario.as_ref().map(|path| format!(" --scenario {path}")).unwrap_or_default();
    let (cells, _) = Cell::all(&Arc::new(source), Some(&token.configuration), &token.changes)?;
    let cell = cells.into_iter().next().expect("a configuration that is asked for gives a plan");
    Ok(Meant { cell, seed: token.seed, suffix })
}

fn log(level: Level) {
    let level = match level {
        Level::Error => LevelFilter::ERROR,
        Level::Warn => LevelFilter::WARN,
        Level::Info => LevelFilter::INFO,
        Level::Debug => LevelFilter::DEBUG,
        Level::Trace => LevelFilter::TRACE,
    };
    // The wall clock would differ from run to run.
    tracing_subscriber::fmt()
        .log_internal_errors(false)
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .without_time()
        .init();
}
