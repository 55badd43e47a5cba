//! Metadata (key 3): brokers, topics, partitions, leaders and in-sync replicas.
//!
//! Asking for all topics is a null list from version 1, an empty list in version 0.

use crate::schema::messages;
use crate::{Str, Uuid};

messages! {
    /// Asks for topics, or for all of them.
    pub struct MetadataRequest [versions 0..=13, flexible 9..] {
        /// Null asks for all from version 1 on; empty asks for all in version 0 and for none after.
        topics: Option<Vec<MetadataRequestTopic>> [0.., nullable 1.., default = Some(Vec::new())],
        allow_auto_topic_creation: bool [4.., default = true],
        include_cluster_authorized_operations: bool [8..=10],
        include_topic_authorized_operations: bool [8..],
    }

    /// See [`MetadataRequest`].
    pub struct MetadataRequestTopic {
        topic_id: Uuid [10..; ignorable],
        name: Option<Str> [0.., nullable 10.., default = Some(Str::default())],
    }

    /// Answer to [`MetadataRequest`].
    pub struct MetadataResponse [versions 0..=13, flexible 9..] {
        throttle_time_ms: i32 [3..; ignorable],
        brokers: Vec<MetadataResponseBroker> [0..],
        cluster_id: Option<Str> [2.., nullable 2..; ignorable],
        /// A random live broker in KRaft clusters: requests are forwarded.
        controller_id: i32 [1.., default = -1; ignorable],
        topics: Vec<MetadataResponseTopic> [0..],
        cluster_authorized_operations: i32 [8..=10, default = -2147483648],
        error_code: i16 [13..; ignorable],
    }

    /// See [`MetadataResponse`].
    pub struct MetadataResponseBroker {
        node_id: i32 [0..],
        host: Str [0..],
        port: i32 [0..],
        rack: Option<Str> [1.., nullable 1..; ignorable],
    }

    /// See [`MetadataResponse`].
    pub struct MetadataResponseTopic {
        error_code: i16 [0..],
        name: Option<Str> [0.., nullable 12.., default = Some(Str::default())],
        topic_id: Uuid [10..; ignorable],
        is_internal: bool [1..; ignorable],
        partitions: Vec<MetadataResponsePartition> [0..],
        topic_authorized_operations: i32 [8.., default = -2147483648],
    }

    /// See [`MetadataResponseTopic`].
    pub struct MetadataResponsePartition {
        error_code: i16 [0..],
        partition_index: i32 [0..],
        leader_id: i32 [0..],
        leader_epoch: i32 [7.., default = -1; ignorable],
        /// The first one is the preferred leader.
        replica_nodes: Vec<i32> [0..],
        isr_nodes: Vec<i32> [0..],
        /// Replicas on fenced or dead brokers or failed directories.
        offline_replicas: Vec<i32> [5..; ignorable],
    }
}
