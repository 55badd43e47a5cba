//! One seed for people: its numbers, its findings, and for a failing one why, repro and show.

use std::fmt::Write as _;

use super::words::{Style, count, seconds, thousands};
use crate::result::{Contract, Finding, SeedResult, Verdict};

/// Findings and lost ranges of one seed that are printed.
const SHOWN_MAX: usize = 5;

/// The block that a failing seed ends with.
pub fn failure(result: &SeedResult, token_suffix: &str, style: Style) -> String {
    let mut text = String::new();
    let head = format!("{} {}, seed {}", result.scenario, result.configuration, result.seed);
    let contract = result.contract.word();
    line(
        &mut text,
        &format!("{}  {head}: {}, contract {contract}", style.red("FAIL"), result.outcome.word()),
    );
    findings(&mut text, result);
    line(&mut text, &format!("why     {}", why(result)));
    line(&mut text, &format!("repro   acked repro {}{token_suffix}", result.token));
    line(&mut text, &format!("show    acked show {}{token_suffix}", result.token));
    text
}

/// Everything about one seed.
pub fn whole(result: &SeedResult, token_suffix: &str, style: Style) -> String {
    let mut text = String::new();
    line(
        &mut text,
        &format!(
            "{} {}, seed {}: {}, {}, contract {}",
            result.scenario,
            result.configuration,
            result.seed,
            verdict(result.verdict, style),
            result.outcome.word(),
            result.contract.word()
        ),
    );
    if let Some(reason) = &result.reason {
        line(&mut text, &format!("  reason    {reason}"));
    }
    line(
        &mut text,
        &format!(
            "  records   {} sent, {} acknowledged, {} unknown, {} refused, {} read back, {} lost",
            thousands(result.sent),
            thousands(result.acked),
            thousands(result.indeterminate),
            thousands(result.refused),
            thousands(result.read_back),
            thousands(result.lost_total)
        ),
    );
    let faults: Vec<String> = result
        .faults
        .iter()
        .map(|fault| format!("{} {} of {} fired", fault.kind, fault.fired, fault.armed))
        .collect();
    line(
        &mut text,
        &format!("  faults    {}", if faults.is_empty() { "none".into() } else { faults.join(", ") }),
    );
    let checks: Vec<String> =
        result.comparisons.iter().map(|(check, made)| format!("{check} {}", thousands(*made))).collect();
    for (row, chunk) in checks.chunks(9).enumerate() {
        let name = if row == 0 { "compared" } else { "" };
        line(&mut text, &format!("  {name:9} {}", chunk.join("  ")));
    }
    line(
        &mut text,
        &format!(
            "  events    {} in {} virtual seconds, hash {}",
            thousands(result.events),
            seconds(result.virtual_us),
            result.hash
        ),
    );
    lost(&mut text, result);
    findings(&mut text, result);
    if result.verdict == Verdict::Violation {
        line(&mut text, &format!("why     {}", why(result)));
    }
    line(&mut text, &format!("token   {}{token_suffix}", result.token));
    text
}

fn verdict(verdict: Verdict, style: Style) -> String {
    match verdict {
        Verdict::Pass => style.green(verdict.word()),
        Verdict::Violation | Verdict::Nondeterministic => style.red(verdict.word()),
        Verdict::Unknown | Verdict::Vacuous | Verdict::Budget => style.yellow(verdict.word()),
    }
}

fn lost(text: &mut String, result: &SeedResult) {
    for range in result.lost.iter().take(SHOWN_MAX) {
        line(
            text,
            &format!(
                "  lost      {} of {}-{}, offsets {}, acks={}, contract {}: {}",
                count(range.count, "acknowledged record"),
                range.topic,
                range.partition,
                offsets(range.from, range.to),
                acks(range.acks),
                range.contract.word(),
                range.rule
            ),
        );
    }
    more(text, result.lost.len(), "lost ranges");
}

fn findings(text: &mut String, result: &SeedResult) {
    for finding in result.findings.iter().take(SHOWN_MAX) {
        line(text, &format!("  {:9} {}", finding.invariant, sentence(finding)));
    }
    more(text, result.findings.len(), "findings");
}

fn more(text: &mut String, all: usize, what: &str) {
    if all > SHOWN_MAX {
        line(text, &format!("            and {} more {what}", all - SHOWN_MAX));
    }
}

fn sentence(finding: &Finding) -> String {
    let mut text = format!("{}, contract {}", finding.outcome.word(), finding.contract.word());
    if let (Some(topic), Some(partition)) = (&finding.topic, finding.partition) {
        let _ = write!(text, ", {topic}-{partition}");
    }
    if let (Some(first), Some(last)) = (finding.first_offset, finding.last_offset) {
        let _ = write!(text, ", offsets {}", offsets(first, last));
    }
    if let Some(node) = &finding.node {
        let _ = write!(text, ", on {node}");
    }
    let _ = write!(text, ", at {} s", seconds(finding.time_us));
    if finding.count > 1 {
        let _ = write!(text, ", {} times", thousands(finding.count));
    }
    let _ = write!(text, ": {}", finding.text);
    text
}

/// The cause in one sentence: what broke the contract, the rule that does or does not permit it, and what fired.
pub fn why(result: &SeedResult) -> String {
    let mut text = if let Some(range) = result.lost.iter().max_by_key(|range| range.contract) {
        let records = count(range.count, "acknowledged record");
        let place = format!("{}-{} {}", range.topic, range.partition, offsets(range.from, range.to));
        format!("{records} lost ({place}), {}", range.rule)
    } else if let Some(finding) = result.findings.iter().find(|finding| finding.contract == Contract::Broken)
    {
        format!("{}: {}", finding.invariant, finding.text)
    } else {
        result.reason.clone().unwrap_or_else(|| "no reason given".into())
    };
    let fired: Vec<String> = result
        .faults
        .iter()
        .filter(|fault| fault.fired > 0)
        .map(|fault| format!("{} x{}", fault.kind, fault.fired))
        .collect();
    let fired = if fired.is_empty() { "no fault".to_string() } else { fired.join(", ") };
    let _ = write!(text, "; fired: {fired}");
    text
}

fn offsets(first: i64, last: i64) -> String {
    if first == last { first.to_string() } else { format!("{first}..{last}") }
}

fn acks(acks: i16) -> String {
    if acks == -1 { "all".into() } else { acks.to_string() }
}

fn line(text: &mut String, content: &str) {
    text.push_str(content.trim_end());
    text.push('\n');
}
