//! What a broker is to the partition as time goes by: leader, in sync, out of sync, catching up, down.

use std::collections::BTreeMap;

use super::{Change, Moment, is_broker};

/// What a broker is to the partition at one time, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    Down,
    Leader,
    InSync,
    /// It started and was not in sync since.
    CatchingUp,
    OutOfSync,
}

impl Place {
    pub fn word(self) -> &'static str {
        match self {
            Place::Down => "down",
            Place::Leader => "leader",
            Place::InSync => "in sync",
            Place::CatchingUp => "catching up",
            Place::OutOfSync => "out of sync",
        }
    }
}

/// What happened to a broker at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A fault took it down.
    Crash,
    Restart,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Standing {
    up: bool,
    was_up: bool,
    leads: bool,
    in_sync: bool,
    catching_up: bool,
}

impl Standing {
    fn place(self) -> Place {
        match self {
            Standing { up: false, .. } => Place::Down,
            Standing { leads: true, .. } => Place::Leader,
            Standing { in_sync: true, .. } => Place::InSync,
            Standing { catching_up: true, .. } => Place::CatchingUp,
            _ => Place::OutOfSync,
        }
    }

    fn goes_down(&mut self) {
        *self = Standing { in_sync: self.in_sync, was_up: self.was_up, ..Standing::default() };
    }
}

/// All brokers, moment by moment.
#[derive(Debug)]
pub struct Standings<'a> {
    partition: &'a str,
    brokers: BTreeMap<&'a str, Standing>,
}

impl<'a> Standings<'a> {
    /// Every broker that ever started, down.
    pub fn new(moments: &'a [Moment], partition: &'a str) -> Standings<'a> {
        let started = moments
            .iter()
            .filter(|moment| matches!(moment.change, Change::Started) && is_broker(&moment.who))
            .map(|moment| (moment.who.as_str(), Standing::default()));
        Standings { partition, brokers: started.collect() }
    }

    /// Goes one moment further; returns what is to be marked.
    pub fn apply(&mut self, moment: &'a Moment) -> Vec<(&'a str, Mark)> {
        let mut marks = Vec::new();
        match &moment.change {
            Change::FaultBegan { nodes, takes_down: true, .. } => {
                for (name, standing) in &mut self.brokers {
                    if nodes.iter().any(|node| node == name) {
                        standing.goes_down();
                        marks.push((*name, Mark::Crash));
                    }
                }
            }
            Change::Started => {
                if let Some((name, standing)) = self.named(&moment.who) {
                    if standing.was_up && !standing.up {
                        marks.push((name, Mark::Restart));
                    }
                    *standing = Standing { up: true, was_up: true, catching_up: true, ..*standing };
                }
            }
            Change::Stopped => {
                if let Some((_, standing)) = self.named(&moment.who) {
                    standing.goes_down();
                }
            }
            Change::Decided { leader, isr, .. } if moment.is_of(self.partition) => {
                for (name, standing) in &mut self.brokers {
                    standing.leads = leader.as_deref() == Some(*name);
                    standing.in_sync = isr.iter().any(|member| member == name);
                    standing.catching_up &= !standing.in_sync;
                }
            }
            _ => {}
        }
        marks
    }

    fn named(&mut self, name: &str) -> Option<(&'a str, &mut Standing)> {
        self.brokers.iter_mut().find(|(known, _)| **known == name).map(|(known, standing)| (*known, standing))
    }

    /// Every broker's place now, by name.
    pub fn places(&self) -> impl Iterator<Item = (&'a str, Place)> {
        self.brokers.iter().map(|(name, standing)| (*name, standing.place()))
    }
}

/// One broker from the beginning to the end of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lane {
    pub broker: String,
    /// Neighbouring spans differ; the first begins at 0 and the last ends with the run.
    pub spans: Vec<LaneSpan>,
    pub marks: Vec<(u64, Mark)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneSpan {
    pub from_us: u64,
    pub to_us: u64,
    pub place: Place,
    /// Of the reign, while it leads.
    pub leader_epoch: Option<i32>,
}

/// A lane for every broker.
pub fn lanes(moments: &[Moment], partition: &str, end_us: u64) -> Vec<Lane> {
    let mut standings = Standings::new(moments, partition);
    let mut lanes: BTreeMap<&str, Lane> = standings
        .places()
        .map(|(name, _)| (name, Lane { broker: name.to_string(), ..Lane::default() }))
        .collect();
    let mut leader_epoch = None;
    let mut note = |standings: &Standings<'_>, t_us: u64, epoch: Option<i32>, marks: Vec<(&str, Mark)>| {
        for (name, place) in standings.places() {
            let lane = lanes.get_mut(name).expect("every broker has a lane");
            let leader_epoch = epoch.filter(|_| place == Place::Leader);
            match lane.spans.last_mut() {
                Some(last) if (last.place, last.leader_epoch) == (place, leader_epoch) => {}
                // What is over at once is not drawn.
                Some(last) if last.from_us == t_us => (last.place, last.leader_epoch) = (place, leader_epoch),
                _ => lane.spans.push(LaneSpan { from_us: t_us, to_us: t_us, place, leader_epoch }),
            }
        }
        for (name, mark) in marks {
            lanes.get_mut(name).expect("every broker has a lane").marks.push((t_us, mark));
        }
    };
    note(&standings, 0, None, Vec::new());
    for moment in moments {
        let marks = standings.apply(moment);
        if let Change::Decided { leader_epoch: epoch, .. } = moment.change
            && moment.is_of(partition)
        {
            leader_epoch = Some(epoch);
        }
        note(&standings, moment.t_us, leader_epoch, marks);
    }
    let mut lanes: Vec<Lane> = lanes.into_values().collect();
    for lane in &mut lanes {
        lane.spans.dedup_by(|later, earlier| {
            (later.place, later.leader_epoch) == (earlier.place, earlier.leader_epoch)
        });
        let starts: Vec<u64> = lane.spans.iter().skip(1).map(|span| span.from_us).chain([end_us]).collect();
        for (span, to_us) in lane.spans.iter_mut().zip(starts) {
            span.to_us = to_us.max(span.from_us);
        }
    }
    lanes
}

#[cfg(test)]
mod tests {
    use super::super::life::tests::story;
    use super::*;

    #[test]
    fn a_lane_has_every_place_once_in_turn_and_no_gap() {
        let (_, moments) = story();
        let lanes = lanes(&moments, "orders-0", 40_000_000);
        let words =
            |lane: &Lane| -> Vec<&'static str> { lane.spans.iter().map(|span| span.place.word()).collect() };
        assert_eq!(words(&lanes[0]), ["catching up", "leader", "down", "catching up", "in sync"]);
        assert_eq!(words(&lanes[1]), ["catching up", "in sync", "out of sync", "leader"]);
        assert_eq!(lanes[1].spans[3].leader_epoch, Some(2));
        let marks: Vec<Mark> = lanes[0].marks.iter().map(|(_, mark)| *mark).collect();
        assert_eq!(marks, [Mark::Crash, Mark::Restart]);
        for lane in &lanes {
            assert_eq!(
                (lane.spans[0].from_us, lane.spans.last().map(|span| span.to_us)),
                (0, Some(40_000_000))
            );
            assert!(lane.spans.windows(2).all(|pair| pair[0].to_us == pair[1].from_us), "{lane:?}");
        }
    }
}
