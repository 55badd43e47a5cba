//! The rules of the controller as claims, and a random walk against short invariants.

mod administration;
mod cluster;
mod elections;
mod golden;
mod isr_changes;
mod membership;
mod replaying;
mod serving_metadata;
mod topics;
mod walk;
