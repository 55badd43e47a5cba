//! The real world: tokio's tasks, sockets and timers, the operating system's files, clocks and entropy.
//!
//! - `environment`: [`TokioEnv`], which hands out the others.
//! - `network`: TCP without Nagle's delay.
//! - `disk`: files below one root directory.
//! - `timer`: one reusable deadline.
//!
//! The only place that names `tokio::{net, time, spawn}`, and the only one that asks what time it is.

mod disk;
mod environment;
mod network;
mod timer;

pub use disk::{TokioDisk, TokioFile};
pub use environment::TokioEnv;
pub use network::TokioListener;
pub use timer::TokioTimer;
