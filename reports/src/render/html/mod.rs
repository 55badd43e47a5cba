//! A campaign as one page: a file that needs nothing else, no network, no font, no script from elsewhere. The verdict, the
//! story of one seed as sentences and as a picture, logs at a few moments, what would have saved it, every property, and
//! tables of the rest. Every text is escaped; the same document and story give the same bytes. Without scripts only the
//! keys, the copying and the search are missing. Source: reports.md 3 to 5.
//!
//! - `strip`: the story as a picture, and the same as a table.
//! - `moments`: logs at a few moments.
//! - `parts`: repairs, properties, findings, cells, settings, limits.
//! - `events`: what the search looks through, as JSON that is never evaluated.
//! - `page.css`, `page.js`: looks and keys.

mod events;
mod moments;
mod parts;
mod strip;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::words::{count, thousands};
use crate::document::{Document, Told};
use crate::result::{Contract, LostRange, Verdict};
use crate::story::beats::{Beat, beats};
use crate::story::{self, Moment};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// The only script that the page's own policy lets run.
const SCRIPT_SHA256: &str = "brHKeAwesbNb+tlhXDeZ9hRzOzOLCaf03EO9N4YnJ/4=";

/// Bytes of a page without the events in it.
pub const STATIC_BYTES_MAX: usize = 200 << 10;

/// What every part of the page draws from.
struct Story<'a> {
    told: &'a Told,
    moments: &'a [Moment],
    partition: String,
    end_us: u64,
    beats: Vec<Beat>,
}

impl Story<'_> {
    /// The lost range that is told: of the worst contract.
    fn lost(&self) -> Option<&LostRange> {
        let here = |range: &&LostRange| format!("{}-{}", range.topic, range.partition) == self.partition;
        self.told.result.lost.iter().filter(here).max_by_key(|range| range.contract)
    }
}

/// The whole page. Without a story (`moments` empty) it has everything else.
pub fn page(document: &Document, moments: &[Moment]) -> String {
    let story = document.told.as_ref().filter(|_| !moments.is_empty()).map(|told| {
        let partition = story::partition(&told.result, moments, None);
        let beats = beats(&told.result, moments, &partition);
        Story { told, moments, partition, end_us: story::end_us(&told.result, moments), beats }
    });
    let policy = format!(
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{SCRIPT_SHA256}'; \
         base-uri 'none'; form-action 'none'"
    );
    let title = format!("{}: {}", document.verdict.to_uppercase(), document.headline());
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="generator" content={ "acked " (document.tool.version) " build " (document.tool.build) };
                link rel="icon" href="data:,";
                title { (title) " · acked" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (header(document))
                main {
                    @if let Some(story) = &story {
                        (sentences(story))
                        section aria-labelledby="strip-head" {
                            h2 id="strip-head" { "The story of " (story.partition) }
                            (strip::picture(story, document))
                        }
                        (moments::logs(story))
                    }
                    div.pair {
                        (parts::repairs(document, story.as_ref()))
                        (parts::properties(document))
                    }
                    (parts::findings(document))
                    @if let Some(story) = &story { (parts::schedule(document, story)) }
                    (parts::cells(document))
                    @if let Some(story) = &story { (parts::everything(story)) }
                    (parts::settings(document))
                    (parts::limits(document, story.as_ref()))
                }
                (footer(document))
                div.help id="help" role="dialog" aria-label="Keys" hidden {
                    strong { "Keys" } br;
                    kbd { "j" } " " kbd { "k" } " next, previous step of the story" br;
                    kbd { "n" } " " kbd { "p" } " next, previous finding" br;
                    kbd { "/" } " find a record by its offset" br;
                    kbd { "?" } " this; " kbd { "Esc" } " closes it"
                }
                @if let Some(story) = &story { (events::data(story)) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

fn header(document: &Document) -> Markup {
    let told = document.told.as_ref();
    let contract = document.summary_contract();
    let class = match (contract, document.exit) {
        (Contract::Broken, _) | (_, 1 | 5 | 6) => "bad",
        (_, 0) if document.summary.lost_total == 0 => "good",
        _ => "warn",
    };
    html! {
        header {
            h1 {
                span.badge.(class) { (document.verdict.to_uppercase()) }
                (document.headline())
            }
            p.sub {
                @if let Some(Told { result, why, .. }) = told {
                    strong { "contract " (result.contract.word()) }
                    " · " (result.scenario) " " (result.configuration) ", seed " (result.seed) ", " (why) " · "
                }
                (verdicts(document))
            }
            @if let Some(cell) = document.told_cell() { p.sub { em { (cell.ask) } } }
            @if let (Some(told), Some(cell)) = (told, document.told_cell()) {
                (command("repro", &format!("acked repro {}{}", told.result.token, cell.token_suffix)))
                (command("show", &format!("acked show {}{}", told.result.token, cell.token_suffix)))
            }
        }
    }
}

fn verdicts(document: &Document) -> String {
    let summary = &document.summary;
    let mut words =
        vec![format!("{} of {}", thousands(summary.pass), count(summary.seeds_run, "seed")) + " pass"];
    for (seeds, verdict) in [
        (summary.violation, Verdict::Violation),
        (summary.nondeterministic, Verdict::Nondeterministic),
        (summary.unknown, Verdict::Unknown),
        (summary.vacuous, Verdict::Vacuous),
        (summary.budget, Verdict::Budget),
    ] {
        if seeds > 0 {
            words.push(format!("{} {}", thousands(seeds), verdict.word()));
        }
    }
    if document.work.not_run > 0 {
        words.push(format!("{} not run", thousands(document.work.not_run)));
    }
    words.join(", ")
}

fn command(what: &str, text: &str) -> Markup {
    let id = format!("command-{what}");
    html! {
        div.command {
            span.label { (what) }
            code id=(id) { (text) }
            button.js type="button" data-copy=(id) hidden { "copy" }
        }
    }
}

fn sentences(story: &Story<'_>) -> Markup {
    html! {
        section aria-labelledby="happened" {
            h2 id="happened" { "What happened" }
            ol.beats {
                @for (index, beat) in story.beats.iter().enumerate() {
                    li id=(format!("s{}", index + 1)) {
                        a href=(format!("#m{}", index + 1)) {
                            span.no { (index + 1) }
                            span.at { (super::words::seconds(beat.t_us)) " s" }
                            span { (beat.text) }
                        }
                    }
                }
                @if story.beats.is_empty() { li { "No fault fired and nothing changed." } }
            }
            form.js hidden {
                p {
                    label for="find" { "What became of offset " }
                    input id="find" name="offset" inputmode="numeric" size="8" autocomplete="off";
                    " of " (story.partition) "? "
                    button type="submit" { "find" }
                }
                ol id="found" class="mono" aria-live="polite" {}
            }
        }
    }
}

fn footer(document: &Document) -> Markup {
    html! {
        footer {
            p {
                "Made by " (document.tool.name) " " (document.tool.version) ", build " (document.tool.build)
                ", run " (document.run_id) "."
                @if let Some(created) = document.created { " Dated " (created) " seconds after 1970 by SOURCE_DATE_EPOCH." }
                span.js hidden { " Press " kbd { "?" } " for keys." }
            }
        }
    }
}

#[cfg(test)]
mod tests;
