//! A campaign as JUnit XML: a suite for each scenario and configuration, a case for each property and one for the
//! scenario's own promise, and the first failing seeds as cases of their own. Never a case for every seed. A failure's
//! text begins with the command that brings it back. Source: gating-and-fanout.md.

use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};

use super::words::{count, thousands};
use crate::document::{CellRecord, Document, FindingGroup, PlannedCell};
use crate::result::Contract;

/// Failing seeds that are cases of their own, and bytes of one case's text.
const SEEDS_MAX: usize = 50;
const TEXT_MAX: usize = 64 << 10;

/// The document as XML.
///
/// # Errors
/// A text that cannot stand in XML, in words.
pub fn junit(document: &Document) -> Result<String, String> {
    let mut report = Report::new("acked");
    for (index, (cell, record)) in document.plan.cells.iter().zip(&document.cells).enumerate() {
        report.add_test_suite(suite(document, index, cell, record));
    }
    report.to_string().map_err(|error| error.to_string())
}

fn suite(document: &Document, index: usize, cell: &PlannedCell, record: &CellRecord) -> TestSuite {
    let name = format!("{} {}", cell.scenario, cell.configuration);
    let mut suite = TestSuite::new(name.clone());
    let mut property = |name: &str, value: String| {
        suite.add_property(Property::new(name, value));
    };
    if let (Some(first), Some(last)) = (cell.first_seed, cell.last_seed) {
        property("seeds", format!("{first}..{last}"));
    }
    property("seeds-run", record.summary.seeds_run.to_string());
    property("build", document.tool.build.clone());
    property("scenario-hash", cell.hash.clone());
    property("run", document.run_id.clone());
    let groups: Vec<&FindingGroup> = document
        .findings
        .iter()
        .filter(|group| group.cell == index && group.contract == Contract::Broken)
        .collect();
    for check in &document.checks {
        let compared = record.summary.comparisons.get(&check.id).copied().unwrap_or(0);
        let of_it = groups.iter().find(|group| group.invariant == check.id);
        let status = match of_it {
            Some(group) => failure(cell, group),
            None if compared == 0 => {
                let mut skipped = TestCaseStatus::skipped();
                skipped.set_message("nothing to compare");
                skipped
            }
            None => TestCaseStatus::success(),
        };
        let mut case = TestCase::new(format!("{} {}", check.id, check.name), status);
        case.set_classname(name.clone());
        if compared > 0 {
            case.set_system_out(format!("{} compared", thousands(compared)));
        }
        suite.add_test_case(case);
    }
    // What no check of the list is about: panics, a lost record that only the oracle saw.
    for group in groups.iter().filter(|group| document.checks.iter().all(|check| check.id != group.invariant))
    {
        let mut case = TestCase::new(format!("finding {}", group.invariant), failure(cell, group));
        case.set_classname(name.clone());
        suite.add_test_case(case);
    }
    let mut promise = TestCase::new(format!("promise {}", cell.expect), kept(record));
    promise.set_classname(name.clone());
    suite.add_test_case(promise);
    let mut seeds: Vec<u64> = groups.iter().flat_map(|group| &group.seeds).copied().collect();
    seeds.sort_unstable();
    seeds.dedup();
    for seed in seeds.into_iter().take(SEEDS_MAX) {
        let named: Vec<&str> = groups
            .iter()
            .filter(|group| group.seeds.contains(&seed))
            .map(|group| group.invariant.as_str())
            .collect();
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
        let run = format!(
            "acked run {} --configuration {} --seed {seed}",
            if cell.token_suffix.is_empty() { &cell.scenario } else { &cell.path },
            cell.configuration
        );
        status
            .set_type("violation")
            .set_message(format!("{} violated", named.join(", ")))
            .set_description(run);
        let mut case = TestCase::new(format!("seed {seed}"), status);
        case.set_classname(name.clone());
        suite.add_test_case(case);
    }
    suite
}

fn failure(cell: &PlannedCell, group: &FindingGroup) -> TestCaseStatus {
    let repro = format!("acked repro {}{}", group.simplest.token, cell.token_suffix);
    let mut text = format!(
        "{repro}\n{}\n{}, contract {}, {}, signature {}\n",
        group.text,
        group.outcome.word(),
        group.contract.word(),
        count(group.count, "seed"),
        group.signature
    );
    for range in &group.lost {
        let place = format!("{}-{} {}..{}", range.topic, range.partition, range.from, range.to);
        text.push_str(&format!("lost {place}: {}\n", range.rule));
        if text.len() > TEXT_MAX / 2 {
            text.push_str("and more\n");
            break;
        }
    }
    let mut end = text.len().min(TEXT_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
    status
        .set_type("violation")
        .set_message(group.text.chars().take(400).collect::<String>())
        .set_description(text);
    status
}

/// Whether the scenario's own promise was shown to hold.
fn kept(record: &CellRecord) -> TestCaseStatus {
    let mut why: Vec<String> = record.unmet.iter().cloned().collect();
    why.extend(record.undecided.iter().map(|undecided| {
        let (seeds, verdict) = (count(undecided.seeds, "seed"), undecided.verdict.word());
        format!("{seeds} {verdict}: {}", undecided.reason)
    }));
    if record.summary.seeds_run == 0 {
        let mut skipped = TestCaseStatus::skipped();
        skipped.set_message("no seed ran");
        return skipped;
    }
    if why.is_empty() {
        return TestCaseStatus::success();
    }
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
    status.set_type("inconclusive").set_message(why.join("; "));
    status
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::tests::document;

    #[test]
    fn another_parser_reads_the_suites_with_their_failures() {
        let mut document = document();
        document.cells[1].unmet = Some("must lose, and \u{1b}[31mno loss\u{0} was seen".into());
        let xml = junit(&document).expect("it is well formed");
        let read = junit_parser::from_reader(xml.as_bytes()).expect("another parser reads it");
        assert_eq!(read.suites.len(), 2);
        let names: Vec<&str> = read.suites.iter().map(|suite| suite.name.as_str()).collect();
        assert_eq!(names, ["unclean-election default", "unclean-election safe"]);
        assert_eq!((read.suites[0].failures, read.suites[1].failures), (2, 0));
        assert_eq!(read.suites[1].errors, 1, "a promise that was not met is an error");
        let lost =
            read.suites[0].cases.iter().find(|case| case.original_name == "V1 lost write").expect("its case");
        let junit_parser::TestStatus::Failure(failure) = &lost.status else { panic!("{lost:?}") };
        assert!(failure.text.trim_start().starts_with("acked repro AK1.x"), "{failure:?}");
        assert!(failure.message.contains("is <gone>"), "escaped, and read back: {failure:?}");
        assert!(read.suites[0].cases.iter().any(|case| case.original_name == "seed 9"));
    }

    #[test]
    fn a_million_seeds_are_not_a_million_cases() {
        let mut document = document();
        document.findings[0].seeds = (0..1_000).collect();
        let xml = junit(&document).expect("it is well formed");
        let read = junit_parser::from_reader(xml.as_bytes()).expect("another parser reads it");
        assert!(read.suites[0].cases.len() <= SEEDS_MAX + 4);
    }
}
