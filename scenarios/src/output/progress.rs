//! How far a campaign is, on standard error: a bar on a terminal, otherwise a plain line for every tenth or every
//! thirty seconds, or JSON lines for wrappers.

use std::io::IsTerminal;
use std::time::Duration;

use acked_reports::{SeedResult, Verdict};
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::say;
use crate::stopwatch::Stopwatch;

/// At most this many redraws a second.
const REDRAWS_PER_SECOND: u8 = 10;
/// A plain line at least this often.
const PLAIN_INTERVAL: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ProgressKind {
    #[default]
    Auto,
    Bar,
    Plain,
    Json,
    None,
}

pub struct Progress {
    kind: ProgressKind,
    bar: ProgressBar,
    /// Whether results appear where the bar is.
    shares_terminal: bool,
    /// `None` when only time ends the campaign.
    total: Option<u64>,
    done: u64,
    failed: u64,
    undecided: u64,
    started: Stopwatch,
    last_line: Duration,
    last_tenth: u64,
}

impl Progress {
    pub fn new(kind: ProgressKind, total: Option<u64>) -> Progress {
        let terminal =
            std::io::stderr().is_terminal() && std::env::var_os("CI").is_none_or(|ci| ci.is_empty());
        let capable = std::env::var("TERM").is_ok_and(|term| term != "dumb");
        let kind = match kind {
            ProgressKind::Auto if terminal && capable => ProgressKind::Bar,
            ProgressKind::Auto => ProgressKind::Plain,
            asked => asked,
        };
        let bar = if kind == ProgressKind::Bar {
            let target = ProgressDrawTarget::stderr_with_hz(REDRAWS_PER_SECOND);
            let bar = ProgressBar::with_draw_target(total, target);
            let shape = "[{bar:24}] {pos}/{len}   {msg}   eta {eta}";
            bar.set_style(
                ProgressStyle::with_template(shape).expect("the template is fixed").progress_chars("##."),
            );
            bar
        } else {
            ProgressBar::hidden()
        };
        Progress {
            kind,
            bar,
            shares_terminal: std::io::stdout().is_terminal(),
            total,
            done: 0,
            failed: 0,
            undecided: 0,
            started: Stopwatch::start(),
            last_line: Duration::ZERO,
            last_tenth: 0,
        }
    }

    /// One more seed has ended.
    pub fn arrived(&mut self, result: &SeedResult) {
        self.done += 1;
        match result.verdict {
            Verdict::Pass => {}
            Verdict::Violation | Verdict::Nondeterministic => self.failed += 1,
            Verdict::Unknown | Verdict::Vacuous | Verdict::Budget => self.undecided += 1,
        }
        let elapsed = self.started.elapsed();
        match self.kind {
            ProgressKind::Bar => {
                self.bar.set_position(self.done);
                self.bar.set_message(format!("{}   {}", self.counts(), rate(self.done, elapsed)));
            }
            ProgressKind::Plain | ProgressKind::Json => {
                let tenth = self.total.map_or(0, |total| self.done * 10 / total.max(1));
                if tenth > self.last_tenth || elapsed - self.last_line >= PLAIN_INTERVAL {
                    (self.last_tenth, self.last_line) = (tenth, elapsed);
                    self.say(elapsed);
                }
            }
            ProgressKind::Auto | ProgressKind::None => {}
        }
    }

    fn counts(&self) -> String {
        format!(
            "pass {}  FAIL {}  undecided {}",
            self.done - self.failed - self.undecided,
            self.failed,
            self.undecided
        )
    }

    fn say(&self, elapsed: Duration) {
        let total = self.total.map_or("?".to_string(), |total| total.to_string());
        if self.kind == ProgressKind::Json {
            say(&format!(
                "{{\"type\":\"progress\",\"done\":{},\"total\":{},\"failed\":{},\"undecided\":{},\"seconds\":{:.1}}}",
                self.done,
                self.total.map_or("null".to_string(), |total| total.to_string()),
                self.failed,
                self.undecided,
                elapsed.as_secs_f64()
            ));
        } else {
            say(&format!("{}/{total}   {}   {}", self.done, self.counts(), rate(self.done, elapsed)));
        }
    }

    /// Takes the bar away while something is written to the same terminal.
    pub fn aside<R>(&self, write: impl FnOnce() -> R) -> R {
        if self.shares_terminal { self.bar.suspend(write) } else { write() }
    }

    /// The last word: rate and time, which results never contain.
    pub fn end(&self, quiet: bool) {
        self.bar.finish_and_clear();
        if !quiet && self.kind != ProgressKind::None && self.kind != ProgressKind::Json {
            let elapsed = self.started.elapsed();
            say(&format!(
                "{} seeds in {:.1} s, {}",
                self.done,
                elapsed.as_secs_f64(),
                rate(self.done, elapsed)
            ));
        }
    }
}

fn rate(done: u64, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64();
    if seconds > 0.0 { format!("{:.1} seeds/s", done as f64 / seconds) } else { String::new() }
}
