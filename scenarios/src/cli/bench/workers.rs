//! Whole campaigns of smoke worlds, by one worker process and by two. What the machine itself gives two busy processes is
//! measured beside it: a second core that belongs to somebody else is no fault of ours.

use std::process::{Command, Stdio};

use acked_sim::bench::floor;
use serde::Serialize;

use super::world::no_cpu_time;
use crate::campaign::Cell;
use crate::exit::Failure;
use crate::stopwatch::Stopwatch;

/// Seeds of a campaign.
const SEEDS: u64 = 500;
const FLOOR_EVENTS: u64 = 10_000_000;

/// Seeds a second of wall time.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Scaling {
    pub one_seeds_per_s: f64,
    pub two_seeds_per_s: f64,
    /// Two workers' rate over one's.
    pub speedup: f64,
    /// The same of two threads that only compute: the most that this machine gives now.
    pub machine: f64,
}

/// # Errors
/// A child process that fails, a file that cannot be written.
pub fn measure(smoke: &Cell) -> Result<Scaling, Failure> {
    let path = std::env::temp_dir().join(format!("acked-bench-{}.toml", std::process::id()));
    std::fs::write(&path, &smoke.source.text)?;
    let campaign = |jobs: &str| -> Result<f64, Failure> {
        let watch = Stopwatch::start();
        let status = Command::new(std::env::current_exe()?)
            .arg("run")
            .arg(&path)
            .args(["--seeds", &SEEDS.to_string(), "--jobs", jobs, "--progress", "none", "--quiet"])
            .stdout(Stdio::null())
            .status()?;
        match status.success() {
            true => Ok(SEEDS as f64 / watch.elapsed().as_secs_f64()),
            false => Err(Failure::internal(format!("a campaign of smoke worlds ended with {status}"))),
        }
    };
    let measured = campaign("1").and_then(|one| Ok((one, campaign("2")?)));
    let _ = std::fs::remove_file(&path);
    let (one, two) = measured?;
    let rounded = |number: f64| (number * 100.0).round() / 100.0;
    Ok(Scaling {
        one_seeds_per_s: rounded(one),
        two_seeds_per_s: rounded(two),
        speedup: rounded(two / one),
        machine: rounded(machine()?),
    })
}

/// How much more two threads compute than one in the same time.
fn machine() -> Result<f64, Failure> {
    let compute = || floor::measure(FLOOR_EVENTS);
    let watch = Stopwatch::start();
    compute().ok_or_else(no_cpu_time)?;
    let alone = watch.elapsed();
    let watch = Stopwatch::start();
    std::thread::scope(|scope| {
        let other = scope.spawn(compute);
        compute();
        other.join().expect("it only computes")
    })
    .ok_or_else(no_cpu_time)?;
    Ok(2.0 * alone.as_secs_f64() / watch.elapsed().as_secs_f64())
}
