//! Claims about votes, pre-votes, and the beginning and end of a reign.

use std::time::Duration;

use acked_wire::{Message, RequestBody, ResponseBody, Uuid, VoteRequest, error_code};
use bytes::Bytes;

use super::super::messages::{self, Standing};
use super::super::*;
use super::desk::*;
use crate::observation::Observation;
use crate::types::{NodeId, PeerError};

const VOTERS: [NodeId; 3] = [ME, SECOND, THIRD];

fn save_of(desk: &Desk) -> u64 {
    let save = desk.effects.iter().rev().find_map(|effect| match effect {
        QuorumEffect::SaveState { save, .. } => Some(*save),
        _ => None,
    });
    save.expect("the node saves its state")
}

fn voted_for(desk: &Desk, candidate: NodeId) -> bool {
    desk.observations
        .iter()
        .any(|said| matches!(said, Observation::VoteGranted { candidate: voted, .. } if *voted == candidate))
}

#[test]
fn pre_vote_keeps_the_epoch_and_saves_nothing() {
    let mut desk = Desk::new_voter();
    desk.wait_for_election();
    assert_eq!(desk.votes_sent(), [(SECOND, 0, true), (THIRD, 0, true)]);
    assert_eq!(desk.saves(), []);
    assert_eq!(desk.quorum.epoch(), 0);
}

#[test]
fn candidate_asks_for_votes_only_after_its_own_is_saved() {
    let mut desk = Desk::new_voter();
    desk.wait_for_election();
    desk.disk_is_prompt = false;
    desk.answer_votes(true);
    assert_eq!(desk.saves(), [QuorumState { epoch: 1, leader: None, voted: Some(ME) }]);
    assert_eq!(desk.votes_sent(), []);
    assert!(!voted_for(&desk, ME));
    desk.input(QuorumInput::StateSaved { save: save_of(&desk) });
    assert_eq!(desk.votes_sent(), [(SECOND, 1, false), (THIRD, 1, false)]);
    assert!(voted_for(&desk, ME));
}

#[test]
fn pre_vote_answer_never_counts_as_a_vote() {
    let mut desk = Desk::new_voter();
    desk.wait_for_election();
    let pre_votes = desk.sent();
    let to_second = pre_votes.iter().find(|sent| sent.to == SECOND).expect("it asked 102");
    let to_third = pre_votes.iter().rfind(|sent| sent.to == THIRD).expect("it asked 103");
    let granted = vote_answer(true, Standing { epoch: 0, leader: None });
    desk.answer(to_second, Ok(granted.clone()));
    assert_eq!(desk.quorum.epoch(), 1, "one pre-vote of two others is a majority");
    desk.answer(to_third, Ok(granted));
    assert_eq!(desk.quorum.leader(), None);
    desk.answer_votes(true);
    assert_eq!(desk.quorum.leader(), Some(ME));
}

#[test]
fn vote_is_answered_once_it_is_saved() {
    let mut desk = Desk::new_voter();
    desk.disk_is_prompt = false;
    assert_eq!(desk.vote(SECOND, 3, (0, 0), false), None);
    assert_eq!(desk.saves().last(), Some(&QuorumState { epoch: 3, leader: None, voted: Some(SECOND) }));
    assert!(!voted_for(&desk, SECOND));
    desk.input(QuorumInput::StateSaved { save: save_of(&desk) });
    let reply = desk.reply(desk.last_request()).expect("the vote is durable");
    assert!(answer(&reply).granted);
    assert!(voted_for(&desk, SECOND));
}

#[test]
fn second_candidate_of_an_epoch_is_refused_and_the_first_is_granted_again() {
    let mut desk = Desk::new_voter();
    assert!(desk.vote(SECOND, 3, (0, 0), false).expect("answered").granted);
    let refused = desk.vote(THIRD, 3, (2, 9), false).expect("answered");
    assert_eq!((refused.error, refused.granted), (error_code::NONE, false));
    assert!(desk.vote(SECOND, 3, (0, 0), false).expect("answered").granted);
}

#[test]
fn vote_survives_a_restart() {
    let state = QuorumState { epoch: 3, leader: None, voted: Some(SECOND) };
    let mut desk = Desk::start(config(ME, &VOTERS), Some(state), &Bytes::new());
    assert!(!desk.vote(THIRD, 3, (0, 0), false).expect("answered").granted);
    assert!(desk.vote(SECOND, 3, (0, 0), false).expect("answered").granted);
}

#[test]
fn candidate_with_the_shorter_or_older_log_is_refused() {
    let log = concat(&[batch(1, 0, &["a", "b"]), batch(2, 2, &["c"])]);
    let state = QuorumState { epoch: 2, leader: None, voted: None };
    for (log_end, granted) in [((2, 2), false), ((1, 9), false), ((2, 3), true), ((3, 1), true)] {
        let mut desk = Desk::start(config(ME, &VOTERS), Some(state), &log);
        let answer = desk.vote(SECOND, 4, log_end, false).expect("answered");
        assert_eq!(answer.granted, granted, "{log_end:?}");
    }
}

#[test]
fn malformed_and_misaddressed_votes_are_refused_by_their_codes() {
    let mut desk = Desk::new_voter();
    desk.vote(SECOND, 5, (0, 0), false);
    let error = |desk: &mut Desk, epoch, log_end, pre_vote| {
        desk.vote(SECOND, epoch, log_end, pre_vote).expect("answered").error
    };
    assert_eq!(error(&mut desk, 4, (0, 0), false), error_code::FENCED_LEADER_EPOCH);
    assert_eq!(error(&mut desk, 6, (6, 1), false), error_code::INVALID_REQUEST);
    assert_eq!(error(&mut desk, 6, (7, 1), true), error_code::INVALID_REQUEST);
    assert_eq!(error(&mut desk, 6, (0, -1), false), error_code::INVALID_REQUEST);
    assert_eq!(error(&mut desk, 5, (5, 1), true), error_code::NONE);

    let from_stranger = messages::vote_request(&config(BROKER, &VOTERS), ME, 5, (0, 0), false);
    let refused = answer(&desk.request(from_stranger).expect("answered"));
    assert_eq!(refused.error, error_code::INCONSISTENT_VOTER_SET);

    let to_another = messages::vote_request(&config(SECOND, &VOTERS), THIRD, 5, (0, 0), false);
    let refused = answer(&desk.request(to_another).expect("answered"));
    assert_eq!(refused.error, error_code::INVALID_VOTER_KEY);

    let mut other_disk = messages::vote_request(&config(SECOND, &VOTERS), ME, 5, (0, 0), false);
    if let RequestBody::Vote(vote) = &mut other_disk {
        vote.topics[0].partitions[0].voter_directory_id = Uuid([9; 16]);
    }
    let refused = answer(&desk.request(other_disk).expect("answered"));
    assert_eq!(refused.error, error_code::INVALID_VOTER_KEY);

    let mut other_cluster = config(SECOND, &VOTERS);
    other_cluster.cluster_id = "another".to_string();
    let body = desk.request(messages::vote_request(&other_cluster, ME, 9, (0, 0), false));
    let Some(ResponseBody::Vote(response)) = body else { panic!("answered with a vote") };
    assert_eq!(response.error_code, error_code::INCONSISTENT_CLUSTER_ID);
    assert_eq!(desk.quorum.epoch(), 5, "another cluster's epochs are not ours");
}

#[test]
fn follower_that_has_fetched_refuses_pre_votes_and_its_epoch_stays() {
    let mut desk = Desk::new_follower(4, &Bytes::new());
    assert!(desk.vote(THIRD, 4, (0, 0), true).expect("answered").granted, "it heard nothing of 102 yet");
    desk.effects.clear();
    desk.pass(Duration::from_millis(2100));
    desk.begin(SECOND, 4);
    desk.bring(Bytes::new(), 0);
    let refused = desk.vote(THIRD, 4, (0, 0), true).expect("answered");
    assert_eq!((refused.granted, refused.standing), (false, Standing { epoch: 4, leader: Some(SECOND) }));
}

#[test]
fn refused_pre_votes_lead_back_to_the_known_leader() {
    let mut desk = Desk::new_follower(4, &Bytes::new());
    desk.wait_for_election();
    desk.answer_votes(false);
    assert_eq!((desk.quorum.epoch(), desk.quorum.leader()), (4, Some(SECOND)));
    assert_eq!(desk.saves(), []);
    desk.pass(Duration::from_millis(100));
    assert!(matches!(desk.last_sent().body, RequestBody::Fetch(_)));
}

#[test]
fn lost_election_is_followed_by_a_pause_and_pre_votes_of_the_same_epoch() {
    let mut desk = Desk::new_voter();
    desk.wait_for_election();
    desk.answer_votes(true);
    desk.answer_votes(false);
    assert_eq!(desk.votes_sent(), []);
    desk.wait_for_election();
    assert_eq!(desk.votes_sent(), [(SECOND, 1, true), (THIRD, 1, true)]);
}

#[test]
fn leader_of_a_newer_epoch_is_followed_durably() {
    let mut desk = Desk::new_voter();
    assert_eq!(desk.begin(THIRD, 7).expect("answered").error, error_code::NONE);
    assert_eq!(desk.saves(), [QuorumState { epoch: 7, leader: Some(THIRD), voted: None }]);
    let changed = QuorumEffect::LeaderChanged { epoch: 7, leader: Some(THIRD) };
    assert!(desk.wants(|effect| *effect == changed));
    assert_eq!(desk.begin(THIRD, 6).expect("answered").error, error_code::FENCED_LEADER_EPOCH);
    assert_eq!(desk.begin(SECOND, 7).expect("answered").error, error_code::INVALID_REQUEST);
    assert_eq!(desk.quorum.leader(), Some(THIRD));
}

#[test]
fn candidate_that_hears_of_the_elected_leader_follows_it_and_keeps_its_vote() {
    let mut desk = Desk::new_voter();
    desk.wait_for_election();
    desk.answer_votes(true);
    desk.begin(SECOND, 1);
    assert_eq!(desk.saves(), [QuorumState { epoch: 1, leader: Some(SECOND), voted: Some(ME) }]);
    assert!(!desk.vote(THIRD, 1, (0, 5), false).expect("answered").granted);
}

#[test]
fn heartbeats_of_the_leader_keep_a_follower_from_standing() {
    let mut desk = Desk::new_follower(4, &Bytes::new());
    for _ in 0..10 {
        desk.pass(Duration::from_millis(1500));
        desk.begin(SECOND, 4);
    }
    assert_eq!(desk.quorum.leader(), Some(SECOND));
    assert_eq!(desk.votes_sent(), []);
}

#[test]
fn first_successor_stands_at_once_and_the_second_leaves_it_time() {
    let mut desk = Desk::new_follower(4, &Bytes::new());
    desk.end(SECOND, 4, &[ME, THIRD]);
    assert_eq!(desk.votes_sent(), [(SECOND, 4, true), (THIRD, 4, true)]);

    let mut desk = Desk::new_follower(4, &Bytes::new());
    desk.end(SECOND, 4, &[THIRD, ME]);
    assert_eq!(desk.votes_sent(), []);
    desk.pass(Duration::from_millis(499));
    assert_eq!(desk.votes_sent(), []);
    desk.pass(Duration::from_millis(1));
    assert_eq!(desk.votes_sent().len(), 2);
}

#[test]
fn leader_without_fetches_of_a_majority_resigns_and_leaves_its_epoch() {
    let mut desk = Desk::new_active_leader();
    desk.effects.clear();
    desk.pass(Duration::from_millis(2999));
    assert!(desk.quorum.is_active_leader());
    desk.pass(Duration::from_millis(1));
    assert!(desk.wants(|effect| *effect == QuorumEffect::LostLeadership { epoch: 1 }));
    let ended: Vec<NodeId> = desk
        .sent()
        .into_iter()
        .filter(|sent| matches!(sent.body, RequestBody::EndQuorumEpoch(_)))
        .map(|sent| sent.to)
        .collect();
    assert_eq!(ended, [SECOND, THIRD]);
    assert!(!desk.vote(SECOND, 1, (0, 5), false).expect("answered").granted);
    assert!(desk.vote(SECOND, 1, (1, 5), true).expect("answered").granted);
    desk.effects.clear();
    desk.pass(Duration::from_secs(2));
    assert_eq!(desk.saves().first(), Some(&QuorumState { epoch: 2, leader: None, voted: None }));
}

#[test]
fn resigning_leader_names_the_most_caught_up_voter_first() {
    let mut desk = Desk::new_active_leader();
    desk.fetch(THIRD, 1, 0, 0);
    desk.effects.clear();
    desk.input(QuorumInput::Resign { epoch: 1 });
    let RequestBody::EndQuorumEpoch(end) = &desk.last_sent().body else { panic!("it ends its epoch") };
    let asked = messages::read_end(end).expect("it is about the metadata log");
    assert_eq!(asked.successors, [SECOND, THIRD]);
}

#[test]
fn former_leader_never_leads_the_same_epoch_again() {
    let state = QuorumState { epoch: 3, leader: Some(ME), voted: None };
    let mut desk = Desk::start(config(ME, &VOTERS), Some(state), &Bytes::new());
    assert!(!desk.vote(SECOND, 3, (0, 5), false).expect("answered").granted);
    desk.wait_for_election();
    assert_eq!(desk.votes_sent()[0], (SECOND, 4, true));
}

#[test]
fn candidate_asks_again_after_a_restart_in_the_epoch_it_voted_in() {
    let state = QuorumState { epoch: 3, leader: None, voted: Some(ME) };
    let desk = Desk::start(config(ME, &VOTERS), Some(state), &Bytes::new());
    assert_eq!(desk.votes_sent(), [(SECOND, 3, false), (THIRD, 3, false)]);
}

#[test]
fn node_that_lost_its_disk_does_not_vote_in_the_epoch_it_led() {
    let mut desk = Desk::new_voter();
    let sent = desk.last_sent();
    let standing = Standing { epoch: 6, leader: Some(ME) };
    let refused = messages::FetchAnswer::refused(error_code::FENCED_LEADER_EPOCH, standing);
    let body = messages::fetch_response(&config(sent.to, &VOTERS), refused);
    desk.answer(&sent, Ok(body));
    assert!(!desk.vote(SECOND, 6, (5, 5), false).expect("answered").granted);
}

#[test]
fn voter_with_an_unsynced_log_waits_before_it_stands() {
    let mut desk = Desk::new_follower(4, &Bytes::new());
    desk.disk_is_prompt = false;
    desk.bring(batch(4, 0, &["a"]), 0);
    desk.pass(Duration::from_secs(5));
    assert_eq!(desk.votes_sent(), []);
    desk.input(QuorumInput::LogSynced { write: 1 });
    assert_eq!(desk.votes_sent(), [(SECOND, 4, true), (THIRD, 4, true)]);
}

#[test]
fn leader_stops_when_another_leads_and_a_follower_at_once() {
    let mut desk = Desk::new_active_leader();
    desk.effects.clear();
    desk.input(QuorumInput::Shutdown);
    assert!(desk.wants(|effect| *effect == QuorumEffect::LostLeadership { epoch: 1 }));
    assert!(!desk.wants(|effect| *effect == QuorumEffect::Stopped));
    assert!(desk.vote(SECOND, 2, (1, 1), false).expect("answered").granted);
    desk.begin(SECOND, 2);
    assert!(desk.wants(|effect| *effect == QuorumEffect::Stopped));

    let mut desk = Desk::new_follower(4, &Bytes::new());
    desk.input(QuorumInput::Shutdown);
    assert!(desk.wants(|effect| *effect == QuorumEffect::Stopped));
    desk.pass(Duration::from_secs(10));
    assert_eq!(desk.votes_sent(), [], "a stopping node does not stand");
}

#[test]
fn stop_ends_within_the_request_timeout_when_nobody_follows() {
    let mut desk = Desk::new_active_leader();
    desk.input(QuorumInput::Shutdown);
    desk.pass(Duration::from_millis(1999));
    assert!(!desk.wants(|effect| *effect == QuorumEffect::Stopped));
    desk.pass(Duration::from_millis(1));
    assert!(desk.wants(|effect| *effect == QuorumEffect::Stopped));
}

#[test]
fn unreachable_voters_are_asked_again_less_and_less_often() {
    let mut desk = Desk::new_voter();
    desk.wait_for_election();
    let mut asked = 0;
    for _ in 0..900 {
        let open = desk.sent();
        desk.effects.clear();
        for sent in open.iter().filter(|sent| matches!(sent.body, RequestBody::Vote(_))) {
            asked += 1;
            desk.answer(sent, Err(PeerError::Unreachable));
        }
        desk.pass(Duration::from_millis(1));
    }
    assert!((6..=20).contains(&asked), "asked {asked} times");
}

#[test]
fn greatest_epoch_ends_elections_and_nothing_else() {
    let mut desk = Desk::new_voter();
    desk.vote(SECOND, i32::MAX, (0, 0), false);
    assert_eq!(desk.quorum.epoch(), i32::MAX);
    desk.pass(Duration::from_secs(30));
    assert_eq!(desk.votes_sent(), []);
    desk.begin(SECOND, i32::MAX);
    assert_eq!(desk.quorum.leader(), Some(SECOND));
}

/// A vote request between two controllers of Apache Kafka 4.3.1 (version 2, dynamic quorum), without its header.
const KAFKAS_VOTE: &str = "176e464f6e356b477a54777931706766744370724b54670000000302135f5f636c75737465725f6d6574616461746102\
000000000000000100000002758fc393b8d0545b34d62ddfcf32ab8c0dc7d3ba3d5f5b01fbdba4fddef98d0d00000001000000000000007901000000";

#[test]
fn vote_request_of_a_real_controller_is_understood_and_would_be_sent_alike() {
    let hex = |at: usize| u8::from_str_radix(&KAFKAS_VOTE[at..at + 2], 16).expect("two hexadecimal digits");
    let frame: Vec<u8> = (0..KAFKAS_VOTE.len()).step_by(2).map(hex).collect();
    let kafkas = VoteRequest::decode(2, &mut Bytes::from(frame)).expect("a real frame");
    let asked = messages::read_vote(&kafkas).expect("it is about the metadata log");
    assert_eq!((asked.epoch, asked.last_epoch, asked.end_offset, asked.pre_vote), (1, 1, 0x79, true));
    assert_eq!(asked.candidate.id, NodeId(2));

    let mut sender = config(NodeId(2), &[NodeId(2), NodeId(3)]);
    sender.cluster_id = kafkas.cluster_id.as_deref().expect("it names its cluster").to_string();
    sender.directory = asked.candidate.directory.expect("it names its disk");
    let RequestBody::Vote(mut ours) = messages::vote_request(&sender, NodeId(3), 1, (1, 0x79), true) else {
        panic!("a vote request")
    };
    // With a static voter set the directories of others are not known.
    ours.topics[0].partitions[0].voter_directory_id = kafkas.topics[0].partitions[0].voter_directory_id;
    assert_eq!(ours, kafkas);
}
