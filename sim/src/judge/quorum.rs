//! Q1 election safety and Q2 vote durability of the metadata quorum. A candidate's vote for itself is a vote. Votes
//! are remembered over restarts of the voter, for that is what durable means.

use std::collections::BTreeMap;

use acked_core::NodeId;
use acked_reports::Outcome;

use super::checks::Check;
use super::reporter::{Place, Reporter};
use crate::names::node_name;

/// Leaders and votes of every quorum epoch so far.
#[derive(Debug, Default)]
pub struct Quorum {
    leaders: BTreeMap<i32, NodeId>,
    votes: BTreeMap<(NodeId, i32), NodeId>,
}

impl Quorum {
    /// `node` became leader of `epoch`.
    pub fn leader_elected(&mut self, node: NodeId, epoch: i32, reporter: &mut Reporter) {
        reporter.compared(Check::Q1, 1);
        let first = *self.leaders.entry(epoch).or_insert(node);
        if first != node {
            let place = Place { epoch, node: Some(node), ..Place::default() };
            reporter.found(Check::Q1, Outcome::None, place, || {
                format!("{} and {} both lead quorum epoch {epoch}", node_name(first), node_name(node))
            });
        }
    }

    /// `voter` granted its vote of `epoch`, possibly to itself.
    pub fn vote(&mut self, voter: NodeId, epoch: i32, candidate: NodeId, reporter: &mut Reporter) {
        reporter.compared(Check::Q2, 1);
        let first = *self.votes.entry((voter, epoch)).or_insert(candidate);
        if first != candidate {
            let place = Place { epoch, node: Some(voter), ..Place::default() };
            reporter.found(Check::Q2, Outcome::None, place, || {
                format!(
                    "{} voted for {} and for {} in quorum epoch {epoch}",
                    node_name(voter),
                    node_name(first),
                    node_name(candidate)
                )
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::checks::Checks;
    use super::*;

    fn found(reporter: &Reporter) -> Vec<&'static str> {
        reporter.findings.iter().map(|finding| finding.invariant).collect()
    }

    #[test]
    fn second_leader_of_an_epoch_is_found() {
        let (mut quorum, mut reporter) = (Quorum::default(), Reporter::new(Checks::ALL));
        quorum.leader_elected(NodeId(101), 4, &mut reporter);
        quorum.leader_elected(NodeId(102), 5, &mut reporter);
        quorum.leader_elected(NodeId(101), 4, &mut reporter);
        assert!(reporter.findings.is_empty());
        quorum.leader_elected(NodeId(103), 5, &mut reporter);
        assert_eq!(found(&reporter), ["Q1"]);
        assert_eq!(reporter.comparisons.of(Check::Q1), 4);
    }

    #[test]
    fn second_vote_for_another_candidate_is_found_and_a_repeated_one_is_not() {
        let (mut quorum, mut reporter) = (Quorum::default(), Reporter::new(Checks::ALL));
        quorum.vote(NodeId(103), 5, NodeId(102), &mut reporter);
        quorum.vote(NodeId(103), 5, NodeId(102), &mut reporter);
        quorum.vote(NodeId(103), 6, NodeId(101), &mut reporter);
        assert!(reporter.findings.is_empty());
        quorum.vote(NodeId(103), 5, NodeId(101), &mut reporter);
        quorum.vote(NodeId(103), 5, NodeId(103), &mut reporter);
        assert_eq!(found(&reporter), ["Q2"]);
    }
}
