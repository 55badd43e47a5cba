//! The built binary, driven as users, scripts and schedulers drive it.
//!
//! - `bad_input`: what can be got wrong, with message and exit code.
//! - `output`: what is written where, and that it is the same whenever the run is.
//! - `readme`: the tables that the README shows.

mod bad_input;
mod binary;
mod output;
mod readme;
