//! Claims about whole clusters under trouble here; about single nodes in `elections` and `replication`.

mod cluster;
mod desk;
mod elections;
mod hostile;
mod judge;
mod replication;
mod seams;

use std::time::Duration;

use cluster::Cluster;
use proptest::prelude::*;

use crate::rules::{QuorumAppend, Rules, VoteReply};

/// Δ_quorum of the invariants: five times fetch and election time-out, with Kafka's defaults.
const QUORUM_BOUND: Duration = Duration::from_secs(15);

const VOTES_EARLY: Rules = Rules { vote_reply: VoteReply::BeforeSaved, ..Rules::KAFKA };
const ACKNOWLEDGES_EARLY: Rules =
    Rules { quorum_append: QuorumAppend::LeftToTheOperatingSystem, ..Rules::KAFKA };

/// Trouble, then quiet; gives the violations.
fn run(seed: u64, voters: usize, rules: Rules, checks_disks: bool) -> Cluster {
    let mut cluster = Cluster::new(seed, voters, 1, rules, checks_disks);
    cluster.run_for(Duration::from_secs(3));
    cluster.trouble(Duration::from_secs(25));
    cluster.heal();
    cluster
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn quorum_keeps_its_promises_under_trouble_and_elects_within_the_bound_after(
        seed in any::<u64>(),
        voters in 3_usize..=5,
    ) {
        let mut cluster = run(seed, voters, Rules::KAFKA, true);
        cluster.run_for(QUORUM_BOUND);
        prop_assert!(cluster.has_one_leader(), "L7: no leader that all follow");
        cluster.propose();
        cluster.run_for(Duration::from_secs(3));
        prop_assert!(cluster.has_converged(), "not every node has the whole log");
        prop_assert!(cluster.judge.violations.is_empty(), "{:#?}", cluster.judge.violations);
        prop_assert!(cluster.judge.committed_batches() > 1);
    }
}

/// How many of `seeds` end with a violation whose text begins with one of `names`.
fn caught(rules: Rules, checks_disks: bool, names: &[&str], seeds: u64) -> usize {
    (0..seeds)
        .filter(|seed| {
            let mut cluster = run(*seed, 3, rules, checks_disks);
            cluster.run_for(Duration::from_secs(10));
            cluster.judge.violations.iter().any(|found| names.iter().any(|name| found.starts_with(name)))
        })
        .count()
}

#[test]
fn reply_before_the_vote_is_saved_is_caught_by_the_second_vote_or_leader() {
    assert!(caught(VOTES_EARLY, false, &["Q1", "Q2"], 40) > 0);
}

#[test]
fn acknowledgement_before_the_log_is_synced_is_caught_by_looking_at_disks() {
    assert!(caught(ACKNOWLEDGES_EARLY, true, &["Q5"], 10) > 0);
}

#[test]
fn acknowledgement_before_the_log_is_synced_loses_committed_records_that_others_applied() {
    assert!(caught(ACKNOWLEDGES_EARLY, false, &["Q4"], 40) > 0);
}

#[test]
fn trouble_reaches_elections_truncations_and_resignations() {
    let (mut elections, mut truncations, mut resignations) = (0, 0, 0);
    for seed in 0..8 {
        let judge = run(seed, 3, Rules::KAFKA, false).judge;
        elections += judge.elections;
        truncations += judge.truncations;
        resignations += judge.resignations;
    }
    assert!(elections >= 16, "{elections} elections");
    assert!(truncations >= 1, "{truncations} truncations");
    assert!(resignations >= 4, "{resignations} resignations");
}
