//! A campaign as GitHub shows it: annotations on the scenario's lines, one for a cause, and the outputs of a step. The
//! step's summary is the Markdown one. Source: gating-and-fanout.md, the workflow commands of GitHub Actions.

use std::fmt::Write as _;

use crate::document::Document;
use crate::result::Contract;

/// The platform shows no more of one kind in a step.
const ANNOTATIONS_MAX: usize = 10;

/// Workflow commands, a line each: `error` for a broken contract, `warning` for what says less than was promised,
/// `notice` for a loss that the settings allow.
pub fn annotations(document: &Document) -> String {
    let (mut errors, mut warnings, mut notices) = (Vec::new(), Vec::new(), Vec::new());
    for group in &document.findings {
        let cell = &document.plan.cells[group.cell];
        let (kind, lines) = match group.contract {
            Contract::Broken => ("error", &mut errors),
            Contract::Kept | Contract::NotPromised => ("notice", &mut notices),
        };
        let title = format!("{} {} ({})", group.invariant, group.outcome.word(), cell.scenario);
        let text = format!(
            "{}\n{} seeds, contract {}, signature {}\nacked repro {}{}",
            group.text,
            group.count,
            group.contract.word(),
            group.signature,
            group.simplest.token,
            cell.token_suffix
        );
        lines.push(command(kind, &cell.path, cell.line, &title, &text));
    }
    for (cell, record) in document.plan.cells.iter().zip(&document.cells) {
        let title = format!("{} {} proves less than promised", cell.scenario, cell.configuration);
        if let Some(unmet) = &record.unmet {
            warnings.push(command("warning", &cell.path, cell.line, &title, unmet));
        }
        for undecided in &record.undecided {
            let text = format!(
                "{} seeds {}: {}\nacked show {}{}",
                undecided.seeds,
                undecided.verdict.word(),
                undecided.reason,
                undecided.first.token,
                cell.token_suffix
            );
            warnings.push(command("warning", &cell.path, cell.line, &title, &text));
        }
    }
    let shown = |lines: Vec<String>| lines.into_iter().take(ANNOTATIONS_MAX);
    shown(errors).chain(shown(warnings)).chain(shown(notices)).collect()
}

fn command(kind: &str, file: &str, line: u64, title: &str, text: &str) -> String {
    format!("::{kind} file={},line={line},title={}::{}\n", property(file), property(title), message(text))
}

/// Escapes what would end a message.
fn message(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes what would end a property as well.
fn property(text: &str) -> String {
    message(text).replace(':', "%3A").replace(',', "%2C")
}

/// What later steps read: `verdict`, `failures`, `report`.
pub fn outputs(document: &Document, report: &str) -> String {
    let mut text = String::new();
    let report: String = report.chars().filter(|letter| !letter.is_control()).collect();
    let _ = writeln!(text, "verdict={}", document.verdict);
    let _ = writeln!(text, "failures={}", document.failures());
    let _ = writeln!(text, "report={report}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::tests::document;

    #[test]
    fn a_broken_contract_is_an_error_on_the_configurations_line_and_a_licensed_loss_a_notice() {
        let text = annotations(&document());
        let lines: Vec<&str> = text.lines().collect();
        let place = "file=scenarios/catalogue/durability/unclean-election.toml,line=38";
        assert!(
            lines[0].starts_with(&format!("::error {place},title=V1 LOST (unclean-election)::")),
            "{text}"
        );
        assert!(lines[0].contains("%0Aacked repro AK1.x"), "{text}");
        assert!(lines.iter().any(|line| line.starts_with("::notice ")), "{text}");
    }

    #[test]
    fn nothing_in_a_text_ends_a_command() {
        assert_eq!(message("100%\r\nx"), "100%25%0D%0Ax");
        assert_eq!(property("a:b,c"), "a%3Ab%2Cc");
    }

    #[test]
    fn ten_of_a_kind_are_shown_and_outputs_are_three_lines() {
        let mut document = document();
        let group = document.findings[0].clone();
        document.findings = vec![group; 30];
        assert_eq!(annotations(&document).lines().count(), ANNOTATIONS_MAX);
        assert_eq!(outputs(&document, "a\nb"), "verdict=violated\nfailures=1\nreport=ab\n");
    }
}
