//! The simulated world: network, disk and clock on madsim's executor; nemesis, workloads, judgement and the run itself.

#[cfg(not(madsim))]
compile_error!(
    "unset RUSTFLAGS and build from inside this repository: --cfg madsim comes from .cargo/config.toml"
);

#[cfg(madsim)]
pub mod bench;
#[cfg(madsim)]
pub mod judge;
#[cfg(madsim)]
pub mod names;
#[cfg(madsim)]
pub mod nemesis;
#[cfg(madsim)]
pub mod plan;
#[cfg(madsim)]
pub mod runner;
#[cfg(madsim)]
pub mod workload;
#[cfg(madsim)]
pub mod world;
