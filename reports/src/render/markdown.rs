//! A campaign as Markdown: verdict, findings, the story of one seed drawn as text, cells, and the commands that bring it
//! back. Also what a CI job shows as its summary, so it is bounded.

use std::fmt::Write as _;

use super::timeline::{Canvas, draw};
use super::words::{count, thousands};
use crate::document::Document;
use crate::result::Contract;
use crate::story::Moment;

/// Job summaries longer than this are refused where they are uploaded (the limit is 1 MiB).
pub const BYTES_MAX: usize = 1_000_000;
const FINDINGS_MAX: usize = 20;
const CELLS_MAX: usize = 200;

/// The summary; never longer than [`BYTES_MAX`].
pub fn summary(document: &Document, moments: &[Moment]) -> String {
    let mut text = String::new();
    let mut line = |content: &str| {
        text.push_str(content);
        text.push('\n');
    };
    line(&format!("## acked: {}", document.verdict.to_uppercase()));
    line("");
    line(&escaped(&document.headline()));
    line("");
    let (summary, failures) = (&document.summary, document.failures());
    line(&format!(
        "{} of {} pass, {} failed, {} of {} acknowledged records lost. Build {}, run {}.",
        thousands(summary.pass),
        count(summary.seeds_run, "seed"),
        thousands(failures),
        thousands(summary.lost_total),
        thousands(summary.acked),
        document.tool.build,
        document.run_id
    ));
    line("");
    if !document.findings.is_empty() {
        line("| finding | contract | scenario | seeds | text |");
        line("|---|---|---|---|---|");
        for group in document.findings.iter().take(FINDINGS_MAX) {
            let cell = &document.plan.cells[group.cell];
            let contract = match group.contract {
                Contract::Broken => "**broken**",
                contract => contract.word(),
            };
            line(&format!(
                "| {} {} | {contract} | {} {} | {} | {} |",
                escaped(&group.invariant),
                group.outcome.word(),
                escaped(&cell.scenario),
                escaped(&cell.configuration),
                thousands(group.count),
                escaped(&group.text)
            ));
        }
        if document.findings.len() > FINDINGS_MAX {
            line("");
            line(&format!("and {} more", document.findings.len() - FINDINGS_MAX));
        }
        line("");
    }
    if let Some(told) = document.told.as_ref().filter(|_| !moments.is_empty()) {
        let canvas = Canvas { width: 100, ascii: true, everything: false };
        let drawn = draw(&told.result, moments, None, canvas);
        // The list of all that changed is for the page and the terminal.
        let picture = drawn.split("\n  seconds  who").next().unwrap_or(&drawn);
        line(&fenced(picture.trim_end()));
        line("");
    }
    if let (Some(told), Some(cell)) = (&document.told, document.told_cell()) {
        line(&fenced(&format!("acked repro {}{}", told.result.token, cell.token_suffix)));
        line("");
    }
    if !document.whatif.is_empty() {
        line("| one setting changed | seeds that lose | records lost | refused |");
        line("|---|---|---|---|");
        for repair in &document.whatif {
            let set = if repair.set.is_empty() { "as it was" } else { &repair.set };
            let (lossy, seeds) = (repair.lossy_seeds, repair.seeds);
            let (lost, refused) = (thousands(repair.lost), thousands(repair.refused));
            line(&format!("| `{}` | {lossy} of {seeds} | {lost} | {refused} |", set.replace(['`', '|'], "")));
        }
        line("");
    }
    line("<details><summary>all scenarios</summary>");
    line("");
    line("| scenario | configuration | promise | seeds | pass | acked | lost |");
    line("|---|---|---|---|---|---|---|");
    for (cell, record) in document.plan.cells.iter().zip(&document.cells).take(CELLS_MAX) {
        let summary = &record.summary;
        line(&format!(
            "| {} | {} | {} | {} | {} | {} | {} |",
            escaped(&cell.scenario),
            escaped(&cell.configuration),
            cell.expect,
            thousands(summary.seeds_run),
            thousands(summary.pass),
            thousands(summary.acked),
            thousands(summary.lost_total)
        ));
    }
    line("");
    line("</details>");
    bounded(text)
}

fn bounded(mut text: String) -> String {
    if text.len() > BYTES_MAX {
        let note = "\n\nThe rest is left out: see the page.\n";
        let mut end = BYTES_MAX - note.len();
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        let _ = write!(text, "{note}");
    }
    text
}

/// A text that means itself in Markdown, on one line and in a table.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\r' => safe.push(' '),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' | '#' | '~' | '!' => {
                safe.push('\\');
                safe.push(letter);
            }
            _ => safe.push(letter),
        }
    }
    safe
}

/// A block in which nothing means anything.
fn fenced(text: &str) -> String {
    let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}text\n{text}\n{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::tests::document;
    use crate::story::life::tests::story;

    #[test]
    fn the_summary_has_verdict_findings_picture_and_command() {
        let (_, moments) = story();
        let text = summary(&document(), &moments);
        for word in [
            "## acked: VIOLATED",
            "| V1 LOST | **broken** |",
            "high wmark",
            "acked repro AK1.x",
            "unclean-election",
        ] {
            assert!(text.contains(word), "{word}: {text}");
        }
        assert!(!text.contains("<gone>"), "a text is escaped: {text}");
    }

    #[test]
    fn what_is_too_long_ends_with_a_note_and_a_fence_holds_what_is_in_it() {
        let text = bounded("é".repeat(BYTES_MAX));
        assert!(text.len() <= BYTES_MAX && text.ends_with("see the page.\n"));
        assert!(fenced("a ```` b").starts_with("`````text\n"));
    }
}
