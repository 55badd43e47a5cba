//! Each invariant that the oracle's cases do not already show: a stream that breaks it, and its neighbour that does
//! not.

use super::*;

const ALL: &[NodeId] = &[B1, B2, B3];

#[test]
fn correct_writes_over_a_clean_move_are_clean_and_every_check_compared_something() {
    let mut stage = Stage::new(&Setting { min_insync: 2, ..Setting::default() });
    for value in ["a", "b", "c"] {
        stage.write_through(B1, 0, value, ALL);
    }
    stage.append(B1, 0, "unacknowledged");
    stage.elect(B2, &[B2, B3], Claim::Clean);
    stage.leads(B2);
    stage.follows(B3);
    stage.follows(B1);
    stage.write_through(B2, 1, "d", &[B2, B3]);
    stage.cut(B1, 3);
    stage.replicate(B2, 1, B1);
    stage.observe(NodeId(101), Observation::QuorumLeaderElected { epoch: 1, log_end_offset: 0 });
    stage.observe(NodeId(102), Observation::VoteGranted { epoch: 1, candidate: NodeId(101) });
    let judgement = stage.end_with(Some(B2));
    assert_clean(&judgement);
    assert_eq!((judgement.acked, judgement.read_back, judgement.unread), (4, 4, 0));
    assert_eq!(judgement.indeterminate, 1);
    let idle: Vec<&str> =
        judgement.comparisons.iter().filter(|(_, count)| **count == 0).map(|(check, _)| *check).collect();
    assert_eq!(
        idle,
        ["P1", "P2", "Q5", "Q6", "R2", "R3", "S12", "S23", "S3"],
        "no network, no quorum, nobody began anew or was stale, nothing was sent at acks=1, and nobody is eligible besides"
    );
}

#[test]
fn s2_acknowledged_before_committed() {
    let mut stage = Stage::new(&Setting::default());
    stage.append(B1, 0, "r");
    stage.ack_sent(B1, 0, 0, "r", ALL);
    assert_eq!(stage.found(), ["S2"]);
}

#[test]
fn s2_acknowledged_on_receipt_is_found_before_anything_is_written() {
    let mut stage = Stage::new(&Setting::default());
    stage.send("r");
    stage.ack_sent(B1, 0, 0, "r", ALL);
    assert_eq!(stage.found(), ["S2"]);
}

#[test]
fn s2_acknowledged_after_it_was_cut_off_is_lost_in_the_epoch_in_which_it_was_written() {
    let mut stage = Stage::new(&Setting::default());
    stage.append(B1, 0, "r");
    stage.elect(B2, &[B2, B3], Claim::Clean);
    stage.leads(B2);
    stage.write_through(B2, 1, "survivor", &[B2, B3]);
    stage.follows(B1);
    stage.cut(B1, 0);
    stage.replicate(B2, 1, B1);
    stage.ack(B1, 0, 0, "r", ALL);
    assert_eq!(stage.found(), ["S2"]);
    let lost = stage.end_with(Some(B2)).lost;
    let keys: Vec<(i64, i32)> = lost.iter().map(|lost| (lost.key.offset, lost.key.leader_epoch)).collect();
    assert_eq!(keys, [(0, 0)]);
}

#[test]
fn s2_acknowledged_with_too_few_in_sync() {
    let mut stage = Stage::new(&Setting { min_insync: 2, ..Setting::default() });
    stage.write_through(B1, 0, "a", ALL);
    assert_eq!(stage.found(), [""; 0]);
    stage.ack_sent(B1, 0, 0, "a", &[B1]);
    assert_eq!(stage.found(), ["S2"]);
}

#[test]
fn s2_acknowledged_with_the_offset_of_another_record() {
    let mut stage = Stage::new(&Setting::default());
    stage.write_through(B1, 0, "a", ALL);
    stage.append(B1, 0, "b");
    stage.ack_sent(B1, 0, 0, "b", ALL);
    assert_eq!(stage.found(), ["S2"]);
}

#[test]
fn s2_success_that_no_broker_stated() {
    let mut stage = Stage::new(&Setting::default());
    stage.append(B1, 0, "r");
    stage.told(0, "r");
    assert_eq!(stage.found(), ["S2"]);
}

#[test]
fn s3_acknowledged_by_a_follower() {
    let mut stage = Stage::new(&Setting { acks: 1, ..Setting::default() });
    stage.append(B1, 0, "r");
    stage.ack_sent(B1, 0, 0, "r", ALL);
    stage.replicate(B1, 0, B2);
    assert_eq!(stage.found(), [""; 0]);
    stage.follows(B2);
    stage.ack_sent(B2, 0, 0, "r", ALL);
    assert_eq!(stage.found(), ["S3"]);
}

#[test]
fn s4_offset_committed_twice_with_different_records() {
    let mut stage = Stage::new(&Setting::default());
    stage.set_isr(&[B1]);
    stage.write_through(B1, 0, "a", &[B1]);
    // The same broker rewrites its offset in the same epoch: no election, so S9 has no say.
    stage.cut(B1, 0);
    stage.append(B1, 0, "b");
    stage.commit(B1, 0, 1, &[B1]);
    assert_eq!(stage.found(), ["S14", "S4"]);
}

#[test]
fn s7_shrink_that_the_controller_has_not_committed_does_not_count() {
    let mut stage = Stage::new(&Setting::default());
    stage.append(B1, 0, "r");
    stage.replicate(B1, 0, B2);
    stage.commit(B1, 0, 1, &[B1, B2]);
    assert_eq!(stage.found(), ["S7"]);
}

#[test]
fn s7_high_watermark_beyond_the_leaders_own_log() {
    let mut stage = Stage::new(&Setting::default());
    stage.commit(B1, 0, 1, &[B1]);
    assert_eq!(stage.found(), ["S7"]);
}

#[test]
fn s7_high_watermark_with_too_few_in_sync() {
    let mut stage = Stage::new(&Setting { min_insync: 2, ..Setting::default() });
    stage.set_isr(&[B1]);
    stage.append(B1, 0, "r");
    stage.commit(B1, 0, 1, &[B1]);
    assert_eq!(stage.found(), ["S7"]);
}

#[test]
fn s7_member_that_lost_the_record_after_holding_it_counts() {
    let mut stage = Stage::new(&Setting::default());
    stage.append(B1, 0, "r");
    stage.replicate(B1, 0, B2);
    stage.replicate(B1, 0, B3);
    stage.power_loss(B3, 0);
    stage.commit(B1, 0, 1, ALL);
    assert_eq!(stage.found(), [""; 0]);
}

#[test]
fn s9_clean_leader_without_a_committed_record() {
    let mut stage = Stage::new(&Setting::default());
    stage.set_isr(&[B1, B2]);
    stage.write_through(B1, 0, "r", &[B1, B2]);
    stage.set_isr(ALL);
    stage.elect(B3, &[B3], Claim::Clean);
    stage.leads(B3);
    assert_eq!(stage.found(), ["S10"], "it has not acted yet");
    stage.append(B3, 1, "other");
    assert_eq!(stage.found(), ["S10", "S9"]);
    let judgement = stage.end_with(Some(B3));
    assert_eq!(judgement.lost.len(), 1);
    assert_eq!(judgement.lost[0].licensed_by, None);
    let finding = judgement.findings.iter().find(|finding| finding.invariant == "S9").expect("just seen");
    assert_eq!((finding.invariant, finding.offsets, finding.node), ("S9", Some((0, 0)), Some(B3)));
    assert_eq!(finding.topic.as_deref(), Some("orders"));
}

#[test]
fn s11_two_brokers_append_in_one_epoch() {
    let mut stage = Stage::new(&Setting::default());
    stage.append(B1, 0, "a");
    stage.append(B2, 0, "b");
    assert_eq!(stage.found(), ["S11"]);
}

#[test]
fn s14_follower_that_cuts_to_its_own_high_watermark() {
    let mut stage = Stage::new(&Setting::default());
    stage.write_through(B1, 0, "r", ALL);
    stage.elect(B2, &[B2, B3], Claim::Clean);
    stage.leads(B2);
    stage.follows(B3);
    stage.cut(B3, 0);
    assert_eq!(stage.found(), ["S14"]);
}

#[test]
fn s14_replica_out_of_sync_may_cut() {
    let mut stage = Stage::new(&Setting::default());
    stage.write_through(B1, 0, "r", ALL);
    stage.set_isr(&[B1, B2]);
    stage.cut(B3, 0);
    assert_eq!(stage.found(), [""; 0]);
}

#[test]
fn s16_record_that_nobody_sent() {
    let mut stage = Stage::new(&Setting::default());
    stage.append(B1, 0, "a");
    stage.append_unsent(B1, 0, "b");
    assert_eq!(stage.found(), ["S16"]);
}

#[test]
fn s19_sequence_committed_twice() {
    let mut stage = Stage::new(&Setting::default());
    stage.write_through(B1, 0, "a", ALL);
    stage.append(B1, 0, "a");
    stage.replicate(B1, 0, B2);
    stage.replicate(B1, 0, B3);
    stage.commit(B1, 0, 2, ALL);
    assert_eq!(stage.found(), ["S19"]);
}

#[test]
fn s22_decision_of_a_controller_that_was_never_committed_is_no_election() {
    let mut stage = Stage::new(&Setting::default());
    stage.set_isr(&[B1]);
    let mut state = stage.state.clone();
    state.leader = Some(B3);
    state.isr = vec![B3];
    state.leader_epoch += 1;
    state.partition_epoch += 1;
    stage.observe(
        NodeId(102),
        Observation::PartitionDecided {
            controller_epoch: 1,
            state,
            election: Some(Claim::Unclean { asked_by_administrator: false }),
            acceptable: vec![B1, B3],
            unclean_allowed: false,
        },
    );
    stage.leaderless(&[B1]);
    stage.elect(B1, &[B1], Claim::Clean);
    assert_eq!(stage.found(), [""; 0]);
}

#[test]
fn s22_unclean_election_that_nothing_allows() {
    let mut stage = Stage::new(&Setting::default());
    stage.set_isr(&[B1]);
    stage.elect(B3, &[B3], Claim::Unclean { asked_by_administrator: false });
    assert_eq!(stage.found(), ["S22"]);
}

#[test]
fn s1_and_s5_final_logs_that_lost_a_record_silently() {
    let mut stage = Stage::new(&Setting::default());
    stage.write_through(B1, 0, "r", ALL);
    stage.set_isr(&[B1]);
    stage.set_isr(&[B1]);
    let mut judge = stage;
    judge.state.isr = vec![B1];
    judge.set_isr(&[B1, B2, B3]);
    judge.disk(B2, &DiskChange::Removed { path: "data/orders-0/00000000000000000000.log" });
    let judgement = judge.end_with(Some(B1));
    assert_eq!(identifiers(&judgement.findings), ["S14", "S5"]);
}

#[test]
fn one_cause_is_one_finding_with_a_count() {
    let mut stage = Stage::new(&Setting::default());
    stage.set_isr(&[B1, B2]);
    for value in ["a", "b", "c"] {
        stage.write_through(B1, 0, value, &[B1, B2]);
    }
    stage.set_isr(ALL);
    stage.elect(B3, &[B3], Claim::Clean);
    stage.leads(B3);
    stage.act(B3, 1);
    let findings: Vec<&Finding> =
        stage.judge.findings().filter(|finding| finding.invariant == "S9").collect();
    assert_eq!(findings.len(), 1);
    assert_eq!((findings[0].count, findings[0].offsets), (3, Some((0, 2))));
}

#[test]
fn s5_follower_with_another_record_below_its_high_watermark() {
    let mut stage = Stage::new(&Setting::default());
    stage.set_isr(&[B1, B2]);
    stage.write_through(B1, 0, "a", &[B1, B2]);
    stage.append(B3, 0, "z");
    stage.follows(B3);
    stage.told_high_watermark(B3, 0, 1);
    assert_eq!(stage.found(), ["S11", "S5"], "it wrote that record itself");
}

#[test]
fn s5_record_that_is_written_anew_is_compared_anew() {
    let mut stage = Stage::new(&Setting::default());
    stage.write_through(B1, 0, "a", ALL);
    stage.follows(B2);
    stage.told_high_watermark(B2, 0, 1);
    stage.told_high_watermark(B2, 1, 1);
    let compared = stage.judge.comparisons().of(Check::S5);
    assert_eq!(compared, 1);
    stage.set_isr(&[B1, B3]);
    stage.cut(B2, 0);
    stage.append(B2, 1, "z");
    stage.told_high_watermark(B2, 1, 1);
    assert_eq!(stage.found(), ["S5"]);
}

#[test]
fn s5_follower_of_a_branch_that_was_licensed_away_is_excused() {
    let mut stage = Stage::new(&Setting { unclean: true, ..Setting::default() });
    stage.set_isr(&[B1, B3]);
    stage.write_through(B1, 0, "old", &[B1, B3]);
    stage.elect(B2, &[B2], Claim::Unclean { asked_by_administrator: false });
    stage.leads(B2);
    stage.write_through(B2, 1, "new", &[B2]);
    stage.told_high_watermark(B3, 0, 1);
    assert_eq!(stage.found(), [""; 0]);
}

/// B3 holds the first of two records and is elected uncleanly.
fn chosen_with_one_of_two() -> Stage {
    let mut stage = Stage::new(&Setting { unclean: true, ..Setting::default() });
    stage.write_through(B1, 0, "a", ALL);
    stage.set_isr(&[B1]);
    stage.write_through(B1, 0, "b", &[B1]);
    stage.given(None, 0, "a");
    stage.given(None, 1, "b");
    stage.elect(B3, &[B3], Claim::Unclean { asked_by_administrator: false });
    stage
}

#[test]
fn s22_unclean_election_costs_what_the_chosen_replica_lacked() {
    let mut stage = chosen_with_one_of_two();
    stage.leads(B3);
    stage.write_through(B3, 1, "c", &[B3]);
    stage.write_through(B3, 1, "d", &[B3]);
    stage.given(Some((2, 1)), 1, "c");
    stage.given(None, 2, "d");
    assert_licensed(&stage.end_with(Some(B3)), &[1], Rule::UncleanElection);
}

#[test]
fn s22_chosen_replica_that_cuts_what_it_held_pays_for_itself() {
    let mut stage = chosen_with_one_of_two();
    stage.cut(B3, 0);
    stage.leads(B3);
    stage.act(B3, 1);
    assert_eq!(stage.found(), ["S14", "S22", "S9"]);
    let lost = stage.end_with(Some(B3)).lost;
    let licensed: Vec<(i64, bool)> =
        lost.iter().map(|lost| (lost.key.offset, lost.licensed_by.is_some())).collect();
    assert_eq!(licensed, [(0, false), (1, true)]);
}

#[test]
fn s22_consumer_that_is_not_told_of_the_new_branch() {
    let mut stage = chosen_with_one_of_two();
    stage.leads(B3);
    stage.write_through(B3, 1, "c", &[B3]);
    stage.write_through(B3, 1, "d", &[B3]);
    stage.given(None, 2, "d");
    assert_eq!(identifiers(&stage.end_with(Some(B3)).findings), ["V20", "S22"]);
}

/// Two of three in sync with ELR on and m=2; both have "r"; B1 leads.
fn eligible_two() -> Stage {
    let mut stage = Stage::new(&Setting { elr: true, min_insync: 2, ..Setting::default() });
    stage.set_isr(&[B1, B2]);
    stage.write_through(B1, 0, "r", &[B1, B2]);
    stage
}

#[test]
fn s23_last_known_leader_loses_what_everybody_lost_uncleanly_and_the_licence_names_them() {
    let mut stage = eligible_two();
    stage.power_loss(B2, 1);
    stage.change(Some(B1), &[B1], &[], Claim::Clean, &[B1], false);
    stage.power_loss(B1, 0);
    stage.leaderless(&[]);
    stage.change(Some(B1), &[B1], &[], Claim::LastKnownLeader, &[B1], true);
    stage.leads(B1);
    stage.act(B1, 2);
    let judgement = stage.end_with(Some(B1));
    assert_licensed(&judgement, &[0], Rule::LastKnownLeaderLostIt);
    let mut down = judgement.licences[0].down.clone();
    down.sort();
    assert_eq!(down, [B1, B2]);
}

#[test]
fn s23_member_that_never_went_down_should_have_been_elected() {
    let mut stage = eligible_two();
    stage.power_loss(B1, 0);
    // B2 vanishes from both sets, though nothing happened to it.
    stage.leaderless(&[]);
    stage.change(Some(B1), &[B1], &[], Claim::LastKnownLeader, &[B1], true);
    stage.leads(B1);
    stage.act(B1, 2);
    assert_eq!(stage.found(), ["S23", "S9"]);
}

#[test]
fn r2_log_after_a_process_crash_is_the_log_before() {
    let mut stage = Stage::new(&Setting::default());
    stage.write_through(B1, 0, "a", ALL);
    stage.restart(B1, 1);
    assert_eq!(stage.judge.comparisons().of(Check::R2), 1);
    assert_eq!(stage.found(), [""; 0]);
    stage.restart(B1, 0);
    assert_eq!(stage.found(), ["R2"]);
}

#[test]
fn r2_recovery_that_cuts_a_whole_batch_is_found_even_if_it_says_so() {
    let mut stage = Stage::new(&Setting::default());
    stage.append(B1, 0, "a");
    stage.begins(B1);
    stage.cut(B1, 0);
    stage.recovers(B1, 0);
    assert_eq!(stage.found(), ["R2"]);
}

#[test]
fn r3_recovered_log_is_what_the_disk_kept() {
    let recovered_to = |log_end_offset| {
        let mut stage = Stage::new(&Setting::default());
        for value in ["a", "b", "c"] {
            stage.append(B1, 0, value);
        }
        stage.power_loss(B1, 2);
        stage.begins(B1);
        if log_end_offset < 2 {
            stage.cut(B1, log_end_offset);
        }
        stage.recovers(B1, log_end_offset);
        assert_eq!(stage.judge.comparisons().of(Check::R3), 1);
        stage.found()
    };
    assert_eq!(recovered_to(2), [""; 0]);
    assert_eq!(recovered_to(1), ["R3"], "what was kept is cut");
    assert_eq!(recovered_to(3), ["R3"], "what is gone is counted");
}

#[test]
fn s8_high_watermark_of_a_leader_never_falls_in_its_epoch() {
    let mut stage = Stage::new(&Setting::default());
    stage.write_through(B1, 0, "a", ALL);
    stage.write_through(B1, 0, "b", ALL);
    stage.lower_high_watermark(B1, 0);
    stage.commit(B1, 0, 1, ALL);
    assert_eq!(stage.found(), ["S8"]);
}

#[test]
fn s8_restarted_leader_may_begin_at_its_checkpoint() {
    let mut stage = Stage::new(&Setting::default());
    stage.write_through(B1, 0, "a", ALL);
    stage.write_through(B1, 0, "b", ALL);
    stage.observe(B1, Observation::NodeStarted { incarnation: Uuid([3; 16]) });
    stage.lower_high_watermark(B1, 0);
    stage.leads(B1);
    stage.commit(B1, 0, 1, ALL);
    assert_eq!(stage.found(), [""; 0]);
}

#[test]
fn s8_leader_that_exposes_more_than_it_has() {
    let mut stage = Stage::new(&Setting::default());
    stage.write_through(B1, 0, "a", ALL);
    stage.append(B1, 0, "b");
    stage.raise_unstated(B1, 2);
    stage.act(B1, 0);
    assert_eq!(stage.found(), ["S8"]);
}

#[test]
fn s8_new_leader_may_expose_less_until_its_log_is_committed() {
    let mut stage = Stage::new(&Setting::default());
    stage.write_through(B1, 0, "a", ALL);
    stage.write_through(B1, 0, "b", ALL);
    stage.act(B1, 0);
    stage.elect(B2, &[B2, B3], Claim::Clean);
    stage.leads(B2);
    stage.act(B2, 1);
    stage.commit(B2, 1, 1, &[B2, B3]);
    stage.act(B2, 1);
    stage.commit(B2, 1, 2, &[B2, B3]);
    assert_eq!(stage.found(), [""; 0]);
}

#[test]
fn s8_follower_falls_only_at_the_first_word_of_its_leader_or_where_it_is_cut() {
    let told = |stage: &mut Stage, from, to| stage.told_high_watermark(B2, from, to);
    let mut stage = Stage::new(&Setting::default());
    stage.follows(B2);
    told(&mut stage, 5, 3);
    told(&mut stage, 3, 4);
    told(&mut stage, 4, 2);
    let (partition, leader_epoch) = (stage.state.partition, stage.state.leader_epoch);
    let cut =
        Observation::Truncated { partition, leader_epoch, from_log_end_offset: 4, to_log_end_offset: 2 };
    stage.observe(B2, cut);
    assert_eq!(stage.found(), [""; 0]);
    told(&mut stage, 2, 3);
    told(&mut stage, 3, 1);
    told(&mut stage, 1, 2);
    assert_eq!(stage.found(), ["S8"]);
}

#[test]
fn s10_member_that_joins_without_what_is_committed() {
    let mut stage = Stage::new(&Setting::default());
    stage.set_isr(&[B1, B2]);
    stage.write_through(B1, 0, "r", &[B1, B2]);
    stage.set_isr(ALL);
    assert_eq!(stage.found(), ["S10"]);
}

#[test]
fn s10_member_that_lost_it_to_a_power_loss_is_excused() {
    let mut stage = Stage::new(&Setting::default());
    stage.write_through(B1, 0, "r", ALL);
    stage.power_loss(B2, 0);
    stage.set_isr(&[B1, B2]);
    assert_eq!(stage.found(), [""; 0]);
}

#[test]
fn s10_outsider_of_an_allowed_unclean_election_is_excused() {
    let mut stage = Stage::new(&Setting { unclean: true, ..Setting::default() });
    stage.set_isr(&[B1]);
    stage.write_through(B1, 0, "r", &[B1]);
    stage.elect(B2, &[B2], Claim::Unclean { asked_by_administrator: false });
    assert_eq!(stage.found(), [""; 0]);
}

#[test]
fn s13_epoch_that_falls_along_a_log() {
    let mut stage = Stage::new(&Setting::default());
    stage.append(B1, 0, "a");
    stage.append(B1, 3, "b");
    assert_eq!(stage.found(), [""; 0]);
    stage.append(B1, 2, "c");
    assert_eq!(stage.found(), ["S13"]);
}

#[test]
fn s13_partition_epoch_that_is_committed_twice() {
    let mut stage = Stage::new(&Setting::default());
    stage.set_isr(&[B1, B2]);
    let mut state = stage.state.clone();
    stage.observe(NodeId(103), Observation::PartitionCommitted { state: state.clone(), metadata_offset: 1 });
    assert_eq!(stage.found(), [""; 0], "another controller replays it");
    state.isr = vec![B1, B3];
    stage.observe(NodeId(103), Observation::PartitionCommitted { state, metadata_offset: 1 });
    assert_eq!(stage.found(), ["S13"]);
}

#[test]
fn s13_leader_that_changes_without_a_new_epoch() {
    let mut stage = Stage::new(&Setting::default());
    stage.change(Some(B2), ALL, &[], Claim::Clean, ALL, false);
    assert_eq!(stage.found(), ["S13"]);
}

#[test]
fn s15_leader_that_knows_a_member_and_does_not_count_it() {
    let mut stage = Stage::new(&Setting::default());
    stage.set_isr(&[B1, B2]);
    stage.adopts(B1);
    stage.append(B1, 0, "r");
    stage.replicate(B1, 0, B2);
    stage.commit(B1, 0, 1, &[B1, B2, B3]);
    assert_eq!(stage.found(), ["S7"], "B3 is counted and lacks it");
    stage.commit(B1, 0, 1, &[B1]);
    assert_eq!(stage.found(), ["S7", "S15"]);
}

#[test]
fn s15_leader_that_has_not_heard_of_a_change_counts_what_it_knows() {
    let mut stage = Stage::new(&Setting::default());
    stage.set_isr(&[B1, B2]);
    stage.adopts(B1);
    stage.write_through(B1, 0, "r", &[B1, B2]);
    stage.replicate(B1, 0, B3);
    stage.set_isr(ALL);
    stage.commit(B1, 0, 1, &[B1, B2]);
    assert_eq!(stage.found(), [""; 0]);
}

#[test]
fn s15_sets_that_are_not_well_formed() {
    let wrong = |isr: &[NodeId], elr: &[NodeId], leader: Option<NodeId>, elr_is_on: bool| {
        let setting = Setting { elr: elr_is_on, min_insync: 2, ..Setting::default() };
        let mut stage = Stage::new(&setting);
        stage.change(leader, isr, elr, Claim::Clean, isr, true);
        stage.found()
    };
    assert_eq!(wrong(&[B1], &[B2], Some(B1), true), [""; 0]);
    assert_eq!(wrong(&[B1], &[B1], Some(B1), true), ["S15"], "in sync and eligible");
    assert_eq!(wrong(&[B1, B3], &[B2], Some(B1), true), ["S15"], "enough are in sync");
    assert_eq!(wrong(&[B1], &[B2], Some(B1), false), ["S15"], "there is no such thing");
    assert_eq!(wrong(&[], &[], None, false), ["S15"], "the last one stays");
    assert_eq!(wrong(&[], &[B1, B2], None, true), [""; 0]);
    assert_eq!(wrong(&[B1, NodeId(9)], &[], Some(B1), true), ["S15"], "no replica");
    assert_eq!(wrong(&[B1, B2], &[], Some(B3), true), ["S15"], "a leader out of sync");
}

#[test]
fn checks_that_are_off_neither_compare_nor_find() {
    let mut stage = Stage::new(&Setting::default());
    let mut off = Judge::new(JudgeConfig {
        brokers: ALL.to_vec(),
        controllers: Vec::new(),
        topics: BTreeMap::new(),
        default_topic: TopicContract { replication_factor: 3, min_insync: 1, unclean: false },
        elr: false,
        checks: Checks::NONE,
    });
    std::mem::swap(&mut stage.judge, &mut off);
    stage.append(B1, 0, "r");
    stage.ack_sent(B1, 0, 0, "r", ALL);
    stage.commit(B1, 0, 1, ALL);
    let judgement = stage.end_with(Some(B1));
    assert_eq!(judgement.findings, []);
    assert!(judgement.comparisons.values().all(|count| *count == 0));
}
