//! What the simulator costs: CPU time, and the machine-independent unit F.

pub mod cpu;
pub mod floor;
pub mod hop;
