//! The arguments of a fault by name, as scenarios write them: numbers and times, alone or as a range `from..to` from
//! which the seed draws.

use acked_wire::ApiKey;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::plan::FaultPlan;

/// Milliseconds of the longest step of a clock: a day.
const STEP_MS_MAX: i64 = 24 * 3_600_000;

/// Two ends, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub from: i64,
    pub to: i64,
}

impl Range {
    pub fn draw(self, random: &mut ChaCha8Rng) -> i64 {
        random.random_range(self.from..=self.to)
    }
}

/// A whole number, or a range of them, within `least` and `most`.
///
/// # Errors
/// Worded for whoever wrote the scenario.
pub fn numbers(plan: &FaultPlan, name: &str, otherwise: i64, bounds: Range) -> Result<Range, String> {
    let number = |text: &str| text.parse::<i64>().map_err(|_| format!("'{text}' is no whole number"));
    range(plan, name, Range { from: otherwise, to: otherwise }, bounds, number)
}

/// Signed times in milliseconds: `-250ms`, `30s`, `5m`, `1h`, or a range of them; at most a day either way.
///
/// # Errors
/// Worded for whoever wrote the scenario.
pub fn signed_times(plan: &FaultPlan, name: &str) -> Result<Range, String> {
    if !plan.arguments.contains_key(name) {
        return Err(format!("{} needs {name} = \"-30s..30s\" or the like", plan.kind));
    }
    let bounds = Range { from: -STEP_MS_MAX, to: STEP_MS_MAX };
    range(plan, name, Range { from: 0, to: 0 }, bounds, signed_time)
}

fn range(
    plan: &FaultPlan,
    name: &str,
    otherwise: Range,
    bounds: Range,
    read: impl Fn(&str) -> Result<i64, String>,
) -> Result<Range, String> {
    let Some(text) = plan.arguments.get(name) else { return Ok(otherwise) };
    let wrong = |reason: String| format!("{} {name}: {reason}", plan.kind);
    let (from, to) = text.split_once("..").unwrap_or((text, text));
    let range = Range { from: read(from).map_err(wrong)?, to: read(to).map_err(wrong)? };
    if range.from > range.to {
        return Err(wrong(format!("'{text}' ends before it begins")));
    }
    if range.from < bounds.from || range.to > bounds.to {
        return Err(wrong(format!("'{text}' is not within {} and {}", bounds.from, bounds.to)));
    }
    Ok(range)
}

fn signed_time(text: &str) -> Result<i64, String> {
    let wrong = || format!("'{text}' is no time: write a whole number and ms, s, m or h, as in -30s");
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let each = match &text[digits.len()..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(wrong()),
    };
    digits.parse::<i64>().ok().and_then(|number| number.checked_mul(each)).ok_or_else(wrong)
}

/// One of `words`; the first where nothing is said.
///
/// # Errors
/// Worded for whoever wrote the scenario.
pub fn word<'a>(plan: &FaultPlan, name: &str, words: &[&'a str]) -> Result<&'a str, String> {
    let given = plan.arguments.get(name).map_or(words[0], String::as_str);
    words
        .iter()
        .find(|word| **word == given)
        .copied()
        .ok_or_else(|| format!("{} {name}: '{given}' is none of {}", plan.kind, words.join(", ")))
}

/// The number of the API named by `api`; `None` where nothing is said.
///
/// # Errors
/// A name that Kafka does not have.
pub fn api_key(plan: &FaultPlan) -> Result<Option<i16>, String> {
    let Some(name) = plan.arguments.get("api") else { return Ok(None) };
    let known = ApiKey::ALL.iter().find(|key| key.name() == name);
    known.map(|key| Some(key.code())).ok_or_else(|| {
        format!(
            "{} api: Kafka has no API '{name}'; write Produce, Fetch, AlterPartition and so on",
            plan.kind
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nemesis::tests::fault;

    #[test]
    fn numbers_and_times_are_read_alone_and_as_ranges() {
        let bounds = Range { from: 0, to: 50 };
        let read = |text: &str| numbers(&fault("x", &[("n", text)]), "n", 7, bounds);
        assert_eq!(read("3"), Ok(Range { from: 3, to: 3 }));
        assert_eq!(read("0..50"), Ok(Range { from: 0, to: 50 }));
        for text in ["", "51", "-1", "4..3", "1..", "1.5"] {
            assert!(read(text).is_err(), "{text}");
        }
        assert_eq!(numbers(&fault("x", &[]), "n", 7, bounds), Ok(Range { from: 7, to: 7 }));
        let read = |text: &str| signed_times(&fault("x", &[("by", text)]), "by");
        assert_eq!(read("-250ms..1h"), Ok(Range { from: -250, to: 3_600_000 }));
        for text in ["3", "3d", "25h", "1h..1m", "9999999999999999h"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn words_and_apis_are_known_by_name() {
        assert_eq!(word(&fault("x", &[]), "how", &["reset", "close"]), Ok("reset"));
        assert_eq!(word(&fault("x", &[("how", "close")]), "how", &["reset", "close"]), Ok("close"));
        assert!(word(&fault("x", &[("how", "cut")]), "how", &["reset", "close"]).is_err());
        assert_eq!(api_key(&fault("x", &[("api", "AlterPartition")])), Ok(Some(56)));
        assert!(api_key(&fault("x", &[("api", "AlterPartitions")])).is_err());
    }
}
