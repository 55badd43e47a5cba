//! ElectLeaders (key 43): preferred and unclean elections by an administrator (KIP-460).

use crate::Str;
use crate::schema::messages;

messages! {
    /// Asks for elections, of all partitions when the list is null.
    pub struct ElectLeadersRequest [versions 0..=2, flexible 2..] {
        /// 0 preferred, 1 unclean.
        election_type: i8 [1..],
        topic_partitions: Option<Vec<TopicPartitions>> [0.., nullable 0.., default = Some(Vec::new())],
        timeout_ms: i32 [0.., default = 60000],
    }

    /// See [`ElectLeadersRequest`].
    pub struct TopicPartitions {
        topic: Str [0..],
        partitions: Vec<i32> [0..],
    }

    /// Answer to [`ElectLeadersRequest`].
    pub struct ElectLeadersResponse [versions 0..=2, flexible 2..] {
        throttle_time_ms: i32 [0..],
        error_code: i16 [1..],
        replica_election_results: Vec<ReplicaElectionResult> [0..],
    }

    /// See [`ElectLeadersResponse`].
    pub struct ReplicaElectionResult {
        topic: Str [0..],
        partition_result: Vec<PartitionResult> [0..],
    }

    /// See [`ReplicaElectionResult`].
    pub struct PartitionResult {
        partition_id: i32 [0..],
        error_code: i16 [0..],
        error_message: Option<Str> [0.., nullable 0.., default = Some(Str::default())],
    }
}
