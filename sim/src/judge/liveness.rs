//! L1, L2, L5 and L7: what must be true once every fault is healed and the bounds have passed. Functions over the
//! state in which the run ended; they wait for nothing.

use acked_core::Time;
use acked_reports::Outcome;

use super::checks::Check;
use super::input::{FinalPartition, FinalState, Probe};
use super::reporter::{Place, Reporter};

/// Calls that clients made: those still open at the end, and the one that took longest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    pub ended: u64,
    /// Number, client, name and beginning of each.
    pub open: Vec<(u64, u32, &'static str, Time)>,
    /// Duration, client and name.
    pub longest: Option<(Time, u32, &'static str)>,
}

/// L1: a partition with an electable replica has a leader.
pub fn leader_exists(partition: &FinalPartition, place: Place, bound: Time, reporter: &mut Reporter) {
    if !partition.electable {
        return;
    }
    reporter.compared(Check::L1, 1);
    if partition.leader.is_none() {
        reporter.found(Check::L1, Outcome::Stuck, place, || {
            format!(
                "{}-{} has no leader {:.1} s after the heal, though an electable replica is alive",
                partition.topic,
                partition.index,
                bound.as_secs_f64()
            )
        });
    }
}

/// L2: an acks=all write succeeds where enough replicas are alive.
pub fn writes_resume(partition: &FinalPartition, place: Place, bound: Time, reporter: &mut Reporter) {
    if !partition.writable {
        return;
    }
    let code = match partition.probe {
        Probe::NotTried => return,
        Probe::Acked(after) if after <= bound => None,
        Probe::Acked(_) => Some(0),
        Probe::Refused(code) => Some(code),
    };
    reporter.compared(Check::L2, 1);
    if let Some(code) = code {
        reporter.found(Check::L2, Outcome::Refused, place, || {
            format!(
                "{}-{} took no acks=all write within {:.1} s after the heal (last error {code})",
                partition.topic,
                partition.index,
                bound.as_secs_f64()
            )
        });
    }
}

/// L5: every client call ended, within its bound.
pub fn operations_terminate(calls: &Calls, bound: Time, reporter: &mut Reporter) {
    reporter.compared(Check::L5, calls.ended + calls.open.len() as u64);
    for (operation, client, name, began) in &calls.open {
        reporter.found(Check::L5, Outcome::Stuck, Place::default(), || {
            format!(
                "{name} of client {client} (operation {operation}), begun at {:.3} s, never ended",
                began.as_secs_f64()
            )
        });
    }
    if let Some((duration, client, name)) = calls.longest
        && duration > bound
    {
        let place = Place { epoch: 1, ..Place::default() };
        reporter.found(Check::L5, Outcome::Stuck, place, || {
            format!(
                "{name} of client {client} took {:.1} s, its bound is {:.1} s",
                duration.as_secs_f64(),
                bound.as_secs_f64()
            )
        });
    }
}

/// L7: a majority of controllers has a leader.
pub fn quorum_elects(state: &FinalState, reporter: &mut Reporter) {
    if !state.quorum_majority {
        return;
    }
    reporter.compared(Check::L7, 1);
    if state.quorum_leader.is_none() {
        reporter.found(Check::L7, Outcome::Stuck, Place::default(), || {
            format!("the controllers have no leader {:.1} s after the heal", state.quorum_bound.as_secs_f64())
        });
    }
}

#[cfg(test)]
mod tests {
    use acked_core::NodeId;

    use super::super::checks::Checks;
    use super::*;

    const BOUND: Time = Time::from_secs(5);

    fn partition() -> FinalPartition {
        FinalPartition {
            topic: "orders".to_owned(),
            index: 0,
            leader: Some(NodeId(1)),
            electable: true,
            writable: true,
            probe: Probe::Acked(Time::from_secs(2)),
            read_to: Some(0),
        }
    }

    fn found(judge: impl Fn(&mut Reporter)) -> Vec<&'static str> {
        let mut reporter = Reporter::new(Checks::ALL);
        judge(&mut reporter);
        reporter.findings.iter().map(|finding| finding.invariant).collect()
    }

    #[test]
    fn leader_is_due_only_where_a_replica_is_electable() {
        let check = |partition: FinalPartition| {
            found(move |reporter| leader_exists(&partition, Place::default(), BOUND, reporter))
        };
        assert_eq!(check(partition()), [""; 0]);
        assert_eq!(check(FinalPartition { leader: None, ..partition() }), ["L1"]);
        assert_eq!(check(FinalPartition { leader: None, electable: false, ..partition() }), [""; 0]);
    }

    #[test]
    fn write_is_due_in_time_only_where_enough_replicas_live() {
        let check = |partition: FinalPartition| {
            found(move |reporter| writes_resume(&partition, Place::default(), BOUND, reporter))
        };
        assert_eq!(check(partition()), [""; 0]);
        assert_eq!(check(FinalPartition { probe: Probe::Refused(19), ..partition() }), ["L2"]);
        assert_eq!(check(FinalPartition { probe: Probe::Acked(Time::from_secs(6)), ..partition() }), ["L2"]);
        assert_eq!(
            check(FinalPartition { probe: Probe::Refused(19), writable: false, ..partition() }),
            [""; 0]
        );
    }

    #[test]
    fn open_and_overlong_calls_are_found() {
        let check = |calls: Calls| found(move |reporter| operations_terminate(&calls, BOUND, reporter));
        let ended = Calls { ended: 3, open: Vec::new(), longest: Some((BOUND, 1, "send")) };
        assert_eq!(check(ended.clone()), [""; 0]);
        assert_eq!(check(Calls { open: vec![(7, 1, "send", Time::ZERO)], ..ended.clone() }), ["L5"]);
        assert_eq!(check(Calls { longest: Some((BOUND * 2, 1, "poll")), ..ended }), ["L5"]);
    }

    #[test]
    fn quorum_leader_is_due_only_with_a_majority() {
        let state = FinalState {
            partitions: Vec::new(),
            quorum_leader: None,
            quorum_majority: true,
            call_bound: BOUND,
            elect_bound: BOUND,
            write_bound: BOUND,
            quorum_bound: BOUND,
        };
        assert_eq!(found(|reporter| quorum_elects(&state, reporter)), ["L7"]);
        let minority = FinalState { quorum_majority: false, ..state.clone() };
        assert_eq!(found(|reporter| quorum_elects(&minority, reporter)), [""; 0]);
        let led = FinalState { quorum_leader: Some(NodeId(101)), ..state };
        assert_eq!(found(|reporter| quorum_elects(&led, reporter)), [""; 0]);
    }
}
