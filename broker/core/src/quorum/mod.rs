//! The KRaft quorum (KIP-595, pre-vote of KIP-996): elections and the replicated metadata log, as a pure endpoint
//! machine. Voters (controllers) elect, lead and follow; observers (brokers) only follow. The voter set is static and
//! the log has no snapshots.
//!
//! ```text
//!                 fetch / election timeout                majority of pre-votes
//!   Unattached ────────────────────────────▶ Prospective ───────────────────────▶ Candidate
//!    ▲      ▲ ◀──── refused, no leader known ────┘ │ ▲                               │ majority of votes
//!    │      └──── newer epoch without leader        │ └──── lost: backed off ────────┘ ▼
//!    │            (from every state)                │ leader known                   Leader
//!    │                                              ▼                                 │ no fetches from a majority,
//!    │                                          Follower ◀── leader of this or a ──   │ orderly stop
//!    └── epoch + 1 after a timeout ── Resigned        newer epoch (every state)  ◀────┘
//! ```
//!
//! Nothing leaves a node before the state it speaks of is durable: while a `SaveState` is outstanding, messages and
//! log writes queue behind it in order.
//!
//! | file | holds |
//! |---|---|
//! | `config` | settings |
//! | `effect` | inputs, effects, what can go wrong |
//! | `election_state` | what outlasts a restart, and the role a node comes back in |
//! | `role` | the roles, and who grants votes |
//! | `machine` | the node: inputs, deadlines, requests under way |
//! | `transitions` | moving between roles, and what that saves and tells |
//! | `voting`, `leading`, `following` | what the roles decide |
//! | `metadata_log` | the log in memory, recovery of its file |
//! | `messages` | wire messages in the machine's words |
//! | `outbox` | nothing leaves before the state it depends on is durable |

mod config;
mod effect;
mod election_state;
mod following;
mod leading;
mod machine;
mod messages;
mod metadata_log;
mod outbox;
mod role;
mod transitions;
mod voting;

pub use config::{FETCH_MAX_BYTES, FETCH_WAIT_MAX, QuorumConfig, VoterEndpoint};
pub use effect::{CommittedBatch, NotLeader, QuorumEffect, QuorumFault, QuorumInput};
pub use election_state::{QuorumState, ReplicaKey, StartRole, at_start};
pub use machine::Quorum;
pub use messages::METADATA_TOPIC;
pub use metadata_log::{InvalidBatch, LogDamage, RecoveredLog, recover_log};

#[cfg(test)]
mod tests;
