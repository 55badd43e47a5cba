//! CreatePartitions (key 37): topics get more partitions (KIP-195).

use crate::Str;
use crate::schema::messages;

messages! {
    /// Asks for topics to have as many partitions as stated.
    pub struct CreatePartitionsRequest [versions 0..=3, flexible 2..] {
        topics: Vec<CreatePartitionsTopic> [0..],
        timeout_ms: i32 [0..],
        validate_only: bool [0..],
    }

    /// See [`CreatePartitionsRequest`].
    pub struct CreatePartitionsTopic {
        name: Str [0..],
        /// All partitions, the old ones included.
        count: i32 [0..],
        /// One for each new partition; null lets the controller choose.
        assignments: Option<Vec<CreatePartitionsAssignment>> [0.., nullable 0.., default = Some(Vec::new())],
    }

    /// See [`CreatePartitionsTopic`].
    pub struct CreatePartitionsAssignment {
        broker_ids: Vec<i32> [0..],
    }

    /// Answer to [`CreatePartitionsRequest`].
    pub struct CreatePartitionsResponse [versions 0..=3, flexible 2..] {
        throttle_time_ms: i32 [0..],
        results: Vec<CreatePartitionsTopicResult> [0..],
    }

    /// See [`CreatePartitionsResponse`].
    pub struct CreatePartitionsTopicResult {
        name: Str [0..],
        error_code: i16 [0..],
        error_message: Option<Str> [0.., nullable 0..],
    }
}
