//! The timeline of one run as text: a lane a broker, the in-sync set, what the faults did, the high watermark, the life
//! of one lost record, and then everything that changed, a line each. Draws from what fired, never from what was planned.

use std::collections::BTreeMap;

use super::words::seconds;
use crate::result::SeedResult;
use crate::story::faults::{Fault, faults};
use crate::story::life::{Step, life_of};
use crate::story::standing::{Mark, Place, Standings};
use crate::story::{self, Change, Moment};

/// Narrower pictures say nothing.
pub const WIDTH_MIN: usize = 60;
pub const WIDTH_MAX: usize = 400;
/// Width of the names before the strips.
const LABEL: usize = 14;
/// Fault strips that are drawn; the list below has them all.
const FAULTS_DRAWN_MAX: usize = 12;

/// How to draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Canvas {
    pub width: usize,
    /// No character beyond ASCII.
    pub ascii: bool,
    /// List every append, acknowledgement and watermark step too.
    pub everything: bool,
}

/// The signs of a lane.
struct Signs {
    leader: char,
    in_sync: char,
    out_of_sync: char,
    catching_up: char,
    down: char,
    crash: char,
    restart: char,
    /// From low to high.
    levels: &'static [char],
    bar: [char; 3],
}

const ASCII: Signs = Signs {
    leader: '/',
    in_sync: '\\',
    out_of_sync: '.',
    catching_up: '~',
    down: ' ',
    crash: '!',
    restart: '^',
    levels: &['_', '.', ':', '-', '=', '+', '*', '#'],
    bar: ['[', '=', ']'],
};

const BOXES: Signs = Signs {
    leader: '█',
    in_sync: '━',
    out_of_sync: '░',
    catching_up: '▒',
    down: ' ',
    crash: '!',
    restart: '^',
    levels: &['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'],
    bar: ['├', '─', '┤'],
};

/// Draws the story. `partition` (`orders-0`) is the one whose lanes are drawn; without it the one that lost a record,
/// or else the first.
pub fn draw(result: &SeedResult, moments: &[Moment], partition: Option<&str>, canvas: Canvas) -> String {
    let width = canvas.width.clamp(WIDTH_MIN, WIDTH_MAX);
    let signs = if canvas.ascii { &ASCII } else { &BOXES };
    let end_us = story::end_us(result, moments);
    let scale = Scale { columns: width - LABEL, end_us };
    let lost = result.lost.iter().max_by_key(|range| range.contract);
    let partition = story::partition(result, moments, partition);

    let mut text = String::new();
    let mut line = |content: &str| {
        text.push_str(content.trim_end());
        text.push('\n');
    };
    line(&format!("{} {}, seed {}, {partition}", result.scenario, result.configuration, result.seed));
    let verdict = (result.verdict.word(), result.outcome.word(), result.contract.word());
    line(&format!("{}, {}, contract {}", verdict.0, verdict.1, verdict.2));
    let Signs { leader, in_sync, out_of_sync, catching_up, crash, restart, .. } = signs;
    let legend = format!(
        "{leader} leader, {in_sync} follower in sync, {out_of_sync} follower out of sync, {crash} crash, \
         {restart} restart, {catching_up} catching up"
    );
    for row in wrapped("", &legend, width) {
        line(&row);
    }
    line("");
    for (label, strip) in fault_strips(moments, scale, signs) {
        line(&labelled(&label, &strip));
    }
    for (label, strip) in lanes(moments, &partition, scale, signs) {
        line(&labelled(&label, &strip));
    }
    line(&labelled("in sync", &isr_strip(moments, &partition, scale)));
    line(&labelled("high wmark", &watermark_strip(moments, &partition, scale, signs)));
    let life = lost.map(|range| life_of(moments, &partition, range)).unwrap_or_default();
    if let Some(range) = lost {
        line(&labelled(&format!("offset {}", range.from), &life_strip(&life, scale)));
    }
    line(&labelled("", &axis(scale)));
    if let Some(range) = lost {
        line("");
        let head = format!("The life of offset {} of {partition}, acknowledged and gone:", range.from);
        for row in wrapped("", &head, width) {
            line(&row);
        }
        for step in &life {
            for row in
                wrapped(&format!("{:>9}  {} ", seconds(step.t_us), step.turn.sign()), &step.text, width)
            {
                line(&row);
            }
        }
        for row in
            wrapped("           = ", &format!("contract {}: {}", range.contract.word(), range.rule), width)
        {
            line(&row);
        }
    }
    line("");
    line("  seconds  who           what changed");
    for moment in moments {
        if moment.is_frequent() && !canvas.everything {
            continue;
        }
        let place = moment.partition.as_deref().filter(|name| *name != partition);
        let place = place.map(|name| format!("{name}: ")).unwrap_or_default();
        let head = format!("{:>9}  {:12}  ", seconds(moment.t_us), moment.who);
        for row in wrapped(&head, &format!("{place}{}", moment.text), width) {
            line(&row);
        }
    }
    text
}

/// From time to column.
#[derive(Clone, Copy)]
struct Scale {
    columns: usize,
    end_us: u64,
}

impl Scale {
    fn column(self, t_us: u64) -> usize {
        let column = u128::from(t_us) * self.columns as u128 / (u128::from(self.end_us) + 1);
        usize::try_from(column).expect("a column is within the picture").min(self.columns - 1)
    }

    /// The last microsecond of a column.
    fn ends(self, column: usize) -> u64 {
        let end = (column as u128 + 1) * (u128::from(self.end_us) + 1) / self.columns as u128;
        u64::try_from(end).expect("a column is within the run").saturating_sub(1)
    }
}

/// Writes a text over a strip, as far as the strip goes.
fn put(strip: &mut [char], at: usize, text: &str) {
    for (cell, letter) in strip[at..].iter_mut().zip(text.chars()) {
        *cell = letter;
    }
}

fn labelled(label: &str, strip: &str) -> String {
    let label: String = label.chars().take(LABEL - 1).collect();
    format!("{label:width$}{strip}", width = LABEL)
}

fn fault_strips(moments: &[Moment], scale: Scale, signs: &Signs) -> Vec<(String, String)> {
    let mut faults = faults(moments);
    faults.truncate(FAULTS_DRAWN_MAX);
    faults
        .into_iter()
        .map(|Fault { id, kind, spans }| {
            let mut strip = vec![' '; scale.columns];
            for span in spans {
                let (from, to) = (span.from_us, span.to_us.unwrap_or(span.from_us));
                let (from, to) = (scale.column(from), scale.column(to));
                strip[from..=to].fill(signs.bar[1]);
                strip[from] = signs.bar[0];
                if to > from {
                    strip[to] = signs.bar[2];
                }
                if to.saturating_sub(from + 1) >= kind.len() {
                    put(&mut strip, from + 1, &kind);
                }
            }
            (id, strip.into_iter().collect())
        })
        .collect()
}

fn lanes(moments: &[Moment], partition: &str, scale: Scale, signs: &Signs) -> Vec<(String, String)> {
    let mut standings = Standings::new(moments, partition);
    let mut lanes: BTreeMap<&str, String> =
        standings.places().map(|(name, _)| (name, String::new())).collect();
    let mut next = moments.iter().peekable();
    for column in 0..scale.columns {
        let mut marks: BTreeMap<&str, char> = BTreeMap::new();
        while let Some(moment) = next.next_if(|moment| moment.t_us <= scale.ends(column)) {
            for (name, mark) in standings.apply(moment) {
                let sign = match mark {
                    Mark::Crash => signs.crash,
                    Mark::Restart => signs.restart,
                };
                marks.insert(name, sign);
            }
        }
        for (name, place) in standings.places() {
            let sign = match place {
                Place::Down => signs.down,
                Place::Leader => signs.leader,
                Place::InSync => signs.in_sync,
                Place::CatchingUp => signs.catching_up,
                Place::OutOfSync => signs.out_of_sync,
            };
            let lane = lanes.get_mut(name).expect("every broker has a lane");
            lane.push(marks.get(name).copied().unwrap_or(sign));
        }
    }
    lanes.into_iter().map(|(name, lane)| (name.to_string(), lane)).collect()
}

/// The members at every change, where there is room: their numbers, the leader first; `off` without a leader.
fn isr_strip(moments: &[Moment], partition: &str, scale: Scale) -> String {
    let mut changes: BTreeMap<usize, String> = BTreeMap::new();
    for moment in moments.iter().filter(|moment| moment.is_of(partition)) {
        if let Change::Decided { leader, isr, .. } = &moment.change {
            let number = |name: &str| name.trim_start_matches('b').to_string();
            let text = match leader {
                None => "off".to_string(),
                Some(leader) => {
                    let others = isr.iter().filter(|member| *member != leader).map(|name| number(name));
                    std::iter::once(number(leader)).chain(others).collect()
                }
            };
            changes.insert(scale.column(moment.t_us), text);
        }
    }
    let starts: Vec<usize> = changes.keys().copied().collect();
    let mut strip = vec![' '; scale.columns];
    for (index, (start, text)) in changes.iter().enumerate() {
        let end = starts.get(index + 1).copied().unwrap_or(scale.columns);
        strip[*start] = '|';
        if end - start > text.len() {
            put(&mut strip, start + 1, text);
        }
    }
    strip.into_iter().collect()
}

/// The high watermark that was exposed last, by height.
fn watermark_strip(moments: &[Moment], partition: &str, scale: Scale, signs: &Signs) -> String {
    let steps: Vec<(u64, i64)> = moments
        .iter()
        .filter(|moment| moment.is_of(partition))
        .filter_map(|moment| match moment.change {
            Change::HighWatermark { to } => Some((moment.t_us, to)),
            _ => None,
        })
        .collect();
    let highest = steps.iter().map(|(_, to)| *to).max().unwrap_or(0).max(1);
    let top = signs.levels.len() as i64 - 1;
    let mut next = steps.iter().peekable();
    let mut now = None;
    (0..scale.columns)
        .map(|column| {
            while let Some((_, to)) = next.next_if(|(t_us, _)| *t_us <= scale.ends(column)) {
                now = Some(*to);
            }
            now.map_or(' ', |to| {
                signs.levels[usize::try_from(to * top / highest).expect("offsets are positive")]
            })
        })
        .collect()
}

fn life_strip(life: &[Step], scale: Scale) -> String {
    let mut strip = vec![' '; scale.columns];
    for step in life {
        strip[scale.column(step.t_us)] = step.turn.sign();
    }
    strip.into_iter().collect()
}

/// Whole seconds under the strips.
fn axis(scale: Scale) -> String {
    const STEPS_S: [u64; 10] = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600];
    let room = |step: &&u64| scale.column(**step * 1_000_000) >= 8;
    let step = STEPS_S.iter().find(room).copied().unwrap_or(1_200);
    let mut strip = vec![' '; scale.columns];
    let mut second = 0;
    while second * 1_000_000 <= scale.end_us {
        let (column, text) = (scale.column(second * 1_000_000), format!("{second}s"));
        if column + text.len() <= scale.columns {
            put(&mut strip, column, &text);
        }
        second += step;
    }
    strip.into_iter().collect()
}

/// `text` after `head`, over as many rows as it needs.
fn wrapped(head: &str, text: &str, width: usize) -> Vec<String> {
    let indent = head.chars().count();
    let mut rows = vec![head.to_string()];
    let mut used = indent;
    for word in text.split(' ') {
        let length = word.chars().count();
        if used > indent && used + 1 + length > width {
            rows.push(" ".repeat(indent));
            used = indent;
        }
        let row = rows.last_mut().expect("there is always one");
        if used > indent {
            row.push(' ');
            used += 1;
        }
        row.push_str(word);
        used += length;
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::story::life::tests::story;

    fn drawn(ascii: bool, width: usize) -> String {
        let (result, moments) = story();
        draw(&result, &moments, None, Canvas { width, ascii, everything: false })
    }

    fn strip<'a>(text: &'a str, label: &str) -> &'a str {
        let line = text.lines().find(|line| line.starts_with(label)).expect("the strip is there");
        line[LABEL..].trim_end()
    }

    #[test]
    fn a_lane_shows_leading_dying_coming_back_and_catching_up() {
        let text = drawn(true, 80);
        let lane = strip(&text, "b1");
        let mut signs: Vec<char> = lane.chars().collect();
        signs.dedup();
        assert_eq!(signs.into_iter().collect::<String>(), "~/! ^~\\", "{text}");
        assert!(strip(&text, "b2").contains("\\.") && strip(&text, "b2").ends_with('/'), "{text}");
    }

    #[test]
    fn the_in_sync_strip_begins_with_the_leader() {
        let text = drawn(true, 80);
        let strip = strip(&text, "in sync");
        assert!(strip.contains("|12") && strip.contains("|1 ") && strip.contains("|21"), "{text}");
    }

    #[test]
    fn the_life_of_a_lost_record_is_told_to_its_end() {
        let text = drawn(true, 80);
        let steps: Vec<&str> =
            ["appends it", "acknowledges it; {b1}", "b2 leads epoch 2", "b1 cuts it", "rule 3"]
                .into_iter()
                .filter(|step| text.contains(step))
                .collect();
        assert_eq!(steps.len(), 5, "{text}");
        assert!(strip(&text, "offset 7").contains('X'), "{text}");
    }

    #[test]
    fn no_line_is_wider_than_asked_for_and_ascii_is_ascii() {
        for width in [WIDTH_MIN, 80, 132] {
            let text = drawn(true, width);
            assert!(text.is_ascii());
            for line in text.lines().skip(2) {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
        assert!(!drawn(false, 80).is_ascii());
    }

    #[test]
    fn an_empty_story_is_drawn_too() {
        let (mut result, _) = story();
        result.lost.clear();
        result.virtual_us = 0;
        let text = draw(&result, &[], None, Canvas { width: 80, ascii: true, everything: true });
        assert!(text.contains("in sync"));
    }
}
