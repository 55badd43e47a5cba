//! Every partition replica of one broker: leading, following, and the requests that wait for either.
//!
//! ```text
//!   Produce ──► produce ──► partition ◄── fetch ◄── Fetch (consumers, followers)
//!                              │  ▲
//!            isr ◄─────────────┤  └──────── fetcher ──► SendFetch (as a follower)
//!             └► SendAlterPartition        list_offsets, epoch_ends
//! ```
//!
//! | file | decides |
//! |---|---|
//! | interface.rs | the inputs and effects |
//! | manager.rs | which part an input concerns, and what else becomes due by it |
//! | requests.rs | what becomes of each part of a request |
//! | partition/ | one replica: its role, log, writes and high watermark |
//! | produce/ | appends, and acknowledgements that wait |
//! | fetch/ | what a fetcher is given, and fetches that wait |
//! | fetcher.rs | what this broker asks of leaders, and what it does with their answers |
//! | isr.rs | who is proposed to leave or to join the in-sync replicas |
//! | list_offsets.rs | offsets by timestamp |
//! | epoch_ends.rs | where leader epochs end |
//!
//! Source: kafka-rules of Apache Kafka 4.3.1 (`Partition`, `ReplicaManager`, `DelayedProduce`, `DelayedFetch`,
//! `AbstractFetcherThread`, `AlterPartitionManager`), KIP-101, KIP-279, KIP-497, KIP-595 (fetch part), KIP-903.

mod broker;
mod epoch_ends;
mod fetch;
mod fetcher;
mod interface;
mod isr;
mod list_offsets;
mod manager;
mod partition;
mod produce;
mod requests;

#[cfg(test)]
mod tests;

pub use interface::{
    BrokerView, FetchId, MetadataUpdate, PartitionAssignment, ReadFailed, ReadId, ReplicaConfig,
    ReplicaEffect, ReplicaInput, WriteId,
};
pub use manager::ReplicaManager;
