//! Every partition replica of one broker: leading, following, and the requests that wait for either.
//!
//! | file | decides |
//! |---|---|
//! | interface.rs | the inputs and effects |

mod interface;

pub use interface::{
    BrokerView, FetchId, MetadataUpdate, PartitionAssignment, ReadFailed, ReadId, ReplicaConfig,
    ReplicaEffect, ReplicaInput, WriteId,
};
