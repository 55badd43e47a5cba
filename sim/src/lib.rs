//! The simulated world: network, disk and clock on madsim's executor; nemesis, workloads, judgement and the run itself.

#[cfg(not(madsim))]
compile_error!(
    "unset RUSTFLAGS and build from inside this repository: --cfg madsim comes from .cargo/config.toml"
);

pub mod bench;
pub mod judge;
pub mod names;
pub mod nemesis;
pub mod plan;
pub mod runner;
pub mod workload;
pub mod world;
