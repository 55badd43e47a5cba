//! CreateTopics (key 19), served by the controller.

use crate::schema::messages;
use crate::{Str, Uuid};

messages! {
    /// Asks for topics to be created, or only checked.
    pub struct CreateTopicsRequest [versions 2..=7, flexible 5..] {
        topics: Vec<CreatableTopic> [0..],
        timeout_ms: i32 [0.., default = 60000],
        validate_only: bool [0..],
    }

    /// See [`CreateTopicsRequest`].
    pub struct CreatableTopic {
        name: Str [0..],
        /// -1 with manual assignments, or for the default of the cluster.
        num_partitions: i32 [0..],
        /// -1 with manual assignments, or for the default of the cluster.
        replication_factor: i16 [0..],
        assignments: Vec<CreatableReplicaAssignment> [0..],
        configs: Vec<CreatableTopicConfig> [0..],
    }

    /// See [`CreatableTopic`].
    pub struct CreatableReplicaAssignment {
        partition_index: i32 [0..],
        broker_ids: Vec<i32> [0..],
    }

    /// See [`CreatableTopic`].
    pub struct CreatableTopicConfig {
        name: Str [0..],
        value: Option<Str> [0.., nullable 0.., default = Some(Str::default())],
    }

    /// Answer to [`CreateTopicsRequest`].
    pub struct CreateTopicsResponse [versions 2..=7, flexible 5..] {
        throttle_time_ms: i32 [0..],
        topics: Vec<CreatableTopicResult> [0..],
    }

    /// See [`CreateTopicsResponse`].
    pub struct CreatableTopicResult {
        name: Str [0..],
        topic_id: Uuid [7..; ignorable],
        error_code: i16 [0..],
        error_message: Option<Str> [0.., nullable 0.., default = Some(Str::default())],
        /// Why the settings are not shown, if so.
        topic_config_error_code: i16 [5.., tag 0; ignorable],
        num_partitions: i32 [5.., default = -1; ignorable],
        replication_factor: i16 [5.., default = -1; ignorable],
        configs: Option<Vec<CreatableTopicConfigs>> [5.., nullable 5.., default = Some(Vec::new()); ignorable],
    }

    /// See [`CreatableTopicResult`].
    pub struct CreatableTopicConfigs {
        name: Str [5..],
        value: Option<Str> [5.., nullable 5.., default = Some(Str::default())],
        read_only: bool [5..],
        config_source: i8 [5.., default = -1; ignorable],
        is_sensitive: bool [5..],
    }
}
