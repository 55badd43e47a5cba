//! What the command writes: results on standard output, progress and notes on standard error.

use std::io::Write;

mod colour;
mod progress;
mod sink;

pub use colour::{Colour, style};
pub use progress::{Progress, ProgressKind};
pub use sink::{Sink, Written};

/// Something to know that is no result.
pub fn note(text: &str) {
    say(&format!("note: {text}"));
}

/// A line on standard error. Nobody has to read it: a reader that is gone is no failure.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
