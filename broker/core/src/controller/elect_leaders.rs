//! An administrator asks for elections, or the controller moves leadership back to preferred replicas by itself.
//! Source: kafka-rules 5; KIP-183, KIP-460.

use acked_wire::api::elect_leaders::{PartitionResult, ReplicaElectionResult};
use acked_wire::{ElectLeadersRequest, ElectLeadersResponse, Str, error_code};

use super::draft::Draft;
use super::election::Wanted;
use super::partition_change::Intent;
use crate::types::TopicPartition;

/// Partitions that one pass of preferred elections moves at most, as in Kafka.
const PREFERRED_PASS_MAX: usize = 1000;

/// Decides on every partition asked for; a null list means all of them, and leaves out those that need no election.
pub(super) fn elect_leaders(draft: &mut Draft<'_>, request: &ElectLeadersRequest) -> ElectLeadersResponse {
    let wanted = match request.election_type {
        0 => Wanted::Preferred,
        1 => Wanted::UncleanByAdministrator,
        _ => {
            let error_code = error_code::INVALID_REQUEST;
            return ElectLeadersResponse { error_code, ..ElectLeadersResponse::default() };
        }
    };
    let mut response = ElectLeadersResponse::default();
    match &request.topic_partitions {
        Some(topics) => {
            for asked in topics {
                let results =
                    asked.partitions.iter().map(|index| elect(draft, &asked.topic, *index, wanted)).collect();
                response.replica_election_results.push(topic_result(&asked.topic, results));
            }
        }
        None => {
            let image = draft.image();
            for (name, id) in image.topic_names() {
                let topic = image.topic(id).expect("a named topic exists");
                let mut results: Vec<PartitionResult> =
                    topic.partitions.keys().map(|index| elect(draft, name, *index, wanted)).collect();
                results.retain(|result| result.error_code != error_code::ELECTION_NOT_NEEDED);
                response.replica_election_results.push(topic_result(name, results));
            }
        }
    }
    response
}

fn elect(draft: &mut Draft<'_>, topic: &Str, index: i32, wanted: Wanted) -> PartitionResult {
    let preferred = wanted == Wanted::Preferred;
    let Some(id) = draft.image().topic_id(topic) else {
        return result(
            index,
            error_code::UNKNOWN_TOPIC_OR_PARTITION,
            Some(format!("No such topic as {topic}")),
        );
    };
    let Some(state) = draft.partition(TopicPartition { topic: id, index }) else {
        let message = format!("No such partition as {topic}-{index}");
        return result(index, error_code::UNKNOWN_TOPIC_OR_PARTITION, Some(message));
    };
    let satisfied =
        if preferred { state.leader == state.replicas.first().copied() } else { state.leader.is_some() };
    if satisfied {
        let message = "Leader election not needed for topic partition.";
        return result(index, error_code::ELECTION_NOT_NEEDED, Some(message.into()));
    }
    let (partition, intent) = (state.partition, Intent::elect(state, wanted));
    if draft.change(partition, &intent) {
        return result(index, error_code::NONE, None);
    }
    if preferred {
        let message = "The preferred leader was not available.";
        result(index, error_code::PREFERRED_LEADER_NOT_AVAILABLE, Some(message.into()))
    } else {
        let message = "Eligible topic partition leaders are not available.";
        result(index, error_code::ELIGIBLE_LEADERS_NOT_AVAILABLE, Some(message.into()))
    }
}

fn result(partition_id: i32, error_code: i16, message: Option<String>) -> PartitionResult {
    PartitionResult { partition_id, error_code, error_message: message.map(Str::from), ..Default::default() }
}

fn topic_result(topic: &Str, partition_result: Vec<PartitionResult>) -> ReplicaElectionResult {
    ReplicaElectionResult { topic: topic.clone(), partition_result, ..Default::default() }
}

/// Moves leadership to `replicas[0]` wherever that is in sync and another leads.
pub(super) fn elect_preferred(draft: &mut Draft<'_>) {
    let elsewhere =
        draft.select(|state| state.leader.is_some() && state.leader != state.replicas.first().copied());
    let mut moved = 0;
    for partition in elsewhere {
        let intent = Intent::elect(draft.partition(partition).expect("selected just now"), Wanted::Preferred);
        moved += usize::from(draft.change(partition, &intent));
        if moved == PREFERRED_PASS_MAX {
            return;
        }
    }
}
