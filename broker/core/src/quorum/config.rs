//! What a quorum node is told when it is made. The voter set is static (kraft.version 0): it never changes while the
//! cluster lives, and voters have no directory id in it.

use std::collections::BTreeMap;
use std::time::Duration;

use acked_wire::Uuid;

use crate::types::NodeId;

/// `controller.quorum.fetch.max.bytes`, Kafka's default: how much of the log one fetch may ask for.
pub const FETCH_MAX_BYTES: i32 = 1024 * 1024;

/// How long a leader may hold a fetch that has nothing new to bring (Kafka's raft client has this as a constant).
pub const FETCH_WAIT_MAX: Duration = Duration::from_millis(500);

/// Where a voter listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VoterEndpoint {
    pub host: String,
    pub port: u16,
}

/// The settings of one quorum node. Durations carry Kafka's defaults where [`QuorumConfig::new`] made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuorumConfig {
    /// Requests that carry another cluster id are refused.
    pub cluster_id: String,
    pub node: NodeId,
    /// `directory.id` of meta.properties.
    pub directory: Uuid,
    /// `controller.quorum.voters`. A node that is not among them is an observer: it follows and never votes.
    pub voters: BTreeMap<NodeId, VoterEndpoint>,
    /// `controller.quorum.election.timeout.ms`: a voter without a leader waits between one and two of these.
    pub election_timeout: Duration,
    /// `controller.quorum.election.backoff.max.ms`: the longest pause after an election that nobody won.
    pub election_backoff_max: Duration,
    /// `controller.quorum.fetch.timeout.ms`: a follower that fetched nothing for so long looks for another leader; a
    /// leader that was fetched from by no majority for one and a half of these resigns.
    pub fetch_timeout: Duration,
    /// `controller.quorum.request.timeout.ms`: after so long a request counts as unanswered.
    pub request_timeout: Duration,
    /// `controller.quorum.retry.backoff.ms`: the pause after a failed request to the same node.
    pub retry_backoff: Duration,
    /// `controller.quorum.append.linger.ms`: how long the leader gathers proposals into one write.
    pub append_linger: Duration,
    /// Unix time, in milliseconds, when the node's monotonic clock stood at zero. Batches that this node makes are
    /// stamped with it plus `now`.
    pub clock_origin_ms: i64,
}

impl QuorumConfig {
    /// Kafka's defaults for everything that is not given.
    pub fn new(
        cluster_id: impl Into<String>,
        node: NodeId,
        directory: Uuid,
        voters: BTreeMap<NodeId, VoterEndpoint>,
    ) -> QuorumConfig {
        QuorumConfig {
            cluster_id: cluster_id.into(),
            node,
            directory,
            voters,
            election_timeout: Duration::from_millis(1000),
            election_backoff_max: Duration::from_millis(1000),
            fetch_timeout: Duration::from_millis(2000),
            request_timeout: Duration::from_millis(2000),
            retry_backoff: Duration::from_millis(20),
            append_linger: Duration::from_millis(25),
            clock_origin_ms: 0,
        }
    }

    /// True for a controller of the voter set, false for an observer.
    pub fn is_voter(&self) -> bool {
        self.voters.contains_key(&self.node)
    }

    /// How many voters are more than half.
    pub fn majority(&self) -> usize {
        self.voters.len() / 2 + 1
    }

    /// How long a leader keeps leading without fetches from a majority.
    pub fn check_quorum_timeout(&self) -> Duration {
        self.fetch_timeout * 3 / 2
    }

    /// The voters other than this node, in order of their ids.
    pub fn other_voters(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.voters.keys().copied().filter(|voter| *voter != self.node)
    }
}
