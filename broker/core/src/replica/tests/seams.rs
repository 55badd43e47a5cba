//! What each mutation does wrong, beside what its rule does right.

use acked_wire::error_code;

use super::node::*;
use crate::observation::Observation;
use crate::rules::{
    BecomeFollower, DedupeWindow, ElectedHighWatermark, FollowerPosition, IsrExpansion, IsrJoin, IsrShrink,
    PendingProduce, PositionsOnNewEpoch, ProduceReply, ProducerState, Rules,
};

#[test]
fn produce_answered_on_receipt_is_appended_in_a_later_event() {
    let rules = Rules { produce_reply: ProduceReply::OnReceipt, ..Rules::KAFKA };
    let mut node = Node::with_rules(B1, rules);
    node.lead(1);
    for offset in 0..2 {
        let request = node.produce(-1, record(1));
        let answer = node.produced(request).expect("at once");
        assert_eq!((answer.error_code, answer.base_offset), (error_code::NONE, offset));
        assert!(node.log().len() as i64 == offset, "the one before is appended, this one is not");
    }
    assert!(node.has_observed(|fact| matches!(fact, Observation::AckSent { acks: -1, .. })));
    assert!(
        node.manager.next_deadline().is_some_and(|deadline| deadline <= std::time::Duration::from_millis(1))
    );
    node.advance(std::time::Duration::from_millis(1));
    assert_eq!(node.log().len(), 2);
}

#[test]
fn what_would_be_refused_is_not_answered_on_receipt() {
    let rules = Rules { produce_reply: ProduceReply::OnReceipt, ..Rules::KAFKA };
    let mut node = Node::with_rules(B1, rules);
    node.learn(state(Some(B1), 1, 1, &[B1]));
    let request = node.produce(-1, record(1));
    assert_eq!(node.code(request), Some(error_code::NOT_ENOUGH_REPLICAS));
}

/// B1 leads epoch 0 with an uncommitted record that B3 holds; then it learns that it leads epoch 2, not that B2 led
/// epoch 1 and B3 cut the record. B3 is out of reach; B2 holds the record by now.
fn skipped_reign(rules: Rules) -> Node {
    let mut node = Node::with_rules(B1, rules);
    node.lead(0);
    node.produce(1, record(1));
    node.run_disk();
    node.fetched_by(B3, 0, 1, 0);
    node.lead(2);
    node.fetched_by(B2, 2, 1, 0);
    node
}

#[test]
fn kept_positions_count_a_branch_that_is_gone() {
    let mutated = Rules { positions_on_new_epoch: PositionsOnNewEpoch::KeepWhenStillLeader, ..Rules::KAFKA };
    assert_eq!(skipped_reign(mutated).high_watermark(), 1);
    assert_eq!(skipped_reign(Rules::KAFKA).high_watermark(), 0);
}

/// B2 holds a committed record whose commit it has not been told, and follows a new leader.
fn new_leader_learned(rules: Rules) -> Node {
    let mut node = Node::with_rules(B2, rules);
    node.follow(B1, 1);
    node.answer_fetch(told(0, stored(0, 1, 7)));
    node.run_disk();
    node.follow(B3, 2);
    node
}

#[test]
fn truncation_to_the_high_watermark_drops_committed_records() {
    let mutated = Rules { become_follower: BecomeFollower::TruncateToHighWatermark, ..Rules::KAFKA };
    let mut node = new_leader_learned(mutated);
    assert!(node.log().is_empty());
    let (_, _, body) = node.sent_fetch().expect("it fetches");
    assert_eq!(body.topics[0].partitions[0].last_fetched_epoch, -1, "and lets nobody compare");
    assert_eq!(new_leader_learned(Rules::KAFKA).log().len(), 1);
}

/// B3 lags; its removal is proposed and not answered; a record reaches B2 alone.
fn shrink_proposed(rules: Rules) -> Node {
    let mut node = Node::with_rules(B1, rules);
    node.lead(1);
    node.caught_up(1, 0);
    node.produce(1, record(1));
    node.run_disk();
    for _ in 0..4 {
        node.advance(LAG / 2);
        node.fetched_by(B2, 1, 1, 1);
    }
    assert!(node.has_observed(|fact| matches!(fact, Observation::IsrProposed { .. })));
    node
}

#[test]
fn eager_shrink_commits_without_a_replica_that_may_be_elected() {
    let mutated = Rules { isr_shrink: IsrShrink::WhenProposed, ..Rules::KAFKA };
    assert_eq!(shrink_proposed(mutated).high_watermark(), 1);
    assert_eq!(shrink_proposed(Rules::KAFKA).high_watermark(), 0);
}

/// A produce waits at B1; B2 is elected and writes another record at its offset, which B1 copies and sees committed.
fn deposed_with_a_waiting_produce(rules: Rules) -> Node {
    let mut node = Node::with_rules(B1, rules);
    node.lead(1);
    node.produce(-1, record(1));
    node.run_disk();
    node.follow(B2, 2);
    node.answer_fetch(told_diverging(0, 0));
    node.run_disk();
    node.answer_fetch(told(1, stored(0, 2, 99)));
    node.run_disk();
    assert_eq!(node.high_watermark(), 1);
    node
}

#[test]
fn produce_that_outlives_its_leadership_is_acked_by_anothers_progress() {
    let is_ack = |fact: &Observation| matches!(fact, Observation::AckSent { leader_epoch: 1, .. });
    let mutated = Rules { pending_produce: PendingProduce::CompleteByHighWatermark, ..Rules::KAFKA };
    assert!(deposed_with_a_waiting_produce(mutated).has_observed(is_ack));
    assert!(!deposed_with_a_waiting_produce(Rules::KAFKA).has_observed(is_ack));
}

/// B3 is out of the ISR and has caught up, so its return is proposed and not answered; a record reaches B2 alone.
fn expansion_proposed(rules: Rules) -> Node {
    let mut node = Node::with_rules(B1, rules);
    node.learn(state(Some(B1), 1, 1, &[B1, B2]));
    node.run_disk();
    node.caught_up(1, 0);
    assert!(node.has_observed(|fact| matches!(fact, Observation::IsrProposed { isr, .. } if isr.len() == 3)));
    node.produce(1, record(1));
    node.run_disk();
    node.fetched_by(B2, 1, 1, 1);
    node
}

#[test]
fn expansion_that_counts_late_commits_without_a_replica_that_may_be_elected() {
    let mutated = Rules { isr_expansion: IsrExpansion::WhenCommitted, ..Rules::KAFKA };
    assert_eq!(expansion_proposed(mutated).high_watermark(), 1);
    assert_eq!(expansion_proposed(Rules::KAFKA).high_watermark(), 0);
}

/// B1 leads epoch 2 and wrote one record, which B2 has; B3 holds two of epoch 1 instead and asks behind them.
fn forked_follower_fetches(rules: Rules) -> Node {
    let mut node = Node::with_rules(B1, rules);
    node.lead(2);
    node.produce(1, record(1));
    node.run_disk();
    node.fetched_by(B2, 2, 1, 2);
    let request = node.fetched_by(B3, 2, 2, 1);
    let answer = node.served(request).expect("at once");
    assert_eq!((answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset), (1, 0));
    node
}

#[test]
fn position_of_a_diverging_fetch_counts_a_branch_that_will_be_cut() {
    let mutated = Rules { follower_position: FollowerPosition::FromDivergingFetches, ..Rules::KAFKA };
    assert_eq!(forked_follower_fetches(mutated).high_watermark(), 1);
    assert_eq!(forked_follower_fetches(Rules::KAFKA).high_watermark(), 0);
}

/// B1 was elected with a record whose commit it has not been told; B3, outside the ISR, asks from the start.
fn stale_high_watermark_is_reached(rules: Rules) -> Node {
    let mut node = Node::with_rules(B1, rules);
    node.follow(B2, 1);
    node.answer_fetch(told(0, stored(0, 1, 7)));
    node.run_disk();
    node.learn(state(Some(B1), 2, 2, &[B1, B2]));
    node.run_disk();
    node.fetched_by(B3, 2, 0, -1);
    node
}

#[test]
fn follower_at_a_stale_high_watermark_joins_without_what_is_committed() {
    let proposes = |fact: &Observation| matches!(fact, Observation::IsrProposed { .. });
    let mutated = Rules { isr_join: IsrJoin::AtHighWatermark, ..Rules::KAFKA };
    assert!(stale_high_watermark_is_reached(mutated).has_observed(proposes));
    assert!(!stale_high_watermark_is_reached(Rules::KAFKA).has_observed(proposes));
}

/// B1 holds a record that nobody else may have, and is elected.
fn elected_with_an_uncommitted_record(rules: Rules) -> Node {
    let mut node = Node::with_rules(B1, rules);
    node.follow(B2, 1);
    node.answer_fetch(told(0, stored(0, 1, 7)));
    node.run_disk();
    node.lead(2);
    node
}

#[test]
fn high_watermark_that_jumps_shows_what_nobody_else_has() {
    let mutated = Rules { elected_high_watermark: ElectedHighWatermark::JumpsToEnd, ..Rules::KAFKA };
    let mut node = elected_with_an_uncommitted_record(mutated);
    let request = node.fetch(consumer_fetch(0));
    node.run_disk();
    let read = node.served(request).and_then(|answer| answer.records).expect("at once");
    assert!(!read.is_empty());
    let mut node = elected_with_an_uncommitted_record(Rules::KAFKA);
    let request = node.fetch(consumer_fetch(0));
    node.run_disk();
    assert_eq!(node.served(request), None, "it waits for what is committed");
}

/// A batch is refused because too few replicas are in sync; then they are enough, and it is sent again.
fn refused_and_sent_again(rules: Rules) -> Node {
    let mut node = Node::with_rules(B1, rules);
    node.learn(state(Some(B1), 1, 1, &[B1]));
    node.run_disk();
    let request = node.produce(-1, idempotent(0, 1));
    assert_eq!(node.code(request), Some(error_code::NOT_ENOUGH_REPLICAS));
    node.learn(state(Some(B1), 1, 2, &[B1, B2]));
    node.produce(-1, idempotent(0, 1));
    node.run_disk();
    node
}

#[test]
fn batch_remembered_before_its_append_is_taken_for_a_repeat() {
    let mutated = Rules { producer_state: ProducerState::BeforeAppend, ..Rules::KAFKA };
    assert!(refused_and_sent_again(mutated).log().is_empty());
    assert_eq!(refused_and_sent_again(Rules::KAFKA).log().len(), 1);
}

/// Two batches of a producer are in the log, neither was answered, and the first comes again.
fn older_batch_sent_again(rules: Rules) -> Option<i16> {
    let mut node = Node::with_rules(B1, rules);
    node.lead(1);
    node.produce(-1, idempotent(0, 1));
    node.produce(-1, idempotent(1, 2));
    node.run_disk();
    let request = node.produce(-1, idempotent(0, 1));
    node.caught_up(1, 2);
    node.code(request)
}

#[test]
fn window_of_one_does_not_know_what_was_in_flight() {
    let mutated = Rules { dedupe_window: DedupeWindow::LastOnly, ..Rules::KAFKA };
    assert_eq!(older_batch_sent_again(mutated), Some(error_code::OUT_OF_ORDER_SEQUENCE_NUMBER));
    assert_eq!(older_batch_sent_again(Rules::KAFKA), Some(error_code::NONE));
}

/// A produce waits at B1, which learns that it leads a newer epoch; both followers then hold the record.
fn elected_again_with_a_waiting_produce(rules: Rules) -> Option<i16> {
    let mut node = Node::with_rules(B1, rules);
    node.lead(1);
    let request = node.produce(-1, record(1));
    node.run_disk();
    node.lead(2);
    node.fetched_by(B2, 2, 1, 1);
    node.fetched_by(B3, 2, 1, 1);
    node.code(request)
}

#[test]
fn produce_outlives_its_epoch_only_where_leading_is_enough() {
    let mutated = Rules { pending_produce: PendingProduce::FailUnlessStillLeader, ..Rules::KAFKA };
    assert_eq!(elected_again_with_a_waiting_produce(mutated), Some(error_code::NONE));
    let failed = Some(error_code::NOT_LEADER_OR_FOLLOWER);
    assert_eq!(elected_again_with_a_waiting_produce(Rules::KAFKA), failed);
    let is_ack = |fact: &Observation| matches!(fact, Observation::AckSent { .. });
    assert!(!deposed_with_a_waiting_produce(mutated).has_observed(is_ack), "another leads: it fails as ever");
}
