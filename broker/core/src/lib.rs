//! The pure decisions of brokers, controllers and clients: no async, no clocks, no files, no sockets.

pub mod client;
pub mod consumer;
pub mod controller;
pub mod log;
pub mod observation;
pub mod producer;
pub mod quorum;
pub mod replica;
pub mod rules;
pub mod settings;
pub mod types;

pub use observation::{Observation, Observer};
pub use rules::Rules;
pub use types::{NodeId, Output, PeerError, RequestId, Time, TopicPartition};
