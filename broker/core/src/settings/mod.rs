//! Kafka's settings by Kafka's names, with Kafka's defaults and ranges.
//!
//! ```text
//! table.rs ──> definition.rs ──> store.rs: Settings (names and texts as given)
//!                                   │
//!                                   ├──> producer.rs: ProducerSettings
//!                                   ├──> consumer.rs: ConsumerSettings
//!                                   ├──> admin.rs:    AdminSettings
//!                                   ├──> broker.rs:   BrokerSettings
//!                                   └──> topic.rs:    TopicSettings (falls back to the broker's synonyms)
//! ```
//!
//! - `table`: the 731 settings of 4.3.1, facts only.
//! - `definition`: what one row means, and whether a text is a value of it.
//! - `modelled`: which of them have an effect here.
//! - `store`: the texts that were given; refuses unknown names and bad values, notes what has no effect.
//! - the typed views: what the machines are built from.

mod admin;
mod broker;
mod consumer;
mod definition;
mod modelled;
mod producer;
mod store;
mod table;
mod topic;

pub use admin::AdminSettings;
pub use broker::BrokerSettings;
pub use consumer::{ConsumerSettings, IsolationLevel, OffsetReset};
pub use definition::{Definition, Kind, Scope};
pub use producer::{Acks, ProducerSettings};
pub use store::{Note, SettingError, Settings};
pub use table::DEFINITIONS;
pub use topic::{TimestampType, TopicCompression, TopicSettings};
