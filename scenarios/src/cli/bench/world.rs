//! One world, measured whole: a run cannot be measured in part. What is paid once for every world (boot, warm-up, final
//! read) cancels out in the difference of two worlds that are alike but for the size of their load.

use std::time::Duration;

use acked_reports::Verdict;
use acked_sim::bench::cpu;
use acked_sim::judge::Checks;

use crate::campaign::Cell;
use crate::exit::Failure;
use crate::stopwatch::Stopwatch;

/// What worlds cost: CPU time of all threads of this process, which has nothing else to do.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    pub cpu: Duration,
    pub wall: Duration,
    pub acked: u64,
    pub virtual_time: Duration,
}

impl Cost {
    /// What a larger world cost beyond a smaller one.
    ///
    /// # Errors
    /// The larger one did not do more.
    pub fn beyond(self, smaller: Cost) -> Result<Cost, Failure> {
        let cpu = self.cpu.checked_sub(smaller.cpu).filter(|cpu| !cpu.is_zero());
        let (Some(cpu), Some(acked)) = (cpu, self.acked.checked_sub(smaller.acked)) else {
            return Err(Failure::internal("the larger of two worlds cost less than the smaller"));
        };
        let virtual_time = self.virtual_time.saturating_sub(smaller.virtual_time);
        Ok(Cost { cpu, wall: self.wall.saturating_sub(smaller.wall), acked, virtual_time })
    }

    pub fn and(self, other: Cost) -> Cost {
        Cost {
            cpu: self.cpu + other.cpu,
            wall: self.wall + other.wall,
            acked: self.acked + other.acked,
            virtual_time: self.virtual_time + other.virtual_time,
        }
    }

    /// Acknowledged requests a CPU second.
    pub fn acked_per_cpu_s(self) -> f64 {
        self.acked as f64 / self.cpu.as_secs_f64()
    }

    /// Simulated seconds a CPU second.
    pub fn ratio(self) -> f64 {
        self.virtual_time.as_secs_f64() / self.cpu.as_secs_f64()
    }
}

/// Runs one world. A broken contract ends the measurement; so does a vacuous one, but for worlds whose faults a seed
/// may let pass without effect.
///
/// # Errors
/// A system that tells no CPU time, a world that does not hold.
pub fn run(cell: &Cell, seed: u64, checks: Checks) -> Result<Cost, Failure> {
    let wall = Stopwatch::start();
    let before = cpu::process_cpu().ok_or_else(no_cpu_time)?;
    let result = acked_sim::runner::run_checked(&cell.plan, seed, "", false, checks).result;
    let cpu = cpu::process_cpu().ok_or_else(no_cpu_time)?.saturating_sub(before);
    let held = match result.verdict {
        Verdict::Pass => true,
        Verdict::Vacuous => !cell.plan.faults.is_empty() || checks == Checks::NONE,
        _ => false,
    };
    if !held {
        let reason = result.reason.as_deref().unwrap_or("a contract was broken");
        let verdict = result.verdict.word();
        return Err(Failure::internal(format!("seed {seed} of a measured world is {verdict}: {reason}")));
    }
    let virtual_time = Duration::from_micros(result.virtual_us);
    Ok(Cost { cpu, wall: wall.elapsed(), acked: result.acked, virtual_time })
}

pub fn no_cpu_time() -> Failure {
    Failure::internal("this system does not tell CPU time")
}
