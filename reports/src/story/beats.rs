//! The few moments that tell what happened, each in one sentence: faults, the in-sync set at its smallest, the life of a
//! lost record, elections, findings. Everything else is in the list of all that changed.

use std::collections::BTreeMap;

use super::faults::faults;
use super::life::{Turn, life_of};
use super::{Change, Moment};
use crate::render::words::seconds;
use crate::result::{Contract, LostRange, SeedResult};

/// More sentences are a log again.
pub const BEATS_MAX: usize = 9;

/// One sentence, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beat {
    pub t_us: u64,
    pub text: String,
    /// Smaller stays when there are too many.
    rank: u8,
}

/// What happened to the partition, in order.
pub fn beats(result: &SeedResult, moments: &[Moment], partition: &str) -> Vec<Beat> {
    let lost = result.lost.iter().filter(|range| format!("{}-{}", range.topic, range.partition) == partition);
    let lost = lost.max_by_key(|range| range.contract);
    let mut beats = Vec::new();
    of_faults(moments, &mut beats);
    let acked_us = match lost {
        Some(range) => of_the_lost(moments, partition, range, &mut beats),
        None => None,
    };
    of_the_isr(moments, partition, acked_us, &mut beats);
    of_elections(moments, partition, lost.is_some(), &mut beats);
    for finding in result.findings.iter().filter(|finding| finding.contract == Contract::Broken).take(2) {
        let text = format!("{} is violated: {}", finding.invariant, finding.text);
        beats.push(Beat { t_us: finding.time_us, text, rank: 0 });
    }
    beats.sort_by_key(|beat| beat.t_us);
    while beats.len() > BEATS_MAX {
        let (least, _) = beats
            .iter()
            .enumerate()
            .max_by_key(|(index, beat)| (beat.rank, *index))
            .expect("there are too many");
        beats.remove(least);
    }
    beats
}

fn of_faults(moments: &[Moment], beats: &mut Vec<Beat>) {
    for fault in faults(moments) {
        // What one fault does at one time is one sentence.
        let mut strikes: BTreeMap<u64, (Vec<&str>, bool, Option<u64>)> = BTreeMap::new();
        for span in &fault.spans {
            let strike = strikes.entry(span.from_us).or_insert((Vec::new(), span.takes_down, span.to_us));
            for node in &span.nodes {
                if !strike.0.contains(&node.as_str()) {
                    strike.0.push(node);
                }
            }
        }
        for (number, (t_us, (mut nodes, takes_down, to_us))) in strikes.into_iter().enumerate() {
            nodes.sort_unstable();
            let until = to_us.map(|to_us| format!(" until {} s", seconds(to_us))).unwrap_or_default();
            let does = if takes_down { "takes down" } else { "hits" };
            let whom = if nodes.is_empty() { String::new() } else { format!(" {does} {}", joined(&nodes)) };
            let text = format!("Fault {} ({}){whom}{until}.", fault.id, fault.kind);
            beats.push(Beat { t_us, text, rank: if number == 0 { 1 } else { 4 } });
        }
    }
}

/// Says what became of the first lost record; gives the time when it was acknowledged.
fn of_the_lost(moments: &[Moment], partition: &str, range: &LostRange, beats: &mut Vec<Beat>) -> Option<u64> {
    let life = life_of(moments, partition, range);
    let offset = range.from;
    let acked = life.iter().find(|step| step.turn == Turn::Acknowledged).map(|step| step.t_us);
    let appended = life.iter().find(|step| step.turn == Turn::Appended);
    if let Some(step) = appended {
        let text = format!("{} It is offset {offset} of {partition}.", step.text);
        let text = text.replacen(" it in", " a record in", 1);
        beats.push(Beat { t_us: step.t_us, text, rank: 2 });
    }
    for step in &life {
        let (text, rank) = match step.turn {
            Turn::Appended | Turn::Committed => continue,
            Turn::Acknowledged => {
                let text = step.text.replacen(" it;", &format!(" offset {offset} to the producer;"), 1);
                (format!("{}.", text), 0)
            }
            Turn::PassedOver => (format!("{}: from here it is lost to every reader.", step.text), 0),
            Turn::Cut => {
                let all = if range.count > 1 {
                    format!(", one of {} acknowledged records that are gone", range.count)
                } else {
                    String::new()
                };
                (format!("{}{all}.", step.text), 1)
            }
            Turn::NotFound => (format!("{}.", step.text), 1),
        };
        beats.push(Beat { t_us: step.t_us, text, rank });
    }
    acked
}

/// The in-sync set at its smallest, before the record was acknowledged if one was lost.
fn of_the_isr(moments: &[Moment], partition: &str, before_us: Option<u64>, beats: &mut Vec<Beat>) {
    let decided =
        moments.iter().filter(|moment| moment.is_of(partition)).filter_map(|moment| match &moment.change {
            Change::Decided { isr, leader: Some(_), .. } => Some((moment.t_us, isr)),
            _ => None,
        });
    let decided: Vec<(u64, &Vec<String>)> =
        decided.filter(|(t_us, _)| before_us.is_none_or(|before| *t_us <= before)).collect();
    let Some(first) = decided.first().map(|(_, isr)| isr.len()) else { return };
    // The shrink that led there: of equals the first after the set was larger.
    let smallest = decided.iter().map(|(_, isr)| isr.len()).min().unwrap_or(first);
    if smallest == first {
        return;
    }
    let at = decided.iter().rposition(|(_, isr)| isr.len() > smallest);
    if let Some((t_us, isr)) = at.and_then(|at| decided.get(at + 1)) {
        let members: Vec<&str> = isr.iter().map(String::as_str).collect();
        let copies = match members.len() {
            1 => "one copy".to_string(),
            copies => format!("{copies} copies"),
        };
        let text = format!(
            "The in-sync set of {partition} shrinks to {{{}}}: from here acks=all means {copies}.",
            members.join(" ")
        );
        beats.push(Beat { t_us: *t_us, text, rank: 0 });
    }
}

/// Who was elected, where the life of a lost record does not say it already.
fn of_elections(moments: &[Moment], partition: &str, told: bool, beats: &mut Vec<Beat>) {
    let mut leads: Option<&str> = None;
    for moment in moments.iter().filter(|moment| moment.is_of(partition)) {
        if let Change::Decided { leader: Some(leader), leader_epoch, isr } = &moment.change {
            let changed = leads.is_some_and(|leads| leads != leader);
            leads = Some(leader);
            if changed {
                let members = isr.join(" ");
                let how =
                    if moment.text.contains("unclean") { ", outside the in-sync set (unclean)" } else { "" };
                let text = format!(
                    "{} is elected for {partition}, epoch {leader_epoch}{how}; in sync are {{{members}}}.",
                    leader
                );
                let clean = how.is_empty();
                beats.push(Beat { t_us: moment.t_us, text, rank: if told && clean { 3 } else { 1 } });
            }
        }
    }
}

fn joined(names: &[&str]) -> String {
    match names.split_last() {
        Some((last, [])) => (*last).to_string(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::life::tests::story;
    use super::*;

    #[test]
    fn the_beats_tell_shrink_ack_crash_election_and_cut_in_order() {
        let (result, moments) = story();
        let beats = beats(&result, &moments, "orders-0");
        assert!(beats.is_sorted_by_key(|beat| beat.t_us));
        let text: Vec<&str> = beats.iter().map(|beat| beat.text.as_str()).collect();
        let text = text.join("\n");
        for (earlier, later) in [
            ("shrinks to {b1}", "b1 acknowledges offset 7"),
            ("b1 acknowledges offset 7", "Fault dark (crash) takes down b1"),
            ("takes down b1 until 30.000 s", "b2 leads epoch 2 and does not have it"),
            ("does not have it", "b1 cuts it"),
        ] {
            let place = |word: &str| text.find(word).unwrap_or_else(|| panic!("{word}: {text}"));
            assert!(place(earlier) < place(later), "{text}");
        }
    }

    #[test]
    fn a_long_story_keeps_what_matters() {
        let (result, mut moments) = story();
        let strikes = (0..30).map(|second| {
            let change =
                Change::FaultBegan { kind: "pause".into(), nodes: vec!["b2".into()], takes_down: false };
            super::super::life::tests::moment(second, "fault", "again", change)
        });
        moments.extend(strikes);
        moments.sort_by_key(|moment| moment.t_us);
        let beats = beats(&result, &moments, "orders-0");
        assert_eq!(beats.len(), BEATS_MAX);
        assert!(beats.iter().any(|beat| beat.text.contains("does not have it")));
    }

    #[test]
    fn no_story_has_no_beats() {
        let (mut result, _) = story();
        result.lost.clear();
        assert_eq!(beats(&result, &[], ""), []);
    }
}
