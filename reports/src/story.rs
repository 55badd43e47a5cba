//! The story of one run as plain data: what changed, when, on which node. Whoever runs something tells it; the renderers
//! draw it. Times are virtual microseconds since the run began, nodes go by their names (`b1`, `c2`).

use serde::Serialize;

/// One line of the story.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Moment {
    pub t_us: u64,
    /// `fault`, `leader`, `isr`, `truncated`, `node`, `quorum`, `refused`; and in great number `high-watermark`,
    /// `appended`, `acked`.
    pub kind: &'static str,
    /// `b1`, `c2`; a fault's id where no node is meant.
    pub who: String,
    /// `orders-0`.
    pub partition: Option<String>,
    pub text: String,
    pub change: Change,
}

/// The same for a picture.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
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
