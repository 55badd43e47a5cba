//! `acked bench`: what a run costs in CPU time and memory, in seconds and in F, the unit that travels between machines.
//!
//! A run can only be measured whole: boot, load, final read and judgement. So every round runs two worlds that differ
//! only in their number of records, and the difference of their CPU times is what the additional requests cost; boot,
//! warm-up and everything else that is paid once cancel out. F is measured between the worlds, in the same process.

use std::sync::Arc;
use std::time::Duration;

use acked_reports::{SeedResult, Verdict};
use acked_sim::bench::{cpu, floor};
use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::campaign::{Cell, Source};
use crate::exit::{Exit, Failure};
use crate::output::{self, Sink};
use crate::token::{BUILD, Changes};

/// Requests of the large and of the small world of a round, over all producers.
const LARGE: u64 = 4_000;
const SMALL: u64 = 400;
const PRODUCERS: u64 = 4;
/// Rounds: so many differences of `LARGE - SMALL` requests are pooled. Together at least 20,000 requests.
const ROUNDS: u64 = 6;
/// Events of the bare loop that are measured in a round.
const FLOOR_EVENTS: u64 = 1_000_000;
/// Seeds of the smoke world: boot, ten produces, read back, check.
const SMOKE_SEEDS: u64 = 40;
const SMOKE_RECORDS: u64 = 10;
/// Wall time over CPU time beyond which something else was using the core.
const NOISY: f64 = 1.05;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    #[default]
    Human,
    Json,
}

#[derive(Clone, Debug, Args)]
pub struct BenchArgs {
    /// How the result is written to standard output
    #[arg(long, value_enum, default_value_t, env = "ACKED_FORMAT")]
    format: Format,
    /// Only results and errors
    #[arg(short, long, env = "ACKED_QUIET")]
    quiet: bool,
}

/// The figures. CPU time is of one core, over everything that a world does, checks included.
#[derive(Clone, Debug, Serialize)]
struct Figures {
    build: &'static str,
    /// False when the figures come from a build without optimisation: they mean nothing then.
    optimised: bool,
    /// Acknowledged 1 KiB produce requests a CPU second, one record a request, all rounds pooled.
    acked_per_cpu_s: f64,
    acked_per_cpu_s_least: f64,
    acked_per_cpu_s_most: f64,
    /// The same in F: median over the rounds, each with the F of its own round.
    f_per_ack: f64,
    /// CPU time of one F event, median.
    f_ns: f64,
    /// Worlds a CPU second that boot, take ten produces, read them back and check.
    smoke_seeds_per_core_s: f64,
    /// The most memory that this process, one world at a time, ever held resident.
    peak_rss_mib: f64,
    measured_requests: u64,
    /// Wall time over CPU time while worlds ran.
    wall_per_cpu: f64,
    noisy: bool,
    how: &'static str,
}

const HOW: &str = "per round, two whole worlds of 4000 and of 400 requests, the same seed, every check on: the \
                   difference of their CPU times is divided by the difference of their acknowledged requests";

/// # Errors
/// A system that tells no CPU time, a world that does not hold, an output that fails.
pub fn run(arguments: &BenchArgs) -> Result<Exit, Failure> {
    let optimised = !cfg!(debug_assertions);
    if !optimised && !arguments.quiet {
        output::note("this build is not optimised: its figures mean nothing");
    }
    let figures = measure(optimised, arguments.quiet)?;
    let text = match arguments.format {
        Format::Json => serde_json::to_string_pretty(&figures).map_err(std::io::Error::from)? + "\n",
        Format::Human => human(&figures),
    };
    Sink::stdout().write(&text)?;
    Ok(Exit::Held)
}

/// What one world cost.
struct Cost {
    cpu: Duration,
    wall: Duration,
    acked: u64,
}

fn measure(optimised: bool, quiet: bool) -> Result<Figures, Failure> {
    let (large, small, smoke) = (load(LARGE)?, load(SMALL)?, load(SMOKE_RECORDS)?);
    // Caches and allocator are warm before anything counts.
    world(&small, 1)?;
    let (mut cpu, mut requests, mut rates, mut floors, mut in_floor) =
        (Duration::ZERO, 0, Vec::new(), Vec::new(), Vec::new());
    let (mut wall_all, mut cpu_all) = (Duration::ZERO, Duration::ZERO);
    for seed in 1..=ROUNDS {
        let f = floor::measure(FLOOR_EVENTS).ok_or_else(no_cpu_time)?;
        let (one, other) = (world(&large, seed)?, world(&small, seed)?);
        let more = one.acked.checked_sub(other.acked).filter(|more| *more > 0);
        let more = more.ok_or_else(|| Failure::internal("the larger world acknowledged less"))?;
        let spent = one.cpu.saturating_sub(other.cpu).max(Duration::from_nanos(1));
        let each = spent.as_secs_f64() / more as f64;
        rates.push(1.0 / each);
        floors.push(f.as_secs_f64());
        in_floor.push(each / f.as_secs_f64());
        (cpu, requests) = (cpu + spent, requests + more);
        (wall_all, cpu_all) = (wall_all + one.wall + other.wall, cpu_all + one.cpu + other.cpu);
        if !quiet {
            output::say(&format!(
                "round {seed}/{ROUNDS}: {:.0} acknowledged requests a CPU second",
                1.0 / each
            ));
        }
    }
    let mut smoke_cpu = Duration::ZERO;
    for seed in 1..=SMOKE_SEEDS {
        smoke_cpu += world(&smoke, seed)?.cpu;
    }
    let peak = cpu::peak_rss_kib().ok_or_else(|| Failure::internal("this system does not tell memory"))?;
    let wall_per_cpu = wall_all.as_secs_f64() / cpu_all.as_secs_f64().max(f64::MIN_POSITIVE);
    let rounded = |number: f64| (number * 100.0).round() / 100.0;
    Ok(Figures {
        build: BUILD,
        optimised,
        acked_per_cpu_s: rounded(requests as f64 / cpu.as_secs_f64()),
        acked_per_cpu_s_least: rounded(rates.iter().copied().fold(f64::INFINITY, f64::min)),
        acked_per_cpu_s_most: rounded(rates.iter().copied().fold(0.0, f64::max)),
        f_per_ack: rounded(median(in_floor)),
        f_ns: rounded(median(floors) * 1e9),
        smoke_seeds_per_core_s: rounded(SMOKE_SEEDS as f64 / smoke_cpu.as_secs_f64()),
        peak_rss_mib: rounded(peak as f64 / 1024.0),
        measured_requests: requests,
        wall_per_cpu: rounded(wall_per_cpu),
        noisy: wall_per_cpu > NOISY,
        how: HOW,
    })
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    if numbers.len().is_multiple_of(2) {
        (numbers[middle - 1] + numbers[middle]) / 2.0
    } else {
        numbers[middle]
    }
}

/// Three brokers and three controllers without faults, four producers of 1 KiB, five requests in flight each, one
/// record a request: batch.size=0 makes a batch of every record, and a request holds one batch of a partition.
fn load(records: u64) -> Result<Cell, Failure> {
    // Far longer than the load takes; idle time costs next to nothing, and the same in every world.
    let seconds = if records > SMOKE_RECORDS { 10 } else { 1 };
    let mut text = format!(
        r#"
schema = "scenario/1"
name = "bench"
ask = "What does an acknowledged request cost?"

[cluster]
safety = "{seconds}s"

[topic.orders]

[expect]
acked = {records}

[configuration.default]
expect = "never"
"#
    );
    let producers = PRODUCERS.min(records);
    for number in 1..=producers {
        let share = records / producers + u64::from(number <= records % producers);
        text.push_str(&format!(
            r#"
[producer.p{number}]
records = {share}
rate = "max"
value_bytes = 1024
acks = "all"
"enable.idempotence" = true
"batch.size" = 0
"linger.ms" = 0
"max.in.flight.requests.per.connection" = 5
"#
        ));
    }
    let source = Arc::new(Source::new("bench.toml", &text, false)?);
    let (mut cells, _) = Cell::all(&source, None, &Changes::default())?;
    Ok(cells.remove(0))
}

/// Runs one world and says what it cost: all threads of this process, which has nothing else to do.
fn world(cell: &Cell, seed: u64) -> Result<Cost, Failure> {
    let wall = crate::stopwatch::Stopwatch::start();
    let before = cpu::process_cpu().ok_or_else(no_cpu_time)?;
    let result: SeedResult = acked_sim::runner::run(&cell.plan, seed, "", false).result;
    let spent = cpu::process_cpu().ok_or_else(no_cpu_time)?.saturating_sub(before);
    if result.verdict != Verdict::Pass {
        let reason = result.reason.as_deref().unwrap_or("a contract was broken");
        return Err(Failure::internal(format!(
            "a world without faults is {}: {reason}",
            result.verdict.word()
        )));
    }
    Ok(Cost { cpu: spent, wall: wall.elapsed(), acked: result.acked })
}

fn no_cpu_time() -> Failure {
    Failure::internal("this system does not tell CPU time")
}

fn human(figures: &Figures) -> String {
    let noisy = if figures.noisy { "   (noisy: the core was shared)" } else { "" };
    format!(
        "acknowledged requests a CPU second   {:>10.0}   from {:.0} to {:.0}, over {}{noisy}\n\
         cost of one                          {:>10.0} F   F = {:.1} ns\n\
         smoke seeds a CPU second             {:>10.1}\n\
         peak memory                          {:>10.1} MiB\n\
         how: {}\n",
        figures.acked_per_cpu_s,
        figures.acked_per_cpu_s_least,
        figures.acked_per_cpu_s_most,
        acked_reports::render::words::count(figures.measured_requests, "request"),
        figures.f_per_ack,
        figures.f_ns,
        figures.smoke_seeds_per_core_s,
        figures.peak_rss_mib,
        figures.how,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loads_hold_as_many_records_as_they_say() {
        for records in [LARGE, SMALL, SMOKE_RECORDS] {
            let cell = load(records).expect("the text is fixed");
            assert_eq!(cell.plan.producers.iter().map(|producer| producer.records).sum::<u64>(), records);
            assert_eq!(cell.plan.producers.len() as u64, PRODUCERS);
        }
        const { assert!(ROUNDS * (LARGE - SMALL) >= 20_000) };
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
