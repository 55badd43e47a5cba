//! S8 watermark monotonic. A leader's high watermark never falls while its process lives and its epoch lasts, and it
//! exposes no more than that. A follower's may fall at the first thing that its leader tells it (a new leader may know
//! less), where its log is cut, and once its leader's process began anew; else never. What was once exposed to a
//! consumer is exposed again as soon as a new leader's high watermark reaches the start of its epoch, unless a licence
//! took it. Between processes nothing is promised: a replica begins at its checkpoint.

use acked_core::NodeId;
use acked_reports::Outcome;

use super::case::{Court, PartitionCase};
use super::checks::Check;
use crate::names::node_name;

#[derive(Clone, Copy, Debug)]
struct LeaderMark {
    leader_epoch: i32,
    high_watermark: i64,
    epoch_start: i64,
}

/// A fall of a follower's high watermark that the next statement explains, or does not.
#[derive(Clone, Copy, Debug)]
struct Fall {
    from: i64,
    to: i64,
    /// It was told nothing yet in this epoch.
    is_first: bool,
}

#[derive(Clone, Copy, Debug)]
struct FollowerMark {
    leader_epoch: i32,
    leader: Option<NodeId>,
    told: bool,
    fall: Option<Fall>,
}

#[derive(Clone, Copy, Debug)]
enum Mark {
    Leader(LeaderMark),
    Follower(FollowerMark),
}

/// High watermarks of the replicas of one partition, as they were stated.
#[derive(Debug, Default)]
pub struct Watermarks {
    marks: Vec<(NodeId, Mark)>,
    /// The greatest that a consumer was told.
    exposed: i64,
}

impl Watermarks {
    fn get(&mut self, node: NodeId) -> Option<&mut Mark> {
        self.marks.iter_mut().find(|(known, _)| *known == node).map(|(_, mark)| mark)
    }

    fn set(&mut self, node: NodeId, mark: Mark) {
        match self.get(node) {
            Some(known) => *known = mark,
            None => self.marks.push((node, mark)),
        }
    }

    /// The process of a broker began or ended.
    pub fn node_started(&mut self, node: NodeId) {
        self.marks.retain(|(known, _)| *known != node);
        for (_, mark) in &mut self.marks {
            if let Mark::Follower(follower) = mark
                && follower.leader == Some(node)
            {
                follower.told = false;
            }
        }
    }

    pub fn became_leader(&mut self, node: NodeId, leader_epoch: i32, epoch_start: i64, high_watermark: i64) {
        self.set(node, Mark::Leader(LeaderMark { leader_epoch, high_watermark, epoch_start }));
    }
}

impl PartitionCase {
    pub fn follower_took_role(
        &mut self,
        node: NodeId,
        leader_epoch: i32,
        leader: Option<NodeId>,
        court: &mut Court<'_>,
    ) {
        self.follower_went_on(node, None, court);
        let mark = FollowerMark { leader_epoch, leader, told: false, fall: None };
        self.watermarks.set(node, Mark::Follower(mark));
    }

    /// A leader's high watermark moved.
    pub fn leader_watermark(&mut self, node: NodeId, leader_epoch: i32, to: i64, court: &mut Court<'_>) {
        court.reporter.compared(Check::S8, 1);
        let Some(Mark::Leader(mark)) = self.watermarks.get(node) else { return };
        if mark.leader_epoch != leader_epoch {
            return;
        }
        let before = std::mem::replace(&mut mark.high_watermark, to);
        let epoch_start = mark.epoch_start;
        if to < before {
            let place = self.place(node, leader_epoch, to);
            court.reporter.found(Check::S8, Outcome::None, place, || {
                format!(
                    "high watermark of leader {} fell from {before} to {to} in epoch {leader_epoch}",
                    node_name(node)
                )
            });
        }
        if to >= epoch_start && to < self.watermarks.exposed {
            self.check_exposed_again(node, leader_epoch, to, court);
        }
    }

    /// The leader's whole log is committed, and ends below what consumers were told once.
    fn check_exposed_again(&mut self, node: NodeId, leader_epoch: i32, to: i64, court: &mut Court<'_>) {
        let exposed = std::mem::replace(&mut self.watermarks.exposed, to);
        let owed = (to..exposed)
            .find(|offset| self.committed.get(*offset).is_some_and(|record| record.is_protected()));
        let Some(owed) = owed else { return };
        let place = self.place(node, leader_epoch, owed);
        court.reporter.found(Check::S8, Outcome::Lost, place, || {
            format!(
                "leader {} of epoch {leader_epoch} exposes offsets below {to}, and {exposed} was exposed before; \
                 nothing permits to take back {owed}",
                node_name(node)
            )
        });
    }

    /// A consumer was told a high watermark.
    pub fn exposed(&mut self, node: NodeId, leader_epoch: i32, high_watermark: i64, court: &mut Court<'_>) {
        court.reporter.compared(Check::S8, 1);
        self.watermarks.exposed = self.watermarks.exposed.max(high_watermark);
        let Some(Mark::Leader(mark)) = self.watermarks.get(node).copied() else { return };
        if mark.leader_epoch != leader_epoch || high_watermark <= mark.high_watermark {
            return;
        }
        let place = self.place(node, leader_epoch, high_watermark);
        court.reporter.found(Check::S8, Outcome::None, place, || {
            format!(
                "leader {} of epoch {leader_epoch} told a consumer high watermark {high_watermark}, and has {}",
                node_name(node),
                mark.high_watermark
            )
        });
    }

    /// A follower's high watermark moved.
    pub fn follower_watermark(&mut self, node: NodeId, from: i64, to: i64, court: &mut Court<'_>) {
        court.reporter.compared(Check::S8, 1);
        self.follower_went_on(node, None, court);
        if let Some(Mark::Follower(mark)) = self.watermarks.get(node) {
            let leader_epoch = mark.leader_epoch;
            self.match_below(node, leader_epoch, to, court);
        }
        let Some(Mark::Follower(mark)) = self.watermarks.get(node) else { return };
        if to < from {
            mark.fall = Some(Fall { from, to, is_first: !mark.told });
        } else {
            mark.told = true;
        }
    }

    /// A follower stated something else; `cut_to` is the end of its log when it was cut.
    pub fn follower_went_on(&mut self, node: NodeId, cut_to: Option<i64>, court: &mut Court<'_>) {
        let Some(Mark::Follower(mark)) = self.watermarks.get(node) else { return };
        let Some(fall) = mark.fall.take() else { return };
        if cut_to == Some(fall.to) {
            return;
        }
        mark.told = true;
        if fall.is_first {
            return;
        }
        let leader_epoch = mark.leader_epoch;
        let place = self.place(node, leader_epoch, fall.to);
        court.reporter.found(Check::S8, Outcome::None, place, || {
            format!(
                "high watermark of follower {} fell from {} to {} in epoch {leader_epoch}, and its log was not cut",
                node_name(node),
                fall.from,
                fall.to
            )
        });
    }
}
