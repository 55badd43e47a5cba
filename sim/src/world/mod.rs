//! The simulated world.

pub mod tap;
