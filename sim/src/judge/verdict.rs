//! The judge itself: takes every event of a run in order, and gives its judgement at the end.

use std::collections::BTreeMap;

use acked_core::{NodeId, Observation, Time};
use acked_reports::History;

use super::finding::Findings;
use super::{ClientEvent, Comparisons, FaultEvent, FinalState, Finding, JudgeConfig, Licence, LostRecord};
use crate::world::tap::DiskChange;

/// Everything that a run's judgement says.
#[derive(Debug, Default)]
pub struct Judgement {
    /// One a cause, in the order of first occurrence. Empty: no contract was broken.
    pub findings: Vec<Finding>,
    /// Acknowledged records that are not in the final leaders' logs, by partition and offset.
    pub lost: Vec<LostRecord>,
    /// Every licence given, whether or not the record was acknowledged.
    pub licences: Vec<Licence>,
    pub comparisons: BTreeMap<&'static str, u64>,
    pub sent: u64,
    /// Sends told ok, at any acks level.
    pub acked: u64,
    pub indeterminate: u64,
    pub refused: u64,
    /// Acknowledged records that the final read gave back.
    pub read_back: u64,
    /// Acknowledged records neither read back nor lost: nobody read that far.
    pub unread: u64,
    pub history: History,
}

/// Judges one run. Feed it synchronously and in order; it never asks for anything.
#[derive(Debug)]
pub struct Judge {
    config: JudgeConfig,
    comparisons: Comparisons,
    findings: Findings,
    history: History,
}

impl Judge {
    pub fn new(config: JudgeConfig) -> Judge {
        Judge {
            config,
            comparisons: Comparisons::default(),
            findings: Findings::default(),
            history: History::default(),
        }
    }

    /// A machine of `node` stated a fact. `now` is the time of the run.
    pub fn on_observation(&mut self, _node: NodeId, _now: Time, _observation: &Observation) {}

    /// A file of `node` changed.
    pub fn on_disk(&mut self, _node: NodeId, _now: Time, _change: &DiskChange<'_>) {}

    /// A client began or ended something.
    pub fn on_client(&mut self, _now: Time, _event: &ClientEvent<'_>) {}

    /// A fault began or was healed.
    pub fn on_fault(&mut self, _now: Time, _event: &FaultEvent<'_>) {}

    /// What is wrong so far.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter()
    }

    /// Comparisons so far.
    pub fn comparisons(&self) -> &Comparisons {
        &self.comparisons
    }

    /// Validates logs, histories and liveness, and ends.
    pub fn finish(self, _now: Time, _state: &FinalState) -> Judgement {
        let _ = self.config;
        Judgement {
            findings: self.findings.into_vec(),
            comparisons: self.comparisons.iter().collect(),
            history: self.history,
            ..Judgement::default()
        }
    }
}
