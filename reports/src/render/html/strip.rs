//! The story strip: what the faults did, a lane a broker, the in-sync set, acknowledgements, the high watermark with what
//! fell out of it, and the life of one lost record, over one axis of time. Shape and pattern say what colour says.
//! Numbered balls are the sentences of the page. Below it stands the same as tables.

use maud::{Markup, html};

use super::super::words::{count, seconds, thousands};
use super::Story;
use crate::document::Document;
use crate::story::faults::{Fault, Span, faults};
use crate::story::life::{Step, Turn, life_of};
use crate::story::standing::{Lane, LaneSpan, Mark, Place, lanes};
use crate::story::{Change, Moment};

/// Units of the picture; it scales with the page.
const WIDTH: f64 = 1000.0;
const LEFT: f64 = 92.0;
const RIGHT: f64 = 984.0;
const BALL: f64 = 9.0;
const FAULT_ROW: f64 = 24.0;
const LANE_ROW: f64 = 34.0;
const WATERMARK: f64 = 92.0;
const LABEL_ROW: f64 = 16.0;
/// Width of one letter, with some room.
const LETTER: f64 = 6.4;
/// Faults that have a row, and steps of a life that have a word.
const FAULTS_MAX: usize = 10;
const STEPS_MAX: usize = 8;
const LANES_MAX: usize = 12;
const ACK_BUCKETS: usize = 223;

/// From time to the picture.
#[derive(Clone, Copy)]
struct Scale {
    end_us: u64,
}

impl Scale {
    fn x(self, t_us: u64) -> f64 {
        LEFT + (RIGHT - LEFT) * (t_us.min(self.end_us) as f64 / self.end_us as f64)
    }

    fn width(self, from_us: u64, to_us: u64) -> f64 {
        (self.x(to_us) - self.x(from_us)).max(0.0)
    }
}

/// A number as SVG has it: one digit is finer than any screen.
fn n(number: f64) -> String {
    let text = format!("{number:.1}");
    text.strip_suffix(".0").map(str::to_string).unwrap_or(text)
}

/// One row after the other, from top to bottom.
struct Rows {
    y: f64,
    parts: Vec<Markup>,
}

impl Rows {
    /// Takes so much height; gives where it begins.
    fn take(&mut self, height: f64) -> f64 {
        let y = self.y;
        self.y += height;
        y
    }
}

pub fn picture(story: &Story<'_>, document: &Document) -> Markup {
    let scale = Scale { end_us: story.end_us };
    let faults = faults(story.moments);
    let lanes = lanes(story.moments, &story.partition, story.end_us);
    let watermark = exposed(story.moments, &story.partition);
    let life = story.lost().map(|range| life_of(story.moments, &story.partition, range)).unwrap_or_default();

    let mut rows = Rows { y: 0.0, parts: Vec::new() };
    rows.take(2.0 * BALL + 12.0);
    let top = rows.y;
    fault_rows(&mut rows, &faults, scale);
    lane_rows(&mut rows, &lanes, scale);
    isr_row(&mut rows, story, scale);
    ack_row(&mut rows, story, scale);
    watermark_row(&mut rows, story, &watermark, scale);
    let bottom = rows.y;
    life_rows(&mut rows, story, &life, scale);
    let axis = rows.take(20.0);
    let height = rows.y + 4.0;
    let unfired = unfired(document, &faults);
    html! {
        div.wide {
            svg viewBox=(format!("0 0 {WIDTH} {}", n(height))) role="img" aria-labelledby="strip-title strip-desc"
                xmlns="http://www.w3.org/2000/svg" {
                title id="strip-title" { "The story of " (story.partition) " over " (seconds(story.end_us)) " virtual seconds" }
                desc id="strip-desc" { (description(story)) }
                (patterns())
                (axis_marks(scale, top, axis))
                (balls(story, scale, bottom))
                @for part in &rows.parts { (part) }
            }
        }
        p.sub {
            "Thick bar: leader. Thin bar: in sync. Hatched: out of sync. Dotted frame: catching up. Dotted line: down. "
            "Numbers on balls are those of the sentences."
        }
        @if !unfired.is_empty() {
            p.sub {
                "Planned, and not fired: "
                @for (index, fault) in unfired.iter().enumerate() { @if index > 0 { ", " } span.strike { (fault) } }
            }
        }
        (tables(story, &faults, &lanes, &watermark, &life))
    }
}

fn description(story: &Story<'_>) -> String {
    let texts: Vec<&str> = story.beats.iter().map(|beat| beat.text.as_str()).collect();
    texts.join(" ")
}

fn unfired(document: &Document, fired: &[Fault]) -> Vec<String> {
    let planned = document.told_cell().map(|cell| cell.faults.as_slice()).unwrap_or_default();
    let never = planned.iter().filter(|planned| fired.iter().all(|fault| fault.id != planned.id));
    never.map(|fault| format!("{} ({})", fault.id, fault.kind)).collect()
}

fn patterns() -> Markup {
    html! {
        defs {
            pattern id="hatch-fault" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)" {
                rect width="7" height="7" style="fill:var(--fault-soft)" {}
                line x1="0" y1="0" x2="0" y2="7" style="stroke:var(--fault);stroke-width:1.6" {}
            }
            pattern id="hatch-stale" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)" {
                line x1="0" y1="0" x2="0" y2="6" style="stroke:var(--stale);stroke-width:2" {}
            }
            pattern id="dots-up" width="5" height="5" patternUnits="userSpaceOnUse" {
                circle cx="2" cy="2" r="1.1" style="fill:var(--sync)" {}
            }
            pattern id="hatch-loss" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)" {
                rect width="6" height="6" style="fill:var(--loss-soft)" {}
                line x1="0" y1="0" x2="0" y2="6" style="stroke:var(--loss);stroke-width:2" {}
            }
        }
    }
}

/// A line and a number every few seconds.
fn axis_marks(scale: Scale, top: f64, y: f64) -> Markup {
    const STEPS_S: [u64; 10] = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600];
    let room = |step: &&u64| scale.width(0, **step * 1_000_000) >= 62.0;
    let step = STEPS_S.iter().find(room).copied().unwrap_or(1_200);
    let marks: Vec<u64> =
        (0..).map(|mark| mark * step).take_while(|s| s * 1_000_000 <= scale.end_us).collect();
    html! {
        @for second in marks {
            @let x = n(scale.x(second * 1_000_000));
            line.grid x1=(x) x2=(x) y1=(n(top)) y2=(n(y + 4.0)) {}
            text.soft.small x=(x) y=(n(y + 17.0)) text-anchor="middle" { (second) " s" }
        }
    }
}

/// A ball for each sentence and a line down from it; balls that would lie on each other stand side by side.
fn balls(story: &Story<'_>, scale: Scale, bottom: f64) -> Markup {
    let room = 2.0 * BALL + 2.0;
    let mut places: Vec<f64> = story.beats.iter().map(|beat| scale.x(beat.t_us)).collect();
    for at in 1..places.len() {
        places[at] = places[at].max(places[at - 1] + room);
    }
    let mut most = RIGHT;
    for place in places.iter_mut().rev() {
        *place = place.min(most);
        most = *place - room;
    }
    html! {
        @for (index, (beat, place)) in story.beats.iter().zip(places).enumerate() {
            @let x = scale.x(beat.t_us);
            a.step id=(format!("m{}", index + 1)) href=(format!("#s{}", index + 1)) {
                title { (seconds(beat.t_us)) " s: " (beat.text) }
                path.beat fill="none" d=(format!("M{} {}L{} {}V{}", n(place), n(2.0 * BALL + 1.0), n(x), n(2.0 * BALL + 9.0), n(bottom))) {}
                circle.ball cx=(n(place)) cy=(n(BALL + 1.0)) r=(n(BALL)) {}
                text.ball-text x=(n(place)) y=(n(BALL + 5.0)) text-anchor="middle" { (index + 1) }
            }
        }
    }
}

fn label(y: f64, text: &str) -> Markup {
    let most = ((LEFT - 8.0) / LETTER) as usize;
    let shown: String = if text.chars().count() > most {
        text.chars().take(most - 1).chain(['…']).collect()
    } else {
        text.to_string()
    };
    html! { text.soft x=(n(LEFT - 8.0)) y=(n(y)) text-anchor="end" { (shown) } }
}

/// Spans of one fault that are drawn as one bar: the same time, all nodes together.
fn joined(fault: &Fault) -> Vec<Span> {
    let mut joined: Vec<Span> = Vec::new();
    for span in &fault.spans {
        match joined.iter_mut().find(|known| (known.from_us, known.to_us) == (span.from_us, span.to_us)) {
            Some(known) => {
                for node in &span.nodes {
                    if !known.nodes.contains(node) {
                        known.nodes.push(node.clone());
                    }
                }
                known.nodes.sort();
            }
            None => joined.push(span.clone()),
        }
    }
    joined
}

fn fault_rows(rows: &mut Rows, faults: &[Fault], scale: Scale) {
    for fault in faults.iter().take(FAULTS_MAX) {
        let y = rows.take(FAULT_ROW);
        let spans = joined(fault);
        let mut free = LEFT;
        rows.parts.push(html! {
            (label(y + 14.0, &fault.id))
            @for span in &spans {
                @let x = scale.x(span.from_us);
                @let width = span.to_us.map_or(0.0, |to_us| scale.width(span.from_us, to_us));
                @if width >= 2.0 {
                    rect.fault x=(n(x)) y=(n(y + 2.0)) width=(n(width)) height="16" rx="3" fill="url(#hatch-fault)" {}
                } @else {
                    path.fault fill="url(#hatch-fault)" d=(format!("M{} {}l6 8l-6 8l-6-8z", n(x), n(y + 2.0))) {}
                }
                @let text = format!("{} {}", fault.kind, span.nodes.join(" "));
                @let wide = text.chars().count() as f64 * LETTER;
                @let inside = width >= wide + 10.0;
                @let at = if inside || x + width.max(8.0) + wide + 8.0 > RIGHT { x + 6.0 } else { x + width.max(8.0) + 5.0 };
                @if at >= free && at + wide <= WIDTH {
                    text.halo.small x=(n(at)) y=(n(y + 14.0)) { (text) }
                    @let () = { free = at + wide; };
                }
            }
        });
    }
    if faults.len() > FAULTS_MAX {
        let y = rows.take(FAULT_ROW);
        let more = count((faults.len() - FAULTS_MAX) as u64, "more fault");
        rows.parts
            .push(html! { text.soft.small x=(n(LEFT)) y=(n(y + 14.0)) { "and " (more) ": see the tables" } });
    }
    rows.take(6.0);
}

fn lane_rows(rows: &mut Rows, lanes: &[Lane], scale: Scale) {
    for lane in lanes.iter().take(LANES_MAX) {
        let y = rows.take(LANE_ROW);
        let middle = y + LANE_ROW / 2.0;
        rows.parts.push(html! {
            text.strong x=(n(LEFT - 8.0)) y=(n(middle + 4.0)) text-anchor="end" { (lane.broker) }
            @for span in &lane.spans { (lane_span(span, middle, scale)) }
            @for (t_us, mark) in &lane.marks {
                @let x = scale.x(*t_us);
                @match mark {
                    Mark::Crash => {
                        @let cross = format!("M{} {}l12 12m0-12l-12 12", n(x - 6.0), n(middle - 6.0));
                        path.under d=(cross) {}
                        path.crash d=(cross) {}
                    }
                    Mark::Restart => path.restart d=(format!("M{} {}l7 12h-14z", n(x), n(middle - 7.0))) {},
                }
            }
        });
    }
    if lanes.len() > LANES_MAX {
        let y = rows.take(FAULT_ROW);
        let more = count((lanes.len() - LANES_MAX) as u64, "more broker");
        rows.parts
            .push(html! { text.soft.small x=(n(LEFT)) y=(n(y + 14.0)) { "and " (more) ": see the tables" } });
    }
}

fn lane_span(span: &LaneSpan, middle: f64, scale: Scale) -> Markup {
    let (x, width) = (scale.x(span.from_us), scale.width(span.from_us, span.to_us));
    if width < 0.3 {
        return html! {};
    }
    let bar = |height: f64| (n(x), n(middle - height / 2.0), n(width), n(height));
    match span.place {
        Place::Leader => {
            let (x, y, w, h) = bar(18.0);
            let text = span.leader_epoch.map(|epoch| format!("leader, epoch {epoch}"));
            let short = span.leader_epoch.map(|epoch| format!("e{epoch}"));
            let fits = |text: &String| text.len() as f64 * LETTER + 8.0 <= width;
            html! {
                rect.leader x=(x) y=(y) width=(w) height=(h) rx="2" {}
                @if let Some(text) = text.filter(fits).or(short.filter(fits)) {
                    text.leader-text x=(n(scale.x(span.from_us) + 7.0)) y=(n(middle + 4.0)) { (text) }
                }
            }
        }
        Place::InSync => {
            let (x, y, w, h) = bar(6.0);
            html! { rect.sync x=(x) y=(y) width=(w) height=(h) {} }
        }
        Place::OutOfSync => {
            let (x, y, w, h) = bar(11.0);
            html! { rect.frame.stale x=(x) y=(y) width=(w) height=(h) style="fill:url(#hatch-stale)" {} }
        }
        Place::CatchingUp => {
            let (x, y, w, h) = bar(11.0);
            html! { rect.frame.up x=(x) y=(y) width=(w) height=(h) stroke-dasharray="3 3" style="fill:url(#dots-up)" {} }
        }
        Place::Down => {
            let y = n(middle);
            html! { line.down x1=(n(scale.x(span.from_us) + 2.0)) x2=(n(scale.x(span.to_us) - 2.0)) y1=(y) y2=(y) {} }
        }
    }
}

/// Who is in sync, the leader first, from one decision to the next.
fn isr_spans(story: &Story<'_>) -> Vec<(u64, u64, Option<String>, Vec<String>)> {
    let mut spans: Vec<(u64, u64, Option<String>, Vec<String>)> = Vec::new();
    for moment in story.moments.iter().filter(|moment| moment.is_of(&story.partition)) {
        if let Change::Decided { leader, isr, .. } = &moment.change {
            if let Some(last) = spans.last_mut() {
                last.1 = moment.t_us;
            }
            let others = isr.iter().filter(|member| leader.as_ref() != Some(*member));
            let members: Vec<String> = leader.iter().chain(others).cloned().collect();
            spans.push((moment.t_us, story.end_us, leader.clone(), members));
        }
    }
    spans
}

fn isr_row(rows: &mut Rows, story: &Story<'_>, scale: Scale) {
    let y = rows.take(28.0);
    let spans = isr_spans(story);
    rows.parts.push(html! {
        (label(y + 16.0, "in sync"))
        @for (from_us, to_us, leader, members) in &spans {
            @let width = scale.width(*from_us, *to_us);
            @if width >= 1.0 {
                @let class = match (leader, members.len()) { (None, _) => "isr off", (_, 1) => "isr one", _ => "isr" };
                rect class=(class) x=(n(scale.x(*from_us) + 0.5)) y=(n(y + 2.0)) width=(n(width - 1.0)) height="19" rx="2" {}
                @let text = if leader.is_some() { members.join(" ") } else { "no leader".to_string() };
                @if text.len() as f64 * LETTER + 6.0 <= width {
                    text.small.strong[members.len() == 1] x=(n(scale.x(*from_us) + 6.0)) y=(n(y + 16.0)) { (text) }
                }
            }
        }
    });
}

/// How much was acknowledged when: gaps are what clients wait through.
fn ack_row(rows: &mut Rows, story: &Story<'_>, scale: Scale) {
    let mut buckets = vec![0u64; ACK_BUCKETS];
    for moment in story.moments.iter().filter(|moment| moment.is_of(&story.partition)) {
        if let Change::Acked { first, last, .. } = moment.change {
            let at = u128::from(moment.t_us) * ACK_BUCKETS as u128 / (u128::from(story.end_us) + 1);
            let at = usize::try_from(at).expect("a bucket is within the picture");
            buckets[at] += u64::try_from(last - first + 1).unwrap_or(0);
        }
    }
    let Some(most) = buckets.iter().copied().max().filter(|most| *most > 0) else { return };
    let y = rows.take(28.0);
    let width = (RIGHT - LEFT) / ACK_BUCKETS as f64;
    let mut path = String::new();
    for (at, acked) in buckets.iter().enumerate().filter(|(_, acked)| **acked > 0) {
        // The root keeps a single record visible beside a burst.
        let height = (20.0 * (*acked as f64 / most as f64).sqrt()).max(2.0);
        let x = LEFT + at as f64 * width;
        path.push_str(&format!("M{} {}v-{}h{}v{}z", n(x), n(y + 23.0), n(height), n(width - 0.8), n(height)));
    }
    rows.parts.push(html! {
        (label(y + 18.0, "acked"))
        path.acks d=(path) {}
    });
    let _ = scale;
}

/// What the leaders exposed as committed: time and offset, one step each.
fn exposed(moments: &[Moment], partition: &str) -> Vec<(u64, i64)> {
    let mut leader: Option<&str> = None;
    let mut steps: Vec<(u64, i64)> = Vec::new();
    for moment in moments.iter().filter(|moment| moment.is_of(partition)) {
        match &moment.change {
            Change::Decided { leader: now, .. } => leader = now.as_deref().or(leader),
            Change::HighWatermark { to } if leader == Some(moment.who.as_str()) => {
                steps.push((moment.t_us, *to));
            }
            _ => {}
        }
    }
    steps
}

fn watermark_row(rows: &mut Rows, story: &Story<'_>, steps: &[(u64, i64)], scale: Scale) {
    let Some(highest) = steps.iter().map(|(_, to)| *to).max().filter(|highest| *highest > 0) else { return };
    let top = rows.take(WATERMARK) + 8.0;
    let floor = top + WATERMARK - 20.0;
    let y = |offset: i64| floor - (floor - top) * (offset.max(0) as f64 / highest as f64);
    let mut path = String::new();
    let mut falls: Vec<(u64, i64, i64)> = Vec::new();
    let mut last: Option<(u64, i64)> = None;
    let mut drawn = (f64::MIN, f64::MIN);
    for (t_us, to) in steps {
        let (at_x, at_y) = (scale.x(*t_us), y(*to));
        match last {
            None => path.push_str(&format!("M{} {}", n(at_x), n(at_y))),
            Some((_, before)) if *to < before => {
                path.push_str(&format!("H{}M{} {}", n(at_x), n(at_x), n(at_y)));
                falls.push((*t_us, before, *to));
                drawn = (at_x, at_y);
            }
            // Finer steps than the picture shows only make the page longer.
            Some(_) if at_x - drawn.0 < 1.0 && drawn.1 - at_y < 1.0 => {}
            Some(_) => {
                path.push_str(&format!("H{}V{}", n(at_x), n(at_y)));
                drawn = (at_x, at_y);
            }
        }
        last = Some((*t_us, *to));
    }
    path.push_str(&format!("H{}", n(RIGHT)));
    let lost = story.lost();
    let end = steps.last().map_or(0, |(_, to)| *to);
    rows.parts.push(html! {
        (label(top + 10.0, "high"))
        (label(top + 24.0, "watermark"))
        line.grid x1=(n(LEFT)) x2=(n(RIGHT)) y1=(n(floor)) y2=(n(floor)) {}
        @if let Some(range) = lost {
            @if let Some(area) = gone(steps, range.from, &falls, scale, &y) {
                path d=(area) fill="url(#hatch-loss)" {}
            }
        }
        path.wmark d=(path) {}
        @for (t_us, before, to) in &falls {
            @let x = scale.x(*t_us);
            path.fall d=(format!("M{} {}V{}m-5-7l5 7l5-7", n(x), n(y(*before)), n(y(*to)))) {}
            @let right = x + 90.0 < RIGHT;
            text.halo.loss-text x=(n(if right { x + 9.0 } else { x - 9.0 })) y=(n((y(*before) + y(*to)) / 2.0 + 4.0))
                text-anchor=(if right { "start" } else { "end" }) { "−" (thousands(before.abs_diff(*to))) }
        }
        text.halo.small x=(n(RIGHT)) y=(n(y(end) - 6.0)) text-anchor="end" { (thousands(end.unsigned_abs())) }
    });
}

/// The part of what had been committed that a fall took away: between the first lost offset and the line above it.
fn gone(
    steps: &[(u64, i64)],
    from: i64,
    falls: &[(u64, i64, i64)],
    scale: Scale,
    y: &impl Fn(i64) -> f64,
) -> Option<String> {
    let (fell_us, _, to) = *falls.iter().find(|(_, before, to)| *to <= from && from < *before)?;
    let base = from.max(to);
    let mut above = steps.iter().filter(|(t_us, at)| *t_us < fell_us && *at > base);
    let (first_us, first) = *above.next()?;
    let mut path = format!("M{} {}V{}", n(scale.x(first_us)), n(y(base)), n(y(first)));
    let mut drawn = scale.x(first_us);
    for (t_us, at) in above {
        let x = scale.x(*t_us);
        if x - drawn >= 1.0 {
            path.push_str(&format!("H{}V{}", n(x), n(y(*at))));
            drawn = x;
        }
    }
    path.push_str(&format!("H{}V{}z", n(scale.x(fell_us)), n(y(base))));
    Some(path)
}

fn life_rows(rows: &mut Rows, story: &Story<'_>, life: &[Step], scale: Scale) {
    let (Some(range), [first, ..]) = (story.lost(), life) else { return };
    rows.take(6.0);
    let line = rows.take(22.0) + 11.0;
    let end = life.last().map_or(first.t_us, |step| step.t_us);
    // Each word in the first row that has room for it.
    let mut ends: Vec<f64> = Vec::new();
    let mut words: Vec<(f64, f64, usize, bool, &str, f64)> = Vec::new();
    for step in life.iter().take(STEPS_MAX) {
        let x = scale.x(step.t_us);
        let text = word(step);
        let width = text.chars().count() as f64 * LETTER;
        let left = if x + width > WIDTH - 4.0 { x - width } else { x - 3.0 };
        let row = ends.iter().position(|end| *end + 8.0 < left).unwrap_or(ends.len());
        if row == ends.len() {
            ends.push(0.0);
        }
        ends[row] = left + width;
        words.push((x, left, row, step.turn == Turn::PassedOver || step.turn == Turn::Cut, text, width));
    }
    let below = rows.take(ends.len() as f64 * LABEL_ROW + 4.0);
    rows.parts.push(html! {
        (label(line + 4.0, &format!("offset {}", range.from)))
        line.life x1=(n(scale.x(first.t_us))) x2=(n(scale.x(end))) y1=(n(line)) y2=(n(line)) {}
        @for (x, _, row, _, _, _) in words.iter().rev() {
            line.grid x1=(n(*x)) x2=(n(*x)) y1=(n(line)) y2=(n(below + *row as f64 * LABEL_ROW + 4.0)) {}
        }
        @for (x, left, row, bad, text, _) in &words {
            circle.life-dot cx=(n(*x)) cy=(n(line)) r="5" {}
            @if *bad { path.crash d=(format!("M{} {}l8 8m0-8l-8 8", n(x - 4.0), n(line - 4.0))) {} }
            text.halo.small.loss-text[*bad] x=(n(*left)) y=(n(below + *row as f64 * LABEL_ROW + 13.0)) { (text) }
        }
    });
}

/// A step of a life in a few words; the sentences say more.
fn word(step: &Step) -> &str {
    step.text.split([';', ':']).next().unwrap_or(&step.text)
}

/// The same without a picture.
fn tables(
    story: &Story<'_>,
    faults: &[Fault],
    lanes: &[Lane],
    watermark: &[(u64, i64)],
    life: &[Step],
) -> Markup {
    html! {
        details {
            summary { "The picture as tables" }
            h3 { "Faults that fired" }
            div.wide { table {
                tr { th { "fault" } th { "kind" } th { "nodes" } th.n { "from" } th.n { "to" } }
                @for fault in faults {
                    @for span in joined(fault).iter().take(20) {
                        tr {
                            td { (fault.id) } td { (fault.kind) } td { (span.nodes.join(" ")) }
                            td.n { (seconds(span.from_us)) }
                            td.n { @match span.to_us { Some(to_us) => (seconds(to_us)), None => "at once" } }
                        }
                    }
                }
            } }
            h3 { "Brokers" }
            div.wide { table {
                tr { th { "broker" } th { "is" } th.n { "from" } th.n { "to" } }
                @for lane in lanes {
                    @for span in lane.spans.iter().filter(|span| span.to_us > span.from_us + 10_000).take(60) {
                        tr {
                            td { (lane.broker) }
                            td { (span.place.word()) @if let Some(epoch) = span.leader_epoch { ", epoch " (epoch) } }
                            td.n { (seconds(span.from_us)) } td.n { (seconds(span.to_us)) }
                        }
                    }
                }
            } }
            h3 { "In-sync set" }
            div.wide { table {
                tr { th.n { "from" } th { "leader" } th { "in sync" } }
                @for (from_us, _, leader, members) in isr_spans(story).iter().take(60) {
                    tr {
                        td.n { (seconds(*from_us)) } td { (leader.as_deref().unwrap_or("nobody")) }
                        td { (members.join(" ")) }
                    }
                }
            } }
            h3 { "High watermark, where it fell and at its end" }
            div.wide { table {
                tr { th.n { "at" } th.n { "from" } th.n { "to" } }
                @for pair in watermark.windows(2).filter(|pair| pair[1].1 < pair[0].1).take(20) {
                    tr { td.n { (seconds(pair[1].0)) } td.n { (pair[0].1) } td.n { (pair[1].1) } }
                }
                @if let Some((t_us, to)) = watermark.last() {
                    tr { td.n { (seconds(*t_us)) } td.n { "" } td.n { (to) } }
                }
            } }
            @if let Some(range) = story.lost() {
                h3 { "The life of offset " (range.from) }
                div.wide { table {
                    @for step in life.iter().take(60) { tr { td.n { (seconds(step.t_us)) " s" } td { (step.text) } } }
                    tr { td.n { "" } td { "contract " (range.contract.word()) ": " (range.rule) } }
                } }
            }
        }
    }
}
