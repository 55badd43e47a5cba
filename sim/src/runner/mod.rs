//! One run: boot → warm-up → safety → heal → liveness → validate. A plan and a seed fix it completely.

pub mod cluster;
mod phases;
pub mod recorder;
mod result;
pub mod timeline;
pub mod view;

pub use phases::{RunOutput, run, run_checked};
