//! The small files beside the logs, in Kafka's formats: texts to values and back, byte for byte. Reading and writing
//! the files, and their order, is the shell's.
//!
//! Written as `<name>.tmp`, synced, then renamed, and the directory synced: a reader sees the old or the new content.
//!
//! - `lines`: `*-offset-checkpoint` and `leader-epoch-checkpoint`.
//! - `properties`: `meta.properties` and `partition.metadata`.
//! - `quorum_state`: `quorum-state` and `.kafka_cleanshutdown`, which are JSON (`json`).

mod json;
mod lines;
mod properties;
mod quorum_state;

pub use lines::{OffsetEntry, parse_epochs, parse_offsets, render_epochs, render_offsets};
pub use properties::{MetaProperties, PartitionMetadata};
pub use quorum_state::{CleanShutdown, QuorumStateFile};

/// Why a file's content is not what its name promises. Worded to follow "failed to".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    #[error("read line {line}: it is not {expected}")]
    Malformed { line: usize, expected: &'static str },
    #[error("read version {found:?}: only version {known} is known")]
    UnknownVersion { found: String, known: i32 },
    #[error("read the entries: {announced} were announced, {found} are there")]
    WrongCount { announced: usize, found: usize },
    #[error("read the properties: {name} is missing")]
    Missing { name: &'static str },
}
