//! What producers, consumers and administrators share: their view of the cluster, their connections, and the pace of
//! their retries.
//!
//! ```text
//! producer ─┐              ┌─ links:   who is connected, what is awaited from whom
//! consumer ─┼─ machines ───┼─ cluster: who leads what, where brokers are
//! caller   ─┘              └─ refresh, backoff: when to ask again
//! ```
//!
//! The `caller` is the administrators' machine: requests that any broker can answer.

mod backoff;
mod caller;
mod cluster;
mod description;
mod earliest;
mod links;
mod refresh;

pub use backoff::Backoff;
pub use caller::{Caller, CallerEffect, CallerInput};
pub use cluster::{Address, ClusterView, Leader};
pub use description::{BrokerDescription, ClusterDescription, PartitionDescription, TopicDescription};
pub use earliest::Earliest;
pub use links::{ConnectionId, LinkEvent, LinkSettings, Links, NetworkEffect, NetworkInput, Peer};
pub use refresh::Refresh;
