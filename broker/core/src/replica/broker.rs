//! What all replicas of one broker share: settings, rules, the registered brokers and the numbering of effects.

use std::collections::BTreeMap;

use super::interface::{BrokerView, FetchId, ReadId, ReplicaConfig, WriteId};
use crate::rules::Rules;
use crate::types::NodeId;

/// The broker that the replicas live on.
#[derive(Debug)]
pub(super) struct Broker {
    pub config: ReplicaConfig,
    pub rules: Rules,
    /// Its own registered epoch; `None` until this incarnation is registered.
    pub epoch: Option<i64>,
    /// Every registered broker, itself included.
    pub registered: BTreeMap<NodeId, BrokerView>,
    numbered: u64,
}

impl Broker {
    pub fn new(config: ReplicaConfig, rules: Rules) -> Broker {
        Broker { config, rules, epoch: None, registered: BTreeMap::new(), numbered: 0 }
    }

    pub fn node(&self) -> NodeId {
        self.config.node
    }

    pub fn next_write(&mut self) -> WriteId {
        WriteId(self.next_number())
    }

    pub fn next_read(&mut self) -> ReadId {
        ReadId(self.next_number())
    }

    pub fn next_fetch(&mut self) -> FetchId {
        FetchId(self.next_number())
    }

    fn next_number(&mut self) -> u64 {
        self.numbered += 1;
        self.numbered
    }
}
