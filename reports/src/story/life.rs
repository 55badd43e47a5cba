//! What became of one record, as far as nodes told.

use std::collections::{BTreeMap, BTreeSet};

use super::{Change, Moment};
use crate::result::LostRange;

/// One step in the life of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub t_us: u64,
    pub turn: Turn,
    pub text: String,
}

/// What a step did to the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    Appended,
    Acknowledged,
    Committed,
    /// Somebody leads who does not have it.
    PassedOver,
    Cut,
    /// A log came back without it.
    NotFound,
}

impl Turn {
    /// One letter for a strip of text.
    pub fn sign(self) -> char {
        match self {
            Turn::Appended => '>',
            Turn::Acknowledged => 'k',
            Turn::Committed => 'c',
            Turn::PassedOver => 'X',
            Turn::Cut => '%',
            Turn::NotFound => '?',
        }
    }
}

/// What became of the first record of the range, as far as nodes told. Another record may take its offset in a later
/// epoch: whoever has that one does not have this one.
pub fn life_of(moments: &[Moment], partition: &str, range: &LostRange) -> Vec<Step> {
    let here = || moments.iter().filter(|moment| moment.is_of(partition));
    let offset = range.from;
    let known = (range.leader_epoch >= 0).then_some(range.leader_epoch);
    let acknowledged_in = || {
        here().find_map(|moment| match moment.change {
            Change::Acked { leader_epoch, first, last } if first <= offset && offset <= last => {
                Some(leader_epoch)
            }
            _ => None,
        })
    };
    let Some(epoch) = known.or_else(acknowledged_in) else { return Vec::new() };
    let mut steps = Vec::new();
    let mut holders: BTreeSet<&str> = BTreeSet::new();
    let (mut appended, mut acked, mut committed) = (false, false, false);
    let mut leader_now: Option<&str> = None;
    let mut leaders: BTreeMap<i32, &str> = BTreeMap::new();
    for moment in here() {
        let who = moment.who.as_str();
        let mut step = |turn, text: String| steps.push(Step { t_us: moment.t_us, turn, text });
        match &moment.change {
            Change::Appended { leader_epoch, first, last } if *first <= offset && offset <= *last => {
                // In a later epoch a follower gets it from a leader that has it.
                let from_a_holder = || {
                    let leader = leaders.get(leader_epoch);
                    leader.is_some_and(|leader| *leader != who && holders.contains(leader))
                };
                let is_it = *leader_epoch == epoch || (*leader_epoch > epoch && from_a_holder());
                if is_it && holders.insert(who) {
                    appended = true;
                    step(Turn::Appended, format!("{who} appends it in epoch {leader_epoch}"));
                }
            }
            Change::Acked { leader_epoch, first, last }
                if *first <= offset
                    && offset <= *last
                    && (*leader_epoch == epoch || holders.contains(who))
                    && !acked =>
            {
                acked = true;
                let copies = match holders.iter().copied().collect::<Vec<_>>().join(" ") {
                    none if none.is_empty() => "nobody has it".to_string(),
                    copies => format!("{{{copies}}} have it"),
                };
                step(Turn::Acknowledged, format!("{who} acknowledges it; {copies}"));
            }
            Change::HighWatermark { to } if *to > offset && !committed && holders.contains(who) => {
                committed = true;
                step(Turn::Committed, format!("{who} counts it as committed"));
            }
            Change::Truncated { from, to } if *to <= offset && offset < *from => {
                let had = holders.remove(who);
                if had {
                    step(Turn::Cut, format!("{who} cuts it: {}", moment.text));
                }
            }
            Change::Recovered { log_end_offset } if *log_end_offset <= offset => {
                let had = holders.remove(who);
                if had {
                    step(Turn::NotFound, format!("{who} does not find it again: {}", moment.text));
                }
            }
            Change::Decided { leader: Some(leader), leader_epoch, .. } => {
                let changed = leader_now != Some(leader.as_str());
                leader_now = Some(leader);
                leaders.insert(*leader_epoch, leader);
                if (appended || acked) && changed && !holders.contains(leader.as_str()) {
                    step(
                        Turn::PassedOver,
                        format!("{leader} leads epoch {leader_epoch} and does not have it"),
                    );
                }
            }
            _ => {}
        }
    }
    steps
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::render::timeline::{Canvas, draw};
    use crate::result::{Contract, Outcome, SeedResult, Verdict};

    pub fn moment(t_s: u64, kind: &'static str, who: &str, change: Change) -> Moment {
        Moment {
            t_us: t_s * 1_000_000,
            kind: kind.into(),
            who: who.into(),
            partition: (kind != "fault" && kind != "node").then(|| "orders-0".into()),
            text: format!("{kind} told"),
            change,
        }
    }

    pub fn decided(t_s: u64, leader: Option<&str>, leader_epoch: i32, isr: &[&str]) -> Moment {
        let isr = isr.iter().map(|name| name.to_string()).collect();
        moment(t_s, "isr", "c1", Change::Decided { leader: leader.map(str::to_string), leader_epoch, isr })
    }

    /// b1 leads, falls alone, acknowledges offset 7 alone, dies; b2 leads without it; b1 is back and cuts.
    pub fn story() -> (SeedResult, Vec<Moment>) {
        let crash = Change::FaultBegan { kind: "crash".into(), nodes: vec!["b1".into()], takes_down: true };
        let moments = vec![
            moment(0, "node", "b1", Change::Started),
            moment(0, "node", "b2", Change::Started),
            decided(1, Some("b1"), 0, &["b1", "b2"]),
            moment(5, "high-watermark", "b1", Change::HighWatermark { to: 7 }),
            decided(10, Some("b1"), 0, &["b1"]),
            moment(12, "appended", "b1", Change::Appended { leader_epoch: 0, first: 7, last: 7 }),
            moment(12, "high-watermark", "b1", Change::HighWatermark { to: 8 }),
            moment(12, "acked", "b1", Change::Acked { leader_epoch: 0, first: 7, last: 7 }),
            moment(20, "fault", "dark", crash),
            decided(24, None, 1, &["b1"]),
            decided(25, Some("b2"), 2, &["b2"]),
            moment(30, "fault", "dark", Change::FaultEnded),
            moment(30, "node", "b1", Change::Started),
            moment(31, "truncated", "b1", Change::Truncated { from: 8, to: 7 }),
            decided(35, Some("b2"), 2, &["b2", "b1"]),
            moment(40, "node", "b1", Change::Told),
        ];
        let result = SeedResult {
            scenario: "unclean-election".into(),
            configuration: "default".into(),
            seed: 7,
            token: "AK1.x".into(),
            verdict: Verdict::Pass,
            outcome: Outcome::Lost,
            contract: Contract::Kept,
            reason: None,
            findings: Vec::new(),
            lost: vec![LostRange {
                topic: "orders".into(),
                partition: 0,
                leader_epoch: 0,
                from: 7,
                to: 7,
                count: 1,
                acks: -1,
                contract: Contract::Kept,
                rule: "rule 3: unclean election (dark)".into(),
            }],
            lost_total: 1,
            sent: 8,
            acked: 8,
            indeterminate: 0,
            refused: 0,
            read_back: 7,
            faults: Vec::new(),
            comparisons: BTreeMap::new(),
            events: 0,
            virtual_us: 40_000_000,
            hash: String::new(),
        };
        (result, moments)
    }

    /// Offset 7 is b1's of epoch 0, which b1 alone ever had; the one that b2 wrote there in epoch 1 survived.
    #[test]
    fn the_life_is_that_of_the_lost_record_and_not_of_the_one_that_took_its_offset() {
        let (mut result, _) = story();
        let at_seven = |leader_epoch| Change::Appended { leader_epoch, first: 7, last: 7 };
        let acked = |leader_epoch| Change::Acked { leader_epoch, first: 7, last: 7 };
        let moments = [
            decided(1, Some("b1"), 0, &["b1", "b2", "b3"]),
            moment(9, "appended", "b1", at_seven(0)),
            decided(18, Some("b2"), 1, &["b2", "b3"]),
            moment(26, "appended", "b2", at_seven(1)),
            moment(26, "appended", "b3", at_seven(1)),
            moment(27, "high-watermark", "b2", Change::HighWatermark { to: 8 }),
            moment(27, "acked", "b2", acked(1)),
            moment(33, "truncated", "b1", Change::Truncated { from: 8, to: 7 }),
            moment(34, "appended", "b1", at_seven(1)),
            moment(35, "acked", "b1", acked(0)),
        ];
        let life = |result: &SeedResult| -> Vec<(u64, char)> {
            let steps = life_of(&moments, "orders-0", &result.lost[0]);
            steps.iter().map(|step| (step.t_us / 1_000_000, step.turn.sign())).collect()
        };
        assert_eq!(life(&result), [(9, '>'), (18, 'X'), (33, '%'), (35, 'k')]);
        let canvas = Canvas { width: 80, ascii: true, everything: false };
        let text = draw(&result, &moments, None, canvas);
        assert!(text.contains("b1 acknowledges it; nobody has it"), "{text}");

        result.lost[0].leader_epoch = -1;
        assert_eq!(life(&result)[0], (26, '>'), "unless nobody knows which one it was");
    }

    /// b1 writes it in epoch 0; b2, which has it, leads epoch 1 and gives it to b3.
    #[test]
    fn a_follower_gets_it_in_a_later_epoch_from_a_leader_that_has_it() {
        let (result, _) = story();
        let appended = |leader_epoch, last| Change::Appended { leader_epoch, first: 7, last };
        let moments = [
            decided(1, Some("b1"), 0, &["b1", "b2"]),
            moment(2, "appended", "b1", appended(0, 7)),
            moment(2, "appended", "b2", appended(0, 7)),
            decided(3, Some("b2"), 1, &["b2"]),
            moment(4, "appended", "b3", appended(1, 9)),
            moment(5, "acked", "b2", Change::Acked { leader_epoch: 1, first: 7, last: 7 }),
        ];
        let steps = life_of(&moments, "orders-0", &result.lost[0]);
        let told: Vec<&str> = steps.iter().map(|step| step.text.as_str()).collect();
        assert_eq!(told[2..], ["b3 appends it in epoch 1", "b2 acknowledges it; {b1 b2 b3} have it"]);
    }
}
