//! Fetch requests: what a consumer or a follower is given, and how long it waits for it.
//!
//! A fetch is checked and, for a follower, recorded when it arrives. It is answered when a partition has an error or
//! a diverging epoch, when enough bytes are there, or when its time is up; until then it waits for news of its
//! partitions. The answer is planned anew at that moment, its bytes are read, and it leaves when all reads are done.
//!
//! Checks of one partition, in order: topic id, offline log, leader epoch, leadership, assignment, last fetched epoch,
//! offset range. Fetch sessions are refused: the session id of every answer is 0.
//!
//! Source: kafka-rules 1.3, 1.4, 2; kafka-formats B.6; `Partition.fetchRecords`, `DelayedFetch`; KIP-392, KIP-595.
//!
//! | file | decides |
//! |---|---|
//! | request.rs | what was asked, and for how long it may wait |
//! | offer.rs | what a replica has for a fetcher; where a follower is; whether a wait is over |
//! | purgatory.rs | which fetches wait, and what is read for an answer |
//! | answer.rs | what leaves |

mod answer;
mod offer;
mod purgatory;
mod request;

pub(super) use offer::{check_epoch, is_ready, record};
pub(super) use purgatory::FetchPurgatory;
pub(super) use request::Pending;
