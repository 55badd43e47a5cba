//! Producer, consumer and administrator handles over any [`Env`](acked_env::Env).
//!
//! ```text
//! handle --mailbox--> task { machine of acked_core, transport { one stream per broker } } --completion--> caller
//! ```
//!
//! One task per client owns the machine, its connections and one timer; the handle only sends it messages. The task
//! decides nothing about the protocol: it frames, encodes, negotiates versions, and carries out the machine's effects.
//! Dropping a handle ends its task and closes its connections.

mod admin;
mod connection;
mod consumer;
mod driver;
mod producer;
mod transport;

pub use acked_core::client::{BrokerDescription, ClusterDescription, PartitionDescription, TopicDescription};
pub use acked_core::consumer::{ConsumedRecord, ConsumerCounters, Event, Polled, Start};
pub use acked_core::producer::ProducerCounters;
pub use admin::{Admin, AdminError, CreatedTopic, ElectionKind, NewTopic, PartitionElection, SettingsOf};
pub use consumer::{Consumer, ConsumerError};
pub use producer::{Completion, Completions, Producer, RecordMetadata, SendError, SendFuture, SendResult};
