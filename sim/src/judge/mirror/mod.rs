//! Every replica's log as it really is on the disks: paths of nodes to logs, topic folders to topic ids, and the
//! changes of one log as the invariants want them.
//!
//! | file | holds |
//! |---|---|
//! | log.rs | one log: entries, what a fault took |
//! | files.rs | which file of which node is which log |

mod files;
mod log;

pub use files::{LogChange, Mirror};
pub use log::{Entry, LogMirror, sequence_after};
