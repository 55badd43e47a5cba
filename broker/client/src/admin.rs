//! The handle of an administrator: creates topics, asks for elections, describes the cluster.

use acked_core::NodeId;
use acked_core::client::ClusterDescription;
use acked_core::settings::AdminSettings;
use acked_env::Env;
use acked_wire::Uuid;

/// Why an administrative request failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("administer cluster: error code {code}{}", .message.as_deref().map(|text| format!(" ({text})")).unwrap_or_default())]
pub struct AdminError {
    /// Kafka's error code; 7 (REQUEST_TIMED_OUT) when `default.api.timeout.ms` ended it. The request may then have
    /// taken effect.
    pub code: i16,
    /// What the broker said about it.
    pub message: Option<String>,
}

/// A topic to create. The replicas are placed by the controller, or as `assignment` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewTopic {
    pub name: String,
    /// Ignored when `assignment` is given; `None` is the controller's default.
    pub partitions: Option<i32>,
    /// Ignored when `assignment` is given; `None` is the controller's default.
    pub replication_factor: Option<i16>,
    /// The replicas of each partition, preferred leader first.
    pub assignment: Vec<Vec<NodeId>>,
    /// Topic settings by Kafka's names.
    pub settings: Vec<(String, String)>,
}

/// A topic that now exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatedTopic {
    pub name: String,
    pub topic: Uuid,
}

/// Which election is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElectionKind {
    /// The first replica of the assignment, if it is in sync.
    Preferred,
    /// Any live replica, if no in-sync one is alive.
    Unclean,
}

/// What an election request did to one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionElection {
    pub topic: String,
    pub partition: i32,
    /// Kafka's error code; 84 (ELECTION_NOT_NEEDED) is not a failure to worry about.
    pub code: i16,
}

/// Administers a cluster through any of its brokers. Dropping it ends its task.
#[derive(Debug)]
pub struct Admin {}

impl Admin {
    /// Starts the administrator's task. `bootstrap` lists host and port of brokers to ask first.
    pub fn new<E: Env>(
        env: &E,
        client_id: &str,
        settings: AdminSettings,
        bootstrap: Vec<(String, u16)>,
    ) -> Admin {
        let _ = (env, client_id, settings, bootstrap);
        Admin {}
    }

    /// Creates one topic; returns after the controller has committed it.
    ///
    /// # Errors
    /// What the controller answered. TOPIC_ALREADY_EXISTS (36) also when an earlier try of this call, whose answer
    /// was lost, created it.
    pub async fn create_topic(&self, topic: NewTopic) -> Result<CreatedTopic, AdminError> {
        let _ = topic;
        Err(AdminError { code: 7, message: None })
    }

    /// Asks for an election on each of `partitions`, or on every partition that would change when `None`.
    ///
    /// # Errors
    /// Only when the request as a whole failed.
    pub async fn elect_leaders(
        &self,
        kind: ElectionKind,
        partitions: Option<&[(&str, i32)]>,
    ) -> Result<Vec<PartitionElection>, AdminError> {
        let _ = (kind, partitions);
        Err(AdminError { code: 7, message: None })
    }

    /// Brokers, and the given topics (all when `None`), as the asked broker knows them.
    ///
    /// # Errors
    /// Only when the request as a whole failed; a topic that is missing has its own code in the answer.
    pub async fn describe(&self, topics: Option<&[&str]>) -> Result<ClusterDescription, AdminError> {
        let _ = topics;
        Err(AdminError { code: 7, message: None })
    }
}
