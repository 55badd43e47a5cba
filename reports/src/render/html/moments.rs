//! The logs of all replicas at a few moments around what happened: a cell an offset, the epoch that wrote it in the cell,
//! the high watermark as a bar before it. Each moment is a table, and so its own equivalent for who cannot see it.

use maud::{Markup, html};

use super::super::words::seconds;
use super::Story;
use crate::story::faults::faults;
use crate::story::life::{Turn, life_of};
use crate::story::logs::{Log, Snapshot, at};
use crate::story::standing::Place;
use crate::story::{Change, Moment};

/// Small multiples, and cells in each of them.
const MOMENTS_MAX: usize = 6;
const CELLS_MAX: i64 = 11;

pub fn logs(story: &Story<'_>) -> Markup {
    let chosen = chosen(story);
    if chosen.is_empty() {
        return html! {};
    }
    let times: Vec<u64> = chosen.iter().map(|(t_us, _)| *t_us).collect();
    let snapshots = at(story.moments, &story.partition, &times);
    let offsets = offsets(story, &snapshots);
    let lost = story.lost().map(|range| (range.from, range.to, range.leader_epoch));
    html! {
        section aria-labelledby="logs-head" {
            h2 id="logs-head" { "The logs at " (chosen.len()) " moments" }
            p.sub {
                "A cell is an offset of " (story.partition) ", the number in it the epoch that wrote it; "
                "the bar before a cell is that replica's high watermark"
                @if lost.is_some() { "; " span.bad { "×" } " is where an acknowledged record is missing" }
                "."
            }
            div.logs {
                @for (snapshot, (_, caption)) in snapshots.iter().zip(&chosen) {
                    (multiple(snapshot, caption, &offsets, lost))
                }
            }
        }
    }
}

fn multiple(
    snapshot: &Snapshot,
    caption: &str,
    offsets: &[Option<i64>],
    lost: Option<(i64, i64, i32)>,
) -> Markup {
    html! {
        figure tabindex="0" {
            figcaption { span.at { (seconds(snapshot.t_us)) " s" } span { (caption) } }
            table {
                tr {
                    th.who scope="col" { "" }
                    @for offset in offsets { th scope="col" { @match offset { Some(offset) => (offset), None => "…" } } }
                    th scope="col" { "" }
                }
                @for (name, (place, log)) in &snapshot.replicas {
                    tr {
                        th.who scope="row" { (name) }
                        @for offset in offsets { (cell(*offset, log, *place, lost)) }
                        td.end { (standing(*place, log)) }
                    }
                }
            }
        }
    }
}

fn cell(offset: Option<i64>, log: &Log, place: Place, lost: Option<(i64, i64, i32)>) -> Markup {
    let Some(offset) = offset else { return html! { td { "…" } } };
    let marked = log.high_watermark == Some(offset) && place != Place::Down;
    let epoch = log.leader_epoch_at(offset);
    // Another record may have taken the place of the lost one.
    let is_lost = |(from, to, leader_epoch): (i64, i64, i32)| {
        from <= offset && offset <= to && leader_epoch >= 0 && epoch.is_none_or(|epoch| epoch != leader_epoch)
    };
    let gone = lost.is_some_and(is_lost) && place != Place::Down;
    html! {
        td.hw[marked] {
            @match epoch {
                Some(epoch) => span class=(format!("cell has e{}", epoch.rem_euclid(4))) { (epoch) },
                None if gone => span.cell.gone { "×" },
                None => span.cell { " " },
            }
        }
    }
}

fn standing(place: Place, log: &Log) -> String {
    let end = log.log_end_offset();
    match (place, log.high_watermark) {
        (Place::Down, _) => "down".to_string(),
        (place, Some(high_watermark)) => {
            format!("{}, ends at {end}, high watermark {high_watermark}", place.word())
        }
        (place, None) => format!("{}, ends at {end}", place.word()),
    }
}

/// Times and what they are, ascending.
fn chosen(story: &Story<'_>) -> Vec<(u64, String)> {
    let mut chosen: Vec<(u64, String)> = Vec::new();
    if let Some(range) = story.lost() {
        let life = life_of(story.moments, &story.partition, range);
        let first = |turn: Turn| life.iter().find(|step| step.turn == turn);
        if let Some(step) = first(Turn::Acknowledged) {
            chosen.push((step.t_us, step.text.replacen(" it;", &format!(" {};", range.from), 1)));
        }
        let over =
            first(Turn::PassedOver).or(first(Turn::NotFound)).or(first(Turn::Cut)).map(|step| step.t_us);
        let down = faults(story.moments).into_iter().flat_map(|fault| {
            let before = move |span: &crate::story::faults::Span| {
                span.takes_down && over.is_some_and(|over| span.from_us <= over)
            };
            let id = fault.id;
            fault.spans.into_iter().filter(before).map(move |span| (span.from_us, id.clone()))
        });
        if let Some((t_us, id)) = down.max() {
            chosen.push((t_us.saturating_sub(1), format!("just before fault {id}")));
        }
        for turn in [Turn::PassedOver, Turn::NotFound, Turn::Cut] {
            chosen.extend(first(turn).map(|step| (step.t_us, step.text.clone())));
        }
    } else {
        let elected = story.moments.iter().filter(|moment| moment.is_of(&story.partition));
        chosen.extend(elected.filter_map(|moment| match &moment.change {
            Change::Decided { leader: Some(leader), leader_epoch, .. } if elects(moment) => {
                Some((moment.t_us, format!("{leader} is elected, epoch {leader_epoch}")))
            }
            _ => None,
        }));
        let cut = story.moments.iter().filter(|moment| moment.is_of(&story.partition));
        chosen.extend(cut.filter_map(|moment| match moment.change {
            Change::Truncated { .. } => Some((moment.t_us, format!("{} {}", moment.who, moment.text))),
            _ => None,
        }));
        chosen.sort();
        // The newest say most.
        chosen.drain(..chosen.len().saturating_sub(MOMENTS_MAX - 1));
    }
    chosen.push((story.end_us, "the end".to_string()));
    chosen.sort();
    chosen.dedup_by_key(|(t_us, _)| *t_us);
    chosen.truncate(MOMENTS_MAX);
    chosen
}

fn elects(moment: &Moment) -> bool {
    !moment.text.contains("ISR changed")
}

/// The offsets that every moment shows; `None` is a gap.
fn offsets(story: &Story<'_>, snapshots: &[Snapshot]) -> Vec<Option<i64>> {
    let ends =
        snapshots.iter().flat_map(|snapshot| snapshot.replicas.values().map(|(_, log)| log.log_end_offset()));
    let focus = story.told.result.findings.iter().find_map(|finding| finding.first_offset);
    let (from, to) = match (story.lost(), focus) {
        (Some(range), _) => (range.from, range.to),
        (None, Some(offset)) => (offset, offset),
        // Where the logs part: around the ends that differ least from the shortest that is any.
        (None, None) => {
            let shortest = ends.filter(|end| *end > 0).min().unwrap_or(0);
            (shortest, shortest)
        }
    };
    let shown = |from: i64, to: i64| (from.max(0)..=to).map(Some);
    if to - from + 5 <= CELLS_MAX {
        return shown(from - 2, (from - 2).max(0) + CELLS_MAX - 1).collect();
    }
    shown(from - 2, from + 2).chain([None]).chain(shown(to - 1, to + 2)).collect()
}
