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

mod config;
mod election_state;

pub use config::{FETCH_MAX_BYTES, FETCH_WAIT_MAX, QuorumConfig, VoterEndpoint};
pub use election_state::{QuorumState, ReplicaKey, StartRole, at_start};
