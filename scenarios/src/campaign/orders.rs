//! What the parent tells a worker and what comes back: one JSON object a line.

use acked_reports::SeedResult;
use serde::{Deserialize, Serialize};

use crate::token::Changes;

/// A line to a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "kebab-case")]
pub enum Order {
    /// What cell `cell` is; comes before its first run.
    Prepare {
        cell: usize,
        path: String,
        text: String,
        own_file: bool,
        configuration: String,
        changes: Changes,
    },
    Run {
        cell: usize,
        seed: u64,
    },
}

/// A line from a worker, for every [`Order::Run`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    pub cell: usize,
    pub result: SeedResult,
}
