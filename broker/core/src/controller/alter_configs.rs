//! Settings of topics and brokers change while the cluster runs (KIP-226, KIP-339). A resource changes as a whole or not
//! at all; every setting is checked by Kafka's own rules first.
//!
//! A change of `min.insync.replicas` takes effect at the controller and at leaders at different times. Between the two a
//! leader that still has the old value could shrink its ISR and acknowledge alone, so every partition concerned gets a
//! new partition epoch with it: what such a leader asks for is refused until it has learned of the change. Kafka does so
//! only where its eligible leader replicas had to be forgotten.
//!
//! Source: kafka-rules 4, deviation (d).

use std::collections::BTreeMap;

use acked_wire::api::incremental_alter_configs::{AlterConfigsResource, AlterConfigsResourceResponse};
use acked_wire::{
    ConfigRecord, IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse, MetadataRecord, Str,
    error_code,
};

use super::draft::Draft;
use super::image::{BROKER_RESOURCE, MetadataImage, TOPIC_RESOURCE};
use crate::settings::{Scope, Settings};
use crate::types::{NodeId, TopicPartition};

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;
const MIN_INSYNC: &str = "min.insync.replicas";

type Refusal = (i16, String);

/// Decides on every resource of the request.
pub(super) fn alter_configs(
    draft: &mut Draft<'_>,
    request: &IncrementalAlterConfigsRequest,
) -> IncrementalAlterConfigsResponse {
    let mut response = IncrementalAlterConfigsResponse::default();
    let mut times: BTreeMap<(i8, &Str), usize> = BTreeMap::new();
    for resource in &request.resources {
        *times.entry((resource.resource_type, &resource.resource_name)).or_default() += 1;
    }
    for resource in &request.resources {
        let outcome = match times.remove(&(resource.resource_type, &resource.resource_name)) {
            None => continue,
            Some(1) => changes(draft.image(), resource),
            Some(_) => Err((error_code::INVALID_REQUEST, "Duplicate resource.".into())),
        };
        let (error_code, error_message) = match outcome {
            Ok(changes) => {
                if !request.validate_only {
                    write_down(draft, resource, changes);
                }
                (error_code::NONE, None)
            }
            Err((code, message)) => (code, Some(Str::from(message))),
        };
        response.responses.push(AlterConfigsResourceResponse {
            error_code,
            error_message,
            resource_type: resource.resource_type,
            resource_name: resource.resource_name.clone(),
            ..Default::default()
        });
    }
    response
}

/// The settings as they will be; `None` removes one.
fn changes(
    image: &MetadataImage,
    resource: &AlterConfigsResource,
) -> Result<Vec<(Str, Option<Str>)>, Refusal> {
    let scope = scope(image, resource)?;
    let mut changes: Vec<(Str, Option<Str>)> = Vec::new();
    for config in &resource.configs {
        if changes.iter().any(|(name, _)| *name == config.name) {
            let message = format!("Error due to duplicate config keys: {}", config.name);
            return Err((error_code::INVALID_REQUEST, message));
        }
        let now = image.own_config(resource.resource_type, &resource.resource_name, &config.name);
        let value = match (config.config_operation, &config.value) {
            (DELETE, _) => None,
            (SET, Some(value)) => Some(value.clone()),
            (APPEND, Some(value)) => Some(joined(now, value, true)),
            (SUBTRACT, Some(value)) => Some(joined(now, value, false)),
            (SET | APPEND | SUBTRACT, None) => {
                let message = format!("Null value not supported for : {}", config.name);
                return Err((error_code::INVALID_CONFIG, message));
            }
            _ => {
                let message = format!("Unknown operation {}.", config.config_operation);
                return Err((error_code::INVALID_REQUEST, message));
            }
        };
        let text = value.as_ref().map_or("", |value| value.as_str());
        let checked = match value {
            Some(_) => Settings::default_for(scope).set(&config.name, text).map(|_| ()),
            None => Ok(()),
        };
        if let Err(error) = checked {
            return Err((
                error_code::INVALID_CONFIG,
                format!("Invalid value {text} for configuration {}: {error}", config.name),
            ));
        }
        changes.push((config.name.detached(), value.map(|value| value.detached())));
    }
    Ok(changes)
}

fn scope(image: &MetadataImage, resource: &AlterConfigsResource) -> Result<Scope, Refusal> {
    let name = &resource.resource_name;
    match resource.resource_type {
        TOPIC_RESOURCE if image.topic_id(name).is_some() => Ok(Scope::Topic),
        TOPIC_RESOURCE => {
            Err((error_code::UNKNOWN_TOPIC_OR_PARTITION, "The topic does not exist.".to_owned()))
        }
        BROKER_RESOURCE if name.is_empty() => Ok(Scope::Broker),
        BROKER_RESOURCE => match name.parse::<i32>() {
            Ok(id) if image.broker(NodeId(id)).is_some() => Ok(Scope::Broker),
            Ok(id) => {
                let message = format!("No node with id {id} found.");
                Err((error_code::BROKER_ID_NOT_REGISTERED, message))
            }
            Err(_) => {
                let message = format!("Invalid broker name '{name}'");
                Err((error_code::INVALID_REQUEST, message))
            }
        },
        other => Err((error_code::INVALID_REQUEST, format!("Unsupported resource type {other}"))),
    }
}

/// A list setting with entries added or taken away.
fn joined(now: Option<&Str>, value: &Str, add: bool) -> Str {
    let entries = |text: &str| -> Vec<String> {
        text.split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(str::to_owned).collect()
    };
    let (mut list, changed) = (entries(now.map_or("", |now| now.as_str())), entries(value));
    if add {
        let fresh: Vec<String> = changed.into_iter().filter(|entry| !list.contains(entry)).collect();
        list.extend(fresh);
    } else {
        list.retain(|entry| !changed.contains(entry));
    }
    Str::from(list.join(","))
}

fn write_down(draft: &mut Draft<'_>, resource: &AlterConfigsResource, changes: Vec<(Str, Option<Str>)>) {
    let concerns_isr = changes.iter().any(|(name, _)| *name == MIN_INSYNC);
    for (name, value) in changes {
        draft.push(MetadataRecord::Config(ConfigRecord {
            resource_type: resource.resource_type,
            resource_name: resource.resource_name.detached(),
            name,
            value,
            ..ConfigRecord::default()
        }));
    }
    if !concerns_isr {
        return;
    }
    let partitions: Vec<TopicPartition> = match resource.resource_type {
        TOPIC_RESOURCE => {
            let id = draft.image().topic_id(&resource.resource_name).expect("checked");
            draft.select(|state| state.partition.topic == id)
        }
        _ => draft.select(|_| true),
    };
    for partition in partitions {
        draft.touch(partition);
    }
}
