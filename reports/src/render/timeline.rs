//! The timeline of one run as text: a lane a broker, the in-sync set, what the faults did, the high watermark, the life
//! of one lost record, and then everything that changed, a line each. Draws from what fired, never from what was planned.

use std::collections::{BTreeMap, BTreeSet};

use super::words::seconds;
use crate::result::{LostRange, SeedResult};
use crate::story::{Change, Moment};

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
    let end_us = moments.last().map_or(0, |moment| moment.t_us).max(result.virtual_us).max(1);
    let scale = Scale { columns: width - LABEL, end_us };
    let lost = result.lost.iter().max_by_key(|range| range.contract);
    let first = || moments.iter().find_map(|moment| moment.partition.clone());
    let partition = partition
        .map(str::to_string)
        .or_else(|| lost.map(|range| format!("{}-{}", range.topic, range.partition)))
        .or_else(first)
        .unwrap_or_default();

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
            for row in wrapped(&format!("{:>9}  {} ", seconds(step.t_us), step.sign), &step.text, width) {
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
        let often = matches!(moment.kind, "high-watermark" | "appended" | "acked");
        if often && !canvas.everything {
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

/// One fault and when it was on, from and to.
struct FaultSpans<'a> {
    id: &'a str,
    kind: &'a str,
    spans: Vec<(u64, u64)>,
}

fn fault_strips(moments: &[Moment], scale: Scale, signs: &Signs) -> Vec<(String, String)> {
    let mut faults: Vec<FaultSpans<'_>> = Vec::new();
    for moment in moments {
        let known = faults.iter_mut().find(|fault| fault.id == moment.who);
        match (&moment.change, known) {
            // Several cuts or victims of one fault are one span until it heals.
            (Change::FaultBegan { .. }, Some(fault)) => fault.spans.push((moment.t_us, moment.t_us)),
            (Change::FaultBegan { kind, .. }, None) => {
                faults.push(FaultSpans { id: &moment.who, kind, spans: vec![(moment.t_us, moment.t_us)] });
            }
            (Change::FaultEnded, Some(fault)) => {
                for span in fault.spans.iter_mut().filter(|span| span.0 == span.1) {
                    span.1 = moment.t_us;
                }
            }
            _ => {}
        }
    }
    faults.truncate(FAULTS_DRAWN_MAX);
    faults
        .into_iter()
        .map(|FaultSpans { id, kind, spans }| {
            let mut strip = vec![' '; scale.columns];
            for (from, to) in spans {
                let (from, to) = (scale.column(from), scale.column(to));
                strip[from..=to].fill(signs.bar[1]);
                strip[from] = signs.bar[0];
                if to > from {
                    strip[to] = signs.bar[2];
                }
                if to.saturating_sub(from + 1) >= kind.len() {
                    put(&mut strip, from + 1, kind);
                }
            }
            (id.to_string(), strip.into_iter().collect())
        })
        .collect()
}

/// What a broker is to the partition at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Standing {
    up: bool,
    leads: bool,
    in_sync: bool,
    /// It started and was not in sync since.
    catching_up: bool,
}

fn lanes(moments: &[Moment], partition: &str, scale: Scale, signs: &Signs) -> Vec<(String, String)> {
    let is_broker = |name: &str| name.starts_with('b') && name[1..].bytes().all(|byte| byte.is_ascii_digit());
    let mut brokers: BTreeMap<&str, (Standing, Vec<char>)> = BTreeMap::new();
    for moment in moments {
        if matches!(moment.change, Change::Started) && is_broker(&moment.who) {
            brokers.entry(&moment.who).or_default();
        }
    }
    let mut next = moments.iter().peekable();
    for column in 0..scale.columns {
        let mut marks: BTreeMap<&str, char> = BTreeMap::new();
        while let Some(moment) = next.next_if(|moment| moment.t_us <= scale.ends(column)) {
            match &moment.change {
                Change::FaultBegan { nodes, takes_down: true, .. } => {
                    for (name, (standing, _)) in &mut brokers {
                        if nodes.iter().any(|node| node == name) {
                            *standing = Standing { in_sync: standing.in_sync, ..Standing::default() };
                            marks.insert(name, signs.crash);
                        }
                    }
                }
                Change::Started => {
                    if let Some((standing, _)) = brokers.get_mut(moment.who.as_str()) {
                        let again = column > 0 && !standing.up && scale.column(moment.t_us) > 0;
                        *standing = Standing { up: true, catching_up: true, ..*standing };
                        if again && moment.t_us > 0 {
                            marks.insert(&moment.who, signs.restart);
                        }
                    }
                }
                Change::Stopped => {
                    if let Some((standing, _)) = brokers.get_mut(moment.who.as_str()) {
                        *standing = Standing { in_sync: standing.in_sync, ..Standing::default() };
                    }
                }
                Change::Decided { leader, isr, .. } if moment.partition.as_deref() == Some(partition) => {
                    for (name, (standing, _)) in &mut brokers {
                        standing.leads = leader.as_deref() == Some(*name);
                        standing.in_sync = isr.iter().any(|member| member == name);
                        standing.catching_up &= !standing.in_sync;
                    }
                }
                _ => {}
            }
        }
        for (name, (standing, lane)) in &mut brokers {
            let sign = match *standing {
                Standing { up: false, .. } => signs.down,
                Standing { leads: true, .. } => signs.leader,
                Standing { in_sync: true, .. } => signs.in_sync,
                Standing { catching_up: true, .. } => signs.catching_up,
                _ => signs.out_of_sync,
            };
            lane.push(marks.get(name).copied().unwrap_or(sign));
        }
    }
    brokers.into_iter().map(|(name, (_, lane))| (name.to_string(), lane.into_iter().collect())).collect()
}

/// The members at every change, where there is room: their numbers, the leader first; `off` without a leader.
fn isr_strip(moments: &[Moment], partition: &str, scale: Scale) -> String {
    let mut changes: BTreeMap<usize, String> = BTreeMap::new();
    for moment in moments.iter().filter(|moment| moment.partition.as_deref() == Some(partition)) {
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
        .filter(|moment| moment.partition.as_deref() == Some(partition))
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

/// One step in the life of a record.
struct Step {
    t_us: u64,
    /// `>` appended, `k` acknowledged, `c` committed, `X` a leader without it, `%` cut, `?` not found again.
    sign: char,
    text: String,
}

/// What became of the first record of the range, as far as nodes told. Another record may take its offset in a later
/// epoch: whoever has that one does not have this one.
fn life_of(moments: &[Moment], partition: &str, range: &LostRange) -> Vec<Step> {
    let here = || moments.iter().filter(|moment| moment.partition.as_deref() == Some(partition));
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
        let mut step = |sign, text: String| steps.push(Step { t_us: moment.t_us, sign, text });
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
                    step('>', format!("{who} appends it in epoch {leader_epoch}"));
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
                step('k', format!("{who} acknowledges it; {copies}"));
            }
            Change::HighWatermark { to } if *to > offset && !committed && holders.contains(who) => {
                committed = true;
                step('c', format!("{who} counts it as committed"));
            }
            Change::Truncated { from, to } if *to <= offset && offset < *from => {
                let had = holders.remove(who);
                if had {
                    step('%', format!("{who} cuts it: {}", moment.text));
                }
            }
            Change::Recovered { log_end_offset } if *log_end_offset <= offset => {
                let had = holders.remove(who);
                if had {
                    step('?', format!("{who} does not find it again: {}", moment.text));
                }
            }
            Change::Decided { leader: Some(leader), leader_epoch, .. } => {
                let changed = leader_now != Some(leader.as_str());
                leader_now = Some(leader);
                leaders.insert(*leader_epoch, leader);
                if (appended || acked) && changed && !holders.contains(leader.as_str()) {
                    step('X', format!("{leader} leads epoch {leader_epoch} and does not have it"));
                }
            }
            _ => {}
        }
    }
    steps
}

fn life_strip(life: &[Step], scale: Scale) -> String {
    let mut strip = vec![' '; scale.columns];
    for step in life {
        strip[scale.column(step.t_us)] = step.sign;
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
    use crate::result::{Contract, Outcome, Verdict};

    fn moment(t_s: u64, kind: &'static str, who: &str, change: Change) -> Moment {
        Moment {
            t_us: t_s * 1_000_000,
            kind,
            who: who.into(),
            partition: (kind != "fault" && kind != "node").then(|| "orders-0".into()),
            text: format!("{kind} told"),
            change,
        }
    }

    fn decided(t_s: u64, leader: Option<&str>, leader_epoch: i32, isr: &[&str]) -> Moment {
        let isr = isr.iter().map(|name| name.to_string()).collect();
        moment(t_s, "isr", "c1", Change::Decided { leader: leader.map(str::to_string), leader_epoch, isr })
    }

    /// b1 leads, falls alone, acknowledges offset 7 alone, dies; b2 leads without it; b1 is back and cuts.
    fn story() -> (SeedResult, Vec<Moment>) {
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
            steps.iter().map(|step| (step.t_us / 1_000_000, step.sign)).collect()
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
