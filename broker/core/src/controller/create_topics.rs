//! New topics: names, settings, placement, and the first state of every partition.
//!
//! A topic is refused by itself; the others of the request are created. The first in-sync replicas are those that
//! are active now, the first of them leads. Source: KIP-4, KIP-464 (defaults), KIP-525 (settings in the answer); texts
//! as a 4.3.1 controller answers.

use std::collections::{BTreeMap, BTreeSet};

use acked_wire::api::create_topics::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfigs, CreatableTopicResult,
};
use acked_wire::{
    ConfigRecord, CreateTopicsRequest, CreateTopicsResponse, MetadataRecord, PartitionRecord, Str,
    TopicRecord, Uuid, error_code,
};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::draft::Draft;
use super::image::{MetadataImage, TOPIC_RESOURCE, ids};
use super::placement::Usable;
use crate::observation::{Election, PartitionState};
use crate::settings::{Scope, Settings};
use crate::types::{NodeId, TopicPartition};

/// Partitions that one request may create, over all its topics, as in Kafka.
const PARTITIONS_MAX: i64 = 10_000;
const NAME_LENGTH_MAX: usize = 249;
/// `configSource` of a setting that was given for the topic.
const DYNAMIC_TOPIC_CONFIG: i8 = 1;
const METADATA_TOPIC: &str = "__cluster_metadata";

struct Refusal {
    code: i16,
    message: String,
}

fn refuse<T>(code: i16, message: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal { code, message: message.into() })
}

/// A topic as it will be.
struct Plan {
    id: Uuid,
    name: Str,
    settings: Vec<(Str, Str)>,
    /// Replicas of each partition, by index.
    assignments: Vec<Vec<NodeId>>,
}

/// Decides on every topic of the request.
pub(super) fn create_topics(
    draft: &mut Draft<'_>,
    rng: &mut ChaCha8Rng,
    request: &CreateTopicsRequest,
) -> CreateTopicsResponse {
    let mut response = CreateTopicsResponse::default();
    let mut times: BTreeMap<&Str, usize> = BTreeMap::new();
    for topic in &request.topics {
        *times.entry(&topic.name).or_default() += 1;
    }
    let too_many = partitions_asked(draft, request) > PARTITIONS_MAX;
    let mut fresh = BTreeSet::new();
    for topic in &request.topics {
        let repeats = times.remove(&topic.name);
        let outcome = match repeats {
            None => continue,
            Some(1) if too_many => {
                refuse(error_code::POLICY_VIOLATION, "Excessively large number of partitions per request.")
            }
            Some(1) => plan(draft.image(), draft, rng, topic, &fresh),
            Some(_) => refuse(error_code::INVALID_REQUEST, "Duplicate topic name."),
        };
        response.topics.push(match outcome {
            Ok(plan) => {
                fresh.insert(plan.name.clone());
                let result = created(&plan);
                if !request.validate_only {
                    write_down(draft, plan);
                }
                result
            }
            Err(refusal) => CreatableTopicResult {
                name: topic.name.clone(),
                error_code: refusal.code,
                error_message: Some(Str::from(refusal.message)),
                configs: Some(Vec::new()),
                ..CreatableTopicResult::default()
            },
        });
    }
    response
}

fn partitions_asked(draft: &Draft<'_>, request: &CreateTopicsRequest) -> i64 {
    let asked = |topic: &CreatableTopic| match topic.num_partitions {
        _ if !topic.assignments.is_empty() => i64::try_from(topic.assignments.len()).unwrap_or(i64::MAX),
        -1 => i64::from(draft.config().num_partitions),
        count => i64::from(count.max(0)),
    };
    request.topics.iter().map(asked).fold(0, i64::saturating_add)
}

fn plan(
    image: &MetadataImage,
    draft: &Draft<'_>,
    rng: &mut ChaCha8Rng,
    topic: &CreatableTopic,
    fresh: &BTreeSet<Str>,
) -> Result<Plan, Refusal> {
    check_name(image, &topic.name, fresh)?;
    let settings = settings(topic)?;
    let assignments =
        if topic.assignments.is_empty() { automatic(draft, rng, topic)? } else { manual(draft, topic)? };
    Ok(Plan { id: fresh_topic_id(image, rng), name: topic.name.detached(), settings, assignments })
}

fn check_name(image: &MetadataImage, name: &Str, fresh: &BTreeSet<Str>) -> Result<(), Refusal> {
    if *name == METADATA_TOPIC {
        return refuse(error_code::TOPIC_AUTHORIZATION_FAILED, "Authorization failed.");
    }
    if let Some(fault) = name_fault(name) {
        return refuse(error_code::INVALID_TOPIC_EXCEPTION, format!("Topic name is invalid: {fault}"));
    }
    if image.topic_id(name).is_some() {
        return refuse(error_code::TOPIC_ALREADY_EXISTS, format!("Topic '{name}' already exists."));
    }
    // Names of metrics write '.' as '_', so two names must not differ in that alone.
    let existing = image.topic_names().map(|(existing, _)| existing).chain(fresh);
    if let Some(other) = existing.into_iter().find(|other| other.replace('.', "_") == name.replace('.', "_"))
    {
        let message = format!("Topic '{name}' collides with existing topic: {other}");
        return refuse(error_code::INVALID_TOPIC_EXCEPTION, message);
    }
    Ok(())
}

/// What is wrong with a topic's name, if anything.
pub(super) fn name_fault(name: &str) -> Option<String> {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-');
    if name.is_empty() {
        Some("the empty string is not allowed".into())
    } else if name == "." || name == ".." {
        Some(format!("'{name}' is not allowed"))
    } else if name.len() > NAME_LENGTH_MAX {
        Some(format!("the length of '{name}' is longer than the max allowed length {NAME_LENGTH_MAX}"))
    } else if !name.chars().all(allowed) {
        Some(format!(
            "'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
        ))
    } else {
        None
    }
}

fn settings(topic: &CreatableTopic) -> Result<Vec<(Str, Str)>, Refusal> {
    let mut checked = Settings::default_for(Scope::Topic);
    for config in &topic.configs {
        let Some(value) = &config.value else {
            let message = format!("Null value not supported for topic configs: {}", config.name);
            return refuse(error_code::INVALID_CONFIG, message);
        };
        // A setting that has no effect here is kept all the same, as the topic's owner wants it listed.
        if let Err(error) = checked.set(&config.name, value) {
            return refuse(error_code::INVALID_CONFIG, format!("failed to {error}"));
        }
    }
    Ok(checked.given().map(|(name, value)| (Str::from_static(name), Str::from(value))).collect())
}

fn automatic(
    draft: &Draft<'_>,
    rng: &mut ChaCha8Rng,
    topic: &CreatableTopic,
) -> Result<Vec<Vec<NodeId>>, Refusal> {
    let replicas = match topic.replication_factor {
        -1 => draft.config().default_replication_factor,
        factor if factor > 0 => factor,
        _ => {
            let message = "Replication factor must be larger than 0, or -1 to use the default value.";
            return refuse(error_code::INVALID_REPLICATION_FACTOR, message);
        }
    };
    let partitions = match topic.num_partitions {
        -1 => draft.config().num_partitions,
        count if count > 0 => count,
        _ => {
            let message = "Number of partitions was set to an invalid non-positive value.";
            return refuse(error_code::INVALID_PARTITIONS, message);
        }
    };
    let mut usable = Usable::default();
    for broker in draft.image().brokers() {
        if broker.fenced {
            usable.fenced.push(broker.id);
        } else if !broker.in_controlled_shutdown {
            usable.unfenced.push(broker.id);
        }
    }
    let (partitions, replicas) = (partitions.unsigned_abs() as usize, usize::from(replicas.unsigned_abs()));
    usable
        .place(partitions, replicas, rng)
        .or_else(|error| refuse(error_code::INVALID_REPLICATION_FACTOR, error.to_string()))
}

fn manual(draft: &Draft<'_>, topic: &CreatableTopic) -> Result<Vec<Vec<NodeId>>, Refusal> {
    if topic.replication_factor != -1 {
        let message =
            "A manual partition assignment was specified, but replication factor was not set to -1.";
        return refuse(error_code::INVALID_REQUEST, message);
    }
    if topic.num_partitions != -1 {
        let message = "A manual partition assignment was specified, but numPartitions was not set to -1.";
        return refuse(error_code::INVALID_REQUEST, message);
    }
    let mut by_index = BTreeMap::new();
    for assignment in &topic.assignments {
        let index = assignment.partition_index;
        let replicas = manual_replicas(draft, assignment)?;
        if by_index.insert(index, replicas).is_some() {
            let message = format!("Found multiple manual partition assignments for partition {index}");
            return refuse(error_code::INVALID_REPLICA_ASSIGNMENT, message);
        }
    }
    if !(0..).zip(by_index.keys()).all(|(expected, index)| expected == *index) {
        let message = "partitions should be a consecutive 0-based integer sequence";
        return refuse(error_code::INVALID_REPLICA_ASSIGNMENT, message);
    }
    let assignments: Vec<Vec<NodeId>> = by_index.into_values().collect();
    if let Some(other) = assignments.iter().find(|replicas| replicas.len() != assignments[0].len()) {
        let message = format!(
            "The manual partition assignment includes a partition with {} replica(s), but this is not consistent \
             with previous partitions, which have {} replica(s).",
            other.len(),
            assignments[0].len()
        );
        return refuse(error_code::INVALID_REPLICA_ASSIGNMENT, message);
    }
    Ok(assignments)
}

fn manual_replicas(
    draft: &Draft<'_>,
    assignment: &CreatableReplicaAssignment,
) -> Result<Vec<NodeId>, Refusal> {
    let invalid = |message: String| refuse(error_code::INVALID_REPLICA_ASSIGNMENT, message);
    if assignment.broker_ids.is_empty() {
        return invalid("The manual partition assignment includes an empty replica list.".into());
    }
    let mut replicas = Vec::new();
    for id in &assignment.broker_ids {
        let node = NodeId(*id);
        if draft.image().broker(node).is_none() {
            return invalid(format!(
                "The manual partition assignment includes broker {id}, but no such broker is registered."
            ));
        }
        if replicas.contains(&node) {
            return invalid(format!(
                "The manual partition assignment includes the broker {id} more than once."
            ));
        }
        replicas.push(node);
    }
    if !replicas.iter().any(|node| draft.is_active(*node)) {
        return invalid(format!(
            "All brokers specified in the manual partition assignment for partition {} are fenced or in controlled \
             shutdown.",
            assignment.partition_index
        ));
    }
    Ok(replicas)
}

/// A random (version 4) id; never one that could be mistaken for an option or for one of Kafka's reserved ids.
fn fresh_topic_id(image: &MetadataImage, rng: &mut ChaCha8Rng) -> Uuid {
    loop {
        let mut bytes = [0; 16];
        rng.fill_bytes(&mut bytes);
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        let id = Uuid(bytes);
        if image.topic(id).is_none() && !id.to_string().starts_with('-') {
            return id;
        }
    }
}

fn write_down(draft: &mut Draft<'_>, plan: Plan) {
    draft.push(MetadataRecord::Topic(TopicRecord {
        name: plan.name.clone(),
        topic_id: plan.id,
        ..TopicRecord::default()
    }));
    for (name, value) in &plan.settings {
        draft.push(MetadataRecord::Config(ConfigRecord {
            resource_type: TOPIC_RESOURCE,
            resource_name: plan.name.clone(),
            name: name.clone(),
            value: Some(value.clone()),
            ..ConfigRecord::default()
        }));
    }
    let own = plan.settings.iter().find(|(name, _)| *name == "unclean.leader.election.enable");
    let unclean_allowed = match own {
        Some((_, value)) => value.eq_ignore_ascii_case("true"),
        None => draft.image().unclean_leader_election(&plan.name, draft.config().unclean_leader_election),
    };
    for (index, replicas) in (0..).zip(plan.assignments) {
        let partition = TopicPartition { topic: plan.id, index };
        let isr: Vec<NodeId> = replicas.iter().copied().filter(|node| draft.is_active(*node)).collect();
        assert!(!isr.is_empty(), "placement gives every partition an active replica");
        let directories = replicas.iter().map(|node| directory_of(draft.image(), *node)).collect();
        let state = PartitionState {
            partition,
            leader: isr.first().copied(),
            replicas,
            isr,
            elr: Vec::new(),
            leader_epoch: 0,
            partition_epoch: 0,
            recovering: false,
        };
        draft.push(MetadataRecord::Partition(first_record(&state, directories)));
        draft.decided(state, Some(Election::Created), unclean_allowed);
    }
}

fn first_record(state: &PartitionState, directories: Vec<Uuid>) -> PartitionRecord {
    PartitionRecord {
        partition_id: state.partition.index,
        topic_id: state.partition.topic,
        replicas: ids(&state.replicas),
        isr: ids(&state.isr),
        leader: state.leader.map_or(-1, |leader| leader.0),
        leader_epoch: state.leader_epoch,
        partition_epoch: state.partition_epoch,
        directories,
        ..PartitionRecord::default()
    }
}

/// A broker with one directory keeps everything there; with several it chooses itself and reports later.
fn directory_of(image: &MetadataImage, node: NodeId) -> Uuid {
    match image.broker(node).map(|broker| broker.directories.as_slice()) {
        Some([only]) => *only,
        _ => Uuid::ZERO,
    }
}

fn created(plan: &Plan) -> CreatableTopicResult {
    let configs = plan.settings.iter().map(|(name, value)| CreatableTopicConfigs {
        name: name.clone(),
        value: Some(value.clone()),
        config_source: DYNAMIC_TOPIC_CONFIG,
        ..CreatableTopicConfigs::default()
    });
    CreatableTopicResult {
        name: plan.name.clone(),
        topic_id: plan.id,
        num_partitions: i32::try_from(plan.assignments.len()).expect("bounded by PARTITIONS_MAX"),
        replication_factor: i16::try_from(plan.assignments[0].len()).expect("bounded by the brokers"),
        configs: Some(configs.collect()),
        ..CreatableTopicResult::default()
    }
}
