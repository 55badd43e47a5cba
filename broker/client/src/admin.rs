//! The handle of an administrator: creates topics, asks for elections, describes the cluster.

use std::collections::BTreeMap;

use acked_core::client::{Caller, CallerEffect, CallerInput, ClusterDescription};
use acked_core::settings::AdminSettings;
use acked_core::{NodeId, Output, Time};
use acked_env::Env;
use acked_wire::api::alter_partition_reassignments::{
    AlterPartitionReassignmentsRequest, ReassignablePartition, ReassignableTopic,
};
use acked_wire::api::create_topics::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig, CreateTopicsRequest,
};
use acked_wire::api::delete_topics::{DeleteTopicState, DeleteTopicsRequest};
use acked_wire::api::elect_leaders::{ElectLeadersRequest, TopicPartitions};
use acked_wire::api::incremental_alter_configs::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
};
use acked_wire::api::list_partition_reassignments::{
    ListPartitionReassignmentsRequest, OngoingTopicReassignment,
};
use acked_wire::api::metadata::{MetadataRequest, MetadataRequestTopic};
use acked_wire::{RequestBody, ResponseBody, Str, Uuid, error_code};
use tokio::sync::{mpsc, oneshot};

use crate::driver::{self, Client, Event, Flow};
use crate::transport::Transport;

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

/// Whose settings are changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingsOf<'a> {
    Topic(&'a str),
    /// The default of all brokers, above their own files.
    AllBrokers,
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
pub struct Admin {
    mailbox: mpsc::UnboundedSender<Command>,
    timeout_ms: i32,
}

impl Admin {
    /// Starts the administrator's task. `bootstrap` lists host and port of brokers to ask first.
    ///
    /// # Panics
    /// When `bootstrap` is empty.
    pub fn new<E: Env>(
        env: &E,
        client_id: &str,
        settings: AdminSettings,
        bootstrap: Vec<(String, u16)>,
    ) -> Admin {
        let rng = env.rng(&format!("admin {client_id}"));
        let timeout_ms = i32::try_from(settings.request_timeout.as_millis()).unwrap_or(i32::MAX);
        let task = Task {
            machine: Caller::new(settings, bootstrap, rng),
            out: Output::default(),
            callers: BTreeMap::new(),
            next_call: 0,
        };
        Admin { mailbox: driver::start(env, "admin", client_id, task), timeout_ms }
    }

    /// Creates one topic; returns after the controller has committed it.
    ///
    /// # Errors
    /// What the controller answered. TOPIC_ALREADY_EXISTS (36) also when an earlier try of this call, whose answer
    /// was lost, created it.
    pub async fn create_topic(&self, topic: NewTopic) -> Result<CreatedTopic, AdminError> {
        let name = topic.name.clone();
        let body = CreateTopicsRequest {
            topics: vec![creatable(topic)],
            timeout_ms: self.timeout_ms,
            validate_only: false,
            ..Default::default()
        };
        let ResponseBody::CreateTopics(answer) = self.call(body.into()).await? else {
            return Err(AdminError::of(error_code::UNKNOWN_SERVER_ERROR));
        };
        match answer.topics.into_iter().find(|topic| *topic.name == *name) {
            Some(topic) => {
                done(topic.error_code, topic.error_message)?;
                Ok(CreatedTopic { name, topic: topic.topic_id })
            }
            None => Err(AdminError::of(error_code::UNKNOWN_SERVER_ERROR)),
        }
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
        let body = ElectLeadersRequest {
            election_type: match kind {
                ElectionKind::Preferred => 0,
                ElectionKind::Unclean => 1,
            },
            topic_partitions: partitions.map(by_topic),
            timeout_ms: self.timeout_ms,
            ..Default::default()
        };
        let ResponseBody::ElectLeaders(answer) = self.call(body.into()).await? else {
            return Err(AdminError::of(error_code::UNKNOWN_SERVER_ERROR));
        };
        if answer.error_code != error_code::NONE {
            return Err(AdminError::of(answer.error_code));
        }
        let mut elections = Vec::new();
        for topic in answer.replica_election_results {
            for partition in topic.partition_result {
                let (topic, code) = (topic.topic.to_string(), partition.error_code);
                elections.push(PartitionElection { topic, partition: partition.partition_id, code });
            }
        }
        Ok(elections)
    }

    /// Deletes a topic; returns after the controller has committed it.
    ///
    /// # Errors
    /// What the controller answered. UNKNOWN_TOPIC_OR_PARTITION (3) also when an earlier try of this call, whose answer
    /// was lost, deleted it.
    pub async fn delete_topic(&self, name: &str) -> Result<(), AdminError> {
        let topic = DeleteTopicState { name: Some(Str::from(name)), ..Default::default() };
        let body =
            DeleteTopicsRequest { topics: vec![topic], timeout_ms: self.timeout_ms, ..Default::default() };
        let ResponseBody::DeleteTopics(answer) = self.call(body.into()).await? else {
            return Err(AdminError::of(error_code::UNKNOWN_SERVER_ERROR));
        };
        let topic = answer.responses.into_iter().next();
        let topic = topic.ok_or(AdminError::of(error_code::UNKNOWN_SERVER_ERROR))?;
        done(topic.error_code, topic.error_message)
    }

    /// Moves a partition to these replicas, the preferred leader first; `None` cancels what is under way. Returns once
    /// it has begun: a new order of the same replicas is then done, anything else takes until the new ones are in sync.
    ///
    /// # Errors
    /// What the controller answered.
    pub async fn reassign(
        &self,
        topic: &str,
        partition: i32,
        replicas: Option<&[NodeId]>,
    ) -> Result<(), AdminError> {
        let replicas = replicas.map(|nodes| nodes.iter().map(|node| node.0).collect());
        let wish = ReassignablePartition { partition_index: partition, replicas, ..Default::default() };
        let topic =
            ReassignableTopic { name: Str::from(topic), partitions: vec![wish], ..Default::default() };
        let body = AlterPartitionReassignmentsRequest {
            timeout_ms: self.timeout_ms,
            topics: vec![topic],
            ..Default::default()
        };
        let ResponseBody::AlterPartitionReassignments(answer) = self.call(body.into()).await? else {
            return Err(AdminError::of(error_code::UNKNOWN_SERVER_ERROR));
        };
        done(answer.error_code, answer.error_message)?;
        let partition = answer.responses.into_iter().flat_map(|topic| topic.partitions).next();
        let partition = partition.ok_or(AdminError::of(error_code::UNKNOWN_SERVER_ERROR))?;
        done(partition.error_code, partition.error_message)
    }

    /// The partitions that are moving, by topic and index.
    ///
    /// # Errors
    /// What the controller answered.
    pub async fn reassignments(&self) -> Result<Vec<(String, i32)>, AdminError> {
        let body = ListPartitionReassignmentsRequest {
            timeout_ms: self.timeout_ms,
            topics: None,
            ..Default::default()
        };
        let ResponseBody::ListPartitionReassignments(answer) = self.call(body.into()).await? else {
            return Err(AdminError::of(error_code::UNKNOWN_SERVER_ERROR));
        };
        done(answer.error_code, answer.error_message)?;
        let of_topic = |topic: OngoingTopicReassignment| {
            let name = topic.name.to_string();
            topic.partitions.into_iter().map(move |partition| (name.clone(), partition.partition_index))
        };
        Ok(answer.topics.into_iter().flat_map(of_topic).collect())
    }

    /// Changes settings of one topic, or of all brokers; a value of `None` removes the setting.
    ///
    /// # Errors
    /// What the controller answered; nothing was changed then.
    pub async fn alter_settings(
        &self,
        of: SettingsOf<'_>,
        changes: &[(&str, Option<&str>)],
    ) -> Result<(), AdminError> {
        let (resource_type, name) = match of {
            SettingsOf::Topic(name) => (2, name),
            SettingsOf::AllBrokers => (4, ""),
        };
        let config = |(name, value): &(&str, Option<&str>)| AlterableConfig {
            name: Str::from(*name),
            config_operation: i8::from(value.is_none()),
            value: value.map(Str::from),
            ..Default::default()
        };
        let resource = AlterConfigsResource {
            resource_type,
            resource_name: Str::from(name),
            configs: changes.iter().map(config).collect(),
            ..Default::default()
        };
        let body = IncrementalAlterConfigsRequest { resources: vec![resource], ..Default::default() };
        let ResponseBody::IncrementalAlterConfigs(answer) = self.call(body.into()).await? else {
            return Err(AdminError::of(error_code::UNKNOWN_SERVER_ERROR));
        };
        let resource = answer.responses.into_iter().next();
        let resource = resource.ok_or(AdminError::of(error_code::UNKNOWN_SERVER_ERROR))?;
        done(resource.error_code, resource.error_message)
    }

    /// Brokers, and the given topics (all when `None`), as the asked broker knows them.
    ///
    /// # Errors
    /// Only when the request as a whole failed; a topic that is missing has its own code in the answer.
    pub async fn describe(&self, topics: Option<&[&str]>) -> Result<ClusterDescription, AdminError> {
        let named = |name: &&str| MetadataRequestTopic { name: Some(Str::from(*name)), ..Default::default() };
        let body = MetadataRequest {
            topics: topics.map(|names| names.iter().map(named).collect()),
            allow_auto_topic_creation: false,
            ..Default::default()
        };
        let ResponseBody::Metadata(answer) = self.call(body.into()).await? else {
            return Err(AdminError::of(error_code::UNKNOWN_SERVER_ERROR));
        };
        match answer.error_code {
            error_code::NONE => Ok(ClusterDescription::from(&answer)),
            code => Err(AdminError::of(code)),
        }
    }

    async fn call(&self, body: RequestBody) -> Result<ResponseBody, AdminError> {
        let (answer, receiver) = oneshot::channel();
        // The task only ends before the handle when its node dies, and then nobody waits for the answer.
        let _ = self.mailbox.send(Command { body, answer });
        let answer = receiver.await.unwrap_or(Err(error_code::UNKNOWN_SERVER_ERROR));
        answer.map_err(AdminError::of)
    }
}

fn done(code: i16, message: Option<Str>) -> Result<(), AdminError> {
    match code {
        error_code::NONE => Ok(()),
        code => Err(AdminError { code, message: message.map(|message| message.to_string()) }),
    }
}

impl AdminError {
    fn of(code: i16) -> AdminError {
        AdminError { code, message: None }
    }
}

fn creatable(topic: NewTopic) -> CreatableTopic {
    let assigned = !topic.assignment.is_empty();
    let assignments = topic.assignment.iter().zip(0..).map(|(replicas, index)| CreatableReplicaAssignment {
        partition_index: index,
        broker_ids: replicas.iter().map(|node| node.0).collect(),
        ..Default::default()
    });
    let configs = topic.settings.iter().map(|(name, value)| CreatableTopicConfig {
        name: Str::from(name),
        value: Some(Str::from(value)),
        ..Default::default()
    });
    CreatableTopic {
        name: Str::from(&topic.name),
        num_partitions: if assigned { -1 } else { topic.partitions.unwrap_or(-1) },
        replication_factor: if assigned { -1 } else { topic.replication_factor.unwrap_or(-1) },
        assignments: assignments.collect(),
        configs: configs.collect(),
        ..Default::default()
    }
}

fn by_topic(partitions: &[(&str, i32)]) -> Vec<TopicPartitions> {
    let mut topics: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
    for (topic, partition) in partitions {
        topics.entry(topic).or_default().push(*partition);
    }
    let of_topic =
        |(topic, partitions)| TopicPartitions { topic: Str::from(topic), partitions, ..Default::default() };
    topics.into_iter().map(of_topic).collect()
}

struct Command {
    body: RequestBody,
    answer: oneshot::Sender<Result<ResponseBody, i16>>,
}

struct Task {
    machine: Caller,
    out: Output<CallerEffect>,
    callers: BTreeMap<u64, oneshot::Sender<Result<ResponseBody, i16>>>,
    next_call: u64,
}

impl Client for Task {
    type Command = Command;

    fn handle<E: Env>(&mut self, now: Time, event: Event<Command>, transport: &mut Transport<E>) -> Flow {
        let input = match event {
            Event::Network(input) => CallerInput::Network(input),
            Event::Deadline => CallerInput::Tick,
            Event::Dropped => unreachable!("the driver ends then"),
            Event::Command(Command { body, answer }) => {
                self.next_call += 1;
                self.callers.insert(self.next_call, answer);
                CallerInput::Call { call: self.next_call, body }
            }
        };
        self.machine.handle(now, input, &mut self.out);
        for effect in self.out.effects.drain(..) {
            match effect {
                CallerEffect::Network(effect) => transport.carry_out(effect),
                CallerEffect::Answered { call, answer } => {
                    let caller = self.callers.remove(&call).expect("a call is answered once");
                    let _ = caller.send(answer);
                }
            }
        }
        Flow::Continue
    }

    fn next_deadline(&self) -> Option<Time> {
        self.machine.next_deadline()
    }
}
