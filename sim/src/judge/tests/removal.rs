//! Rule 0 of the loss oracle, case l: what was removed on purpose is neither lost nor licensed, and everything else
//! is judged as ever.

use super::*;

const ALL: &[NodeId] = &[B1, B2, B3];

/// Three records at every replica, read by a consumer; the first two are below B1's log start.
fn two_of_three_removed(acks: i16) -> Stage {
    let mut stage = Stage::new(&Setting { acks, ..Setting::default() });
    for value in ["r0", "r1", "r2"] {
        stage.write_through(B1, 0, value, ALL);
    }
    stage.consume(B1);
    stage.raise_log_start(B1, 0, 2);
    stage
}

/// B3 is out of sync, begins a log at this offset, fetches what is there, and is elected.
fn elect_b3_with_a_log_from(stage: &mut Stage, log_start: i64) {
    stage.set_isr(&[B1, B2]);
    stage.begin_at(B3, log_start);
    if log_start < stage.end(B1) {
        stage.replicate(B1, 0, B3);
    }
    stage.set_isr(ALL);
    stage.elect(B3, &[B3, B2], Claim::Clean);
    stage.leads(B3);
}

#[test]
fn l_next_leader_may_lack_what_is_below_the_log_start() {
    for acks in [-1, 1] {
        let mut stage = two_of_three_removed(acks);
        elect_b3_with_a_log_from(&mut stage, 2);
        stage.write_through(B3, 1, "next", &[B3, B2]);
        let judgement = stage.end_with(Some(B3));
        assert_clean(&judgement);
        assert_eq!(judgement.licences, []);
        assert_eq!((judgement.removed, judgement.read_back, judgement.unread), (2, 2, 0));
    }
}

#[test]
fn l_replica_that_comes_back_may_still_hold_it_and_a_later_leader_may_lack_it_all_the_same() {
    let mut stage = two_of_three_removed(-1);
    stage.power_loss(B1, 3);
    stage.lower_high_watermark(B1, 0);
    stage.elect(B1, ALL, Claim::Clean);
    stage.leads(B1);
    stage.act(B1, 1);
    stage.commit(B1, 1, 3, ALL);
    stage.consume(B1);
    stage.set_isr(&[B1, B2]);
    stage.begin_at(B3, 2);
    stage.replicate(B1, 1, B3);
    stage.set_isr(ALL);
    assert_eq!(stage.found(), [""; 0]);
    stage.elect(B3, &[B3], Claim::Clean);
    stage.leads(B3);
    stage.act(B3, 2);
    let judgement = stage.end_with(Some(B3));
    assert_clean(&judgement);
    assert_eq!(judgement.removed, 2);
}

#[test]
fn l_final_leader_that_still_holds_it_may_give_it_back() {
    let judgement = two_of_three_removed(-1).end_with(Some(B2));
    assert_clean(&judgement);
    assert_eq!((judgement.removed, judgement.read_back), (0, 3));
}

#[test]
fn l_electable_replica_may_discard_what_is_below_the_log_start() {
    let mut stage = Stage::new(&Setting::default());
    stage.write_through(B1, 0, "r0", ALL);
    stage.raise_log_start(B1, 0, 1);
    stage.begin_at(B2, 1);
    assert_clean(&stage.end_with(Some(B2)));
}

#[test]
fn l_record_above_the_log_start_that_is_missing_is_a_violation() {
    let mut stage = two_of_three_removed(-1);
    elect_b3_with_a_log_from(&mut stage, 3);
    stage.append(B3, 1, "next");
    assert_eq!(stage.found(), ["S10", "S9"]);
    let judgement = stage.end_with(Some(B3));
    let lost: Vec<(i64, i32)> =
        judgement.lost.iter().map(|lost| (lost.key.offset, lost.key.leader_epoch)).collect();
    assert_eq!(lost, [(2, 0)]);
    assert!(identifiers(&judgement.findings).contains(&"V1"), "clients can see it too");
    assert_eq!(judgement.removed, 2);
}

#[test]
fn l_deposed_leader_removes_nothing() {
    let mut stage = Stage::new(&Setting::default());
    stage.write_through(B1, 0, "r", ALL);
    stage.elect(B2, &[B2, B3], Claim::Clean);
    stage.raise_log_start(B1, 0, 1);
    stage.leads(B2);
    stage.cut(B2, 0);
    stage.act(B2, 1);
    assert_eq!(stage.found(), ["S14", "S9"]);
}

#[test]
fn l_leader_that_already_lacks_a_record_cannot_remove_it() {
    let mut stage = Stage::new(&Setting::default());
    stage.set_isr(&[B1, B2]);
    stage.write_through(B1, 0, "r", &[B1, B2]);
    stage.elect(B3, &[B3], Claim::Clean);
    stage.leads(B3);
    stage.raise_log_start(B3, 1, 1);
    assert_eq!(identifiers(&stage.end_with(Some(B3)).findings), ["S22", "S10", "S9", "S1"]);
}

#[test]
fn l_log_start_removes_nothing_that_was_not_committed() {
    let mut stage = Stage::new(&Setting { acks: 1, ..Setting::default() });
    stage.append(B1, 0, "r");
    stage.ack(B1, 0, 0, "r", ALL);
    stage.raise_log_start(B1, 0, 1);
    stage.elect(B2, &[B2, B3], Claim::Clean);
    stage.leads(B2);
    stage.act(B2, 1);
    let judgement = stage.end_with(Some(B2));
    assert_licensed(&judgement, &[0], Rule::AcksOneLeaderChanged);
    assert_eq!(judgement.removed, 0);
}

#[test]
fn l_another_record_at_the_offset_of_a_removed_one_is_protected() {
    let mut stage = Stage::new(&Setting { unclean: true, ..Setting::default() });
    stage.set_isr(&[B1]);
    stage.write_through(B1, 0, "r", &[B1]);
    stage.raise_log_start(B1, 0, 1);
    stage.elect(B2, &[B2], Claim::Unclean { asked_by_administrator: false });
    stage.leads(B2);
    stage.write_through(B2, 1, "another", &[B2]);
    assert_eq!(stage.found(), [""; 0]);
    stage.cut(B2, 0);
    stage.elect(B2, &[B2], Claim::Clean);
    stage.leads(B2);
    stage.act(B2, 2);
    assert_eq!(stage.found(), ["S14", "S10", "S9"]);
}

#[test]
fn l_brokers_may_drop_or_keep_the_records_of_a_deleted_topic() {
    let mut stage = Stage::new(&Setting::default());
    stage.write_through(B1, 0, "r", ALL);
    stage.consume(B1);
    stage.append(B1, 0, "late");
    stage.replicate(B1, 0, B2);
    stage.delete();
    stage.begin_at(B2, 0);
    // B1 has not heard of it, commits what B2 had fetched, and its next leader lacks everything.
    stage.commit(B1, 0, 2, ALL);
    stage.ack(B1, 0, 1, "late", ALL);
    stage.power_loss(B3, 1);
    stage.act(B3, 1);
    stage.act(B2, 2);
    let judgement = stage.end_with(Some(B2));
    assert_clean(&judgement);
    assert_eq!(judgement.licences, []);
    assert_eq!((judgement.acked, judgement.removed, judgement.unread), (2, 2, 0));
}

#[test]
fn l_acks_one_record_of_a_deleted_topic_needs_no_licence() {
    let mut stage = Stage::new(&Setting { acks: 1, ..Setting::default() });
    stage.append(B1, 0, "r");
    stage.ack(B1, 0, 0, "r", ALL);
    stage.delete();
    stage.act(B2, 1);
    stage.append(B1, 0, "late");
    stage.ack(B1, 0, 1, "late", ALL);
    let judgement = stage.end_with(Some(B2));
    assert_clean(&judgement);
    assert_eq!((judgement.licences.len(), judgement.removed), (0, 2));
}

/// A topic with three records is deleted and created again, with other records at their offsets.
fn created_again() -> Stage {
    let mut stage = Stage::new(&Setting::default());
    for value in ["r0", "r1"] {
        stage.write_through(B1, 0, value, ALL);
    }
    stage.consume(B1);
    stage.append(B1, 0, "told late");
    stage.delete();
    stage.ack_sent(B1, 0, 2, "told late", ALL);
    for node in ALL {
        stage.begin_at(*node, 0);
    }
    stage.create_again(Uuid([10; 16]));
    // Controllers that restart state their whole log again.
    let name = "orders".to_owned();
    stage.observe(NodeId(102), Observation::TopicCreated { name, topic: TOPIC });
    stage.observe(NodeId(102), Observation::TopicDeleted { topic: TOPIC });
    stage.told(2, "told late");
    for value in ["s0", "s1", "s2"] {
        stage.write_through(B1, 0, value, ALL);
    }
    stage
}

#[test]
fn l_topic_created_again_owes_nothing_of_the_deleted_one() {
    let judgement = created_again().end_with(Some(B1));
    assert_clean(&judgement);
    assert_eq!((judgement.acked, judgement.removed, judgement.read_back), (6, 3, 3));
}

#[test]
fn l_record_of_the_topic_created_again_that_is_missing_is_a_violation() {
    let mut stage = created_again();
    stage.cut(B2, 1);
    stage.elect(B2, &[B2], Claim::Clean);
    stage.leads(B2);
    stage.append(B2, 1, "next");
    stage.append(B2, 1, "after next");
    let judgement = stage.end_with(Some(B2));
    assert!(identifiers(&judgement.findings).starts_with(&["S14", "S10", "S9"]), "{:?}", judgement.findings);
    let lost: Vec<i64> = judgement.lost.iter().map(|lost| lost.key.offset).collect();
    assert_eq!((lost.as_slice(), judgement.removed), (&[1, 2][..], 3));
}
