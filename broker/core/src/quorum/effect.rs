//! What goes into a quorum node and what it wants done. Effects are carried out in the order in which they come;
//! `LogSynced` and `StateSaved` come back in the order of what they answer.

use acked_wire::{RequestBody, ResponseBody};
use bytes::Bytes;

use super::election_state::QuorumState;
use crate::types::{NodeId, PeerError, RequestId};

/// Something happened. Every input may also bring deadlines to pass: `now` is looked at each time.
#[derive(Clone, Debug)]
pub enum QuorumInput {
    /// Another node asks: Vote, BeginQuorumEpoch, EndQuorumEpoch or Fetch. `version` is the request's.
    Request { request: RequestId, version: i16, body: RequestBody },
    /// What became of the request that was sent under `correlation`. Unknown and late ones are ignored.
    Response { to: NodeId, correlation: u64, result: Result<ResponseBody, PeerError> },
    /// The state of `SaveState { save }` is durable (file synced, renamed, directory synced).
    StateSaved { save: u64 },
    /// The bytes of `AppendLog { write }`, or the cut of `TruncateLog { write }`, and everything before are synced.
    LogSynced { write: u64 },
    /// The active controller gives up leadership of `epoch`; ignored when that is over already.
    Resign { epoch: i32 },
    /// The node wants to stop in order: a leader hands over, nobody stands for election any more.
    /// [`QuorumEffect::Stopped`] follows within `request_timeout`.
    Shutdown,
    /// A deadline has passed.
    Tick,
}

/// Something is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum QuorumEffect {
    /// Replace `quorum-state` by this, durably; `StateSaved { save }` when it is.
    SaveState { save: u64, state: QuorumState },
    /// Write at `position` (always the end of the file as written so far) and sync; `LogSynced { write }` when synced.
    /// Without `sync`, when written: [`crate::rules::QuorumAppend`].
    AppendLog { write: u64, position: u64, bytes: Bytes, sync: bool },
    /// Cut the file to `size` bytes and sync; `LogSynced { write }` when synced.
    TruncateLog { write: u64, size: u64 },
    /// Ask another node (for an observer: always a voter); the answer comes back as `Response`.
    Send { to: NodeId, correlation: u64, body: RequestBody },
    /// Answer a request.
    Reply { request: RequestId, body: ResponseBody },
    /// These batches are committed: each exactly once, in order, without gaps between `last_offset` and the next
    /// `base_offset`. After a restart delivery begins at offset 0 again.
    Committed { batches: Vec<CommittedBatch> },
    /// This node leads `epoch` and everything before its reign, its own LeaderChange included, is committed and was
    /// delivered before: it may propose now.
    BecameLeader { epoch: i32 },
    /// Follows a `BecameLeader` of the same epoch: proposals that were not yet delivered as committed may or may not
    /// come to be. The state machine must be rebuilt, see [`super::Quorum::committed_batches`].
    LostLeadership { epoch: i32 },
    /// The epoch or its leader as this node knows them changed. Said at once, before the leader can serve.
    LeaderChanged { epoch: i32, leader: Option<NodeId> },
    /// The orderly stop asked for by `Shutdown` is complete.
    Stopped,
    /// The node must not go on: what it was told contradicts what it knows to be committed. It ignores all input
    /// from here on.
    Halt { fault: QuorumFault },
}

/// A committed batch of the metadata log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedBatch {
    pub base_offset: i64,
    /// Inclusive.
    pub last_offset: i64,
    /// The quorum epoch in which it was written.
    pub epoch: i32,
    /// Unix milliseconds, by the clock of the leader that wrote it.
    pub timestamp_ms: i64,
    /// The payloads: encoded metadata records; the record at index `i` has offset `base_offset + i`. Empty for a
    /// control batch, whose offsets count all the same.
    pub records: Vec<Bytes>,
}

/// Why a node had to halt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuorumFault {
    /// The leader's log diverges from this node's below the high watermark: a committed record would be cut.
    #[error(
        "truncate metadata log to {to}: leader {leader} of epoch {epoch} diverges below high watermark {high_watermark}"
    )]
    DivergesBelowHighWatermark { epoch: i32, leader: NodeId, to: i64, high_watermark: i64 },
}

/// The proposal was not taken: this node does not lead (or may not propose yet).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("append to metadata log: not the active leader")]
pub struct NotLeader;
