//! Elections that somebody asks for, and the periodic passes, as claims.

use acked_wire::error_code;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::controller::*;
use crate::observation::Election;
use crate::types::{Output, Time};

use super::cluster::*;

#[test]
fn preferred_election_moves_leadership_to_the_first_replica_in_sync() {
    let mut cluster = Cluster::with(false, 2, &[("t", &[1, 2])]);
    assert_eq!(cluster.elect_code(0, "t"), error_code::ELECTION_NOT_NEEDED);
    cluster.silence(&[1]);
    assert_eq!(cluster.elect_code(0, "t"), error_code::PREFERRED_LEADER_NOT_AVAILABLE);
    cluster.boot(1);
    assert_eq!(cluster.elect_code(0, "t"), error_code::PREFERRED_LEADER_NOT_AVAILABLE, "not in sync yet");
    assert_eq!(cluster.alter_code(cluster.wish("t", &[2, 1])), error_code::NONE);
    assert_eq!(cluster.elect_code(0, "t"), error_code::NONE);
    assert_eq!(cluster.brief("t"), (1, 2, 3, vec![2, 1]));
    assert_eq!(cluster.last_election(), Some(Election::Preferred));
}

#[test]
fn administrator_can_ask_for_an_unclean_election() {
    let mut cluster = Cluster::with(false, 2, &[("t", &[1, 2])]);
    assert_eq!(cluster.elect_code(1, "t"), error_code::ELECTION_NOT_NEEDED);
    cluster.silence(&[1, 2]);
    assert_eq!(cluster.elect_code(1, "t"), error_code::ELIGIBLE_LEADERS_NOT_AVAILABLE);
    cluster.boot(1);
    assert_eq!(cluster.brief("t").0, -1);
    assert_eq!(cluster.elect_code(1, "t"), error_code::NONE);
    assert_eq!(cluster.brief("t"), (1, 3, 3, vec![1]));
    assert_eq!(cluster.last_election(), Some(Election::Unclean { asked_by_administrator: true }));
}

#[test]
fn election_of_all_partitions_leaves_out_those_that_need_none() {
    let mut cluster = Cluster::with(false, 3, &[("t", &[1, 2]), ("u", &[3])]);
    cluster.silence(&[1]);
    let response = cluster.elect(0, None);
    let results: Vec<(String, usize)> = response
        .replica_election_results
        .iter()
        .map(|topic| (topic.topic.to_string(), topic.partition_result.len()))
        .collect();
    assert_eq!(results, [("t".to_string(), 1), ("u".to_string(), 0)]);
}

#[test]
fn unknown_elections_are_refused() {
    let mut cluster = Cluster::with(false, 1, &[("t", &[1])]);
    assert_eq!(cluster.elect(2, None).error_code, error_code::INVALID_REQUEST);
    assert_eq!(cluster.elect_code(0, "nowhere"), error_code::UNKNOWN_TOPIC_OR_PARTITION);
}

#[test]
fn leadership_goes_back_by_itself_when_the_interval_is_set() {
    let mut cluster = Cluster::with(false, 2, &[("t", &[1, 2])]);
    cluster.silence(&[1]);
    cluster.boot(1);
    cluster.alter(cluster.wish("t", &[2, 1]));
    let mut config = config(false);
    config.preferred_election_interval = Some(Time::from_secs(3));
    let (image, rng) = (cluster.controller.image().clone(), ChaCha8Rng::seed_from_u64(1));
    let mut out = Output::default();
    cluster.controller =
        Controller::activate(config, 2, image, cluster.next_offset, cluster.now, rng, &mut out);
    cluster.now += Time::from_secs(3);
    assert_eq!(cluster.controller.next_deadline(), Some(cluster.now));
    cluster.tick();
    assert_eq!(cluster.brief("t").0, 1);
    assert_eq!(cluster.last_election(), Some(Election::Preferred));
}

#[test]
fn unclean_pass_elects_what_became_electable_without_an_event() {
    // The setting changes with the controller: nothing but the periodic pass looks at the partition then.
    let mut cluster = Cluster::with(false, 2, &[("t", &[1, 2])]);
    cluster.silence(&[1, 2]);
    cluster.boot(1);
    assert_eq!(cluster.brief("t").0, -1);
    let (image, rng) = (cluster.controller.image().clone(), ChaCha8Rng::seed_from_u64(1));
    let mut out = Output::default();
    cluster.controller =
        Controller::activate(config(true), 2, image, cluster.next_offset, cluster.now, rng, &mut out);
    for _ in 0..100 {
        cluster.now += Time::from_secs(3);
        cluster.serve(1);
        cluster.tick();
    }
    assert_eq!(cluster.brief("t"), (1, 3, 3, vec![1]));
}
