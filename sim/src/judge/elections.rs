//! The committed configurations of one partition and the elections among them, each with what allowed it. The kind
//! of an election is derived from the committed states; what the controller claims is compared with that. Checks S22
//! (unclean election accounting) as far as it is about
//! when one may happen.

use std::collections::BTreeMap;

use acked_core::observation::{Election as Claim, PartitionState};
use acked_core::{NodeId, Time};
use acked_reports::Outcome;

use super::checks::Check;
use super::input::TopicContract;
use super::reporter::{Place, Reporter};
use crate::names::{node_name, node_names};

/// How a leader came to be elected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Created,
    Leaderless,
    /// Out of the in-sync set before it.
    Clean,
    /// Out of the eligible leader replicas before it.
    CleanElr,
    LastKnownLeader,
    Unclean {
        /// The configuration or an administrator's request allowed it, and nobody better was acceptable.
        allowed: bool,
    },
}

/// One change of the leader epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Election {
    pub leader_epoch: i32,
    pub leader: Option<NodeId>,
    pub kind: Kind,
    /// The in-sync set that it was elected out of.
    pub isr_before: Vec<NodeId>,
    pub replicas: usize,
    pub time: Time,
}

/// What an active controller decided; it counts once committed.
#[derive(Clone, Debug)]
struct Decision {
    controller_epoch: i32,
    state: PartitionState,
    claim: Option<Claim>,
    acceptable: Vec<NodeId>,
    unclean_allowed: bool,
}

/// Committed states and elections of one partition.
#[derive(Debug, Default)]
pub struct Elections {
    current: Option<PartitionState>,
    /// Every committed state, by partition epoch.
    states: BTreeMap<i32, (PartitionState, Time)>,
    decided: Vec<Decision>,
    list: Vec<Election>,
}

impl Elections {
    /// The newest committed state.
    pub fn current(&self) -> Option<&PartitionState> {
        self.current.as_ref()
    }

    /// The committed state of this partition epoch.
    pub fn at(&self, partition_epoch: i32) -> Option<&PartitionState> {
        self.states.get(&partition_epoch).map(|(state, _)| state)
    }

    /// Every committed state and when it was first stated, in the order of partition epochs.
    pub fn states(&self) -> impl DoubleEndedIterator<Item = (&PartitionState, Time)> {
        self.states.values().map(|(state, time)| (state, *time))
    }

    /// The newest committed leader epoch, -1 before the first.
    pub fn leader_epoch(&self) -> i32 {
        self.current.as_ref().map_or(-1, |state| state.leader_epoch)
    }

    /// In the order of their leader epochs.
    pub fn list(&self) -> &[Election] {
        &self.list
    }

    /// The broker is electable in the newest committed state.
    pub fn is_electable(&self, node: NodeId) -> bool {
        self.current.as_ref().is_some_and(|state| state.isr.contains(&node) || state.elr.contains(&node))
    }

    /// A controller decided; nothing counts yet.
    pub fn decided(
        &mut self,
        controller_epoch: i32,
        state: &PartitionState,
        claim: Option<Claim>,
        acceptable: &[NodeId],
        unclean_allowed: bool,
    ) {
        self.decided.push(Decision {
            controller_epoch,
            state: state.clone(),
            claim,
            acceptable: acceptable.to_vec(),
            unclean_allowed,
        });
    }

    /// A node replayed a committed state. Only the first that states it counts: whether this one did.
    pub fn committed(
        &mut self,
        state: &PartitionState,
        contract: TopicContract,
        elr: bool,
        reporter: &mut Reporter,
    ) -> bool {
        let newest = self.current.as_ref().map_or(i32::MIN, |current| current.partition_epoch);
        if state.partition_epoch <= newest {
            return false;
        }
        self.states.insert(state.partition_epoch, (state.clone(), reporter.now));
        let decision = self
            .decided
            .iter()
            .filter(|decision| decision.state == *state)
            .max_by_key(|decision| decision.controller_epoch)
            .cloned();
        self.decided.retain(|decision| decision.state.partition_epoch > state.partition_epoch);
        let before = self.current.replace(state.clone());
        let epoch_before = before.as_ref().map_or(-1, |before| before.leader_epoch);
        if state.leader_epoch <= epoch_before {
            return true;
        }
        let kind = self.kind(before.as_ref(), state, decision.as_ref(), contract, elr, reporter);
        self.list.push(Election {
            leader_epoch: state.leader_epoch,
            leader: state.leader,
            kind,
            isr_before: before.map_or_else(|| state.isr.clone(), |before| before.isr),
            replicas: state.replicas.len(),
            time: reporter.now,
        });
        true
    }

    fn kind(
        &self,
        before: Option<&PartitionState>,
        state: &PartitionState,
        decision: Option<&Decision>,
        contract: TopicContract,
        elr: bool,
        reporter: &mut Reporter,
    ) -> Kind {
        let Some(leader) = state.leader else { return Kind::Leaderless };
        let Some(before) = before else { return Kind::Created };
        let claim = decision.and_then(|decision| decision.claim);
        reporter.compared(Check::S22, 1);
        if before.isr.contains(&leader) {
            return Kind::Clean;
        }
        if before.isr.is_empty() && before.elr.contains(&leader) {
            return Kind::CleanElr;
        }
        let nobody_electable = before.isr.is_empty() && before.elr.is_empty();
        if elr && nobody_electable && claim == Some(Claim::LastKnownLeader) {
            return Kind::LastKnownLeader;
        }
        let asked = claim == Some(Claim::Unclean { asked_by_administrator: true });
        let wrong = match decision {
            None => Some("no controller was seen to decide it".to_owned()),
            Some(_) if !asked && !contract.unclean => {
                Some("unclean.leader.election.enable is off and no administrator asked for it".to_owned())
            }
            Some(decision) if !asked && !decision.unclean_allowed => {
                Some("the controller itself held it for not allowed".to_owned())
            }
            Some(decision) => before
                .isr
                .iter()
                .chain(&before.elr)
                .find(|member| decision.acceptable.contains(member))
                .map(|member| format!("electable broker {} was acceptable", node_name(*member))),
        };
        let allowed = wrong.is_none();
        if let Some(why) = wrong {
            let place = Place {
                partition: Some(state.partition),
                node: Some(leader),
                epoch: state.leader_epoch,
                offset: None,
            };
            reporter.found(Check::S22, Outcome::None, place, || {
                format!(
                    "broker {} was elected in leader epoch {} from outside the in-sync set {{{}}}: {why}",
                    node_name(leader),
                    state.leader_epoch,
                    node_names(&before.isr)
                )
            });
        }
        Kind::Unclean { allowed }
    }
}
