//! The words that every machine shares.

use std::fmt;

use acked_wire::Uuid;

use crate::Observation;

/// Monotonic time of one node, counted from the origin of its clock.
pub type Time = std::time::Duration;

/// `node.id` of a broker, controller, or client-side `-1`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub i32);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A partition by the identity that survives re-creation of a topic of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPartition {
    pub topic: Uuid,
    pub index: i32,
}

/// A request that a node received and still owes an answer (or a decision not to answer). The shell gives the
/// number; no two requests of one incarnation share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// Why no answer came back for a request that was sent to another node. The request may have taken effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    /// The connection could not be made.
    #[error("connect to peer")]
    Unreachable,
    /// The connection ended before the answer came.
    #[error("read answer: connection closed")]
    Disconnected,
    /// The shell waited `request.timeout.ms` in vain.
    #[error("read answer: timed out")]
    TimedOut,
    /// The answer's bytes do not decode.
    #[error("decode answer")]
    Malformed,
}

/// What one call of a machine produced, in program order. The shell drains both after every call: observations
/// to the observer first, then it carries the effects out.
#[derive(Debug)]
pub struct Output<Effect> {
    pub effects: Vec<Effect>,
    pub observations: Vec<Observation>,
}

impl<Effect> Default for Output<Effect> {
    fn default() -> Self {
        Output { effects: Vec::new(), observations: Vec::new() }
    }
}

impl<Effect> Output<Effect> {
    pub fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    pub fn observe(&mut self, observation: Observation) {
        self.observations.push(observation);
    }
}
