//! A leader asks for a change of its in-sync replicas. The order of the checks is the rule: which error a stale or
//! deposed leader gets decides whether it retries, waits for metadata, or goes back.
//!
//! Source: kafka-rules 3; KIP-497, KIP-704 (recovery state), KIP-841 (no fenced members), KIP-903 (no stale
//! incarnations).

use std::collections::BTreeSet;

use acked_wire::api::alter_partition::{request, response};
use acked_wire::{AlterPartitionRequest, AlterPartitionResponse, error_code};

use super::draft::Draft;
use super::election::Wanted;
use super::image::ids;
use super::partition_change::Intent;
use crate::observation::{Observation, PartitionState};
use crate::types::{NodeId, TopicPartition};

/// Decides on every partition of the request.
pub(super) fn alter_partition(
    draft: &mut Draft<'_>,
    request: &AlterPartitionRequest,
) -> AlterPartitionResponse {
    let caller = NodeId(request.broker_id);
    let current = draft.image().broker(caller).is_some_and(|broker| broker.epoch == request.broker_epoch);
    if !current {
        let error_code = error_code::STALE_BROKER_EPOCH;
        return AlterPartitionResponse { error_code, ..AlterPartitionResponse::default() };
    }
    let mut response = AlterPartitionResponse::default();
    for topic in &request.topics {
        let mut answer = response::TopicData { topic_id: topic.topic_id, ..Default::default() };
        for wish in &topic.partitions {
            let partition = TopicPartition { topic: topic.topic_id, index: wish.partition_index };
            answer.partitions.push(match alter(draft, caller, partition, wish) {
                // The change completed a reassignment that moves the leader: the caller waits for the metadata.
                Ok(state) if state.leader != Some(caller) => {
                    refused(wish.partition_index, error_code::NEW_LEADER_ELECTED)
                }
                Ok(state) => accepted(&state),
                Err(code) => {
                    draft.observe(Observation::AlterPartitionRefused { partition, code });
                    refused(wish.partition_index, code)
                }
            });
        }
        response.topics.push(answer);
    }
    response
}

fn alter(
    draft: &mut Draft<'_>,
    caller: NodeId,
    partition: TopicPartition,
    wish: &request::PartitionData,
) -> Result<PartitionState, i16> {
    if draft.image().topic(partition.topic).is_none() {
        return Err(error_code::UNKNOWN_TOPIC_ID);
    }
    let state = draft.partition(partition).ok_or(error_code::UNKNOWN_TOPIC_OR_PARTITION)?;
    let members = members(wish);
    check(draft, caller, state, wish, &members)?;
    let intent = Intent {
        isr: members.iter().map(|(member, _)| *member).collect(),
        recovering: wish.leader_recovery_state == 1,
        wanted: Wanted::Online,
        reassign: None,
    };
    draft.change(partition, &intent);
    let after = draft.partition(partition).expect("it is there").clone();
    assert!(
        after.leader == Some(caller) || !after.replicas.contains(&caller),
        "an ISR change keeps its leader, unless it completes a reassignment without it"
    );
    Ok(after)
}

fn check(
    draft: &Draft<'_>,
    caller: NodeId,
    state: &PartitionState,
    wish: &request::PartitionData,
    members: &[(NodeId, i64)],
) -> Result<(), i16> {
    if wish.leader_epoch > state.leader_epoch || wish.partition_epoch > state.partition_epoch {
        // The caller knows more than this node: another controller took over.
        return Err(error_code::NOT_CONTROLLER);
    }
    if wish.leader_epoch < state.leader_epoch {
        return Err(error_code::FENCED_LEADER_EPOCH);
    }
    if state.leader != Some(caller) {
        return Err(error_code::INVALID_REQUEST);
    }
    if wish.partition_epoch < state.partition_epoch {
        return Err(error_code::INVALID_UPDATE_VERSION);
    }
    let distinct: BTreeSet<NodeId> = members.iter().map(|(member, _)| *member).collect();
    let recovering = match wish.leader_recovery_state {
        0 => false,
        1 => true,
        _ => return Err(error_code::INVALID_REQUEST),
    };
    if distinct.len() < members.len()
        || !distinct.iter().all(|member| state.replicas.contains(member))
        || !distinct.contains(&caller)
        || (recovering && members.len() > 1)
        || (recovering && !state.recovering)
    {
        return Err(error_code::INVALID_REQUEST);
    }
    let eligible = members.iter().all(|(member, epoch)| {
        let broker = draft.image().broker(*member).filter(|broker| broker.is_active());
        broker.is_some_and(|broker| *epoch == -1 || *epoch == broker.epoch)
    });
    if eligible { Ok(()) } else { Err(error_code::INELIGIBLE_REPLICA) }
}

/// The members asked for, each with the broker epoch the leader knows (−1 unknown).
fn members(wish: &request::PartitionData) -> Vec<(NodeId, i64)> {
    if wish.new_isr_with_epochs.is_empty() {
        return wish.new_isr.iter().map(|id| (NodeId(*id), -1)).collect();
    }
    wish.new_isr_with_epochs.iter().map(|member| (NodeId(member.broker_id), member.broker_epoch)).collect()
}

fn accepted(state: &PartitionState) -> response::PartitionData {
    response::PartitionData {
        partition_index: state.partition.index,
        error_code: error_code::NONE,
        leader_id: state.leader.map_or(-1, |leader| leader.0),
        leader_epoch: state.leader_epoch,
        isr: ids(&state.isr),
        leader_recovery_state: i8::from(state.recovering),
        partition_epoch: state.partition_epoch,
        ..Default::default()
    }
}

fn refused(partition_index: i32, error_code: i16) -> response::PartitionData {
    response::PartitionData { partition_index, error_code, ..Default::default() }
}
