//! Results as people and programs read them. Pure: text in, text out; nobody here writes to a terminal or a file.
//!
//! - `words`: numbers, times and colours.
//! - `cell`: what one scenario in one configuration came to.
//! - `campaign`: many cells, for people.
//! - `seed`: one seed, for people.
//! - `timeline`: one run drawn for the terminal.
//! - `lines`: the same as JSON lines.
//! - `html`: a campaign as one page.
//! - `junit`, `github`, `markdown`: a campaign for what runs it.

pub mod campaign;
pub mod cell;
pub mod github;
pub mod html;
pub mod junit;
pub mod lines;
pub mod markdown;
pub mod seed;
pub mod timeline;
pub mod words;

pub use cell::CellReport;
pub use words::Style;
