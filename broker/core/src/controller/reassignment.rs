//! Partitions move to other replicas: a reassignment grows the replicas by those that are wanted, waits until these are
//! in sync, and then drops the others (KIP-455).
//!
//! - begin: replicas = target, then those to be removed; the ISR is unchanged. A new order of the same replicas is
//!   complete at once.
//! - complete: with the ISR change that makes every adding replica a member and leaves a remaining one; only if fewer
//!   are added than removed must all that remain be in sync. There is no test of min.insync.replicas.
//! - cancel: the adding replicas are dropped again.
//!
//! Source: kafka-rules 3, "Reassignment".

use std::collections::BTreeSet;

use acked_wire::api::alter_partition_reassignments::{
    ReassignablePartition, ReassignablePartitionResponse, ReassignableTopicResponse,
};
use acked_wire::api::list_partition_reassignments::{OngoingPartitionReassignment, OngoingTopicReassignment};
use acked_wire::{
    AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse, Str, error_code,
};

use super::draft::Draft;
use super::election::Wanted;
use super::image::{MetadataImage, ids, nodes};
use super::partition_change::Intent;
use crate::observation::PartitionState;
use crate::types::{NodeId, TopicPartition};

/// What is under way on one partition; empty when nothing is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reassignment {
    pub adding: Vec<NodeId>,
    pub removing: Vec<NodeId>,
}

impl Reassignment {
    pub fn is_under_way(&self) -> bool {
        !self.adding.is_empty() || !self.removing.is_empty()
    }

    /// What is left once it is complete, or `None` while it is not: replicas and in-sync replicas without those that
    /// go. `isr` is the in-sync set as it will be.
    pub(super) fn completed(
        &self,
        replicas: &[NodeId],
        isr: &[NodeId],
    ) -> Option<(Vec<NodeId>, Vec<NodeId>)> {
        if !self.is_under_way() {
            return None;
        }
        let remaining = |nodes: &[NodeId]| -> Vec<NodeId> {
            nodes.iter().copied().filter(|node| !self.removing.contains(node)).collect()
        };
        let (replicas, isr) = (remaining(replicas), remaining(isr));
        let must_be_in_sync: &[NodeId] =
            if self.adding.len() < self.removing.len() { &replicas } else { &self.adding };
        let is_complete = !isr.is_empty() && must_be_in_sync.iter().all(|node| isr.contains(node));
        is_complete.then_some((replicas, isr))
    }
}

/// Decides on every partition of the request.
pub(super) fn alter_reassignments(
    draft: &mut Draft<'_>,
    request: &AlterPartitionReassignmentsRequest,
) -> AlterPartitionReassignmentsResponse {
    let mut response = AlterPartitionReassignmentsResponse {
        error_message: None,
        allow_replication_factor_change: request.allow_replication_factor_change,
        ..Default::default()
    };
    for topic in &request.topics {
        let mut answer = ReassignableTopicResponse { name: topic.name.clone(), ..Default::default() };
        for wish in &topic.partitions {
            let outcome = reassign(draft, &topic.name, wish, request.allow_replication_factor_change);
            let (error_code, error_message) = match outcome {
                Ok(()) => (error_code::NONE, None),
                Err((code, message)) => (code, Some(Str::from(message))),
            };
            answer.partitions.push(ReassignablePartitionResponse {
                partition_index: wish.partition_index,
                error_code,
                error_message,
                ..Default::default()
            });
        }
        response.responses.push(answer);
    }
    response
}

type Refusal = (i16, String);

fn reassign(
    draft: &mut Draft<'_>,
    topic: &Str,
    wish: &ReassignablePartition,
    may_change_count: bool,
) -> Result<(), Refusal> {
    let index = wish.partition_index;
    let partition = draft
        .image()
        .topic_id(topic)
        .map(|topic| TopicPartition { topic, index })
        .filter(|partition| draft.partition(*partition).is_some())
        .ok_or_else(|| {
            let message = format!("Unable to find a topic partition named {topic}-{index}.");
            (error_code::UNKNOWN_TOPIC_OR_PARTITION, message)
        })?;
    match &wish.replicas {
        None => cancel(draft, partition),
        Some(target) => begin(draft, partition, &nodes(target), may_change_count),
    }
}

fn begin(
    draft: &mut Draft<'_>,
    partition: TopicPartition,
    target: &[NodeId],
    may_change_count: bool,
) -> Result<(), Refusal> {
    let invalid = |message: String| (error_code::INVALID_REPLICA_ASSIGNMENT, message);
    if target.is_empty() {
        return Err(invalid("The manual partition assignment includes an empty replica list.".into()));
    }
    let mut distinct = BTreeSet::new();
    if let Some(twice) = target.iter().find(|node| !distinct.insert(**node)) {
        let message = format!("The manual partition assignment includes the broker {twice} more than once.");
        return Err(invalid(message));
    }
    if let Some(unknown) = target.iter().find(|node| draft.image().broker(**node).is_none()) {
        let message = format!(
            "The manual partition assignment includes broker {unknown}, but no such broker is registered."
        );
        return Err(invalid(message));
    }
    let before = draft.partition(partition).expect("looked up just above").clone();
    let under_way = draft.reassignment(partition);
    let count = before.replicas.len() - under_way.adding.len();
    if !may_change_count && target.len() != count {
        let message = format!("The replication factor is {} and may not become {}.", count, target.len());
        return Err((error_code::INVALID_REPLICATION_FACTOR, message));
    }
    // What is being added already counts as there: a second wish replaces the first.
    let removing: Vec<NodeId> =
        before.replicas.iter().copied().filter(|node| !distinct.contains(node)).collect();
    let adding: Vec<NodeId> = target.iter().copied().filter(|node| !before.replicas.contains(node)).collect();
    let mut replicas = target.to_vec();
    replicas.extend(&removing);
    let intent = Intent::reassign(&before, replicas, Reassignment { adding, removing });
    draft.change(partition, &intent);
    Ok(())
}

fn cancel(draft: &mut Draft<'_>, partition: TopicPartition) -> Result<(), Refusal> {
    let before = draft.partition(partition).expect("looked up by the caller").clone();
    let under_way = draft.reassignment(partition).clone();
    if !under_way.is_under_way() {
        return Err((error_code::NO_REASSIGNMENT_IN_PROGRESS, "No reassignment is in progress.".into()));
    }
    let staying = |nodes: &[NodeId]| -> Vec<NodeId> {
        nodes.iter().copied().filter(|node| !under_way.adding.contains(node)).collect()
    };
    let (replicas, isr) = (staying(&before.replicas), staying(&before.isr));
    if isr.is_empty() {
        // Going back would elect uncleanly.
        let message = "The reassignment cannot be cancelled: no replica of before is in sync.";
        return Err((error_code::INVALID_REPLICA_ASSIGNMENT, message.into()));
    }
    let mut intent = Intent::reassign(&before, replicas, Reassignment::default());
    intent.isr = isr;
    draft.change(partition, &intent);
    Ok(())
}

/// The reassignments under way, of the partitions asked for or of all.
pub(super) fn list_reassignments(
    image: &MetadataImage,
    request: &ListPartitionReassignmentsRequest,
) -> ListPartitionReassignmentsResponse {
    let mut response = ListPartitionReassignmentsResponse { error_message: None, ..Default::default() };
    for (name, id) in image.topic_names() {
        let asked = request.topics.as_ref().map(|topics| {
            topics.iter().filter(|topic| topic.name == *name).flat_map(|topic| topic.partition_indexes.iter())
        });
        let asked: Option<BTreeSet<i32>> = asked.map(|indexes| indexes.copied().collect());
        let topic = image.topic(id).expect("a named topic exists");
        let ongoing = topic
            .partitions
            .iter()
            .filter(|(index, partition)| {
                partition.reassignment.is_under_way()
                    && asked.as_ref().is_none_or(|asked| asked.contains(index))
            })
            .map(|(index, partition)| OngoingPartitionReassignment {
                partition_index: *index,
                replicas: ids(&partition.state.replicas),
                adding_replicas: ids(&partition.reassignment.adding),
                removing_replicas: ids(&partition.reassignment.removing),
                ..Default::default()
            });
        let partitions: Vec<OngoingPartitionReassignment> = ongoing.collect();
        if !partitions.is_empty() {
            response.topics.push(OngoingTopicReassignment {
                name: name.clone(),
                partitions,
                ..Default::default()
            });
        }
    }
    response
}

impl Intent {
    /// Begins, replaces or cancels a reassignment.
    pub fn reassign(state: &PartitionState, replicas: Vec<NodeId>, reassignment: Reassignment) -> Intent {
        Intent {
            isr: state.isr.clone(),
            recovering: state.recovering,
            wanted: Wanted::Online,
            reassign: Some((replicas, reassignment)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ids: &[i32]) -> Vec<NodeId> {
        nodes(ids)
    }

    #[test]
    fn reassignment_is_complete_when_the_added_are_in_sync_and_somebody_remains() {
        let grow = Reassignment { adding: of(&[4]), removing: of(&[1]) };
        assert_eq!(grow.completed(&of(&[4, 2, 3, 1]), &of(&[1, 2, 3])), None);
        assert_eq!(grow.completed(&of(&[4, 2, 3, 1]), &of(&[1, 4])), Some((of(&[4, 2, 3]), of(&[4]))));
        let shrink = Reassignment { adding: vec![], removing: of(&[1]) };
        assert_eq!(
            shrink.completed(&of(&[2, 3, 1]), &of(&[1, 2])),
            None,
            "fewer added than removed: all of them"
        );
        assert_eq!(shrink.completed(&of(&[2, 3, 1]), &of(&[3, 1, 2])), Some((of(&[2, 3]), of(&[3, 2]))));
        let alone = Reassignment { adding: of(&[2]), removing: of(&[1]) };
        assert_eq!(alone.completed(&of(&[2, 1]), &of(&[1])), None, "somebody must remain");
    }
}
