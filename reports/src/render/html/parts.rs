//! The parts of the page that are words and numbers: repairs, properties, findings, the schedule as it fired, cells,
//! everything that changed, settings, and what the report does not say.

use maud::{Markup, html};

use super::super::words::{count, seconds, thousands};
use super::{Story, events};
use crate::document::{CellRecord, Document, PlannedCell, Repair};
use crate::result::Contract;
use crate::story::faults::faults;

/// Rows of the longer tables; what is left out is said below them.
const MOMENTS_MAX: usize = 300;
const CELLS_MAX: usize = 200;
const FINDINGS_MAX: usize = 30;
const RANGES_MAX: usize = 10;
const STRIP_MAX: usize = 120;

pub fn repairs(document: &Document, story: Option<&Story<'_>>) -> Markup {
    html! {
        section aria-labelledby="repairs" {
            h2 id="repairs" { "Which setting would have saved it" }
            @if document.whatif.is_empty() {
                p.sub { "Not tried in this run. " @if story.is_some_and(|story| story.lost().is_some()) {
                    "Try one yourself: " code { "acked run " (document.told_cell().map_or("", |cell| &cell.scenario)) " --set topic.min.insync.replicas=2" }
                } }
            } @else {
                p.sub { "The same seeds and the same faults, one setting changed. A bar is the share of seeds that lost acknowledged records." }
                div.bars { @for repair in &document.whatif { (bar(repair)) } }
            }
        }
    }
}

fn bar(repair: &Repair) -> Markup {
    let percent = repair.lossy_seeds * 100 / repair.seeds.max(1);
    let name = if repair.set.is_empty() { "as it was" } else { &repair.set };
    let saved = repair.lossy_seeds == 0 && !repair.set.is_empty();
    html! {
        div {
            div { code { (name) } " " @if saved { strong.good { "no loss" } } }
            div.bar aria-hidden="true" { i style=(format!("width:{percent}%")) {} }
            div.sub {
                (repair.lossy_seeds) " of " (count(repair.seeds, "seed")) " lost " (count(repair.lost, "acknowledged record"))
                "; " (thousands(repair.acked)) " acknowledged, " (thousands(repair.refused)) " refused, "
                "nothing acknowledged for up to " (seconds(repair.pause_us)) " s"
                @if repair.broken > 0 { "; " strong.bad { (count(repair.broken, "seed")) " broke a contract" } }
            }
        }
    }
}

pub fn properties(document: &Document) -> Markup {
    let seeds = document.summary.seeds_run;
    let faults: Vec<String> = document
        .work
        .faults
        .iter()
        .map(|(kind, totals)| format!("{kind} {}/{}", thousands(totals.fired), thousands(totals.armed)))
        .collect();
    let mut checks: Vec<_> = document.checks.iter().collect();
    checks.sort_by_key(|check| (check.violated == 0, check.comparisons == 0));
    html! {
        section aria-labelledby="properties" {
            h2 id="properties" { "Properties" }
            div.checks {
                @for check in checks {
                    div.idle[check.comparisons == 0 && check.violated == 0] title=(check.text) {
                        @if check.violated > 0 { strong.bad { "✗" } }
                        @else if check.comparisons == 0 { span { "–" } }
                        @else { span.good { "✓" } }
                        span { (check.id) " " (check.name) }
                        span.sum {
                            @if check.violated > 0 { (thousands(check.violated)) " of " (count(seeds, "seed")) }
                            @else { (thousands(check.comparisons)) }
                        }
                    }
                }
            }
            p.sub {
                "✓ held, with the number of comparisons; ✗ violated, with the number of seeds; – had nothing to compare. "
                "Faults fired of those planned: " (if faults.is_empty() { "none planned".to_string() } else { faults.join(", ") }) "."
            }
        }
    }
}

pub fn findings(document: &Document) -> Markup {
    if document.findings.is_empty() {
        return html! {};
    }
    html! {
        section aria-labelledby="findings" {
            h2 id="findings" { "Findings, by cause" }
            @for group in document.findings.iter().take(FINDINGS_MAX) {
                @let cell = &document.plan.cells[group.cell];
                div.finding.broken[group.contract == Contract::Broken] tabindex="-1" {
                    strong.bad[group.contract == Contract::Broken] {
                        (group.invariant) " " (group.outcome.word()) ", contract " (group.contract.word())
                    }
                    " in " (count(group.count, "seed")) " of " (cell.scenario) " " (cell.configuration)
                    span.sub { " · signature " (group.signature) }
                    div { (group.text) }
                    @if !group.lost.is_empty() {
                        div.sub {
                            "lost in seed " (group.simplest.seed) ": "
                            @for (index, range) in group.lost.iter().take(RANGES_MAX).enumerate() {
                                @if index > 0 { ", " }
                                (range.topic) "-" (range.partition) " " (range.from)
                                @if range.to != range.from { ".." (range.to) }
                            }
                            @if group.lost.len() > RANGES_MAX { " and " (count((group.lost.len() - RANGES_MAX) as u64, "more range")) }
                        }
                    }
                    div { code { "acked show " (group.simplest.token) (cell.token_suffix) } }
                }
            }
            (more(document.findings.len(), FINDINGS_MAX, "finding"))
        }
    }
}

fn more(all: usize, shown: usize, what: &str) -> Markup {
    html! { @if all > shown { p.sub { "and " (count((all - shown) as u64, &format!("more {what}"))) ": see result.json" } } }
}

pub fn schedule(document: &Document, story: &Story<'_>) -> Markup {
    let planned = document.told_cell().map(|cell| cell.faults.as_slice()).unwrap_or_default();
    let fired = faults(story.moments);
    html! {
        section aria-labelledby="schedule" {
            h2 id="schedule" { "The schedule as it fired" }
            p.sub { (count(fired.len() as u64, "fault")) " of " (planned.len()) " planned. It was not made smaller: every fault of the scenario is in it." }
            div.wide { table {
                tr { th { "fault" } th { "kind" } th.n { "first strike" } th.n { "strikes" } th { "hit" } }
                @for fault in &fired {
                    @let mut nodes: Vec<&str> = fault.spans.iter().flat_map(|span| &span.nodes).map(String::as_str).collect();
                    @let () = { nodes.sort_unstable(); nodes.dedup(); };
                    tr {
                        td { (fault.id) } td { (fault.kind) }
                        td.n { (fault.spans.first().map(|span| seconds(span.from_us)).unwrap_or_default()) " s" }
                        td.n { (fault.spans.len()) } td { (nodes.join(" ")) }
                    }
                }
            } }
        }
    }
}

pub fn cells(document: &Document) -> Markup {
    let rows: Vec<(&PlannedCell, &CellRecord)> = document.plan.cells.iter().zip(&document.cells).collect();
    html! {
        section aria-labelledby="cells" {
            h2 id="cells" { "Work done" }
            p.sub {
                (count(document.work.seeds_run, "seed")) " in " (thousands(document.work.virtual_us / 1_000_000)) " virtual seconds, "
                (thousands(document.work.events)) " events"
                @if document.work.not_run > 0 { "; " (count(document.work.not_run, "seed")) " not run" }
                "."
            }
            div.wide { table {
                tr {
                    th { "scenario" } th { "configuration" } th { "promise" } th.n { "seeds" } th.n { "pass" } th.n { "acked" }
                    th.n { "lost" } th { "outcomes" } th { "a letter a seed" }
                }
                @for (cell, record) in rows.iter().take(CELLS_MAX) { (row(cell, record)) }
            } }
            p.sub { ". pass, l pass with a loss that the settings allow, F violation, N nondeterministic, v vacuous, u unknown, b out of budget" }
            (more(rows.len(), CELLS_MAX, "row"))
        }
    }
}

fn row(cell: &PlannedCell, record: &CellRecord) -> Markup {
    let summary = &record.summary;
    let outcomes: Vec<String> =
        summary.outcomes.iter().map(|(word, seeds)| format!("{word} {}", thousands(*seeds))).collect();
    html! {
        tr {
            td { (cell.scenario) } td { (cell.configuration) } td { (cell.expect) }
            td.n { (thousands(summary.seeds_run)) } td.n { (thousands(summary.pass)) } td.n { (thousands(summary.acked)) }
            td.n { (thousands(summary.lost_total)) }
            td {
                (outcomes.join(", "))
                @if let Some(unmet) = &record.unmet { br; strong.warn { "unmet: " (unmet) } }
                @for undecided in record.undecided.iter().take(3) {
                    br; (undecided.verdict.word()) " " (undecided.seeds) ": " (undecided.reason)
                }
            }
            td.mono.strip {
                (record.strip.chars().take(STRIP_MAX).collect::<String>())
                @if record.strip.len() > STRIP_MAX || summary.seeds_run > record.strip.len() as u64 { "…" }
            }
        }
    }
}

pub fn everything(story: &Story<'_>) -> Markup {
    let rows: Vec<_> = story.moments.iter().filter(|moment| !moment.is_frequent()).collect();
    html! {
        section aria-labelledby="everything" {
            h2 id="everything" { "Everything that changed" }
            details {
                summary { (count(rows.len() as u64, "line")) ", without appends, acknowledgements and watermark steps" }
                div.wide { table {
                    tr { th.n { "seconds" } th { "who" } th { "what changed" } }
                    @for moment in rows.iter().take(MOMENTS_MAX) {
                        tr {
                            td.n { (seconds(moment.t_us)) } td { (moment.who) }
                            td {
                                @if let Some(partition) = moment.partition.as_ref().filter(|name| **name != story.partition) { (partition) ": " }
                                (moment.text)
                            }
                        }
                    }
                } }
                (more(rows.len(), MOMENTS_MAX, "line"))
            }
        }
    }
}

pub fn settings(document: &Document) -> Markup {
    let told = document.told.as_ref().map(|told| told.cell);
    html! {
        section aria-labelledby="settings" {
            h2 id="settings" { "Environment and settings" }
            p.sub {
                (document.tool.name) " " (document.tool.version) ", build " (document.tool.build)
                @if !document.plan.mutate.is_empty() { ". Planted bugs: " (document.plan.mutate.join(", ")) }
                @if !document.plan.set.is_empty() {
                    ". Set by hand: "
                    @for (index, (name, value)) in document.plan.set.iter().enumerate() { @if index > 0 { ", " } code { (name) "=" (value) } }
                }
                ". What is not named here has Kafka's default."
            }
            @for (index, cell) in document.plan.cells.iter().enumerate().take(CELLS_MAX) {
                details open[told == Some(index)] {
                    summary { (cell.scenario) " " (cell.configuration) }
                    div.wide { table {
                        @for (name, value) in &cell.settings {
                            tr {
                                td.mono { (name) } td.mono { (value) }
                                td { @if cell.unmodelled.contains(name) { strong.warn { "no effect here" } } }
                            }
                        }
                        @if cell.settings.is_empty() { tr { td { "Kafka's defaults" } } }
                    } }
                }
            }
        }
    }
}

pub fn limits(document: &Document, story: Option<&Story<'_>>) -> Markup {
    html! {
        section aria-labelledby="limits" {
            h2 id="limits" { "What this report does not say" }
            ul {
                @for part in &document.limits.truncated {
                    li { (part.what) ": " (thousands(part.kept)) " of " (thousands(part.total)) " are kept." }
                }
                @match story {
                    Some(story) => {
                        li { "It tells one seed of " (thousands(document.work.seeds_run)) "; " code { "acked show" } " tells any other by its token." }
                        @let total = events::total(story);
                        @if total > events::EVENTS_MAX {
                            li { "The search looks through " (thousands(events::EVENTS_MAX as u64)) " events of " (thousands(total as u64)) "." }
                        }
                    }
                    None => li { "No story was kept with it: " code { "acked show" } " tells one by its token." },
                }
                li { "Times are virtual; nothing here says how fast a real cluster is." }
                li { "A property is held against the seeds that ran, and proves nothing about others." }
            }
        }
    }
}
