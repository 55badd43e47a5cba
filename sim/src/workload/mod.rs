//! What clients do while faults happen: producers of unique values at a rate, and consumers that read every partition
//! from its start. Every operation is told to the recorder before it begins and when it ends. A client that is started again
//! goes on from what its application remembers: a producer with a new session and the next number, a consumer where it was.

mod consumer;
mod memory;
mod producer;
mod value;

pub use consumer::{ReadTo, read_back, tail};
pub use memory::Memory;
pub use producer::produce;
pub use value::value;
