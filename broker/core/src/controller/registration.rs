//! A broker introduces an incarnation of itself.
//!
//! 1. Another incarnation has a live session: DUPLICATE_BROKER_REGISTRATION; a killed broker that returns gets it
//!    until its old session expires. One that stopped in order is let in at once: its session ended with the
//!    permission to stop (measured: 4.3.1 registers a broker that was stopped and started within its session time). 2. A new incarnation leaves every ISR first (the sole member of an ISR stays,
//!    ELR is off), starts fenced, and its registration record comes last; its epoch is the offset of the first record
//!    of the batch. 3. The same incarnation again keeps epoch, fencing and shutdown state.
//!
//! Source: kafka-rules 5, "Registration"; KIP-631, KIP-858 (directories), KIP-584 (features).

use std::collections::BTreeSet;

use acked_wire::metadata_log::{BrokerEndpoint, BrokerFeature, RegisterBrokerRecord};
use acked_wire::{BrokerRegistrationRequest, BrokerRegistrationResponse, MetadataRecord, Uuid, error_code};

use super::draft::Draft;
use super::partition_change::Intent;
use super::sessions::Sessions;
use crate::types::{NodeId, Time};

/// Decides on a registration.
pub(super) fn register(
    draft: &mut Draft<'_>,
    sessions: &mut Sessions,
    now: Time,
    request: &BrokerRegistrationRequest,
) -> BrokerRegistrationResponse {
    match refusal(draft, sessions, now, request) {
        Some(error_code) => {
            BrokerRegistrationResponse { error_code, ..BrokerRegistrationResponse::default() }
        }
        None => accept(draft, sessions, now, request),
    }
}

fn refusal(
    draft: &Draft<'_>,
    sessions: &Sessions,
    now: Time,
    request: &BrokerRegistrationRequest,
) -> Option<i16> {
    if request.cluster_id != draft.config().cluster_id {
        return Some(error_code::INCONSISTENT_CLUSTER_ID);
    }
    if request.broker_id < 0 {
        return Some(error_code::INVALID_REGISTRATION);
    }
    let id = NodeId(request.broker_id);
    let existing = draft.image().broker(id);
    if existing.is_some_and(|broker| {
        broker.incarnation != request.incarnation_id && sessions.is_live(id, broker.epoch, now)
    }) {
        return Some(error_code::DUPLICATE_BROKER_REGISTRATION);
    }
    if request.is_migrating_zk_broker {
        return Some(error_code::BROKER_ID_NOT_REGISTERED);
    }
    let directories: BTreeSet<Uuid> = request.log_dirs.iter().copied().collect();
    let listeners: BTreeSet<&str> = request.listeners.iter().map(|listener| listener.name.as_str()).collect();
    let malformed = directories.is_empty()
        || directories.len() < request.log_dirs.len()
        || directories.contains(&Uuid::ZERO)
        || listeners.is_empty()
        || listeners.len() < request.listeners.len();
    let taken = draft.image().brokers().any(|other| {
        other.id != id && other.directories.iter().any(|directory| directories.contains(directory))
    });
    if malformed || taken {
        return Some(error_code::INVALID_REGISTRATION);
    }
    let supported = draft.image().features().all(|(name, level)| {
        request.features.iter().any(|feature| {
            feature.name == *name
                && (feature.min_supported_version..=feature.max_supported_version).contains(&level)
        })
    });
    (!supported).then_some(error_code::UNSUPPORTED_VERSION)
}

fn accept(
    draft: &mut Draft<'_>,
    sessions: &mut Sessions,
    now: Time,
    request: &BrokerRegistrationRequest,
) -> BrokerRegistrationResponse {
    let id = NodeId(request.broker_id);
    let mut record = record(request);
    match draft.image().broker(id).filter(|broker| broker.incarnation == request.incarnation_id) {
        Some(same) => {
            record.broker_epoch = same.epoch;
            record.fenced = same.fenced;
            record.in_controlled_shutdown = same.in_controlled_shutdown;
        }
        None => {
            record.broker_epoch = draft.base_offset();
            draft.set_active(id, false);
            for partition in draft.select(|state| state.isr.contains(&id)) {
                let intent = Intent::without(draft.partition(partition).expect("selected just now"), id);
                draft.change(partition, &intent);
            }
        }
    }
    let broker_epoch = record.broker_epoch;
    assert!(
        draft.image().broker(id).is_none_or(|broker| broker.epoch <= broker_epoch),
        "broker epoch of {id} fell to {broker_epoch}"
    );
    draft.push(MetadataRecord::RegisterBroker(record));
    sessions.open(id, broker_epoch, now);
    BrokerRegistrationResponse { broker_epoch, ..BrokerRegistrationResponse::default() }
}

fn record(request: &BrokerRegistrationRequest) -> RegisterBrokerRecord {
    let endpoints = request.listeners.iter().map(|listener| BrokerEndpoint {
        name: listener.name.clone(),
        host: listener.host.clone(),
        port: listener.port,
        security_protocol: listener.security_protocol,
        ..BrokerEndpoint::default()
    });
    let features = request.features.iter().map(|feature| BrokerFeature {
        name: feature.name.clone(),
        min_supported_version: feature.min_supported_version,
        max_supported_version: feature.max_supported_version,
        ..BrokerFeature::default()
    });
    RegisterBrokerRecord {
        broker_id: request.broker_id,
        incarnation_id: request.incarnation_id,
        end_points: endpoints.collect(),
        features: features.collect(),
        rack: request.rack.clone(),
        fenced: true,
        log_dirs: request.log_dirs.clone(),
        ..RegisterBrokerRecord::default()
    }
}
