//! The cluster's metadata and who changes it.
//!
//! ```text
//!  broker                                  active controller
//!  lifecycle ──registration, heartbeats──> sessions, registration, heartbeat
//!  producer_ids ──allocate───────────────> producer id blocks
//!  replicas ──AlterPartition─────────────> alter_partition ─┐
//!  clients ──CreateTopics, ElectLeaders──> create_topics, elect_leaders ─┤
//!                                                                        v
//!             machine: decides on `MetadataImage`  <── draft ── partition_change ── election
//!                │ Propose { records }
//!                v
//!          metadata log ──committed records──> `MetadataImage` of every node ──> metadata_response
//! ```
//!
//! - `image`: what the metadata log says, as a value; changed only by replaying records.
//! - `draft`: one decision in the making: records on top of a borrowed image.
//! - `election`, `partition_change`: who leads, and the record that says so.
//! - `registration`, `heartbeat`, `sessions`, `alter_partition`, `elect_leaders`, `create_topics`, `delete_topics`,
//!   `alter_configs`, `reassignment`: one decision each.
//! - `machine`: the active controller; `committed`: what a replayed record lets the node state.
//! - `lifecycle`, `producer_ids`: the broker's side.
//! - `metadata_response`: a broker's answer to Metadata.

mod alter_configs;
mod alter_partition;
mod committed;
mod create_topics;
mod delete_topics;
mod draft;
mod elect_leaders;
mod election;
mod features;
mod heartbeat;
mod image;
mod lifecycle;
mod machine;
mod metadata_response;
mod partition_change;
mod placement;
mod producer_ids;
mod reassignment;
mod registration;
mod sessions;

#[cfg(test)]
mod tests;

pub use features::{FEATURES, METADATA_VERSION, supported_features};
pub use image::{Broker, Changes, Endpoint, ImageError, MetadataImage, Partition, Topic};
pub use lifecycle::{Lifecycle, LifecycleConfig, LifecycleEffect, LifecycleInput};
pub use machine::{
    Controller, ControllerBody, ControllerConfig, ControllerEffect, ControllerInput, is_forwarded,
};
pub use metadata_response::{MetadataView, metadata_response};
pub use producer_ids::{ProducerIds, ProducerIdsConfig, ProducerIdsEffect, ProducerIdsInput};
pub use reassignment::Reassignment;
