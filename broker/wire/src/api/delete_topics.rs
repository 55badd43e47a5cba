//! DeleteTopics (key 20), served by the controller. Topics go by name up to version 5, by name or id from 6
//! (KIP-516).

use crate::schema::messages;
use crate::{Str, Uuid};

messages! {
    /// Asks for topics to be deleted.
    pub struct DeleteTopicsRequest [versions 1..=6, flexible 4..] {
        topics: Vec<DeleteTopicState> [6..],
        /// Up to version 5.
        topic_names: Vec<Str> [0..=5; ignorable],
        timeout_ms: i32 [0..],
    }

    /// See [`DeleteTopicsRequest`].
    pub struct DeleteTopicState {
        /// Null when the topic goes by its id.
        name: Option<Str> [6.., nullable 6..],
        /// Zero when the topic goes by its name.
        topic_id: Uuid [6..],
    }

    /// Answer to [`DeleteTopicsRequest`], not always in the order of the request.
    pub struct DeleteTopicsResponse [versions 1..=6, flexible 4..] {
        throttle_time_ms: i32 [1..; ignorable],
        responses: Vec<DeletableTopicResult> [0..],
    }

    /// See [`DeleteTopicsResponse`].
    pub struct DeletableTopicResult {
        /// Null when an unknown id was asked for.
        name: Option<Str> [0.., nullable 6.., default = Some(Str::default())],
        topic_id: Uuid [6..; ignorable],
        error_code: i16 [0..],
        error_message: Option<Str> [5.., nullable 5..; ignorable],
    }
}
