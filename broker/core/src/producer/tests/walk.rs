//! Random walks of a producer through a troubled network.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::broker::{Cluster, Trouble};
use super::settings;
use super::world::{MS, World};
use crate::producer::Outcome;
use crate::settings::{Acks, ProducerSettings};

#[derive(Clone, Copy, Debug)]
enum Step {
    Send { partition: i32 },
    Serve { nth: usize, answer_first: bool, trouble: Trouble },
    Break { nth: usize },
    Orphan { arrives: bool },
    MoveLeader { partition: usize },
    Wait { ms: u32 },
}

fn trouble() -> impl Strategy<Value = Trouble> {
    prop_oneof![
        12 => Just(Trouble::None),
        1 => Just(Trouble::Refuse),
        1 => Just(Trouble::AppendAndFail),
        1 => Just(Trouble::RefuseForGood),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..2_i32).prop_map(|partition| Step::Send { partition }),
        20 => (0..4_usize, any::<bool>(), trouble())
            .prop_map(|(nth, answer_first, trouble)| Step::Serve { nth, answer_first, trouble }),
        2 => (0..4_usize).prop_map(|nth| Step::Break { nth }),
        2 => any::<bool>().prop_map(|arrives| Step::Orphan { arrives }),
        1 => (0..2_usize).prop_map(|partition| Step::MoveLeader { partition }),
        4 => (1..80_u32).prop_map(|ms| Step::Wait { ms }),
        1 => (200..1500_u32).prop_map(|ms| Step::Wait { ms }),
    ]
}

fn walk(settings: ProducerSettings, steps: &[Step]) -> World {
    let mut world = World::new(settings, Cluster::new(3, 2));
    for step in steps {
        match *step {
            Step::Send { partition } => {
                world.send(partition);
            }
            Step::Serve { nth, answer_first, trouble } => {
                let _ = world.step(nth, answer_first, trouble);
            }
            Step::Break { nth } => world.break_wire(nth),
            Step::Orphan { arrives } => world.orphan(arrives),
            Step::MoveLeader { partition } => world.cluster.move_leader(partition),
            Step::Wait { ms } => world.wait(MS * ms),
        }
    }
    world.finish();
    world
}

/// Acknowledged records are where the answer said, and definitely failed ones nowhere.
fn check_outcomes(world: &World) {
    let mut copies: BTreeMap<u64, usize> = BTreeMap::new();
    for value in world.cluster.logs.iter().flat_map(|log| &log.records) {
        *copies.entry(*value).or_insert(0) += 1;
    }
    for (record, (partition, outcome)) in world.sent.iter().enumerate() {
        match outcome.expect("every record is answered") {
            Outcome::Ok { offset: Some(offset), .. } => {
                let log = &world.cluster.logs[*partition as usize];
                assert_eq!(log.records.get(offset as usize), Some(&(record as u64)), "record {record}");
            }
            Outcome::Ok { offset: None, .. } => {}
            Outcome::Failed { definite, .. } => {
                let found = copies.get(&(record as u64));
                assert!(!definite || found.is_none(), "record {record} failed for certain, and is there");
            }
        }
    }
}

fn check_no_duplicates(world: &World) {
    for log in &world.cluster.logs {
        let mut values = log.records.clone();
        values.sort_unstable();
        assert!(values.windows(2).all(|pair| pair[0] != pair[1]), "twice in the log: {:?}", log.records);
    }
}

/// First copies of acknowledged records are in the order in which they were sent.
fn check_order(world: &World) {
    for (index, log) in (0..).zip(&world.cluster.logs) {
        let mut last = None;
        for (record, (partition, _)) in world.sent.iter().enumerate() {
            if *partition == index && world.is_ok(record) {
                let place = log.records.iter().position(|value| *value == record as u64);
                assert!(place > last, "record {record} at {place:?}, the one before at {last:?}");
                last = place;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn idempotent_records_are_neither_doubled_nor_reordered(
        steps in prop::collection::vec(step(), 0..250),
        batch_size in prop_oneof![Just(0_usize), Just(150)],
    ) {
        let world = walk(ProducerSettings { batch_size, ..settings() }, &steps);
        check_outcomes(&world);
        check_no_duplicates(&world);
        check_order(&world);
    }

    #[test]
    fn without_idempotence_outcomes_are_still_true(
        steps in prop::collection::vec(step(), 0..250),
        acks in prop_oneof![Just(Acks::Leader), Just(Acks::All)],
    ) {
        let plain = ProducerSettings { enable_idempotence: false, acks, ..settings() };
        check_outcomes(&walk(plain, &steps));
    }

    #[test]
    fn one_in_flight_keeps_the_order_of_first_copies(steps in prop::collection::vec(step(), 0..250)) {
        let muted = ProducerSettings {
            enable_idempotence: false,
            max_in_flight_requests_per_connection: 1,
            ..settings()
        };
        let world = walk(muted, &steps);
        check_outcomes(&world);
        check_order(&world);
    }

    #[test]
    fn without_retries_nothing_is_doubled(steps in prop::collection::vec(step(), 0..250)) {
        let world = walk(ProducerSettings { enable_idempotence: false, retries: 0, ..settings() }, &steps);
        check_outcomes(&world);
        check_no_duplicates(&world);
    }

    #[test]
    fn unanswered_records_are_done_once_handed_over(steps in prop::collection::vec(step(), 0..250)) {
        let unanswered = ProducerSettings { enable_idempotence: false, acks: Acks::None, ..settings() };
        check_outcomes(&walk(unanswered, &steps));
    }
}
