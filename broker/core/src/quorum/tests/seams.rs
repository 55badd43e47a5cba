//! What each mutation of the quorum does wrong, beside what its rule does right.

use super::super::*;
use super::desk::*;
use crate::observation::Observation;
use crate::rules::{QuorumAppend, Rules, VoteReply};
use crate::types::NodeId;

const VOTERS: [NodeId; 3] = [ME, SECOND, THIRD];

fn voter(rules: Rules) -> Desk {
    let mut desk = Desk::with_rules(rules, config(ME, &VOTERS), None, &bytes::Bytes::new());
    desk.disk_is_prompt = false;
    desk
}

#[test]
fn vote_is_told_before_it_is_saved_only_by_the_mutation() {
    let mutated = Rules { vote_reply: VoteReply::BeforeSaved, ..Rules::KAFKA };
    for (rules, tells) in [(mutated, true), (Rules::KAFKA, false)] {
        let mut desk = voter(rules);
        let answer = desk.vote(SECOND, 1, (0, 0), false);
        assert_eq!(answer.map(|answer| answer.granted), tells.then_some(true));
        assert!(desk.wants(|effect| matches!(effect, QuorumEffect::SaveState { .. })), "it is being saved");
        let told = desk.observations.contains(&Observation::VoteGranted { epoch: 1, candidate: SECOND });
        assert_eq!(told, tells);
    }
}

#[test]
fn forgotten_vote_is_given_to_another_candidate() {
    let mutated = Rules { vote_reply: VoteReply::BeforeSaved, ..Rules::KAFKA };
    let mut desk = voter(mutated);
    assert!(desk.vote(SECOND, 1, (0, 0), false).expect("at once").granted);
    // The power fails before anything reached the disk.
    let mut desk = voter(mutated);
    assert!(desk.vote(THIRD, 1, (0, 0), false).expect("at once").granted);
}

#[test]
fn append_is_acknowledged_without_a_sync_only_by_the_mutation() {
    let mutated = Rules { quorum_append: QuorumAppend::LeftToTheOperatingSystem, ..Rules::KAFKA };
    for (rules, syncs) in [(mutated, false), (Rules::KAFKA, true)] {
        let state = QuorumState { epoch: 1, leader: Some(SECOND), voted: None };
        let mut desk = Desk::with_rules(rules, config(ME, &VOTERS), Some(state), &bytes::Bytes::new());
        desk.bring(batch(1, 0, &["a"]), 0);
        let asks =
            |effect: &QuorumEffect| matches!(effect, QuorumEffect::AppendLog { sync, .. } if *sync == syncs);
        assert!(desk.wants(asks));
    }
}
