//! The judgement of one run: a mirror of every replica's log from the disk, invariants over observations, the loss
//! ledger, and the client history.
//!
//! | file | holds |
//! |---|---|
//! | verdict.rs | the judge: every event in order, the judgement at the end |
//! | input.rs, finding.rs | what goes in besides observations and disk changes; what comes out |
//! | checks.rs, reporter.rs | the registry; comparisons and findings while the run lasts |
//! | mirror/, content.rs | logs as the disks hold them; the identity of a record's content |
//! | case.rs, committed.rs, elections.rs | what is known of one partition; S22 |
//! | contracts.rs | what a topic promises while settings change |
//! | ledger.rs | when a record may be lost |
//! | removal.rs | what was removed on purpose |
//! | watermark_bound.rs | S7, and S4 and S19 (idempotence.rs) where records are committed |
//! | acks.rs | S2, S3 |
//! | leader_completeness.rs | S9, S11 |
//! | stale_leader.rs | S12 |
//! | truncation.rs | S14, S16 |
//! | epoch_order.rs | S13 |
//! | log_matching.rs | S5 while the run lasts |
//! | unclean_elections.rs, last_replicas.rs | S22 besides when, S23 |
//! | recovery.rs | R2, R3 |
//! | watermark_monotonic.rs | S8 |
//! | candidates.rs | S10 |
//! | superset.rs, fencing.rs | S15, M2 |
//! | quorum.rs | Q1, Q2 |
//! | metadata_log.rs, quorum_log.rs | the metadata logs as the disks hold them; Q3 to Q6 |
//! | clients.rs, validation.rs | the history; S1, S5 and the anomalies at the end |
//! | second_opinion.rs | K4: the losses, by an oracle that shares nothing with the ledger |
//! | frames.rs | P1, P2 |
//! | liveness.rs | L1, L2, L5, L7 |

mod acks;
mod candidates;
mod case;
pub mod checks;
mod clients;
mod committed;
pub mod content;
mod contracts;
mod elections;
mod epoch_order;
mod fencing;
pub mod finding;
mod frames;
mod idempotence;
pub mod input;
mod last_replicas;
mod leader_completeness;
mod ledger;
mod liveness;
mod log_matching;
mod metadata_log;
pub mod mirror;
mod quorum;
mod quorum_log;
mod recovery;
mod removal;
mod reporter;
mod second_opinion;
mod stale_leader;
mod superset;
mod truncation;
mod unclean_elections;
mod validation;
mod verdict;
mod watermark_bound;
mod watermark_monotonic;

pub use checks::{Check, Checks, Comparisons, INVARIANTS, Invariant, View};
pub use clients::micros;
pub use content::content_hash;
pub use finding::{Finding, Licence, LostRecord, RecordKey, Rule};
pub use input::{
    ClientEvent, FaultEvent, FinalPartition, FinalState, JudgeConfig, Probe, ReadPurpose, ResetReason,
    TopicContract,
};
pub use verdict::{Judge, Judgement};

#[cfg(test)]
mod tests;
