//! Which seeds run, in which cells, in which order.

use std::fmt;
use std::str::FromStr;

use super::pool::Job;

/// `1000` (that many for each cell) or `4000..4999` (both ends included).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seeds {
    Count(u64),
    Range { first: u64, last: u64 },
}

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Seeds, String> {
        let wrong = || format!("'{text}' is neither a number of seeds nor a range like 4000..4999");
        match text.split_once("..") {
            None => match text.parse().map_err(|_| wrong())? {
                0 => Err("0 seeds prove nothing".into()),
                count => Ok(Seeds::Count(count)),
            },
            Some((first, last)) => {
                let first = first.parse().map_err(|_| wrong())?;
                let last = last.parse().map_err(|_| wrong())?;
                if first > last {
                    return Err(format!("'{text}' ends before it begins"));
                }
                Ok(Seeds::Range { first, last })
            }
        }
    }
}

/// Where counted seeds begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeedBase {
    /// Taken from the clock: other seeds every time. The plan says which.
    Auto,
    /// Taken from the hash of the commit that is checked out.
    Commit,
    Number(u64),
}

impl FromStr for SeedBase {
    type Err = String;

    fn from_str(text: &str) -> Result<SeedBase, String> {
        match text {
            "auto" => Ok(SeedBase::Auto),
            "commit" => Ok(SeedBase::Commit),
            _ => text
                .parse()
                .map(SeedBase::Number)
                .map_err(|_| format!("'{text}' is neither auto, commit nor a number")),
        }
    }
}

impl SeedBase {
    /// The first seed.
    ///
    /// # Errors
    /// No commit to take it from, or no clock.
    pub fn first(self) -> Result<u64, String> {
        match self {
            SeedBase::Number(number) => Ok(number),
            SeedBase::Auto => Ok(crate::stopwatch::seconds_since_1970() % 1_000_000_000),
            SeedBase::Commit => {
                let git = std::process::Command::new("git").args(["rev-parse", "HEAD"]).output();
                let hash = git.ok().filter(|output| output.status.success());
                let hash = hash.and_then(|output| String::from_utf8(output.stdout).ok());
                hash.and_then(|hash| u64::from_str_radix(hash.get(..8)?, 16).ok()).ok_or_else(|| {
                    "--seed-base commit needs a git commit, and there is none here".to_string()
                })
            }
        }
    }
}

/// The seeds of one cell: consecutive, both ends included. `None` where a share of the total is nothing.
pub type Span = Option<(u64, u64)>;

/// The spans of `cells` cells.
pub fn spans(seeds: Seeds, base: u64, cells: usize) -> Vec<Span> {
    let span = match seeds {
        Seeds::Count(count) => (base, base.saturating_add(count - 1)),
        Seeds::Range { first, last } => (first, last),
    };
    vec![Some(span); cells]
}

/// `total` seeds spread over the cells, the first ones getting one more where it does not divide.
pub fn spread(total: u64, base: u64, cells: usize) -> Vec<Span> {
    let cells = cells as u64;
    (0..cells)
        .map(|cell| match total / cells + u64::from(cell < total % cells) {
            0 => None,
            share => Some((base, base.saturating_add(share - 1))),
        })
        .collect()
}

/// How many seeds the spans hold together.
pub fn count(spans: &[Span]) -> u64 {
    spans.iter().flatten().fold(0, |sum, (first, last)| sum.saturating_add((last - first).saturating_add(1)))
}

/// Cell after cell, each in seed order.
pub fn cell_by_cell(spans: Vec<Span>) -> impl Iterator<Item = Job> + Send {
    spans.into_iter().enumerate().flat_map(|(cell, span)| {
        span.into_iter().flat_map(move |(first, last)| (first..=last).map(move |seed| Job { cell, seed }))
    })
}

/// One seed of every cell, then the next of every cell: what runs when time may end the campaign.
pub fn round_robin(spans: Vec<Span>) -> impl Iterator<Item = Job> + Send {
    let longest = spans.iter().flatten().map(|(first, last)| last - first).max();
    longest.into_iter().flat_map(|longest| 0..=longest).flat_map(move |step| {
        let jobs: Vec<Job> = spans
            .iter()
            .enumerate()
            .filter_map(|(cell, span)| {
                let (first, last) = (*span)?;
                let seed = first.checked_add(step).filter(|seed| *seed <= last)?;
                Some(Job { cell, seed })
            })
            .collect();
        jobs
    })
}

impl fmt::Display for Seeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Seeds::Count(count) => write!(f, "{count}"),
            Seeds::Range { first, last } => write!(f, "{first}..{last}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_counts_and_inclusive_ranges() {
        assert_eq!("1000".parse(), Ok(Seeds::Count(1000)));
        assert_eq!("4000..4999".parse(), Ok(Seeds::Range { first: 4000, last: 4999 }));
        assert_eq!(count(&spans(Seeds::Range { first: 4000, last: 4999 }, 1, 2)), 2000);
        for text in ["", "0", "-1", "1..", "..2", "2..1", "1...2", "x", "1.5", "18446744073709551616"] {
            assert!(text.parse::<Seeds>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_total_is_spread_as_evenly_as_it_goes() {
        assert_eq!(spread(7, 1, 3), [Some((1, 3)), Some((1, 2)), Some((1, 2))]);
        assert_eq!(spread(2, 5, 3), [Some((5, 5)), Some((5, 5)), None]);
        assert_eq!(count(&spread(7, 1, 3)), 7);
    }

    #[test]
    fn both_orders_hold_every_job_once() {
        let spans = vec![Some((1, 3)), None, Some((u64::MAX, u64::MAX))];
        let mut one: Vec<Job> = cell_by_cell(spans.clone()).collect();
        assert_eq!(one.len(), 4);
        assert_eq!((one[3].cell, one[3].seed), (2, u64::MAX));
        let mut other: Vec<Job> = round_robin(spans).collect();
        assert_eq!((other[1].cell, other[1].seed), (2, u64::MAX));
        one.sort();
        other.sort();
        assert_eq!(one, other);
    }
}
