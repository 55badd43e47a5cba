//! One line of a verifiable client: a JSON object with `timestamp` and `name`. Fields come in any order; lines that are
//! not JSON objects are what logging left behind, and are counted.

use std::io::{self, BufRead, Read as _};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Bytes of a line beyond which a history is refused.
const LINE_MAX: u64 = 16 << 20;

/// A line with its time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Milliseconds since 1970 by the clock of the client's host.
    pub timestamp: i64,
    #[serde(flatten)]
    pub tool: Tool,
}

/// A partition, as these tools name it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicPartition {
    pub topic: Arc<str>,
    pub partition: i32,
}

/// What one poll returned of one partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Range {
    pub topic: Arc<str>,
    pub partition: i32,
    pub count: u64,
    /// First and last offset, both inclusive.
    pub min_offset: i64,
    pub max_offset: i64,
}

/// One partition of a commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OffsetCommit {
    pub topic: Arc<str>,
    pub partition: i32,
    pub offset: i64,
}

/// What a line says, by its `name`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Tool {
    StartupComplete,
    ShutdownRequested,
    ShutdownComplete,
    ProducerSendSuccess {
        key: Option<Arc<str>>,
        value: Arc<str>,
        topic: Arc<str>,
        partition: i32,
        /// -1 where the broker told none (acks=0).
        offset: i64,
    },
    /// Without effect, or with: an error says neither.
    ProducerSendError {
        key: Option<Arc<str>>,
        value: Arc<str>,
        topic: Arc<str>,
        exception: String,
        message: Option<String>,
    },
    ToolData {
        sent: u64,
        acked: u64,
        target_throughput: i64,
        avg_throughput: f64,
    },
    PartitionsAssigned {
        partitions: Vec<TopicPartition>,
    },
    PartitionsRevoked {
        partitions: Vec<TopicPartition>,
    },
    /// Printed before the `records_consumed` of its poll.
    RecordData {
        key: Option<Arc<str>>,
        value: Option<Arc<str>>,
        topic: Arc<str>,
        partition: i32,
        offset: i64,
    },
    RecordsConsumed {
        count: u64,
        partitions: Vec<Range>,
    },
    OffsetsCommitted {
        offsets: Vec<OffsetCommit>,
        success: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A name that these tools may print some day.
    #[serde(other)]
    Other,
}

/// The lines of one client.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lines {
    pub lines: Vec<Line>,
    /// Lines that are no JSON object.
    pub skipped: u64,
}

/// Why a client's lines could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    #[error("read line {number}")]
    Io { number: u64, source: io::Error },
    #[error("read line {number}: it is longer than {LINE_MAX} bytes")]
    TooLong { number: u64 },
    #[error("understand line {number}: {reason}")]
    Malformed { number: u64, reason: String },
}

/// Reads what one client printed.
///
/// # Errors
/// I/O errors, a line of over 16 MiB, a JSON object that is none of these tools' lines.
pub fn read(mut source: impl BufRead) -> Result<Lines, LineError> {
    let mut lines = Lines::default();
    let mut buffer = Vec::new();
    for number in 1.. {
        buffer.clear();
        let length = (&mut source)
            .take(LINE_MAX + 1)
            .read_until(b'\n', &mut buffer)
            .map_err(|source| LineError::Io { number, source })?;
        if length == 0 {
            break;
        }
        if length as u64 > LINE_MAX {
            return Err(LineError::TooLong { number });
        }
        let text = buffer.trim_ascii();
        if text.is_empty() {
            continue;
        }
        if text.first() != Some(&b'{') || text.last() != Some(&b'}') {
            lines.skipped += 1;
            continue;
        }
        let line = serde_json::from_slice(text)
            .map_err(|error| LineError::Malformed { number, reason: error.to_string() })?;
        lines.lines.push(line);
    }
    Ok(lines)
}
