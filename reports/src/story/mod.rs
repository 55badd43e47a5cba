//! The story of one run as plain data: what changed, when, on which node. Whoever runs something tells it; the renderers
//! draw it. Times are virtual microseconds since the run began, nodes go by their names (`b1`, `c2`).
//!
//! ```text
//! Moments ──┬──> faults:   what fired, from when to when
//!           ├──> standing: who led, who was in sync, who was down
//!           ├──> life:     what became of one record
//!           ├──> logs:     what every replica's log held at one time
//!           └──> beats:    the few moments that tell what happened, a sentence each
//! ```

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

pub mod beats;
pub mod faults;
pub mod life;
pub mod logs;
pub mod standing;

use crate::result::SeedResult;

/// One line of the story.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    pub t_us: u64,
    /// `fault`, `leader`, `isr`, `truncated`, `node`, `quorum`, `refused`; and in great number `high-watermark`,
    /// `appended`, `acked`.
    pub kind: Cow<'static, str>,
    /// `b1`, `c2`; a fault's id where no node is meant.
    pub who: String,
    /// `orders-0`.
    pub partition: Option<String>,
    pub text: String,
    pub change: Change,
}

impl Moment {
    /// Whether its like come in such number that a list is shorter without them.
    pub fn is_frequent(&self) -> bool {
        matches!(&*self.kind, "high-watermark" | "appended" | "acked")
    }

    /// Whether it is of that partition.
    pub fn is_of(&self, partition: &str) -> bool {
        self.partition.as_deref() == Some(partition)
    }
}

/// The same for a picture.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Nothing that is drawn.
    #[default]
    Told,
    FaultBegan {
        kind: String,
        nodes: Vec<String>,
        /// Whether the nodes go down by it.
        takes_down: bool,
    },
    FaultEnded,
    Started,
    Stopped,
    /// A log was found again after a start; it ends before this offset.
    Recovered {
        log_end_offset: i64,
    },
    /// The controller decided who leads and who is in sync.
    Decided {
        leader: Option<String>,
        leader_epoch: i32,
        isr: Vec<String>,
    },
    /// Offsets are inclusive.
    Appended {
        leader_epoch: i32,
        first: i64,
        last: i64,
    },
    Acked {
        leader_epoch: i32,
        first: i64,
        last: i64,
    },
    /// Everything from `to` on is gone from this log, which ended before `from`.
    Truncated {
        from: i64,
        to: i64,
    },
    /// Everything below is committed.
    HighWatermark {
        to: i64,
    },
}

/// When the picture ends: with the run, or with the last moment if that is later; never zero.
pub fn end_us(result: &SeedResult, moments: &[Moment]) -> u64 {
    moments.last().map_or(0, |moment| moment.t_us).max(result.virtual_us).max(1)
}

/// The partition that is drawn: `asked`, or else one that lost a record, or that a finding is about, or the first.
pub fn partition(result: &SeedResult, moments: &[Moment], asked: Option<&str>) -> String {
    let lost = || result.lost.iter().max_by_key(|range| range.contract);
    let found = || {
        let finding = result.findings.iter().max_by_key(|finding| finding.contract)?;
        Some(format!("{}-{}", finding.topic.as_ref()?, finding.partition?))
    };
    asked
        .map(str::to_string)
        .or_else(|| lost().map(|range| format!("{}-{}", range.topic, range.partition)))
        .or_else(found)
        .or_else(|| moments.iter().find_map(|moment| moment.partition.clone()))
        .unwrap_or_default()
}

/// Whether the name is a broker's: `b` and a number.
pub fn is_broker(name: &str) -> bool {
    name.strip_prefix('b')
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}
