//! The bug museum's exhibits that are built: each a rule that history got wrong, the scenario that provokes it, and
//! within how many seeds a check that sees only clients and logs must notice.

use acked_core::Rules;
use acked_core::rules::{
    BecomeFollower, DedupeWindow, ElectedHighWatermark, FollowerPosition, IsrExpansion, IsrJoin, IsrShrink,
    PendingProduce, PositionsOnNewEpoch, ProduceReply, ProducerState, QuorumAppend, VoteReply,
};

/// One deliberate bug.
pub struct Mutation {
    pub name: &'static str,
    /// The exhibit's number in the museum, or the deviation from Apache Kafka that it takes back.
    pub museum: &'static str,
    /// What the code does wrong, in one sentence.
    pub text: &'static str,
    /// Scenario and configuration that provoke it, and the seeds within which it must be killed; `None` while the
    /// rule exists without a scenario.
    pub provoked_by: Option<Provocation>,
    apply: fn(&mut Rules),
}

#[derive(Clone, Copy, Debug)]
pub struct Provocation {
    pub scenario: &'static str,
    pub configuration: &'static str,
    pub seeds: u64,
    /// A check of the metadata quorum kills it as well: what it breaks need not reach a client within one run.
    pub quorum_checks_kill: bool,
}

/// Seeds within which an easy exhibit is found, and one of medium difficulty.
const EASY: u64 = 200;
const MEDIUM: u64 = 5_000;

/// The scenario whose failure proves that the detector works; it plants a mutation itself.
pub const CANARY: &str = "canary";

/// Every mutation, sorted by name.
pub static MUTATIONS: &[Mutation] = &[
    Mutation {
        name: "ack-before-append",
        museum: "0",
        text: "a produce request is answered with success when it arrives, before it is appended",
        provoked_by: provoked("museum-ack-before-append", EASY),
        apply: |rules| rules.produce_reply = ProduceReply::OnReceipt,
    },
    Mutation {
        name: "ack-over-leader-epochs",
        museum: "deviation a",
        text: "an acks=all produce that waits goes on to success in a later leader epoch if its broker leads again",
        provoked_by: None,
        apply: |rules| rules.pending_produce = PendingProduce::FailUnlessStillLeader,
    },
    Mutation {
        name: "dedupe-window-one",
        museum: "17",
        text: "only the last batch of a producer is recognised when it comes again",
        provoked_by: provoked("museum-dedupe-window-one", EASY),
        apply: |rules| rules.dedupe_window = DedupeWindow::LastOnly,
    },
    Mutation {
        name: "diverging-fetch-counts-as-ack",
        museum: "6",
        text: "a follower's fetch that is answered with a diverging epoch still says where its log ends",
        provoked_by: provoked("museum-diverging-fetch-counts-as-ack", MEDIUM),
        apply: |rules| rules.follower_position = FollowerPosition::FromDivergingFetches,
    },
    Mutation {
        name: "hw-jumps-to-leo-on-election",
        museum: "11",
        text: "a new leader takes its whole log for committed",
        provoked_by: provoked("museum-hw-jumps-to-leo-on-election", MEDIUM),
        apply: |rules| rules.elected_high_watermark = ElectedHighWatermark::JumpsToEnd,
    },
    Mutation {
        name: "hw-truncate-on-become-follower",
        museum: "1",
        text: "a follower cuts its log to its own high watermark on every new leader epoch",
        provoked_by: provoked("museum-hw-truncate-on-become-follower", MEDIUM),
        apply: |rules| rules.become_follower = BecomeFollower::TruncateToHighWatermark,
    },
    Mutation {
        name: "isr-join-before-epoch-start",
        museum: "7",
        text: "a follower joins the in-sync replicas at the high watermark, below the start of the leader epoch",
        provoked_by: provoked("museum-isr-join-before-epoch-start", MEDIUM),
        apply: |rules| rules.isr_join = IsrJoin::AtHighWatermark,
    },
    Mutation {
        name: "isr-shrink-applied-eagerly",
        museum: "5",
        text: "a leader counts without a replica as soon as it asks the controller to remove it",
        provoked_by: provoked("museum-isr-shrink-applied-eagerly", MEDIUM),
        apply: |rules| rules.isr_shrink = IsrShrink::WhenProposed,
    },
    Mutation {
        name: "maximal-isr-ignored",
        museum: "4",
        text: "a leader does not count a replica that it has asked the controller to add until it is told",
        provoked_by: provoked("museum-maximal-isr-ignored", MEDIUM),
        apply: |rules| rules.isr_expansion = IsrExpansion::WhenCommitted,
    },
    Mutation {
        name: "positions-kept-over-skipped-epoch",
        museum: "0b",
        text: "a leader that skipped another's reign still counts the followers' old positions",
        provoked_by: provoked("skipped-reign", MEDIUM),
        apply: |rules| rules.positions_on_new_epoch = PositionsOnNewEpoch::KeepWhenStillLeader,
    },
    Mutation {
        name: "produce-acked-after-demotion",
        museum: "10",
        text: "a produce that waits when its leader is demoted succeeds by the next leader's progress",
        provoked_by: provoked("museum-produce-acked-after-demotion", EASY),
        apply: |rules| rules.pending_produce = PendingProduce::CompleteByHighWatermark,
    },
    Mutation {
        name: "producer-state-before-append",
        museum: "15",
        text: "a batch that is refused for want of in-sync replicas is remembered as if it had been appended",
        provoked_by: provoked("museum-producer-state-before-append", EASY),
        apply: |rules| rules.producer_state = ProducerState::BeforeAppend,
    },
    Mutation {
        name: "raft-ack-before-flush",
        museum: "14",
        text: "a controller vouches for what it appended to the metadata log and did not sync",
        provoked_by: provoked_in_quorum("museum-raft-ack-before-flush", EASY),
        apply: |rules| rules.quorum_append = QuorumAppend::LeftToTheOperatingSystem,
    },
    Mutation {
        name: "raft-vote-not-persisted",
        museum: "13",
        text: "a controller answers that it voted before the vote is synced",
        provoked_by: provoked_in_quorum("museum-raft-vote-not-persisted", MEDIUM),
        apply: |rules| rules.vote_reply = VoteReply::BeforeSaved,
    },
];

const fn provoked(scenario: &'static str, seeds: u64) -> Option<Provocation> {
    Some(Provocation { scenario, configuration: "default", seeds, quorum_checks_kill: false })
}

const fn provoked_in_quorum(scenario: &'static str, seeds: u64) -> Option<Provocation> {
    Some(Provocation { scenario, configuration: "default", seeds, quorum_checks_kill: true })
}

/// The mutation of that name.
pub fn find(name: &str) -> Option<&'static Mutation> {
    MUTATIONS.iter().find(|mutation| mutation.name == name)
}

/// Kafka's rules with these mutations applied.
///
/// # Errors
/// The first name that is none.
pub fn rules(names: &[String]) -> Result<Rules, String> {
    let mut rules = Rules::KAFKA;
    for name in names {
        let mutation = find(name).ok_or_else(|| {
            let known = MUTATIONS.iter().map(|mutation| mutation.name);
            format!("there is no mutation '{name}'{}", crate::nearest::hint(name, known))
        })?;
        (mutation.apply)(&mut rules);
    }
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario;

    #[test]
    fn mutations_are_sorted_and_each_changes_the_rules() {
        for pair in MUTATIONS.windows(2) {
            assert!(pair[0].name < pair[1].name, "{} before {}", pair[0].name, pair[1].name);
        }
        for mutation in MUTATIONS {
            assert_ne!(rules(&[mutation.name.to_string()]), Ok(Rules::KAFKA), "{}", mutation.name);
        }
    }

    #[test]
    fn every_provoking_scenario_exists_with_its_configuration_and_promises_no_loss() {
        for provocation in MUTATIONS.iter().filter_map(|mutation| mutation.provoked_by) {
            let entry = scenario::find(provocation.scenario).expect(provocation.scenario);
            let parsed = scenario::parse(entry.path, entry.text).expect("the catalogue is well formed");
            let is_exhibit = entry.name.starts_with("museum-");
            assert!(parsed.unlisted == is_exhibit, "{} is part of a bare run or an exhibit", entry.name);
            let chosen = &parsed.configuration[provocation.configuration];
            assert_eq!(chosen.expect, scenario::Expected::Never, "{}", entry.name);
        }
    }
}
