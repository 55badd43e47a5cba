//! M2 fenced means out, and the part of S15 about brokers that shut down: as each controller replays the log, no
//! broker that is fenced or shutting down is in a committed in-sync set, and none leads. With eligible leader replicas
//! off, the last member stays in the set, and then nobody leads.
//!
//! Each controller's replay is looked at by itself: they are at different offsets at any moment. What a controller took
//! from a snapshot it does not state, so its view begins anew there and knows nothing of the rest.

use std::collections::BTreeMap;

use acked_core::observation::PartitionState;
use acked_core::{NodeId, TopicPartition};
use acked_reports::Outcome;
use acked_wire::Uuid;

use super::checks::Check;
use super::reporter::{Place, Reporter};
use crate::names::{node_name, node_names};

#[derive(Clone, Copy, Debug)]
struct Broker {
    incarnation: Option<Uuid>,
    fenced: bool,
    shutting_down: bool,
}

/// What one controller has replayed.
#[derive(Debug, Default)]
struct View {
    brokers: BTreeMap<NodeId, Broker>,
    partitions: BTreeMap<TopicPartition, PartitionState>,
}

/// What the controllers have replayed.
#[derive(Debug, Default)]
pub struct Fencing {
    views: BTreeMap<NodeId, View>,
}

impl Fencing {
    /// A controller begins its replay anew.
    pub fn begin_anew(&mut self, controller: NodeId) {
        self.views.remove(&controller);
    }

    pub fn registered(
        &mut self,
        controller: NodeId,
        broker: NodeId,
        incarnation: Uuid,
        elr: bool,
        reporter: &mut Reporter,
    ) {
        let view = self.views.entry(controller).or_default();
        let known = view.brokers.get(&broker);
        // The same incarnation keeps its standing.
        if known.is_some_and(|known| known.incarnation == Some(incarnation)) {
            return;
        }
        let registered = Broker { incarnation: Some(incarnation), fenced: true, shutting_down: false };
        view.brokers.insert(broker, registered);
        view.check_broker(broker, elr, reporter);
    }

    pub fn fenced(
        &mut self,
        controller: NodeId,
        broker: NodeId,
        fenced: bool,
        elr: bool,
        reporter: &mut Reporter,
    ) {
        let view = self.views.entry(controller).or_default();
        let unknown = Broker { incarnation: None, fenced, shutting_down: false };
        view.brokers.entry(broker).or_insert(unknown).fenced = fenced;
        if fenced {
            view.check_broker(broker, elr, reporter);
        }
    }

    pub fn shuts_down(&mut self, controller: NodeId, broker: NodeId) {
        let view = self.views.entry(controller).or_default();
        let unknown = Broker { incarnation: None, fenced: false, shutting_down: true };
        // Its partitions are changed by records that follow this one, and are looked at there.
        view.brokers.entry(broker).or_insert(unknown).shutting_down = true;
    }

    pub fn deleted(&mut self, controller: NodeId, topic: Uuid) {
        if let Some(view) = self.views.get_mut(&controller) {
            view.partitions.retain(|partition, _| partition.topic != topic);
        }
    }

    pub fn committed(
        &mut self,
        controller: NodeId,
        state: &PartitionState,
        elr: bool,
        reporter: &mut Reporter,
    ) {
        let view = self.views.entry(controller).or_default();
        for member in &state.isr {
            view.check(*member, state, elr, reporter);
        }
        view.partitions.insert(state.partition, state.clone());
    }
}

impl View {
    /// A broker is fenced now.
    fn check_broker(&self, broker: NodeId, elr: bool, reporter: &mut Reporter) {
        for state in self.partitions.values() {
            if state.isr.contains(&broker) || state.leader == Some(broker) {
                self.check(broker, state, elr, reporter);
            }
        }
    }

    /// A broker is in the in-sync set of a partition.
    fn check(&self, member: NodeId, state: &PartitionState, elr: bool, reporter: &mut Reporter) {
        reporter.compared(Check::M2, 1);
        let Some(broker) = self.brokers.get(&member) else { return };
        let is_kept = !elr && state.isr == [member] && state.leader.is_none();
        if is_kept || !(broker.fenced || broker.shutting_down) {
            return;
        }
        let (check, what) = if broker.fenced { (Check::M2, "fenced") } else { (Check::S15, "shutting down") };
        let place = Place {
            partition: Some(state.partition),
            node: Some(member),
            epoch: state.partition_epoch,
            offset: None,
        };
        reporter.found(check, Outcome::None, place, || {
            let leads = if state.leader == Some(member) { ", which it leads" } else { "" };
            format!(
                "{} is {what} and in the in-sync set {{{}}} of partition epoch {}{leads}",
                node_name(member),
                node_names(&state.isr),
                state.partition_epoch
            )
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::checks::Checks;
    use super::super::tests::{B1, B2, PARTITION};
    use super::*;

    const CONTROLLER: NodeId = NodeId(101);

    fn state(leader: Option<NodeId>, isr: &[NodeId], partition_epoch: i32) -> PartitionState {
        PartitionState {
            partition: PARTITION,
            replicas: vec![B1, B2],
            isr: isr.to_vec(),
            elr: Vec::new(),
            leader,
            leader_epoch: 0,
            partition_epoch,
            recovering: false,
        }
    }

    /// Both brokers are registered and unfenced, and in sync.
    fn begun(reporter: &mut Reporter) -> Fencing {
        let mut fencing = Fencing::default();
        for broker in [B1, B2] {
            fencing.registered(CONTROLLER, broker, Uuid([broker.0 as u8; 16]), false, reporter);
            fencing.fenced(CONTROLLER, broker, false, false, reporter);
        }
        fencing.committed(CONTROLLER, &state(Some(B1), &[B1, B2], 0), false, reporter);
        fencing
    }

    fn found(reporter: &Reporter) -> Vec<&'static str> {
        reporter.findings.iter().map(|finding| finding.invariant).collect()
    }

    #[test]
    fn fenced_broker_is_found_in_a_set_that_it_was_not_taken_out_of() {
        let mut reporter = Reporter::new(Checks::ALL);
        let mut fencing = begun(&mut reporter);
        fencing.fenced(CONTROLLER, B2, true, false, &mut reporter);
        assert_eq!(found(&reporter), ["M2"]);
    }

    #[test]
    fn broker_that_was_taken_out_first_may_be_fenced_or_registered_anew() {
        let mut reporter = Reporter::new(Checks::ALL);
        let mut fencing = begun(&mut reporter);
        fencing.committed(CONTROLLER, &state(Some(B1), &[B1], 1), false, &mut reporter);
        fencing.fenced(CONTROLLER, B2, true, false, &mut reporter);
        fencing.registered(CONTROLLER, B2, Uuid([77; 16]), false, &mut reporter);
        assert_eq!(found(&reporter), [""; 0]);
        fencing.committed(CONTROLLER, &state(Some(B1), &[B1, B2], 2), false, &mut reporter);
        assert_eq!(found(&reporter), ["M2"], "it is not unfenced yet");
    }

    #[test]
    fn last_member_is_kept_while_nobody_leads_and_only_with_eligible_leader_replicas_off() {
        let mut reporter = Reporter::new(Checks::ALL);
        let mut fencing = begun(&mut reporter);
        fencing.committed(CONTROLLER, &state(None, &[B1], 1), false, &mut reporter);
        fencing.fenced(CONTROLLER, B1, true, false, &mut reporter);
        assert_eq!(found(&reporter), [""; 0]);
        fencing.fenced(CONTROLLER, B1, true, true, &mut reporter);
        assert_eq!(found(&reporter), ["M2"]);
    }

    #[test]
    fn broker_that_shuts_down_may_not_be_put_into_a_set() {
        let mut reporter = Reporter::new(Checks::ALL);
        let mut fencing = begun(&mut reporter);
        fencing.shuts_down(CONTROLLER, B2);
        fencing.committed(CONTROLLER, &state(Some(B1), &[B1], 1), false, &mut reporter);
        assert_eq!(found(&reporter), [""; 0]);
        fencing.committed(CONTROLLER, &state(Some(B1), &[B1, B2], 2), false, &mut reporter);
        assert_eq!(found(&reporter), ["S15"]);
    }

    #[test]
    fn controllers_replay_at_their_own_pace() {
        let mut reporter = Reporter::new(Checks::ALL);
        let mut fencing = begun(&mut reporter);
        fencing.committed(CONTROLLER, &state(Some(B1), &[B1], 1), false, &mut reporter);
        fencing.fenced(CONTROLLER, B2, true, false, &mut reporter);
        // Another one has not come so far, and one that starts begins at the beginning.
        fencing.committed(NodeId(102), &state(Some(B1), &[B1, B2], 0), false, &mut reporter);
        fencing.begin_anew(CONTROLLER);
        fencing.committed(CONTROLLER, &state(Some(B1), &[B1, B2], 0), false, &mut reporter);
        assert_eq!(found(&reporter), [""; 0]);
    }
}
