//! What only a leader knows: where its followers are, which ISR change is pending, where its epoch starts.
//! Decides how far the high watermark may go and who has to leave or may join. Does not send anything.
//!
//! | a follower's position | becomes |
//! |---|---|
//! | unknown | known by its first accepted fetch in this leader epoch |
//! | known | replaced by each accepted fetch; unknown again on every new leader epoch |
//!
//! Source: kafka-rules 1.1, 1.4, 2, 3; KIP-497.

use crate::rules::{IsrExpansion, IsrShrink, PositionsOnNewEpoch, Rules};
use crate::types::{NodeId, Time};

/// A follower as its fetches show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::replica) struct Position {
    pub follower: NodeId,
    /// Its log end offset; `None` until it fetched in this leader epoch.
    pub log_end_offset: Option<i64>,
    /// Of its last fetch.
    pub broker_epoch: Option<i64>,
    last_fetch: Option<LastFetch>,
    caught_up: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LastFetch {
    at: Time,
    leader_end: i64,
}

/// A proposed ISR that the controller has not answered to the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::replica) struct IsrChange {
    /// The whole proposed ISR, with the broker epoch each member was judged by (-1 unknown).
    pub proposed: Vec<(NodeId, i64)>,
    /// The partition epoch that it builds on.
    pub partition_epoch: i32,
}

impl IsrChange {
    fn proposes(&self, node: NodeId) -> bool {
        self.proposed.iter().any(|(member, _)| *member == node)
    }
}

/// A leader's own state, of one leader epoch.
#[derive(Debug)]
pub(in crate::replica) struct Leading {
    /// LESO: where the log ended when this epoch began.
    pub epoch_start_offset: i64,
    pub change: Option<IsrChange>,
    /// In order of node id; every assigned replica but the leader itself.
    positions: Vec<Position>,
}

impl Leading {
    pub fn new(epoch_start_offset: i64) -> Leading {
        Leading { epoch_start_offset, change: None, positions: Vec::new() }
    }

    /// Takes the positions over from the leadership before, as the rule says.
    pub fn keep_positions(&mut self, rule: PositionsOnNewEpoch, before: Option<Leading>) {
        match (rule, before) {
            (PositionsOnNewEpoch::KeepWhenStillLeader, Some(before)) => self.positions = before.positions,
            (PositionsOnNewEpoch::KeepWhenStillLeader, None) | (PositionsOnNewEpoch::Forget, _) => {}
        }
    }

    /// Gives every follower a position, and none to anybody else. A new position counts as caught up now when its
    /// follower is in sync: it has the whole lag time to show itself.
    pub fn cover(&mut self, leader: NodeId, replicas: &[NodeId], isr: &[NodeId], now: Time) {
        self.positions.retain(|position| replicas.contains(&position.follower));
        for follower in replicas.iter().copied().filter(|replica| *replica != leader) {
            if let Err(place) = self.positions.binary_search_by_key(&follower, |position| position.follower) {
                let caught_up = isr.contains(&follower).then_some(now);
                let fresh = Position {
                    follower,
                    log_end_offset: None,
                    broker_epoch: None,
                    last_fetch: None,
                    caught_up,
                };
                self.positions.insert(place, fresh);
            }
        }
    }

    pub fn position(&self, follower: NodeId) -> Option<&Position> {
        let place = self.positions.binary_search_by_key(&follower, |position| position.follower).ok()?;
        Some(&self.positions[place])
    }

    /// An accepted fetch of `follower` at `offset`; `leader_end` is the leader's end before it reads for it.
    pub fn record_fetch(
        &mut self,
        follower: NodeId,
        offset: i64,
        broker_epoch: i64,
        leader_end: i64,
        now: Time,
    ) {
        let place = self
            .positions
            .binary_search_by_key(&follower, |position| position.follower)
            .expect("only assigned replicas reach this point");
        let position = &mut self.positions[place];
        if offset >= leader_end {
            position.caught_up = position.caught_up.max(Some(now));
        } else if let Some(last) = position.last_fetch.filter(|last| offset >= last.leader_end) {
            position.caught_up = position.caught_up.max(Some(last.at));
        }
        position.log_end_offset = Some(offset);
        position.broker_epoch = (broker_epoch >= 0).then_some(broker_epoch);
        position.last_fetch = Some(LastFetch { at: now, leader_end });
    }

    /// The replicas that count now: the committed ISR and proposed additions. A proposed removal goes on counting
    /// until it is committed, unless the rules say otherwise.
    pub fn maximal_isr<'a>(&'a self, rules: &Rules, isr: &'a [NodeId]) -> impl Iterator<Item = NodeId> + 'a {
        let kept = self.committed_isr(rules, isr);
        let change = self.change.as_ref().filter(|_| counts_additions(rules.isr_expansion));
        let added = change
            .map_or(&[][..], |change| &change.proposed)
            .iter()
            .map(|(member, _)| *member)
            .filter(move |member| !isr.contains(member));
        kept.chain(added)
    }

    /// The committed ISR, or what the rules take for it.
    pub fn committed_isr<'a>(
        &'a self,
        rules: &Rules,
        isr: &'a [NodeId],
    ) -> impl Iterator<Item = NodeId> + 'a {
        let (rule, change) = (rules.isr_shrink, self.change.as_ref());
        isr.iter().copied().filter(move |member| still_counts(rule, change, *member))
    }

    /// How far the high watermark may go: the smallest end of everybody who counts; `None` while one is unknown or
    /// too few are in sync.
    pub fn committable(
        &self,
        rules: &Rules,
        isr: &[NodeId],
        leader: NodeId,
        leader_end: i64,
        min_insync: usize,
    ) -> Option<i64> {
        if self.committed_isr(rules, isr).count() < min_insync {
            return None;
        }
        let mut end = leader_end;
        for member in self.maximal_isr(rules, isr).filter(|member| *member != leader) {
            end = end.min(self.position(member)?.log_end_offset?);
        }
        Some(end)
    }

    /// In-sync followers that are behind and were not caught up for longer than `lag_max`.
    pub fn lagging(&self, isr: &[NodeId], leader_end: i64, lag_max: Time, now: Time) -> Vec<NodeId> {
        let is_lagging = |position: &&Position| {
            isr.contains(&position.follower)
                && position.log_end_offset != Some(leader_end)
                && position.caught_up.is_none_or(|at| now.saturating_sub(at) > lag_max)
        };
        self.positions.iter().filter(is_lagging).map(|position| position.follower).collect()
    }

    /// The broker epoch by which a member is proposed: that of its last fetch, -1 when it has not fetched yet.
    pub fn judged_epoch(&self, member: NodeId) -> i64 {
        self.position(member).and_then(|position| position.broker_epoch).unwrap_or(-1)
    }
}

/// Rule seam: whether a member of the committed ISR counts although its removal is proposed.
fn still_counts(rule: IsrShrink, change: Option<&IsrChange>, member: NodeId) -> bool {
    match rule {
        IsrShrink::WhenCommitted => true,
        IsrShrink::WhenProposed => change.is_none_or(|change| change.proposes(member)),
    }
}

/// Rule seam: whether proposed additions count before they are committed.
fn counts_additions(rule: IsrExpansion) -> bool {
    match rule {
        IsrExpansion::WhenProposed => true,
        IsrExpansion::WhenCommitted => false,
    }
}
