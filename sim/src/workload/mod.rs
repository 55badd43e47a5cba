//! What clients do while faults happen: producers of unique values at a rate, and consumers that read every partition
//! from its start. Every operation is told to the recorder before it begins and when it ends.

mod consumer;
mod producer;
mod value;

pub use consumer::{ReadTo, read_back, tail};
pub use producer::produce;
pub use value::value;
