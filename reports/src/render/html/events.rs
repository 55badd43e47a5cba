//! What the page's search looks through: appends, acknowledgements, cuts, recoveries and reigns of the partition, by
//! columns, as JSON in a block that no browser runs. Bounded; what is left out is said in the limits of the page.

use std::collections::BTreeMap;

use maud::{Markup, PreEscaped, html};
use serde::Serialize;

use super::Story;
use crate::story::{Change, Moment};

/// Events in the page.
pub const EVENTS_MAX: usize = 50_000;

/// Columns: times are differences, `kind` is a letter an event.
#[derive(Default, Serialize)]
struct Columns<'a> {
    names: Vec<&'a str>,
    t: Vec<u64>,
    kind: String,
    who: Vec<usize>,
    a: Vec<i64>,
    b: Vec<i64>,
    epoch: Vec<i32>,
}

/// How many events the search could look through.
pub fn total(story: &Story<'_>) -> usize {
    relevant(story).count()
}

fn relevant<'a>(story: &'a Story<'_>) -> impl Iterator<Item = (&'a Moment, Event<'a>)> {
    story
        .moments
        .iter()
        .filter(|moment| moment.is_of(&story.partition))
        .filter_map(|moment| event(moment).map(|event| (moment, event)))
}

struct Event<'a> {
    kind: char,
    who: &'a str,
    a: i64,
    b: i64,
    leader_epoch: i32,
}

fn event(moment: &Moment) -> Option<Event<'_>> {
    let who = moment.who.as_str();
    Some(match &moment.change {
        Change::Appended { leader_epoch, first, last } => {
            Event { kind: 'a', who, a: *first, b: *last, leader_epoch: *leader_epoch }
        }
        Change::Acked { leader_epoch, first, last } => {
            Event { kind: 'k', who, a: *first, b: *last, leader_epoch: *leader_epoch }
        }
        Change::Truncated { from, to } => Event { kind: 't', who, a: *from, b: *to, leader_epoch: 0 },
        Change::Recovered { log_end_offset } => {
            Event { kind: 'r', who, a: *log_end_offset, b: 0, leader_epoch: 0 }
        }
        Change::Decided { leader: Some(leader), leader_epoch, .. } => {
            Event { kind: 'l', who: leader, a: 0, b: 0, leader_epoch: *leader_epoch }
        }
        _ => return None,
    })
}

pub fn data(story: &Story<'_>) -> Markup {
    let mut columns = Columns::default();
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    let mut last_us = 0;
    for (moment, event) in relevant(story).take(EVENTS_MAX) {
        let next = numbers.len();
        let who = *numbers.entry(event.who).or_insert(next);
        if who == next {
            columns.names.push(event.who);
        }
        columns.t.push(moment.t_us - last_us);
        last_us = moment.t_us;
        columns.kind.push(event.kind);
        columns.who.push(who);
        columns.a.push(event.a);
        columns.b.push(event.b);
        columns.epoch.push(event.leader_epoch);
    }
    let json = serde_json::to_string(&columns).expect("columns have string keys only");
    // Inside a script element only this ends it.
    let json = json.replace('<', "\\u003c");
    html! { script id="events" type="application/json" { (PreEscaped(json)) } }
}
