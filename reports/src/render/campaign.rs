//! A campaign for people: a line a cell, what was lost and why that was permitted, failing seeds with why, repro and
//! show, and a last line. The same campaign gives the same text; nothing of the wall clock is in it.

use std::fmt::Write as _;

use super::cell::{CellReport, Loss};
use super::seed;
use super::words::{Style, count, thousands};
use crate::result::{CampaignSummary, Contract, Verdict};

/// Width of the first column.
const NAME_WIDTH: usize = 34;
/// Rules of one cell's losses that are printed.
const LOSSES_SHOWN: usize = 6;

/// Everything about one cell, one line or more.
pub fn cell(report: &CellReport, style: Style) -> String {
    let mut text = String::new();
    let summary = &report.summary;
    let name = format!("{} {}", report.scenario, report.configuration);
    let seeds = match (report.first_seed, report.last_seed) {
        (Some(first), Some(last)) if first == last => format!("seed {first}"),
        (Some(first), Some(last)) => format!("seeds {first}..{last}"),
        _ => "no seeds".to_string(),
    };
    let outcomes: Vec<String> =
        summary.outcomes.iter().map(|(word, seeds)| format!("{word} {}", thousands(*seeds))).collect();
    write_line(
        &mut text,
        &format!(
            "{name:NAME_WIDTH$} {seeds:15} {}   acked {:>9}   {}",
            verdicts(summary, style),
            thousands(summary.acked),
            outcomes.join("  "),
        ),
    );
    losses(&mut text, report, style);
    if let Some(unmet) = &report.unmet {
        write_line(&mut text, &format!("    {}  {unmet}", style.yellow("unmet")));
    }
    for undecided in &report.undecided {
        let word = style.yellow(undecided.verdict.word());
        let seeds = count(undecided.seeds, "seed");
        let (seed, token) = (undecided.first.seed, &undecided.first.token);
        write_line(&mut text, &format!("    {word}  {seeds}, first {seed}: {}", undecided.reason));
        write_line(&mut text, &format!("    show   acked show {token}{}", report.token_suffix));
    }
    for failure in &report.failures {
        text.push_str(&seed::failure(failure, &report.token_suffix, style));
    }
    let failing = summary.violation + summary.nondeterministic;
    let untold = failing.saturating_sub(report.failures.len() as u64);
    if untold > 0 {
        write_line(&mut text, &format!("      and {} more that failed", count(untold, "seed")));
    }
    text
}

fn losses(text: &mut String, report: &CellReport, style: Style) {
    if report.losses.is_empty() {
        return;
    }
    let mut losses: Vec<&Loss> = report.losses.iter().collect();
    losses.sort_by_key(|loss| (std::cmp::Reverse(loss.contract), std::cmp::Reverse(loss.records)));
    let worst = losses[0].contract;
    let contract = format!("contract {}", worst.word());
    let contract = if worst == Contract::Broken { style.red(&contract) } else { contract };
    let (records, seeds) = (thousands(report.summary.lost_total), count(report.lossy_seeds, "seed"));
    write_line(
        text,
        &format!("    {}   {records} acknowledged records in {seeds}, {contract}", style.bold("lost")),
    );
    for loss in losses.iter().take(LOSSES_SHOWN) {
        let (records, seeds) = (count(loss.records, "record"), count(loss.seeds, "seed"));
        let fault = loss.fault.as_ref().map(|fault| format!(" (first: {fault})")).unwrap_or_default();
        let contract = loss.contract.word();
        write_line(text, &format!("           {contract}: {records} in {seeds}; {}{fault}", loss.rule));
    }
    if losses.len() > LOSSES_SHOWN {
        write_line(text, &format!("           and for {} more reasons", losses.len() - LOSSES_SHOWN));
    }
    if let Some(example) = &report.lossy {
        write_line(text, &format!("    show   acked show {}{}", example.token, report.token_suffix));
    }
}

/// `10 pass`, and every other verdict that occurred.
fn verdicts(summary: &CampaignSummary, style: Style) -> String {
    let mut words = vec![style.green(&format!("{:>5} pass", thousands(summary.pass)))];
    for (verdict, seeds) in [
        (Verdict::Violation, summary.violation),
        (Verdict::Nondeterministic, summary.nondeterministic),
        (Verdict::Unknown, summary.unknown),
        (Verdict::Vacuous, summary.vacuous),
        (Verdict::Budget, summary.budget),
    ] {
        if seeds > 0 {
            let word = format!("{} {}", thousands(seeds), verdict.word());
            let bad = matches!(verdict, Verdict::Violation | Verdict::Nondeterministic);
            words.push(if bad { style.red(&word) } else { style.yellow(&word) });
        }
    }
    words.join("  ")
}

/// What the whole campaign ends with.
#[derive(Clone, Debug)]
pub struct Closing<'a> {
    pub summary: &'a CampaignSummary,
    /// The word for how it ended, and the exit code.
    pub verdict: &'a str,
    pub exit: u8,
    pub not_run: u64,
}

/// The last lines of a campaign.
pub fn closing(closing: &Closing<'_>, style: Style) -> String {
    let summary = closing.summary;
    let mut text = String::new();
    let verdict = closing.verdict.to_uppercase();
    let verdict = if closing.exit == 0 { style.green(&verdict) } else { style.red(&verdict) };
    let mut line =
        format!("{verdict}  {}: {}", count(summary.seeds_run, "seed"), verdicts(summary, style).trim());
    if closing.not_run > 0 {
        let _ = write!(line, "  {} not run", thousands(closing.not_run));
    }
    write_line(&mut text, &line);
    write_line(
        &mut text,
        &format!(
            "{} acknowledged, {} of them lost, in {} virtual seconds",
            count(summary.acked, "record"),
            thousands(summary.lost_total),
            thousands(summary.virtual_us / 1_000_000)
        ),
    );
    text
}

fn write_line(text: &mut String, line: &str) {
    text.push_str(line.trim_end());
    text.push('\n');
}
