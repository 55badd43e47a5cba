//! Kafka's messages and record batches as types and bytes.

pub mod uuid;

pub use uuid::Uuid;
