//! The judgement of one run: a mirror of every replica's log from the disk, invariants over observations, the loss
//! ledger, and the client history.

pub mod checks;
pub mod content;
pub mod finding;
pub mod input;
mod verdict;

pub use checks::{Check, Checks, Comparisons, INVARIANTS, Invariant, View};
pub use content::content_hash;
pub use finding::{Finding, Licence, LostRecord, RecordKey, Rule};
pub use input::{
    ClientEvent, FaultEvent, FinalPartition, FinalState, JudgeConfig, Probe, ReadPurpose, TopicContract,
};
pub use verdict::{Judge, Judgement};
