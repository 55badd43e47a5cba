//! What the command writes: results on standard output, progress and notes on standard error.

mod colour;
mod progress;
mod sink;

pub use colour::{Colour, style};
pub use progress::{Progress, ProgressKind};
pub use sink::{Sink, Written};

/// Something to know that is no result.
pub fn note(text: &str) {
    eprintln!("note: {text}");
}
