//! The machines of the world: who they are and in which state. Decides nothing about network, disk or clock.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use acked_core::NodeId;

use super::clock::Clock;
use super::trace::Ending;

/// A machine of the world, numbered in the order of creation: a broker, a controller or a client.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host(pub u16);

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host{}", self.0)
    }
}

/// Who a machine is, for good.
#[derive(Clone, Debug)]
pub struct HostIdentity {
    /// Its name in the network, such as `b1`.
    pub name: Arc<str>,
    pub address: IpAddr,
    /// The node that runs on it; `None` for clients.
    pub node: Option<NodeId>,
}

/// What runs on a machine now.
pub(super) struct HostState {
    pub identity: HostIdentity,
    pub executor_node: madsim::task::NodeId,
    pub clock: Clock,
    /// A process runs.
    pub alive: bool,
    pub paused: bool,
    /// Processes started so far.
    pub incarnation: u32,
    /// When the last process ended, in nanoseconds.
    pub ended_at: Option<u64>,
    /// What the next kill means; set before the executor is asked to kill.
    pub ending: Ending,
    /// Streams handed out to the running process, by purpose: a second request continues with a new stream.
    pub streams: BTreeMap<String, u32>,
}
