//! The commands, one file each. `--help` is the reference; every flag has a twin `ACKED_…` in the environment.

mod bench;
mod gate;
mod list;
mod mutants;
mod options;
mod repro;
mod run;
mod show;

use clap::{Parser, Subcommand};

use crate::campaign::worker;
use crate::exit::{Exit, Failure};
use crate::output;

const EXIT_CODES: &str = "\
Exit codes: 0 everything asked for ran and held · 1 a contract was broken, or an outcome occurred that the scenario's
gate names · 2 bad usage · 3 inconclusive · 4 nothing selected · 5 nondeterminism · 6 the canary passed ·
70 internal error · 74 input-output error · 130 interrupted · 143 terminated";

/// Is what was acknowledged still there? Runs a Kafka-compatible cluster under faults, deterministically.
#[derive(Debug, Parser)]
#[command(name = "acked", version, long_version = long_version(), after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs scenarios over seeds; without a name, every listed scenario on a few seeds
    Run(run::RunArgs),
    /// One exact run, from its token: the same bytes every time
    Repro(repro::ReproArgs),
    /// The timeline of one run in the terminal: who led, who was in sync, what the faults did, what became of a record
    Show(show::ShowArgs),
    /// The catalogue: scenarios, faults, invariants, settings, mutations
    List(list::ListArgs),
    /// The bug museum: which mutation is killed, by what, in how many seeds
    Mutants(mutants::MutantsArgs),
    /// Everything that continuous integration asks: canary, determinism, mutations, scenarios
    Gate(gate::GateArgs),
    /// What a run costs: acknowledged requests a CPU second, memory, in F as well
    Bench(bench::BenchArgs),
    /// Runs seeds for a parent process
    #[command(hide = true)]
    Worker,
}

fn long_version() -> &'static str {
    concat!(env!("CARGO_PKG_VERSION"), " build ", env!("ACKED_BUILD"))
}

/// Reads the command line and does what it says.
pub fn main() -> Exit {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version come the same way, with code 0; a reader that is gone does not matter here.
            let _ = error.print();
            return if error.exit_code() == 0 { Exit::Held } else { Exit::Usage };
        }
    };
    let ended = match &cli.command {
        Command::Run(arguments) => run::run(arguments),
        Command::Repro(arguments) => repro::run(arguments),
        Command::Show(arguments) => show::run(arguments),
        Command::List(arguments) => list::run(arguments),
        Command::Mutants(arguments) => mutants::run(arguments),
        Command::Gate(arguments) => gate::run(arguments),
        Command::Bench(arguments) => bench::run(arguments),
        Command::Worker => worker::work(),
    };
    ended.unwrap_or_else(|Failure { exit, text }| {
        output::say(&format!("error: {text}"));
        exit
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        super::Cli::command().debug_assert();
    }
}
