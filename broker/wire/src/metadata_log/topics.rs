//! Records about topics and their partitions.

use crate::schema::messages;
use crate::{Str, Uuid};

messages! {
    /// A topic was created.
    pub struct TopicRecord [versions 0..=0, flexible 0..] {
        name: Str [0..],
        topic_id: Uuid [0..],
    }

    /// A topic was deleted with its partitions.
    pub struct RemoveTopicRecord [versions 0..=0, flexible 0..] {
        topic_id: Uuid [0..],
    }

    /// A partition, whole.
    pub struct PartitionRecord [versions 0..=2, flexible 0..] {
        partition_id: i32 [0.., default = -1],
        topic_id: Uuid [0..],
        replicas: Vec<i32> [0..],
        isr: Vec<i32> [0..],
        removing_replicas: Vec<i32> [0..],
        adding_replicas: Vec<i32> [0..],
        leader: i32 [0.., default = -1],
        /// 1 while recovering from an unclean election.
        leader_recovery_state: i8 [0.., tag 0],
        leader_epoch: i32 [0.., default = -1],
        partition_epoch: i32 [0.., default = -1],
        directories: Vec<Uuid> [1..],
        /// Null where the feature is off.
        eligible_leader_replicas: Option<Vec<i32>> [2.., nullable 2.., tag 1],
        last_known_elr: Option<Vec<i32>> [2.., nullable 2.., tag 2],
    }

    /// What changed of a partition; absent fields did not.
    pub struct PartitionChangeRecord [versions 0..=2, flexible 0..] {
        partition_id: i32 [0.., default = -1],
        topic_id: Uuid [0..],
        /// Null for no change, as in all lists of this record.
        isr: Option<Vec<i32>> [0.., nullable 0.., tag 0],
        /// -2 no change, -1 now none.
        leader: i32 [0.., tag 1, default = -2],
        replicas: Option<Vec<i32>> [0.., nullable 0.., tag 2],
        removing_replicas: Option<Vec<i32>> [0.., nullable 0.., tag 3],
        adding_replicas: Option<Vec<i32>> [0.., nullable 0.., tag 4],
        /// -1 no change.
        leader_recovery_state: i8 [0.., tag 5, default = -1],
        directories: Option<Vec<Uuid>> [1.., nullable 1.., tag 8],
        eligible_leader_replicas: Option<Vec<i32>> [2.., nullable 2.., tag 6],
        last_known_elr: Option<Vec<i32>> [2.., nullable 2.., tag 7],
    }

    /// Eligible leader replicas of a topic, or of all, are forgotten.
    pub struct ClearElrRecord [versions 0..=0, flexible 0..] {
        topic_name: Str [0..],
    }
}
