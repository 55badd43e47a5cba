//! Times, ranges of times and rates as scenario files write them: `500ms`, `12s`, `5s..20s`, `40/s`.

use std::time::Duration;

use acked_sim::plan::TimeRange;

/// A duration in `us`, `ms`, `s` or `m`, whole numbers only.
pub fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = &text[digits.len()..];
    let number: u64 = digits.parse().map_err(|_| wrong_duration(text))?;
    let micros_each = match unit {
        "us" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        "m" => 60_000_000,
        _ => return Err(wrong_duration(text)),
    };
    // A run is bounded far below an hour; more is a slip of the pen.
    number
        .checked_mul(micros_each)
        .filter(|micros| *micros <= 3_600_000_000)
        .map(Duration::from_micros)
        .ok_or_else(|| format!("'{text}' is longer than an hour"))
}

fn wrong_duration(text: &str) -> String {
    format!("'{text}' is no duration: write a whole number and us, ms, s or m, as in 500ms")
}

/// One duration, or two joined by `..`, both included.
pub fn time_range(text: &str) -> Result<TimeRange, String> {
    let (from, to) = match text.split_once("..") {
        Some((from, to)) => (duration(from)?, duration(to)?),
        None => (duration(text)?, duration(text)?),
    };
    if from > to {
        return Err(format!("'{text}' ends before it begins"));
    }
    Ok(TimeRange { from, to })
}

/// A number of records a second, `40/s`; `max` is as fast as the producer may.
pub fn rate(text: &str) -> Result<u32, String> {
    if text == "max" {
        return Ok(0);
    }
    text.strip_suffix("/s")
        .and_then(|number| number.parse().ok())
        .filter(|rate| *rate > 0 && *rate <= 1_000_000)
        .ok_or_else(|| format!("'{text}' is no rate: write records a second, as in 40/s, or max"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_rates_are_read_as_written() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(
            time_range("5s..20s"),
            Ok(TimeRange { from: Duration::from_secs(5), to: Duration::from_secs(20) })
        );
        assert_eq!(rate("40/s"), Ok(40));
        assert_eq!(rate("max"), Ok(0));
    }

    #[test]
    fn what_is_no_time_or_rate_is_refused() {
        for text in ["", "5", "s", "1.5s", "5 s", "-1s", "99999999999999999999s", "2h", "61m"] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert!(time_range("20s..5s").is_err());
        for text in ["", "40", "0/s", "-1/s", "x/s"] {
            assert!(rate(text).is_err(), "{text}");
        }
    }
}
