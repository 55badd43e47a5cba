//! Results as people and programs read them. Pure: text in, text out; nobody here writes to a terminal or a file.
//!
//! - `words`: numbers, times and colours.
//! - `cell`: what one scenario in one configuration came to.
//! - `campaign`: many cells, for people.
//! - `seed`: one seed, for people.
//! - `timeline`: one run drawn for the terminal.
//! - `lines`: the same as JSON lines.

pub mod campaign;
pub mod cell;
pub mod lines;
pub mod seed;
pub mod timeline;
pub mod words;

pub use cell::CellReport;
pub use words::Style;
