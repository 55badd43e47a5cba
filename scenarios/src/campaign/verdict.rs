//! From what a campaign saw to its exit code. Pure: everything it needs is counted before.

use acked_reports::{SeedResult, Verdict};
use acked_sim::plan::Expectation;

use crate::exit::Exit;

/// More vacuous seeds than this of every hundred prove too little.
const VACUOUS_PERCENT_MAX: u64 = 5;

/// Counts of one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellTally {
    pub expectation: Expectation,
    pub seeds_run: u64,
    pub pass: u64,
    pub violation: u64,
    pub unknown: u64,
    pub vacuous: u64,
    pub budget: u64,
    pub nondeterministic: u64,
    /// Seeds in which acknowledged data was lost.
    pub lossy: u64,
    /// Seeds whose process ended without a result.
    pub died: u64,
}

impl CellTally {
    pub fn new(expectation: Expectation) -> CellTally {
        CellTally {
            expectation,
            seeds_run: 0,
            pass: 0,
            violation: 0,
            unknown: 0,
            vacuous: 0,
            budget: 0,
            nondeterministic: 0,
            lossy: 0,
            died: 0,
        }
    }

    pub fn add(&mut self, result: &SeedResult, died: bool) {
        self.seeds_run += 1;
        *match result.verdict {
            Verdict::Pass => &mut self.pass,
            Verdict::Violation => &mut self.violation,
            Verdict::Unknown => &mut self.unknown,
            Verdict::Vacuous => &mut self.vacuous,
            Verdict::Budget => &mut self.budget,
            Verdict::Nondeterministic => &mut self.nondeterministic,
        } += 1;
        self.lossy += u64::from(result.lost_total > 0);
        self.died += u64::from(died);
    }

    /// Why the cell says less than its scenario promises, if it does.
    pub fn unmet(&self) -> Option<&'static str> {
        if self.seeds_run == 0 {
            return None;
        }
        match self.expectation {
            Expectation::MustLose if self.lossy == 0 => Some("must lose, and no loss was seen"),
            Expectation::Never if self.lossy > 0 => Some("never loses, it says, and did"),
            _ => None,
        }
    }
}

/// How a campaign came to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// A signal asked for it.
    pub signalled: Option<Exit>,
    /// The budget ended it before everything that was asked for had run.
    pub out_of_time: bool,
    /// The reader of the results went away before they were complete.
    pub reader_gone: bool,
}

/// The exit code. What is worse, or surer, comes first.
pub fn exit(cells: &[CellTally], ending: Ending) -> Exit {
    let sum = |count: fn(&CellTally) -> u64| cells.iter().map(count).sum::<u64>();
    let seeds_run = sum(|cell| cell.seeds_run);
    if let Some(exit) = ending.signalled {
        return exit;
    }
    if sum(|cell| cell.nondeterministic) > 0 {
        return Exit::Nondeterministic;
    }
    if sum(|cell| cell.violation) > 0 {
        return Exit::Broken;
    }
    if ending.reader_gone {
        return Exit::InputOutput;
    }
    if sum(|cell| cell.died) > 0 {
        return Exit::Internal;
    }
    let too_vacuous = sum(|cell| cell.vacuous) * 100 > seeds_run * VACUOUS_PERCENT_MAX;
    let undecided = sum(|cell| cell.unknown + cell.budget) > 0;
    let unmet = cells.iter().any(|cell| cell.unmet().is_some());
    if too_vacuous || undecided || unmet || ending.out_of_time || seeds_run == 0 {
        return Exit::Inconclusive;
    }
    Exit::Held
}

#[cfg(test)]
mod tests {
    use super::*;

    fn green(expectation: Expectation) -> CellTally {
        let lossy = if expectation == Expectation::MustLose { 1 } else { 0 };
        CellTally { seeds_run: 100, pass: 100, lossy, ..CellTally::new(expectation) }
    }

    fn code(cell: CellTally) -> u8 {
        exit(&[green(Expectation::Never), cell], Ending::default()).code()
    }

    #[test]
    fn everything_that_ran_and_held_is_0() {
        for expectation in [Expectation::Never, Expectation::May, Expectation::MustLose] {
            assert_eq!(code(green(expectation)), 0);
        }
        assert_eq!(code(CellTally { lossy: 3, ..green(Expectation::May) }), 0, "a licensed loss is allowed");
    }

    #[test]
    fn one_violation_is_1_whatever_else_is_wrong() {
        let broken =
            CellTally { violation: 1, vacuous: 50, unknown: 1, died: 1, ..green(Expectation::Never) };
        assert_eq!(code(broken), 1);
        let gone = Ending { reader_gone: true, ..Ending::default() };
        assert_eq!(exit(&[broken], gone), Exit::Broken);
    }

    #[test]
    fn more_than_one_vacuous_seed_in_twenty_is_3() {
        assert_eq!(
            exit(&[CellTally { vacuous: 5, ..green(Expectation::May) }], Ending::default()),
            Exit::Held
        );
        let six = CellTally { vacuous: 6, ..green(Expectation::May) };
        assert_eq!(exit(&[six], Ending::default()), Exit::Inconclusive);
    }

    #[test]
    fn what_could_not_be_decided_is_3() {
        assert_eq!(code(CellTally { unknown: 1, ..green(Expectation::May) }), 3);
        assert_eq!(code(CellTally { budget: 1, ..green(Expectation::May) }), 3);
    }

    #[test]
    fn an_expectation_that_is_not_met_is_3() {
        assert_eq!(code(CellTally { lossy: 0, ..green(Expectation::MustLose) }), 3);
        assert_eq!(code(CellTally { lossy: 1, ..green(Expectation::Never) }), 3);
    }

    #[test]
    fn a_cell_without_seeds_is_not_blamed_for_what_it_could_not_see() {
        assert_eq!(code(CellTally::new(Expectation::MustLose)), 0);
        assert_eq!(exit(&[CellTally::new(Expectation::Never)], Ending::default()), Exit::Inconclusive);
    }

    #[test]
    fn nondeterminism_is_5_and_a_dead_worker_70() {
        assert_eq!(code(CellTally { nondeterministic: 1, violation: 1, ..green(Expectation::May) }), 5);
        assert_eq!(code(CellTally { unknown: 1, died: 1, ..green(Expectation::May) }), 70);
    }

    #[test]
    fn how_it_ended_counts() {
        let cells = [green(Expectation::Never)];
        let signalled = |exit| Ending { signalled: Some(exit), ..Ending::default() };
        assert_eq!(exit(&cells, signalled(Exit::Interrupted)).code(), 130);
        assert_eq!(exit(&cells, signalled(Exit::Terminated)).code(), 143);
        assert_eq!(exit(&cells, Ending { out_of_time: true, ..Ending::default() }).code(), 3);
        assert_eq!(exit(&cells, Ending { reader_gone: true, ..Ending::default() }).code(), 74);
    }
}
