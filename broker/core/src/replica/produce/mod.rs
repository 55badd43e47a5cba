//! Produce requests: what is appended, when each part is settled, when the whole is answered.
//!
//! | acks | a part is settled when |
//! |---|---|
//! | 0 | it is appended; the request has no answer |
//! | 1 | the leader's own write completed |
//! | all | the high watermark passed it in the leader epoch of its append and enough replicas are in sync |
//!
//! A part whose replica stops leading that epoch fails with NOT_LEADER_OR_FOLLOWER, one that waits longer than the
//! request's timeout with REQUEST_TIMED_OUT; both may still become committed. A duplicate waits like the original.
//!
//! Source: kafka-rules 2, 6; kafka-formats B.6; `ReplicaManager.appendRecords`, `DelayedProduce`.
//!
//! | file | decides |
//! |---|---|
//! | append.rs | whether a part is taken, and with which offsets |
//! | pending.rs | what a request is answered |
//! | purgatory.rs | when a waiting part is settled, and when it has waited too long |
//! | receipt.rs | answers before the append: a mutation |

mod append;
mod pending;
mod purgatory;
mod receipt;

pub(super) use append::{Acks, Refused, after_refusal, examine, is_too_new, take};
pub(super) use pending::{Pending, Verdict};
pub(super) use purgatory::{ProducePurgatory, failed_by_end, failed_by_new_epoch, next_settled};
pub(super) use receipt::{AckedBeforeAppend, answers_on_receipt, promise};
