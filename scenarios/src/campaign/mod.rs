//! A campaign: which scenarios in which configurations over which seeds, run by child processes, and its verdict.
//!
//! ```text
//! select.rs ──> cells ──┐
//! seeds.rs  ──> jobs ───┴──> pool.rs ══ orders.rs ══> worker.rs (child processes)
//!                              │
//!                              └──> results in plan order ──> verdict.rs ──> exit code
//! ```

mod cell;
pub mod orders;
pub mod pool;
pub mod seeds;
mod select;
mod stop;
mod verdict;
pub mod worker;

pub use cell::{Cell, Source};
pub use pool::{Delivered, Flow, Job, Pool};
pub use seeds::{SeedBase, Seeds};
pub use select::{Selection, everything, select};
pub use stop::Stop;
pub use verdict::{CellTally, Ending, exit};
