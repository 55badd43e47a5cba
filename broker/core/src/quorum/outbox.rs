//! Keeps everything that leaves a node behind the state it depends on. While a `SaveState` is outstanding, later
//! messages and log writes wait in order; what needs no durable state passes. This gives an asynchronous disk the
//! order that Kafka has by writing `quorum-state` before it goes on. Observations of roles wait as well: a role that a
//! crash can undo without a trace was never taken.

use std::collections::VecDeque;

use super::effect::QuorumEffect;
use super::election_state::QuorumState;
use crate::observation::Observation;
use crate::types::Output;

#[derive(Debug)]
enum Held {
    /// Everything after it waits for this save.
    Save(u64),
    Effect(QuorumEffect),
    Observation(Observation),
}

/// The way out of a node.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    held: VecDeque<Held>,
    last_save: u64,
    /// The newest save that is known to be durable.
    saved: u64,
}

impl Outbox {
    /// Starts a save; what is sent from now on waits for it.
    pub fn save(&mut self, state: QuorumState, out: &mut Output<QuorumEffect>) {
        self.last_save += 1;
        self.held.push_back(Held::Save(self.last_save));
        out.effect(QuorumEffect::SaveState { save: self.last_save, state });
    }

    /// Gives out `effect` once every save before it is durable.
    pub fn send(&mut self, effect: QuorumEffect, out: &mut Output<QuorumEffect>) {
        if self.held.is_empty() { out.effect(effect) } else { self.held.push_back(Held::Effect(effect)) }
    }

    /// States `observation` once every save before it is durable.
    pub fn observe(&mut self, observation: Observation, out: &mut Output<QuorumEffect>) {
        if self.held.is_empty() {
            out.observe(observation);
        } else {
            self.held.push_back(Held::Observation(observation));
        }
    }

    /// `save` is durable, and with it all before: gives out what waited for no other.
    pub fn saved(&mut self, save: u64, out: &mut Output<QuorumEffect>) {
        assert!(
            save <= self.last_save,
            "state {save} reported saved, only {} were asked for",
            self.last_save
        );
        self.saved = self.saved.max(save);
        while let Some(first) = self.held.front() {
            if matches!(first, Held::Save(waited) if *waited > self.saved) {
                break;
            }
            match self.held.pop_front().expect("its front was just looked at") {
                Held::Save(_) => {}
                Held::Effect(effect) => out.effect(effect),
                Held::Observation(observation) => out.observe(observation),
            }
        }
        assert!(!self.held.is_empty() || self.saved == self.last_save);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(out: &mut Output<QuorumEffect>) -> Vec<String> {
        std::mem::take(&mut out.effects)
            .iter()
            .map(|effect| match effect {
                QuorumEffect::SaveState { save, .. } => format!("save {save}"),
                QuorumEffect::BecameLeader { epoch } => format!("message {epoch}"),
                other => panic!("unexpected {other:?}"),
            })
            .collect()
    }

    fn message(number: i32) -> QuorumEffect {
        QuorumEffect::BecameLeader { epoch: number }
    }

    #[test]
    fn messages_wait_for_the_saves_before_them_and_no_others() {
        let mut outbox = Outbox::default();
        let mut out = Output::default();
        outbox.send(message(0), &mut out);
        outbox.save(QuorumState::default(), &mut out);
        outbox.send(message(1), &mut out);
        outbox.save(QuorumState::default(), &mut out);
        outbox.send(message(2), &mut out);
        assert_eq!(names(&mut out), ["message 0", "save 1", "save 2"]);
        outbox.saved(1, &mut out);
        assert_eq!(names(&mut out), ["message 1"]);
        outbox.saved(2, &mut out);
        assert_eq!(names(&mut out), ["message 2"]);
        outbox.send(message(3), &mut out);
        assert_eq!(names(&mut out), ["message 3"]);
    }
}
