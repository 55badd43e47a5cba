//! The cases of the loss oracle that every implementation gets wrong first, by their letters.

use super::*;

const ALL: &[NodeId] = &[B1, B2, B3];

fn unclean() -> Claim {
    Claim::Unclean { asked_by_administrator: false }
}

#[test]
fn a_acks_one_success_for_what_was_never_appended_is_a_violation() {
    let mut stage = Stage::new(&Setting { acks: 1, ..Setting::default() });
    stage.send("r");
    stage.ack(B1, 0, 0, "r", ALL);
    assert_eq!(stage.found(), ["S3"]);
    stage.append(B1, 0, "another");
    let judgement = stage.end_with(Some(B1));
    assert_eq!(judgement.lost.len(), 1);
    assert_eq!(judgement.lost[0].contract(), acked_reports::Contract::Broken);
}

#[test]
fn b_outsider_elected_while_a_member_is_acceptable_is_a_violation_even_without_loss() {
    let mut stage = Stage::new(&Setting::default());
    stage.write_through(B1, 0, "r", ALL);
    stage.set_isr(&[B1, B2]);
    stage.change(Some(B3), &[B3], &[], Claim::Clean, &[B2, B3], true);
    stage.leads(B3);
    stage.act(B3, 1);
    assert_eq!(stage.found(), ["S22"]);
    assert_eq!(stage.end_with(Some(B3)).lost, []);
}

#[test]
fn b_allowed_unclean_election_is_a_violation_too_while_a_member_is_acceptable() {
    let mut stage = Stage::new(&Setting { unclean: true, ..Setting::default() });
    stage.set_isr(&[B1, B2]);
    stage.write_through(B1, 0, "r", &[B1, B2]);
    stage.change(Some(B3), &[B3], &[], unclean(), &[B2, B3], true);
    stage.leads(B3);
    stage.act(B3, 1);
    assert_eq!(stage.found(), ["S22", "S10", "S9"], "and what it loses is not licensed");
}

#[test]
fn c_dead_broker_elected_cleanly_and_fenced_again_never_acted() {
    let mut stage = Stage::new(&Setting::default());
    stage.write_through(B1, 0, "r", ALL);
    stage.power_loss(B1, 0);
    stage.power_loss(B2, 0);
    stage.elect(B2, &[B2, B3], Claim::Clean);
    stage.elect(B3, &[B3], Claim::Clean);
    stage.leads(B3);
    stage.act(B3, 2);
    let judgement = stage.end_with(Some(B3));
    assert_clean(&judgement);
    assert_eq!(judgement.licences, []);
}

#[test]
fn d_record_behind_a_lost_one_is_lost_too_and_permitted_for_the_last_member() {
    let mut stage = Stage::new(&Setting::default());
    stage.set_isr(&[B1]);
    for value in ["x", "y", "z"] {
        stage.write_through(B1, 0, value, &[B1]);
    }
    let mut file = stage.file(B1);
    let (from, length) = stage.bytes_at(B1, 1);
    file[from as usize..from as usize + length].fill(0);
    let change = DiskChange::Replaced { path: LOG, content: Some(&file), first_difference: Some(from) };
    stage.disk(B1, &change);
    stage.cut(B1, 1);
    stage.observe(B1, Observation::NodeStarted { incarnation: Uuid([2; 16]) });
    stage.leaderless(&[B1]);
    stage.elect(B1, &[B1], Claim::Clean);
    stage.leads(B1);
    stage.act(B1, 2);
    assert_licensed(&stage.end_with(Some(B1)), &[1, 2], Rule::LastReplicaLostIt);
}

#[test]
fn e_recovery_that_cuts_what_was_synced_is_a_violation_even_after_a_power_loss() {
    let mut stage = Stage::new(&Setting::default());
    stage.set_isr(&[B1]);
    stage.write_through(B1, 0, "r", &[B1]);
    stage.power_loss(B1, 1);
    stage.cut(B1, 0);
    stage.leaderless(&[B1]);
    stage.elect(B1, &[B1], Claim::Clean);
    stage.leads(B1);
    stage.act(B1, 2);
    assert_eq!(stage.found(), ["S14", "S10", "S9"]);
    assert_eq!(stage.end_with(Some(B1)).lost[0].licensed_by, None);
}

#[test]
fn f_licence_is_for_a_key_and_not_for_what_is_written_there_later() {
    let mut stage = Stage::new(&Setting { unclean: true, ..Setting::default() });
    stage.write_through(B1, 0, "kept", ALL);
    stage.set_isr(&[B1]);
    for value in ["r1", "r2", "r3"] {
        stage.write_through(B1, 0, value, &[B1]);
    }
    stage.elect(B2, &[B2], unclean());
    stage.leads(B2);
    stage.write_through(B2, 1, "again", &[B2]);
    assert_eq!(stage.found(), [""; 0]);
    stage.replicate(B2, 1, B3);
    stage.set_isr(&[B2, B3]);
    // Now the second record at offset 1 changes, with nothing that permits it.
    stage.cut(B3, 1);
    stage.elect(B3, &[B3], Claim::Clean);
    stage.leads(B3);
    stage.append(B3, 2, "third");
    assert_eq!(stage.found(), ["S14", "S10", "S9"]);
    let judgement = stage.end_with(Some(B3));
    let broken: Vec<i64> =
        judgement.lost.iter().filter(|lost| lost.licensed_by.is_none()).map(|lost| lost.key.offset).collect();
    assert_eq!(broken, [1]);
    assert_eq!(judgement.lost.len(), 4, "three licensed, one not");
}

#[test]
fn g_duplicate_of_an_unrelated_sequence_is_a_violation_in_spite_of_a_licence() {
    let mut stage = Stage::new(&Setting { unclean: true, ..Setting::default() });
    stage.write_through(B1, 0, "kept", ALL);
    stage.set_isr(&[B1]);
    stage.write_through(B1, 0, "gone", &[B1]);
    stage.elect(B2, &[B2], unclean());
    stage.leads(B2);
    stage.append(B2, 1, "gone");
    stage.commit(B2, 1, 2, &[B2]);
    assert_eq!(stage.found(), [""; 0], "the licensed sequence may come again");
    stage.append(B2, 1, "kept");
    stage.commit(B2, 1, 3, &[B2]);
    assert_eq!(stage.found(), ["S19"]);
    assert!(identifiers(&stage.end_with(Some(B2)).findings).contains(&"V3"));
}

#[test]
fn h_old_leader_may_acknowledge_what_every_electable_replica_holds() {
    let mut stage = Stage::new(&Setting::default());
    stage.write_through(B1, 0, "x", ALL);
    stage.append(B1, 0, "r");
    stage.replicate(B1, 0, B2);
    stage.replicate(B1, 0, B3);
    stage.elect(B2, ALL, Claim::Preferred);
    stage.leads(B2);
    stage.commit(B1, 0, 2, ALL);
    stage.ack(B1, 0, 1, "r", ALL);
    stage.act(B2, 1);
    assert_clean(&stage.end_with(Some(B2)));
}

#[test]
fn h_old_leader_may_not_acknowledge_what_an_electable_replica_lacks() {
    let mut stage = Stage::new(&Setting::default());
    stage.set_isr(&[B1, B2]);
    stage.append(B1, 0, "r");
    stage.replicate(B1, 0, B2);
    stage.elect(B2, &[B2, B3], Claim::Clean);
    stage.commit(B1, 0, 1, &[B1, B2]);
    assert_eq!(stage.found(), ["S12"]);
}

#[test]
fn i_deposed_leader_that_answers_late_may_lack_what_came_after_it() {
    let mut stage = Stage::new(&Setting::default());
    stage.elect(B2, &[B2, B3], Claim::Clean);
    stage.leads(B2);
    stage.write_through(B2, 1, "r", &[B2, B3]);
    stage.act(B1, 0);
    assert_clean(&stage.end_with(Some(B2)));
}

#[test]
fn j_clean_election_that_descends_from_an_unclean_one_without_an_act_is_permitted() {
    let mut stage = Stage::new(&Setting { unclean: true, ..Setting::default() });
    stage.set_isr(&[B1]);
    stage.write_through(B1, 0, "r", &[B1]);
    stage.elect(B2, &[B2], unclean());
    stage.leaderless(&[B2]);
    stage.elect(B2, &[B2], Claim::Clean);
    stage.leads(B2);
    stage.act(B2, 3);
    assert_licensed(&stage.end_with(Some(B2)), &[0], Rule::UncleanElection);
}

#[test]
fn k_acks_one_record_is_protected_like_any_other_once_committed() {
    let mut stage = Stage::new(&Setting { acks: 1, ..Setting::default() });
    stage.set_isr(&[B1, B2]);
    stage.append(B1, 0, "r");
    stage.ack(B1, 0, 0, "r", &[B1, B2]);
    stage.replicate(B1, 0, B2);
    stage.commit(B1, 0, 1, &[B1, B2]);
    stage.cut(B2, 0);
    stage.elect(B2, &[B2], Claim::Clean);
    stage.leads(B2);
    stage.act(B2, 1);
    assert_eq!(stage.found(), ["S14", "S10", "S9"]);
    assert_eq!(stage.end_with(Some(B2)).lost[0].licensed_by, None);
}

#[test]
fn k_acks_one_record_that_was_never_committed_may_go_with_its_leader() {
    let mut stage = Stage::new(&Setting { acks: 1, ..Setting::default() });
    stage.append(B1, 0, "r");
    stage.ack(B1, 0, 0, "r", ALL);
    stage.elect(B2, &[B2, B3], Claim::Clean);
    stage.leads(B2);
    stage.act(B2, 1);
    let judgement = stage.end_with(Some(B2));
    assert_licensed(&judgement, &[0], Rule::AcksOneLeaderChanged);
    assert_eq!(judgement.lost[0].contract(), acked_reports::Contract::NotPromised);
}

#[test]
fn k_acks_one_record_that_its_only_holder_lost_is_permitted_by_that() {
    let mut stage = Stage::new(&Setting { acks: 1, ..Setting::default() });
    stage.append(B1, 0, "r");
    stage.ack(B1, 0, 0, "r", ALL);
    stage.power_loss(B1, 0);
    stage.elect(B1, ALL, Claim::Clean);
    stage.leads(B1);
    stage.act(B1, 1);
    let judgement = stage.end_with(Some(B1));
    assert_licensed(&judgement, &[0], Rule::AcksOneLeaderLostIt);
    assert_eq!(judgement.lost[0].fault.as_deref(), Some("power-loss of b1 (dark)"));
}

#[test]
fn m_unclean_election_that_an_administrator_asked_for_is_permitted() {
    let mut stage = Stage::new(&Setting::default());
    stage.set_isr(&[B1]);
    stage.write_through(B1, 0, "r", &[B1]);
    stage.elect(B3, &[B3], Claim::Unclean { asked_by_administrator: true });
    stage.leads(B3);
    stage.act(B3, 1);
    assert_licensed(&stage.end_with(Some(B3)), &[0], Rule::UncleanElection);
}

#[test]
fn n_positions_kept_over_a_skipped_reign_are_found_at_the_step_and_again_at_the_election() {
    let mut stage = Stage::new(&Setting::default());
    stage.write_through(B1, 0, "x0", ALL);
    for value in ["x1", "x2"] {
        stage.append(B1, 0, value);
        stage.replicate(B1, 0, B3);
    }
    stage.elect(B2, ALL, Claim::Preferred);
    stage.leads(B2);
    stage.append(B2, 1, "y");
    stage.follows(B3);
    stage.cut(B3, 1);
    stage.replicate(B2, 1, B3);
    stage.elect(B1, &[B1, B3], Claim::Preferred);
    stage.leads(B1);
    assert_eq!(stage.found(), [""; 0], "nothing committed is missing anywhere yet");
    stage.commit(B1, 2, 3, &[B1, B3]);
    assert_eq!(stage.found(), ["S7"]);
    stage.ack(B1, 2, 1, "x1", &[B1, B3]);
    stage.elect(B3, &[B3], Claim::Clean);
    stage.leads(B3);
    stage.act(B3, 3);
    assert_eq!(stage.found(), ["S7", "S10", "S9"]);
    let judgement = stage.end_with(Some(B3));
    assert!(identifiers(&judgement.findings).contains(&"V1"), "clients can see it too");
}

#[test]
fn o_last_known_leader_that_returns_with_everything_needs_no_licence() {
    let mut stage = Stage::new(&Setting { elr: true, ..Setting::default() });
    stage.write_through(B1, 0, "r", ALL);
    for node in ALL {
        stage.power_loss(*node, 1);
    }
    stage.leaderless(&[]);
    stage.change(Some(B1), &[B1], &[], Claim::LastKnownLeader, &[B1, B2], true);
    stage.leads(B1);
    stage.act(B1, 2);
    let judgement = stage.end_with(Some(B1));
    assert_clean(&judgement);
    assert_eq!(judgement.licences, []);
}

#[test]
fn o_last_known_leader_that_lost_the_record_is_permitted() {
    let mut stage = Stage::new(&Setting { elr: true, ..Setting::default() });
    stage.write_through(B1, 0, "r", ALL);
    stage.power_loss(B1, 0);
    for node in [B2, B3] {
        stage.power_loss(node, 1);
    }
    stage.leaderless(&[]);
    stage.change(Some(B1), &[B1], &[], Claim::LastKnownLeader, &[B1, B2], true);
    stage.leads(B1);
    stage.act(B1, 2);
    assert_licensed(&stage.end_with(Some(B1)), &[0], Rule::LastKnownLeaderLostIt);
}

#[test]
fn p_eligible_replica_elected_after_a_pause_is_correct() {
    let mut stage = Stage::new(&Setting { elr: true, min_insync: 2, ..Setting::default() });
    stage.write_through(B1, 0, "r", ALL);
    stage.change(Some(B1), &[B1], &[B2], Claim::Clean, &[B1], false);
    stage.change(None, &[], &[B1, B2], Claim::Leaderless, &[], true);
    stage.change(Some(B2), &[B2], &[B1], Claim::CleanElr, &[B2], true);
    stage.leads(B2);
    stage.act(B2, 2);
    assert_clean(&stage.end_with(Some(B2)));
}

#[test]
fn q_eligible_replica_elected_without_what_was_acknowledged_alone_is_a_violation() {
    let mut stage = Stage::new(&Setting { elr: true, ..Setting::default() });
    stage.set_isr(&[B1, B2]);
    // The leader does not know of the new setting, so that its shrink should have been refused.
    stage.observe(
        NodeId(101),
        Observation::ConfigChanged {
            metadata_offset: 100,
            topic: Some("orders".to_owned()),
            name: "min.insync.replicas".to_owned(),
            value: Some("2".to_owned()),
        },
    );
    stage.change(Some(B1), &[B1], &[B2], Claim::Clean, &[B1], false);
    stage.write_through(B1, 0, "r", &[B1]);
    stage.change(None, &[], &[B2], Claim::Leaderless, &[], true);
    stage.change(Some(B2), &[B2], &[], Claim::CleanElr, &[B2], true);
    stage.leads(B2);
    assert_eq!(stage.found(), ["S10"], "an eligible replica lacks what was committed");
    stage.act(B2, 2);
    assert_eq!(stage.found(), ["S10", "S9"]);
}

#[test]
fn licensed_record_that_returns_and_is_committed_again_is_protected_afresh() {
    let mut stage = Stage::new(&Setting { unclean: true, ..Setting::default() });
    stage.set_isr(&[B1]);
    stage.write_through(B1, 0, "r", &[B1]);
    stage.elect(B2, &[B2], unclean());
    stage.leads(B2);
    stage.act(B2, 1);
    stage.lower_high_watermark(B1, 0);
    stage.elect(B1, &[B1], unclean());
    stage.leads(B1);
    stage.set_isr(&[B1, B3]);
    stage.replicate(B1, 2, B3);
    stage.commit(B1, 2, 1, &[B1, B3]);
    assert_eq!(stage.found(), [""; 0]);
    stage.cut(B3, 0);
    stage.elect(B3, &[B3], Claim::Clean);
    stage.leads(B3);
    stage.act(B3, 3);
    assert_eq!(stage.found(), ["S14", "S10", "S9"]);
}

#[test]
fn deposed_leader_that_goes_on_alone_after_an_allowed_unclean_election_loses_by_licence() {
    let mut stage = Stage::new(&Setting { unclean: true, ..Setting::default() });
    stage.set_isr(&[B1]);
    stage.elect(B2, &[B2], unclean());
    stage.leads(B2);
    stage.write_through(B2, 1, "new", &[B2]);
    // The old leader is cut off from the controllers and has heard of nothing.
    for (offset, value) in [(0, "old"), (1, "older still")] {
        stage.append(B1, 0, value);
        stage.commit(B1, 0, offset + 1, &[B1]);
        stage.ack(B1, 0, offset, value, &[B1]);
    }
    stage.write_through(B2, 1, "newer", &[B2]);
    let judgement = stage.end_with(Some(B2));
    assert_licensed(&judgement, &[0, 1], Rule::UncleanElection);
}

#[test]
fn deposed_leader_that_goes_on_alone_after_a_clean_election_is_a_violation() {
    let mut stage = Stage::new(&Setting::default());
    stage.elect(B2, &[B2, B3], Claim::Clean);
    stage.leads(B2);
    stage.write_through(B2, 1, "new", &[B2, B3]);
    stage.append(B1, 0, "old");
    stage.commit(B1, 0, 1, &[B1]);
    assert_eq!(stage.found(), ["S12"]);
}
