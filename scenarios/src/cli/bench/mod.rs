//! `acked bench`: what a run costs in CPU time and memory, in seconds and in F, the unit that travels between machines.
//!
//! | file | holds |
//! |---|---|
//! | load.rs | the worlds that are measured |
//! | world.rs | one of them, measured |
//! | measures.rs | what is measured, round by round |
//! | workers.rs | whole campaigns by one worker and by two |
//! | table.rs | the figures as a table |

mod load;
mod measures;
mod table;
mod workers;
mod world;

use clap::Args;
use serde::Serialize;

use crate::cli::options::Format;
use crate::exit::{Exit, Failure};
use crate::output::{self, Sink};

#[derive(Clone, Debug, Args)]
pub struct BenchArgs {
    /// How the result is written to standard output
    #[arg(long, value_enum, default_value_t, env = "ACKED_FORMAT")]
    format: Format,
    /// Rounds; in each everything is measured once, so that what disturbs one figure disturbs its neighbours too
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100), env = "ACKED_ROUNDS")]
    rounds: u32,
    /// Only results and errors
    #[arg(short, long, env = "ACKED_QUIET")]
    quiet: bool,
}

/// The middle of the rounds, and their extremes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

impl Spread {
    /// # Panics
    /// Without numbers.
    fn of(mut numbers: Vec<f64>) -> Spread {
        assert!(!numbers.is_empty(), "something was measured");
        numbers.sort_by(f64::total_cmp);
        let middle = numbers.len() / 2;
        let median = match numbers.len().is_multiple_of(2) {
            true => (numbers[middle - 1] + numbers[middle]) / 2.0,
            false => numbers[middle],
        };
        let rounded = |number: f64| (number * 1000.0).round() / 1000.0;
        Spread {
            median: rounded(median),
            least: rounded(numbers[0]),
            most: rounded(numbers[numbers.len() - 1]),
        }
    }
}

/// The cost of a request in a cluster of another size, in F, and what it is of the smallest one's.
#[derive(Clone, Debug, Serialize)]
pub struct Sized {
    pub size: u32,
    pub f_per_ack: f64,
    pub of_smallest: f64,
}

/// The figures. CPU time is of one core, over everything that a world does, checks included.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    build: &'static str,
    /// False when the figures come from a build without optimisation: they mean nothing then.
    optimised: bool,
    rounds: u32,
    /// Acknowledged 1 KiB produce requests a CPU second, one record a request, without faults.
    acked_per_cpu_s: Spread,
    /// The same under the default faults: 20 seeds pooled, boot and final read included.
    acked_per_cpu_s_faults: f64,
    /// The first in F, each round with its own.
    f_per_ack: Spread,
    /// CPU time of one F event.
    f_ns: Spread,
    /// Simulated seconds a CPU second of a booted cluster without clients.
    idle_ratio: Spread,
    /// The same with 40 acknowledged requests a simulated second and two consumers.
    load_ratio: Spread,
    /// And under the default faults: 20 seeds pooled, boot and final read included.
    load_ratio_faults: f64,
    /// CPU time of one 1 KiB frame through the simulated network, both ends included.
    ns_per_hop: Spread,
    /// Worlds a CPU second that boot, take ten produces, read them back and check.
    smoke_seeds_per_core_s: Spread,
    workers: workers::Scaling,
    /// CPU time with every check on over that with none, boot and final read not included.
    checker_cost: Spread,
    /// CPU seconds of the leader-crash drill, start-up outside.
    drill_cpu_s: Spread,
    by_brokers: Vec<Sized>,
    by_partitions: Vec<Sized>,
    /// The most memory that this process, one world at a time, ever held resident.
    peak_rss_mib: f64,
    /// Wall time over CPU time while worlds ran.
    wall_per_cpu: f64,
    noisy: bool,
}

/// # Errors
/// A system that tells no CPU time, a world that does not hold, an output that fails.
pub fn run(arguments: &BenchArgs) -> Result<Exit, Failure> {
    let optimised = !cfg!(debug_assertions);
    if !optimised && !arguments.quiet {
        output::note("this build is not optimised: its figures mean nothing");
    }
    let figures = measures::all(arguments.rounds, optimised, arguments.quiet)?;
    let text = match arguments.format {
        Format::Json => serde_json::to_string_pretty(&figures).map_err(std::io::Error::from)? + "\n",
        Format::Human => table::human(&figures),
    };
    Sink::stdout().write(&text)?;
    Ok(Exit::Held)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_is_in_the_middle_of_its_extremes() {
        assert_eq!(Spread::of(vec![3.0, 1.0, 2.0]), Spread { median: 2.0, least: 1.0, most: 3.0 });
        assert_eq!(Spread::of(vec![4.0, 1.0, 2.0, 3.0]).median, 2.5);
    }
}
