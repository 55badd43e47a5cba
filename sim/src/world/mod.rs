//! The simulated world: machines with a network, disks and clocks of our own, on the executor of madsim.
//!
//! ```text
//! run_in_fresh_thread(seed) ─▶ World ──start, crash, block, step──▶ hosts
//!                                │                                    │ SimEnv: what one process sees
//!                                ▼                                    ▼
//!            Kernel: Schedule (one heap of events) · Timers · Network · Trace        Disk of each host ─▶ DiskTap
//! ```
//!
//! - [`run`]: one world per run, on a fresh thread
//! - [`control`]: the supervisor's side: machines, processes, faults
//! - [`environment`]: a process's side
//! - [`network`], [`disk`], [`clock`], [`timers`]: the plugins
//! - [`schedule`], [`shared`]: what drives them
//! - [`streams`]: one random stream per purpose
//! - [`trace`]: the hash of everything that happened
//! - [`finding`]: panics of tasks
//! - [`tap`]: what the disks tell the judge

mod clock;
mod control;
mod disk;
mod environment;
mod finding;
mod host;
mod network;
mod run;
mod schedule;
mod shared;
pub mod streams;
pub mod tap;
mod timers;
pub mod trace;

#[cfg(test)]
mod tests;

pub use clock::WALL_EPOCH_MS;
pub use control::{CrashKind, World, WorldSettings};
pub use disk::{DiskEffects, DiskSettings, SimDisk, SimFile};
pub use environment::{SimEnv, SimTimer};
pub use finding::{FailureKind, TaskFailure};
pub use host::{Host, HostIdentity};
pub use network::fabric::LinkShape;
pub use network::{
    BlockId, Catch, Filter, Latency, NetworkCounters, NetworkSettings, SimListener, SimStream, Speech,
};
pub use run::{RunError, run_in_fresh_thread};
