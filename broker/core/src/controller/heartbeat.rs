//! A broker's sign of life, and what the controller makes of it: unfence it when its metadata reached its
//! registration, fence it when it wants that or falls silent, let it stop in order.
//!
//! | state | asks for | becomes |
//! |---|---|---|
//! | fenced | shutdown | may stop |
//! | fenced | service, and its metadata reached its registration | unfenced |
//! | unfenced | to be fenced | fenced (may stop, if it asked for that too) |
//! | unfenced | shutdown, leads something | in controlled shutdown: out of every ISR, leaders moved |
//! | unfenced | shutdown, leads nothing | fenced, may stop |
//! | in controlled shutdown | leads nothing, and every other active broker knows | fenced, may stop |
//!
//! Source: kafka-rules 5; KIP-631.

use acked_wire::{
    BrokerHeartbeatRequest, BrokerHeartbeatResponse, BrokerRegistrationChangeRecord, MetadataRecord,
    error_code,
};

use super::draft::Draft;
use super::election::Wanted;
use super::image::Broker;
use super::partition_change::Intent;
use super::sessions::Sessions;
use crate::types::{NodeId, Time};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ControlState {
    Fenced,
    Unfenced,
    ControlledShutdown,
    ShutdownNow,
}

/// Decides on a heartbeat.
pub(super) fn heartbeat(
    draft: &mut Draft<'_>,
    sessions: &mut Sessions,
    now: Time,
    request: &BrokerHeartbeatRequest,
) -> BrokerHeartbeatResponse {
    let id = NodeId(request.broker_id);
    let Some(broker) = draft.image().broker(id).filter(|broker| broker.epoch == request.broker_epoch) else {
        let error_code = error_code::STALE_BROKER_EPOCH;
        return BrokerHeartbeatResponse { error_code, ..BrokerHeartbeatResponse::default() };
    };
    let caught_up = request.current_metadata_offset >= broker.registration_offset;
    let next = next_state(draft, sessions, broker, request, caught_up);
    match next {
        ControlState::Fenced | ControlState::ShutdownNow => fence(draft, id),
        ControlState::Unfenced => unfence(draft, broker),
        ControlState::ControlledShutdown => begin_shutdown(draft, broker),
    }
    let end = draft.next_offset();
    if next == ControlState::ShutdownNow {
        // The broker is about to go: its next incarnation need not wait until the session would have expired.
        sessions.close(id);
    } else {
        let session = sessions.touch(id, broker.epoch, now, request.current_metadata_offset);
        session.shutdown_offset = match next {
            ControlState::ControlledShutdown => session.shutdown_offset.or(Some(end - 1)),
            _ => None,
        };
    }
    BrokerHeartbeatResponse {
        is_caught_up: caught_up,
        is_fenced: matches!(next, ControlState::Fenced | ControlState::ShutdownNow),
        should_shut_down: next == ControlState::ShutdownNow,
        ..BrokerHeartbeatResponse::default()
    }
}

fn next_state(
    draft: &Draft<'_>,
    sessions: &Sessions,
    broker: &Broker,
    request: &BrokerHeartbeatRequest,
    caught_up: bool,
) -> ControlState {
    let leads_nothing = || draft.select(|state| state.leader == Some(broker.id)).is_empty();
    let shutdown_offset = sessions.get(broker.id).and_then(|session| session.shutdown_offset);
    if broker.fenced {
        return match (request.want_shut_down, request.want_fence) {
            (true, _) => ControlState::ShutdownNow,
            (false, false) if caught_up => ControlState::Unfenced,
            _ => ControlState::Fenced,
        };
    }
    if let Some(offset) = shutdown_offset {
        let known = draft
            .image()
            .brokers()
            .filter(|other| other.id != broker.id && other.is_active())
            .all(|other| sessions.get(other.id).is_some_and(|session| session.metadata_offset >= offset));
        let done = known && leads_nothing();
        return if done { ControlState::ShutdownNow } else { ControlState::ControlledShutdown };
    }
    match (request.want_shut_down, request.want_fence) {
        (true, true) => ControlState::ShutdownNow,
        (false, true) => ControlState::Fenced,
        (true, false) if leads_nothing() => ControlState::ShutdownNow,
        (true, false) => ControlState::ControlledShutdown,
        (false, false) => ControlState::Unfenced,
    }
}

/// Takes a broker out of every ISR and fences it. Nothing when it is fenced.
pub(super) fn fence(draft: &mut Draft<'_>, id: NodeId) {
    let broker = draft.image().broker(id).expect("only registered brokers are fenced");
    if broker.fenced {
        return;
    }
    leave_every_isr(draft, id);
    draft.push(MetadataRecord::BrokerRegistrationChange(BrokerRegistrationChangeRecord {
        broker_id: id.0,
        broker_epoch: broker.epoch,
        fenced: 1,
        ..BrokerRegistrationChangeRecord::default()
    }));
}

/// Lets a broker lead and be in sync again, and examines every partition that nobody leads.
fn unfence(draft: &mut Draft<'_>, broker: &Broker) {
    if !broker.fenced {
        return;
    }
    draft.push(MetadataRecord::BrokerRegistrationChange(BrokerRegistrationChangeRecord {
        broker_id: broker.id.0,
        broker_epoch: broker.epoch,
        fenced: -1,
        ..BrokerRegistrationChangeRecord::default()
    }));
    draft.set_active(broker.id, !broker.in_controlled_shutdown);
    elect_leaderless(draft);
}

fn begin_shutdown(draft: &mut Draft<'_>, broker: &Broker) {
    if !broker.in_controlled_shutdown {
        draft.push(MetadataRecord::BrokerRegistrationChange(BrokerRegistrationChangeRecord {
            broker_id: broker.id.0,
            broker_epoch: broker.epoch,
            in_controlled_shutdown: 1,
            ..BrokerRegistrationChangeRecord::default()
        }));
    }
    leave_every_isr(draft, broker.id);
}

fn leave_every_isr(draft: &mut Draft<'_>, id: NodeId) {
    draft.set_active(id, false);
    for partition in draft.select(|state| state.isr.contains(&id)) {
        let intent = Intent::without(draft.partition(partition).expect("selected just now"), id);
        draft.change(partition, &intent);
    }
    assert!(
        draft.select(|state| state.leader == Some(id)).is_empty(),
        "{id} leads something without being in sync"
    );
}

/// Elects for every partition that nobody leads, uncleanly where the settings allow it.
pub(super) fn elect_leaderless(draft: &mut Draft<'_>) {
    for partition in draft.select(|state| state.leader.is_none()) {
        let intent = Intent::elect(draft.partition(partition).expect("selected just now"), Wanted::Online);
        draft.change(partition, &intent);
    }
}
