//! What producers, consumers and administrators share: their view of the cluster, their connections, and the pace of
//! their retries.

mod description;

pub use description::{BrokerDescription, ClusterDescription, PartitionDescription, TopicDescription};
