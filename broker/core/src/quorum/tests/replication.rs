//! Claims about the log: what leaders append, serve and commit, what followers and observers take over.

use std::time::Duration;

use acked_wire::{RequestBody, ResponseBody, error_code};
use bytes::Bytes;

use super::super::messages::{self, FetchAnswer, Standing};
use super::super::*;
use super::desk::*;
use crate::observation::Observation;
use crate::types::{NodeId, PeerError};

const VOTERS: [NodeId; 3] = [ME, SECOND, THIRD];
/// The metadata log of a real controller (Apache Kafka 4.3.1, static quorum of node 100).
const KAFKAS_LOG: &[u8] =
    include_bytes!("../../../../wire/tests/golden/disk/__cluster_metadata-0/00000000000000000000.log");

fn diverging(desk: &Desk, epoch: i32, end_offset: i64) -> FetchAnswer {
    FetchAnswer {
        error: error_code::NONE,
        standing: Standing { epoch: desk.quorum.epoch(), leader: desk.quorum.leader() },
        high_watermark: 0,
        diverging: Some((epoch, end_offset)),
        records: Bytes::new(),
    }
}

fn fetch_of(sent: &Sent) -> (i32, i64, i32) {
    let RequestBody::Fetch(fetch) = &sent.body else { panic!("no fetch: {sent:?}") };
    let asked = messages::read_fetch(fetch).expect("it is about the metadata log");
    (asked.epoch, asked.offset, asked.last_epoch)
}

#[test]
fn single_voter_writes_the_first_batch_as_kafka_does() {
    let mut config = config(NodeId(100), &[NodeId(100)]);
    let kafkas = acked_wire::batch::parse_header(KAFKAS_LOG).expect("a real batch");
    config.clock_origin_ms = kafkas.base_timestamp;
    config.election_timeout = Duration::ZERO;
    let mut desk = Desk::start(config, None, &Bytes::new());
    desk.pass(Duration::from_millis(1));
    let written = desk.effects.iter().find_map(|effect| match effect {
        QuorumEffect::AppendLog { position: 0, bytes, .. } => Some(bytes.clone()),
        _ => None,
    });
    let written = written.expect("a leader writes LeaderChange");
    let mut expected = KAFKAS_LOG[..kafkas.size_in_bytes()].to_vec();
    let elected_ms = acked_wire::batch::parse_header(&written).expect("our own batch").base_timestamp;
    assert_eq!(expected.len(), written.len());
    for at in [27, 35] {
        expected[at..at + 8].copy_from_slice(&elected_ms.to_be_bytes());
    }
    // The checksum covers the timestamps.
    expected[17..21].copy_from_slice(&written[17..21]);
    assert_eq!(written, expected);
    assert!(desk.quorum.is_active_leader());
    assert_eq!(desk.committed(), [(0, 0)]);
}

#[test]
fn real_metadata_log_is_recovered_whole() {
    let recovered = recover_log(&Bytes::from_static(KAFKAS_LOG), 0).expect("nothing is damaged");
    assert_eq!(recovered.kept_bytes(), KAFKAS_LOG.len() as u64);
    assert_eq!(recovered.damage(), None);
    assert!(recovered.log_end_offset() > 300);
    assert_eq!(recovered.last_epoch(), 1);
}

#[test]
fn leader_is_active_once_its_leader_change_is_on_a_majority() {
    let mut desk = Desk::new_leader();
    assert_eq!(desk.propose(&["early"]), Err(NotLeader));
    desk.fetch(SECOND, 1, 0, 0);
    assert!(!desk.quorum.is_active_leader());
    desk.fetch(SECOND, 1, 1, 1);
    assert_eq!(desk.committed(), [(0, 0)]);
    let committed = desk.effects.iter().position(|effect| matches!(effect, QuorumEffect::Committed { .. }));
    let active = desk.effects.iter().position(|effect| *effect == QuorumEffect::BecameLeader { epoch: 1 });
    assert!(committed.expect("committed") < active.expect("active"));
    assert_eq!(desk.propose(&["first", "second"]), Ok(1));
}

#[test]
fn leader_counts_only_its_synced_log() {
    let mut desk = Desk::new_active_leader();
    desk.disk_is_prompt = false;
    assert_eq!(desk.propose(&["a"]), Ok(1));
    desk.pass(Duration::from_millis(25));
    desk.effects.clear();
    desk.fetch(SECOND, 1, 2, 1);
    assert_eq!(desk.quorum.high_watermark(), 1, "one follower and an unsynced leader are no majority");
    desk.input(QuorumInput::LogSynced { write: 2 });
    assert_eq!(desk.quorum.high_watermark(), 2);
    assert_eq!(desk.committed(), [(1, 1)]);
}

#[test]
fn two_followers_commit_without_the_leaders_own_disk() {
    let mut desk = Desk::new_active_leader();
    desk.disk_is_prompt = false;
    desk.propose(&["a"]).expect("it leads");
    desk.pass(Duration::from_millis(25));
    desk.fetch(SECOND, 1, 2, 1);
    desk.fetch(THIRD, 1, 2, 1);
    assert_eq!(desk.quorum.high_watermark(), 2);
}

#[test]
fn records_of_earlier_epochs_are_committed_only_with_one_of_the_present() {
    let state = QuorumState { epoch: 4, leader: None, voted: None };
    let log = batch(4, 0, &["old"]);
    let mut desk = Desk::start(config(ME, &VOTERS), Some(state), &log);
    desk.wait_for_election();
    desk.answer_votes(true);
    desk.answer_votes(true);
    desk.fetch(SECOND, 5, 1, 4);
    desk.fetch(THIRD, 5, 1, 4);
    assert_eq!(desk.quorum.high_watermark(), 0);
    desk.fetch(SECOND, 5, 2, 5);
    assert_eq!(desk.committed(), [(0, 0), (1, 1)]);
}

#[test]
fn proposals_are_gathered_for_the_linger_time_into_one_write_of_whole_batches() {
    let mut desk = Desk::new_active_leader();
    desk.effects.clear();
    assert_eq!(desk.propose(&["a", "b"]), Ok(1));
    assert_eq!(desk.propose(&["c"]), Ok(3));
    assert_eq!(desk.quorum.log_end_offset(), 4);
    assert!(!desk.wants(|effect| matches!(effect, QuorumEffect::AppendLog { .. })));
    desk.pass(Duration::from_millis(25));
    let writes: Vec<Bytes> = desk
        .effects
        .iter()
        .filter_map(|effect| match effect {
            QuorumEffect::AppendLog { bytes, .. } => Some(bytes.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(writes.len(), 1);
    let batches: Vec<i64> = acked_wire::batch::batches(&writes[0])
        .map(|batch| batch.expect("our own batch").header.base_offset)
        .collect();
    assert_eq!(batches, [1, 3]);
}

#[test]
fn fetch_with_nothing_new_waits_until_records_come() {
    let mut desk = Desk::new_active_leader();
    assert_eq!(desk.fetch(SECOND, 1, 1, 1), None);
    let waiting = desk.last_request();
    desk.propose(&["a"]).expect("it leads");
    desk.pass(Duration::from_millis(25));
    let answer = fetch_answer(desk.reply(waiting).expect("there is something new"));
    assert_eq!(answer.high_watermark, 1);
    assert_eq!(acked_wire::batch::parse_header(&answer.records).expect("a batch").base_offset, 1);
}

#[test]
fn fetch_waits_half_a_second_at_most() {
    let mut desk = Desk::new_active_leader();
    assert_eq!(desk.fetch(SECOND, 1, 1, 1), None);
    let waiting = desk.last_request();
    desk.pass(Duration::from_millis(499));
    assert_eq!(desk.reply(waiting), None);
    desk.pass(Duration::from_millis(1));
    assert!(fetch_answer(desk.reply(waiting).expect("it waited long enough")).records.is_empty());
}

#[test]
fn higher_watermark_alone_is_news_for_a_waiting_fetch() {
    let mut desk = Desk::new_leader();
    assert_eq!(desk.fetch(BROKER, 1, 1, 1), None);
    let waiting = desk.last_request();
    desk.fetch(SECOND, 1, 1, 1);
    let answer = fetch_answer(desk.reply(waiting).expect("the high watermark rose"));
    assert_eq!(answer.high_watermark, 1);
}

#[test]
fn waiting_fetches_are_answered_when_leadership_ends() {
    let mut desk = Desk::new_active_leader();
    assert_eq!(desk.fetch(SECOND, 1, 1, 1), None);
    let waiting = desk.last_request();
    desk.begin(THIRD, 2);
    let answer = fetch_answer(desk.reply(waiting).expect("nobody leads epoch 1 any more"));
    assert_eq!(answer.error, error_code::FENCED_LEADER_EPOCH);
    assert_eq!(answer.standing, Standing { epoch: 2, leader: Some(THIRD) });
    assert!(desk.wants(|effect| *effect == QuorumEffect::LostLeadership { epoch: 1 }));
}

#[test]
fn only_the_leader_of_exactly_that_epoch_serves() {
    let mut desk = Desk::new_active_leader();
    let error = |desk: &mut Desk, epoch| desk.fetch(SECOND, epoch, 0, 0).expect("answered").error;
    assert_eq!(error(&mut desk, 0), error_code::FENCED_LEADER_EPOCH);
    assert_eq!(error(&mut desk, 2), error_code::UNKNOWN_LEADER_EPOCH);
    assert_eq!(error(&mut desk, 1), error_code::NONE);
    let negative = desk.fetch(SECOND, 1, -1, 0).expect("answered");
    assert_eq!(negative.error, error_code::INVALID_REQUEST);

    let mut desk = Desk::new_follower(4, &Bytes::new());
    let refused = desk.fetch(THIRD, 4, 0, 0).expect("answered");
    assert_eq!(refused.error, error_code::NOT_LEADER_OR_FOLLOWER);
    assert_eq!(refused.standing, Standing { epoch: 4, leader: Some(SECOND) });
}

#[test]
fn fetch_of_another_log_or_cluster_is_refused_whole() {
    let mut desk = Desk::new_active_leader();
    let fetch = messages::fetch_request(&config(SECOND, &VOTERS), 1, 0, 0, 0);
    let mut other_log = fetch.clone();
    let mut other_cluster = fetch;
    if let (RequestBody::Fetch(log), RequestBody::Fetch(cluster)) = (&mut other_log, &mut other_cluster) {
        log.topics[0].partitions[0].partition = 1;
        cluster.cluster_id = Some("another".into());
    }
    for (request, code) in [
        (other_log, error_code::UNKNOWN_TOPIC_OR_PARTITION),
        (other_cluster, error_code::INCONSISTENT_CLUSTER_ID),
    ] {
        let Some(ResponseBody::Fetch(response)) = desk.request(request) else { panic!("answered") };
        assert_eq!(response.error_code, code);
    }
}

#[test]
fn diverging_fetch_moves_no_position() {
    let mut desk = Desk::new_leader();
    let answer = desk.fetch(SECOND, 1, 7, 1).expect("answered");
    assert_eq!(answer.diverging, Some((1, 1)));
    assert_eq!(desk.quorum.high_watermark(), 0);
    assert!(!desk.quorum.is_active_leader());
}

#[test]
fn observers_fetch_without_being_counted() {
    let mut desk = Desk::new_leader();
    desk.fetch(BROKER, 1, 1, 1);
    desk.fetch(NodeId(2), 1, 1, 1);
    assert_eq!(desk.quorum.high_watermark(), 0);
}

#[test]
fn leadership_lost_and_won_again_delivers_every_batch_once() {
    let mut desk = Desk::new_active_leader();
    desk.propose(&["lost"]).expect("it leads");
    desk.begin(SECOND, 2);
    desk.effects.clear();
    desk.pass(Duration::from_millis(100));
    let batches: Vec<i64> = desk.quorum.committed_batches().map(|batch| batch.base_offset).collect();
    assert_eq!(batches, [0]);
    assert_eq!(desk.quorum.log_end_offset(), 1, "what was gathered was never in the log");
    assert_eq!(desk.propose(&["late"]), Err(NotLeader));
}

#[test]
fn follower_syncs_before_it_fetches_on() {
    let mut desk = Desk::new_follower(4, &Bytes::new());
    assert_eq!(fetch_of(&desk.last_sent()), (4, 0, 0));
    desk.disk_is_prompt = false;
    desk.bring(concat(&[batch(3, 0, &["a", "b"]), batch(4, 2, &["c"])]), 2);
    assert!(desk.sent().is_empty());
    assert_eq!(desk.quorum.high_watermark(), 0, "the high watermark stays within the synced log");
    desk.input(QuorumInput::LogSynced { write: 1 });
    assert_eq!(fetch_of(&desk.last_sent()), (4, 3, 4));
    assert_eq!(desk.committed(), [(0, 1)]);
}

#[test]
fn high_watermark_of_a_follower_is_the_leaders_within_its_own_log() {
    let mut desk = Desk::new_follower(4, &Bytes::new());
    desk.bring(batch(4, 0, &["a", "b"]), 99);
    assert_eq!(desk.quorum.high_watermark(), 2);
    desk.bring(batch(4, 2, &["c"]), -1);
    assert_eq!(desk.quorum.high_watermark(), 3, "it was told of 99 before");
}

#[test]
fn committed_records_carry_payloads_and_offsets() {
    let mut desk = Desk::new_follower(1, &Bytes::new());
    let size = acked_wire::batch::parse_header(KAFKAS_LOG).expect("a real batch").size_in_bytes();
    desk.bring(Bytes::from_static(&KAFKAS_LOG[..size + 330]), 10);
    let batches: Vec<CommittedBatch> = desk.quorum.committed_batches().collect();
    assert_eq!((batches[0].base_offset, batches[0].last_offset, batches[0].records.len()), (0, 0, 0));
    assert_eq!((batches[1].base_offset, batches[1].last_offset, batches[1].records.len()), (1, 9, 9));
    assert!(batches[1].records.iter().all(|record| record[0] == 1), "the frame version of a metadata record");
}

#[test]
fn follower_cuts_where_the_leader_diverges_and_fetches_from_there() {
    let log = concat(&[batch(1, 0, &["a"]), batch(2, 1, &["b", "c"])]);
    let mut desk = Desk::new_follower(4, &log);
    assert_eq!(fetch_of(&desk.last_sent()), (4, 3, 2));
    desk.answer_fetch(diverging(&desk, 1, 1));
    let cut = QuorumEffect::TruncateLog { write: 1, size: batch(1, 0, &["a"]).len() as u64 };
    assert!(desk.wants(|effect| *effect == cut));
    assert!(desk.observations.contains(&Observation::QuorumTruncated { to: 1 }));
    assert_eq!(fetch_of(&desk.last_sent()), (4, 1, 1));
}

#[test]
fn follower_halts_rather_than_cut_a_committed_record() {
    let mut desk = Desk::new_follower(4, &Bytes::new());
    desk.bring(batch(4, 0, &["a"]), 1);
    desk.answer_fetch(diverging(&desk, 3, 0));
    assert!(desk.wants(|effect| matches!(
        effect,
        QuorumEffect::Halt {
            fault: QuorumFault::DivergesBelowHighWatermark { to: 0, high_watermark: 1, .. }
        }
    )));
    assert_eq!(desk.quorum.next_deadline(), None);
    assert_eq!(desk.quorum.log_end_offset(), 1);
}

#[test]
fn answers_that_continue_another_log_are_not_appended() {
    let good = batch(4, 0, &["a"]);
    let mut wrong_checksum = good.to_vec();
    wrong_checksum[65] ^= 1;
    let cut = good.slice(..good.len() - 1);
    for records in [batch(4, 1, &["gap"]), batch(5, 0, &["future"]), wrong_checksum.into(), cut] {
        let mut desk = Desk::new_follower(4, &Bytes::new());
        desk.bring(records, 9);
        assert_eq!(desk.quorum.log_end_offset(), 0);
        assert_eq!(desk.quorum.high_watermark(), 0);
    }
    let mut desk = Desk::new_follower(4, &Bytes::new());
    desk.bring(concat(&[good.clone(), good.slice(..30)]), 0);
    assert_eq!(desk.quorum.log_end_offset(), 1, "whole batches before a cut one count");
}

#[test]
fn answer_to_an_abandoned_fetch_changes_nothing() {
    let mut desk = Desk::new_follower(4, &Bytes::new());
    let abandoned = desk.last_sent();
    desk.begin(THIRD, 5);
    let standing = Standing { epoch: 4, leader: Some(SECOND) };
    let records = batch(4, 0, &["stale"]);
    let late = FetchAnswer { error: 0, standing, high_watermark: 1, diverging: None, records };
    let body = messages::fetch_response(&config(SECOND, &VOTERS), late);
    desk.answer(&abandoned, Ok(body));
    assert_eq!((desk.quorum.log_end_offset(), desk.quorum.leader()), (0, Some(THIRD)));
}

fn observer() -> Desk {
    Desk::start(config(BROKER, &VOTERS), None, &Bytes::new())
}

fn refuse(desk: &mut Desk, standing: Standing) {
    let answer = FetchAnswer::refused(error_code::FENCED_LEADER_EPOCH, standing);
    desk.answer_fetch(answer);
}

#[test]
fn observer_asks_the_voters_in_turn_and_is_sent_to_the_leader() {
    let mut desk = observer();
    let first = desk.last_sent();
    refuse(&mut desk, Standing { epoch: 3, leader: None });
    let second = desk.last_sent();
    assert_ne!(first.to, second.to);
    refuse(&mut desk, Standing { epoch: 3, leader: Some(first.to) });
    assert_eq!(desk.saves(), [QuorumState { epoch: 3, leader: Some(first.to), voted: None }]);
    assert_eq!((desk.last_sent().to, fetch_of(&desk.last_sent()).0), (first.to, 3));
}

#[test]
fn observer_whose_leader_is_silent_asks_others_without_standing() {
    let mut desk = observer();
    refuse(&mut desk, Standing { epoch: 3, leader: Some(SECOND) });
    let to_leader = desk.last_sent();
    desk.effects.clear();
    desk.answer(&to_leader, Err(PeerError::Disconnected));
    desk.pass(Duration::from_millis(20));
    let probe = desk.last_sent();
    assert_ne!(probe.to, SECOND);
    refuse(&mut desk, Standing { epoch: 4, leader: Some(THIRD) });
    assert_eq!(desk.last_sent().to, THIRD);
    desk.pass(Duration::from_secs(60));
    assert_eq!(desk.votes_sent(), []);
}

#[test]
fn observer_refuses_votes() {
    let mut desk = observer();
    let body = messages::vote_request(&config(SECOND, &VOTERS), BROKER, 4, (0, 0), false);
    let refused = answer(&desk.request(body).expect("answered"));
    assert_eq!((refused.error, refused.granted), (error_code::NONE, false));
}
