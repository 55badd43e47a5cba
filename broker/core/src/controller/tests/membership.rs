//! Activation, registration, heartbeats, fencing and controlled shutdown as claims.

use acked_wire::api::broker_registration::Feature;
use acked_wire::api::create_topics::CreatableTopic;
use acked_wire::{BrokerRegistrationRequest, MetadataRecord, ResponseBody, Str, Uuid, error_code};

use crate::controller::*;
use crate::observation::Election;
use crate::types::Time;

use super::cluster::*;

#[test]
fn empty_log_gets_the_feature_levels_of_a_new_cluster() {
    let mut cluster = Cluster::new(false);
    assert_eq!(cluster.log.len(), 1);
    assert!(matches!(&cluster.log[0], (1, MetadataRecord::FeatureLevel(record))
        if record.name == "metadata.version" && record.feature_level == METADATA_VERSION));
    cluster.fail_over();
    assert_eq!(cluster.log.len(), 1, "a log that has its features gets none again");
}

#[test]
fn new_controller_gives_every_unfenced_broker_a_fresh_session() {
    let mut cluster = Cluster::with(false, 3, &[("t", &[1, 2, 3])]);
    cluster.now += SESSION - Time::from_millis(1);
    cluster.fail_over();
    cluster.now += SESSION - Time::from_millis(1);
    cluster.tick();
    assert!((1..=3).all(|id| !cluster.broker(id).expect("registered").fenced));
    assert_eq!(cluster.controller.next_deadline(), Some(cluster.now + Time::from_millis(1)));
    cluster.now += Time::from_millis(1);
    cluster.tick();
    assert!((1..=3).all(|id| cluster.broker(id).expect("registered").fenced));
}

#[test]
fn broker_epoch_is_the_offset_of_its_registration_and_it_starts_fenced() {
    let mut cluster = Cluster::new(false);
    let offset = cluster.next_offset;
    assert_eq!(cluster.register(1).broker_epoch, offset);
    assert!(cluster.broker(1).expect("registered").fenced);
}

#[test]
fn another_incarnation_is_refused_while_the_session_lives() {
    let mut cluster = Cluster::with(false, 1, &[]);
    cluster.now += SESSION - Time::from_millis(1);
    assert_eq!(cluster.register(1).error_code, error_code::DUPLICATE_BROKER_REGISTRATION);
    cluster.now += Time::from_millis(1);
    cluster.tick();
    assert_eq!(cluster.register(1).error_code, error_code::NONE);
}

#[test]
fn another_incarnation_is_let_in_at_once_after_an_orderly_stop() {
    let mut cluster = Cluster::with(false, 2, &[]);
    assert!(cluster.heartbeat(1, cluster.next_offset - 1, false, true).should_shut_down);
    assert_eq!(cluster.register(1).error_code, error_code::NONE);
    assert!(cluster.broker(1).expect("registered").fenced, "a new incarnation begins anew");
}

#[test]
fn new_incarnation_leaves_every_isr_first_and_its_epoch_is_the_first_offset() {
    let mut cluster = Cluster::with(false, 3, &[("t", &[1, 2, 3]), ("u", &[2, 1])]);
    // The session is over, yet no tick has fenced the broker.
    cluster.now += SESSION;
    let (start, base) = (cluster.log.len(), cluster.next_offset);
    assert_eq!(cluster.register(1).broker_epoch, base);
    let names: Vec<&str> = cluster.log[start..].iter().map(|(_, record)| record.name()).collect();
    assert_eq!(names, ["PartitionChangeRecord", "PartitionChangeRecord", "RegisterBrokerRecord"]);
    assert_eq!(cluster.brief("t"), (2, 1, 1, vec![2, 3]));
    assert_eq!(cluster.brief("u"), (2, 0, 1, vec![2]));
    // Unfencing looks at the registration record, not at the epoch.
    assert!(cluster.heartbeat(1, base + 1, false, false).is_fenced);
    assert!(!cluster.heartbeat(1, base + 2, false, false).is_fenced);
}

#[test]
fn same_incarnation_keeps_epoch_fencing_and_shutdown_state() {
    let mut cluster = Cluster::with(false, 2, &[("t", &[1, 2])]);
    let epoch = cluster.epoch(1);
    assert!(!cluster.heartbeat(1, cluster.next_offset - 1, false, true).should_shut_down);
    assert_eq!(cluster.register_as(1, 1).broker_epoch, epoch);
    let broker = cluster.broker(1).expect("registered");
    assert!(!broker.fenced && broker.in_controlled_shutdown);
    assert_eq!(broker.registration_offset, cluster.next_offset - 1);
}

#[test]
fn registration_is_refused_in_this_order() {
    let mut cluster = Cluster::with(false, 2, &[]);
    let other = registration(1, 99);
    let mut code =
        |request: BrokerRegistrationRequest| match cluster.ask(ControllerBody::BrokerRegistration(request)) {
            ResponseBody::BrokerRegistration(response) => response.error_code,
            other => panic!("{other:?}"),
        };
    let mut request = BrokerRegistrationRequest {
        cluster_id: Str::from("other"),
        log_dirs: Vec::new(),
        features: Vec::new(),
        ..other
    };
    assert_eq!(code(request.clone()), error_code::INCONSISTENT_CLUSTER_ID);
    request.cluster_id = Str::from("cluster");
    assert_eq!(code(request.clone()), error_code::DUPLICATE_BROKER_REGISTRATION);
    request.broker_id = 3;
    assert_eq!(code(request.clone()), error_code::INVALID_REGISTRATION);
    // The directory of broker 2.
    request.log_dirs = vec![Uuid([202; 16])];
    assert_eq!(code(request.clone()), error_code::INVALID_REGISTRATION);
    request.log_dirs = vec![Uuid([203; 16])];
    assert_eq!(code(request.clone()), error_code::UNSUPPORTED_VERSION);
    request.features = vec![Feature {
        name: Str::from("metadata.version"),
        min_supported_version: METADATA_VERSION + 1,
        max_supported_version: METADATA_VERSION + 1,
        ..Feature::default()
    }];
    assert_eq!(code(request.clone()), error_code::UNSUPPORTED_VERSION);
    request.features = supported_features();
    assert_eq!(code(request), error_code::NONE);
}

#[test]
fn stale_broker_epoch_is_refused() {
    let mut cluster = Cluster::with(false, 1, &[]);
    cluster.epochs.insert(1, 0);
    assert_eq!(cluster.serve(1).error_code, error_code::STALE_BROKER_EPOCH);
    assert_eq!(cluster.serve(9).error_code, error_code::STALE_BROKER_EPOCH);
}

#[test]
fn broker_is_unfenced_when_its_metadata_reached_its_registration() {
    let mut cluster = Cluster::new(false);
    let epoch = cluster.register(1).broker_epoch;
    let early = cluster.heartbeat(1, epoch - 1, false, false);
    assert!(early.is_fenced && !early.is_caught_up);
    let unwilling = cluster.heartbeat(1, epoch, true, false);
    assert!(unwilling.is_fenced && unwilling.is_caught_up);
    assert!(!cluster.heartbeat(1, epoch, false, false).is_fenced);
}

#[test]
fn silent_leader_is_fenced_and_the_next_in_sync_replica_leads() {
    let mut cluster = Cluster::with(false, 3, &[("t", &[1, 2, 3])]);
    cluster.silence(&[1]);
    assert!(cluster.broker(1).expect("registered").fenced);
    assert_eq!(cluster.brief("t"), (2, 1, 1, vec![2, 3]));
    assert_eq!(cluster.last_election(), Some(Election::Clean));
}

#[test]
fn brokers_expiring_together_are_fenced_one_after_the_other() {
    let mut cluster = Cluster::with(false, 3, &[("t", &[1, 2, 3])]);
    cluster.silence(&[1, 2, 3]);
    // 1 goes, 2 leads; 2 goes, 3 leads; 3 goes and stays as the last member.
    assert_eq!(cluster.brief("t"), (-1, 3, 3, vec![3]));
    assert_eq!(cluster.last_election(), Some(Election::Leaderless));
}

#[test]
fn last_member_is_retained_and_elected_when_it_returns() {
    let mut cluster = Cluster::with(false, 3, &[("t", &[1, 2, 3])]);
    cluster.silence(&[1, 2, 3]);
    // Replicas that left earlier do not lead, in sync with nobody.
    cluster.boot(1);
    cluster.boot(2);
    assert_eq!(cluster.brief("t"), (-1, 3, 3, vec![3]));
    cluster.boot(3);
    assert_eq!(cluster.brief("t"), (3, 4, 4, vec![3]));
    assert_eq!(cluster.last_election(), Some(Election::Clean));
}

#[test]
fn unclean_election_takes_the_first_acceptable_replica_and_recovers() {
    let mut cluster = Cluster::with(true, 3, &[("t", &[1, 2, 3])]);
    cluster.silence(&[2, 3]);
    assert_eq!(cluster.brief("t"), (1, 0, 2, vec![1]));
    cluster.boot(3);
    cluster.silence(&[1]);
    assert_eq!(cluster.brief("t"), (3, 1, 3, vec![3]));
    assert!(cluster.state("t").recovering);
    assert_eq!(cluster.last_election(), Some(Election::Unclean { asked_by_administrator: false }));
}

#[test]
fn leaderless_partition_is_elected_uncleanly_when_any_replica_is_unfenced() {
    let mut cluster = Cluster::with(true, 3, &[("t", &[1, 2, 3])]);
    cluster.silence(&[1, 2, 3]);
    cluster.boot(2);
    assert_eq!(cluster.brief("t"), (2, 4, 4, vec![2]));
    assert!(cluster.state("t").recovering);
}

#[test]
fn topics_own_setting_decides_on_unclean_elections() {
    let mut cluster = Cluster::with(false, 2, &[]);
    let topic = |name: &str, value: &str| CreatableTopic {
        configs: vec![setting("unclean.leader.election.enable", Some(value))],
        ..manual(name, &[&[1, 2]])
    };
    cluster.create_topics(vec![topic("on", "true"), topic("off", "false")]);
    cluster.silence(&[2]);
    cluster.boot(2);
    cluster.silence(&[1]);
    assert_eq!(cluster.brief("on").0, 2);
    assert_eq!(cluster.brief("off").0, -1);
}

#[test]
fn fenced_broker_that_wants_to_stop_may_stop() {
    let mut cluster = Cluster::new(false);
    let epoch = cluster.register(1).broker_epoch;
    assert!(cluster.heartbeat(1, epoch, true, true).should_shut_down);
}

#[test]
fn broker_that_leads_nothing_leaves_at_once() {
    let mut cluster = Cluster::with(false, 3, &[("t", &[1, 2, 3])]);
    let reply = cluster.heartbeat(3, cluster.next_offset - 1, false, true);
    assert!(reply.should_shut_down && reply.is_fenced);
    assert_eq!(cluster.brief("t"), (1, 0, 1, vec![1, 2]));
}

#[test]
fn controlled_shutdown_moves_leaders_and_waits_until_the_others_know() {
    let mut cluster = Cluster::with(false, 3, &[("t", &[1, 2, 3])]);
    let reply = cluster.heartbeat(1, cluster.next_offset - 1, false, true);
    assert!(!reply.should_shut_down && !reply.is_fenced);
    assert_eq!(cluster.brief("t"), (2, 1, 1, vec![2, 3]));
    let moved = cluster.next_offset - 1;
    cluster.heartbeat(2, moved, false, false);
    cluster.heartbeat(3, moved - 1, false, false);
    assert!(!cluster.heartbeat(1, moved, false, true).should_shut_down, "broker 3 has not heard of it");
    cluster.heartbeat(3, moved, false, false);
    let reply = cluster.heartbeat(1, moved, false, true);
    assert!(reply.should_shut_down && reply.is_fenced);
    assert!(cluster.broker(1).expect("registered").fenced);
}

#[test]
fn last_in_sync_replica_may_leave_and_the_partition_is_offline() {
    let mut cluster = Cluster::with(false, 1, &[("t", &[1])]);
    assert!(!cluster.heartbeat(1, cluster.next_offset - 1, false, true).should_shut_down);
    assert_eq!(cluster.brief("t"), (-1, 1, 1, vec![1]));
    assert!(cluster.heartbeat(1, cluster.next_offset - 1, false, true).should_shut_down);
    cluster.silence(&[1]);
    cluster.boot(1);
    assert_eq!(cluster.brief("t"), (1, 2, 2, vec![1]));
}
