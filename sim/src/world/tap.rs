//! What the simulated world tells its owner: every change of every file, as it really is on the disk, whatever the broker
//! believes; and tasks that came to a bad end.

use acked_core::NodeId;

use super::finding::TaskFailure;

/// One change, told synchronously when it happens. Paths are the node's own.
#[derive(Debug)]
pub enum DiskChange<'a> {
    /// Bytes entered the page cache.
    Written {
        path: &'a str,
        position: u64,
        bytes: &'a [u8],
    },
    /// The file was cut or extended in the page cache.
    Truncated {
        path: &'a str,
        size: u64,
    },
    Synced {
        path: &'a str,
    },
    Removed {
        path: &'a str,
    },
    Renamed {
        from: &'a str,
        to: &'a str,
    },
    /// The node lost power, or a disk fault hit: this is what the file holds from now on (`None`: its name is gone),
    /// and the first byte position at which that differs from what the page cache held (`None`: nothing differs).
    Replaced {
        path: &'a str,
        content: Option<&'a [u8]>,
        first_difference: Option<u64>,
    },
}

/// Receives every change of every node's disk.
pub trait DiskTap: Send + Sync {
    fn changed(&self, node: NodeId, change: &DiskChange<'_>);
}

/// One connection of a run: the slot that the network keeps it in, which others have before and after it, and how many
/// had it before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId {
    pub slot: u32,
    pub generation: u32,
}

/// Receives every byte that processes write to connections, in the order of each direction, whether or not it arrives.
pub trait NetworkTap: Send + Sync {
    /// `by_client`: the end that asked for the connection wrote.
    fn written(&self, connection: ConnectionId, by_client: bool, bytes: &[u8]);
}

/// Receives what became of tasks that panicked, or went round for ever.
pub trait TaskTap: Send + Sync {
    fn failed(&self, failure: &TaskFailure);
}
