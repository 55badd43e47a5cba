//! The producer against a model cluster: single rules by hand, all of them by random walks.

mod broker;
mod walk;
mod world;

use std::time::Duration;

use acked_wire::batch::BatchView;
use acked_wire::{RequestBody, error_code};

use self::broker::{Cluster, Trouble};
use self::world::{MS, World};
use super::{Outcome, ProducerInput};
use crate::settings::ProducerSettings;

fn settings() -> ProducerSettings {
    ProducerSettings {
        delivery_timeout: 2000 * MS,
        request_timeout: 500 * MS,
        linger: Duration::ZERO,
        batch_size: 0,
        retry_backoff: 10 * MS,
        retry_backoff_max: 100 * MS,
        reconnect_backoff: 10 * MS,
        reconnect_backoff_max: 100 * MS,
        socket_connection_setup_timeout: 200 * MS,
        ..ProducerSettings::default()
    }
}

/// One broker, one partition; the producer has learned both and its first record is acknowledged.
fn started(settings: ProducerSettings) -> World {
    let mut world = World::new(settings, Cluster::new(1, 1));
    world.send(0);
    world.finish();
    assert!(world.is_ok(0));
    world
}

/// Batches in the produce requests on the only connection, as first sequence and count.
fn on_wire(world: &World) -> Vec<Vec<(i32, i32)>> {
    let requests = world.wires.values().flat_map(|wire| &wire.requests);
    let produced = requests.filter_map(|(_, body, _)| match body {
        RequestBody::Produce(request) => Some(request),
        _ => None,
    });
    let batches = produced.map(|request| {
        let parts = request.topic_data.iter().flat_map(|topic| &topic.partition_data);
        let headers = parts.map(|part| {
            let records = part.records.as_ref().expect("records");
            let header = BatchView::only(records).expect("one batch").header;
            (header.base_sequence, header.record_count)
        });
        headers.collect()
    });
    batches.collect()
}

fn failed(code: i16, definite: bool) -> Option<Outcome> {
    Some(Outcome::Failed { code, definite })
}

#[test]
fn five_requests_are_in_flight_and_the_sixth_waits() {
    let mut world = started(settings());
    for _ in 0..7 {
        world.send(0);
    }
    assert_eq!(on_wire(&world), [[(1, 1)], [(2, 1)], [(3, 1)], [(4, 1)], [(5, 1)]]);
    assert!(world.step(0, true, Trouble::None) && world.step(0, true, Trouble::None));
    assert_eq!(on_wire(&world).len(), 5, "an answer makes room");
    world.finish();
    assert!((0..8).all(|record| world.is_ok(record)));
}

#[test]
fn records_that_wait_for_room_share_a_batch_without_linger() {
    let mut world = started(ProducerSettings { batch_size: 16_384, ..settings() });
    for _ in 0..9 {
        world.send(0);
    }
    assert_eq!(on_wire(&world).len(), 5);
    assert!(world.step(0, true, Trouble::None) && world.step(0, true, Trouble::None));
    assert_eq!(on_wire(&world).last(), Some(&vec![(6, 4)]));
}

#[test]
fn batch_lingers_unless_full_or_flushed() {
    let linger = 50 * MS;
    let mut world = started(ProducerSettings { batch_size: 200, linger, ..settings() });
    world.send(0);
    world.send(0);
    world.wait(49 * MS);
    assert!(on_wire(&world).is_empty());
    world.wait(MS);
    assert_eq!(on_wire(&world), [[(1, 2)]]);
    for _ in 0..4 {
        world.send(0);
    }
    assert_eq!(on_wire(&world).len(), 2, "full");
    world.tell(ProducerInput::Flush { flush: 9 });
    assert_eq!(on_wire(&world).len(), 3, "flushed");
    assert!(world.flushed.is_empty());
    world.finish();
    assert_eq!(world.flushed, [9]);
}

#[test]
fn first_batch_of_a_numbering_travels_alone() {
    let mut world = World::new(settings(), Cluster::new(1, 1));
    for _ in 0..3 {
        world.send(0);
    }
    while on_wire(&world).is_empty() {
        if !(0..world.wires.len()).any(|nth| world.step(nth, true, Trouble::None)) {
            world.wait(MS);
        }
    }
    assert_eq!(on_wire(&world), [[(0, 1)]], "a leader that never heard of a producer takes any sequence");
    world.finish();
    assert_eq!(world.cluster.logs[0].records, [0, 1, 2]);
}

#[test]
fn retry_keeps_its_sequence_and_waits_out_its_backoff() {
    let mut world = started(settings());
    world.send(0);
    assert!(world.step(0, true, Trouble::Refuse) && world.step(0, true, Trouble::None));
    world.settle();
    assert!(on_wire(&world).is_empty(), "backs off");
    world.wait(12 * MS);
    assert_eq!(on_wire(&world), [[(1, 1)]]);
}

#[test]
fn answers_lost_with_the_connection_are_found_as_duplicates() {
    let mut world = started(settings());
    for _ in 0..5 {
        world.send(0);
    }
    for _ in 0..5 {
        assert!(world.step(0, false, Trouble::None));
    }
    world.break_wire(0);
    world.finish();
    assert!((0..6).all(|record| world.is_ok(record)));
    assert_eq!(world.cluster.logs[0].records, [0, 1, 2, 3, 4, 5]);
    assert_eq!(world.producer.counters().epoch_bumps, 0);
}

#[test]
fn no_batch_is_numbered_that_would_push_one_without_answer_out_of_the_window() {
    let mut world = started(settings());
    for _ in 0..5 {
        world.send(0);
    }
    assert!(world.step(0, false, Trouble::AppendAndFail));
    world.settle();
    assert!((2..6).all(|record| world.is_ok(record)));
    world.send(0);
    world.wait(12 * MS);
    assert_eq!(on_wire(&world), [[(1, 1)]], "the retry, and nothing behind it");
    assert!(world.step(0, false, Trouble::None) && world.step(0, true, Trouble::None));
    assert_eq!(on_wire(&world), [[(6, 1)]]);
    world.finish();
    assert_eq!(world.cluster.logs[0].records, [0, 1, 2, 3, 4, 5, 6]);
}

#[test]
fn partition_talks_to_one_leader_at_a_time() {
    let aged = ProducerSettings { metadata_max_age: 200 * MS, ..settings() };
    let mut world = World::new(aged, Cluster::new(2, 2));
    world.send(0);
    world.send(1);
    world.finish();
    world.send(0);
    world.cluster.move_leader(0);
    world.wait(200 * MS);
    assert!(world.step_node(2) && world.step_node(2), "the other leader tells of the move");
    world.send(0);
    assert_eq!(on_wire(&world), [[(1, 1)]], "the next batch waits for the one at the old leader");
    world.finish();
    assert_eq!(world.cluster.logs[0].records, [0, 2, 3]);
}

#[test]
fn leader_that_lost_the_producer_is_answered_with_the_next_epoch() {
    let mut world = started(settings());
    world.cluster.forget_producers();
    for _ in 0..3 {
        world.send(0);
    }
    world.finish();
    assert_eq!(world.cluster.logs[0].records, [0, 1, 2, 3]);
    assert_eq!(world.producer.counters().epoch_bumps, 1);
    assert_eq!(world.producer.identity().map(|identity| identity.epoch), Some(1));
}

#[test]
fn batch_after_one_refused_for_good_is_numbered_anew() {
    let mut world = started(settings());
    for _ in 0..3 {
        world.send(0);
    }
    assert!(world.step(0, false, Trouble::RefuseForGood));
    world.finish();
    assert_eq!(world.outcome(1), failed(error_code::MESSAGE_TOO_LARGE, true));
    assert_eq!(world.cluster.logs[0].records, [0, 2, 3]);
    assert_eq!(world.producer.counters().epoch_bumps, 1);
}

#[test]
fn record_that_was_never_sent_times_out_definitely() {
    let mut world = World::new(settings(), Cluster::new(1, 1));
    world.send(0);
    world.wait(2000 * MS);
    assert_eq!(world.outcome(0), failed(error_code::REQUEST_TIMED_OUT, true));
}

#[test]
fn record_on_the_wire_times_out_indefinitely_and_late_success_resolves_its_sequence() {
    let patient = ProducerSettings { request_timeout: 2000 * MS, ..settings() };
    let mut world = started(patient);
    world.send(0);
    world.wait(1999 * MS);
    assert_eq!(world.outcome(1), None);
    // The request timeout is counted from the same moment: move just past the delivery timeout only.
    world.now += MS;
    assert!(world.step(0, false, Trouble::None));
    world.wait(Duration::ZERO);
    assert_eq!(world.outcome(1), failed(error_code::REQUEST_TIMED_OUT, false));
    world.send(0);
    world.finish();
    assert!(world.is_ok(2));
    assert_eq!(world.cluster.logs[0].records, [0, 1, 2]);
}

#[test]
fn request_timeout_closes_the_connection_and_the_batch_goes_out_again() {
    let mut world = started(settings());
    world.send(0);
    world.wait(499 * MS);
    assert_eq!(world.producer.counters().disconnects, 0);
    world.wait(MS);
    assert_eq!(world.producer.counters().disconnects, 1);
    assert!(on_wire(&world).is_empty());
    world.finish();
    assert!(world.is_ok(1));
}

#[test]
fn leader_that_moved_is_found() {
    let mut world = World::new(settings(), Cluster::new(3, 1));
    world.send(0);
    world.finish();
    world.cluster.move_leader(0);
    world.send(0);
    world.finish();
    assert!(world.is_ok(1));
    assert!(world.producer.counters().errors.contains_key(&error_code::NOT_LEADER_OR_FOLLOWER));
}

#[test]
fn record_too_large_or_without_room_is_refused_at_once() {
    let narrow = ProducerSettings { max_request_size: 100, ..settings() };
    let mut world = World::new(narrow, Cluster::new(1, 1));
    world.send(0);
    assert_eq!(world.outcome(0), failed(error_code::MESSAGE_TOO_LARGE, true));
    let mut world = started(ProducerSettings { buffer_memory: 150, ..settings() });
    world.send(0);
    world.send(0);
    assert_eq!(world.outcome(2), failed(error_code::REQUEST_TIMED_OUT, true));
    world.finish();
    assert!(world.is_ok(1));
}

#[test]
fn close_delivers_what_was_sent_and_takes_no_more() {
    let mut world = started(ProducerSettings { linger: 1000 * MS, batch_size: 16_384, ..settings() });
    world.send(0);
    world.tell(ProducerInput::Close);
    world.send(0);
    assert_eq!(world.outcome(2), failed(error_code::INVALID_REQUEST, true));
    assert!(!world.closed);
    world.settle();
    assert!(world.closed && world.is_ok(1));
}
