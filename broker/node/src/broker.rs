//! A broker node: replicas, its membership in the cluster, and its view of the metadata.

use std::collections::{BTreeMap, BTreeSet};

use acked_core::controller::{
    Lifecycle, LifecycleEffect, LifecycleInput, MetadataImage, MetadataView, ProducerIds, ProducerIdsEffect,
    ProducerIdsInput, is_forwarded, metadata_response,
};
use acked_core::log::checkpoint::{CleanShutdown, OffsetEntry};
use acked_core::quorum::{CommittedBatch, QuorumInput};
use acked_core::replica::{
    BrokerView, FetchId, MetadataUpdate, PartitionAssignment, ReplicaEffect, ReplicaInput, ReplicaManager,
    WriteId,
};
use acked_core::{NodeId, Observation, Observer, Output, PeerError, Time, TopicPartition};
use acked_env::Env;
use acked_wire::{MetadataRecord, RequestBody, ResponseBody, Str, Uuid};
use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use crate::checkpoints::{self, Checkpoint};
use crate::connection::ConnectionId;
use crate::event::Event;
use crate::files::{self, DATA_DIRECTORY, LogPaths};
use crate::forward::Forwards;
use crate::handlers::{self, Incoming};
use crate::link::{LinkKey, Purpose};
use crate::log_file::{LogDirectory, LogOperation, LogRequest};
use crate::node::{Ended, Serve};
use crate::quorum_host::{QuorumHost, QuorumNews};
use crate::shell::Shell;

/// The listener that clients and other brokers use.
pub const LISTENER: &str = "PLAINTEXT";

/// A request of one of the broker's machines that waits for its answer.
enum Sent {
    Fetch { to: NodeId, fetch: FetchId },
    ListOffsets { to: NodeId, fetch: FetchId },
    AlterPartition,
    Registration { send: u64 },
    Heartbeat { send: u64 },
    Allocate { send: u64 },
}

pub struct BrokerNode<E: Env, O: Observer> {
    shell: Shell<E, O>,
    quorum: QuorumHost,
    image: MetadataImage,
    incarnation: Uuid,
    cluster_id: Str,
    /// The image holds this incarnation's registration: replicas may act on it.
    registered: bool,
    replicas: ReplicaManager,
    lifecycle: Lifecycle,
    producer_ids: ProducerIds,
    forwards: Forwards,
    logs: BTreeMap<TopicPartition, Log>,
    /// By path. A directory keeps its task when its replica goes: the next one's files come after the removal.
    directories: BTreeMap<String, Directory>,
    /// Replicas found at start that must not be served, and whose files are kept as they are: another disk's content
    /// would be needed to mend them, and an empty log in their place would lose what they still hold.
    refused: BTreeMap<TopicPartition, LogPaths>,
    /// Creations of refused replicas, which fail once the effects at hand are carried out.
    refused_writes: Vec<(TopicPartition, WriteId)>,
    /// Replaces checkpoint files one after the other.
    checkpoints: mpsc::UnboundedSender<Checkpoint>,
    sent: BTreeMap<u64, Sent>,
    replica_output: Output<ReplicaEffect>,
    lifecycle_output: Output<LifecycleEffect>,
    producer_output: Output<ProducerIdsEffect>,
    ended: Option<Ended>,
    clean_epoch: Option<i64>,
}

/// A replica whose files are in use.
struct Log {
    paths: LogPaths,
    requests: mpsc::UnboundedSender<LogRequest>,
}

/// A replica directory that has a task.
struct Directory {
    holder: TopicPartition,
    requests: mpsc::UnboundedSender<LogRequest>,
}

/// A replica directory that was there at start.
pub struct FoundReplica {
    pub partition: TopicPartition,
    pub paths: LogPaths,
    /// False when something that was synced is missing or damaged there.
    pub is_usable: bool,
}

/// The machines and logs that a broker starts with.
pub struct BrokerParts {
    pub incarnation: Uuid,
    pub replicas: ReplicaManager,
    pub lifecycle: Lifecycle,
    pub producer_ids: ProducerIds,
    pub logs: Vec<FoundReplica>,
    pub high_watermarks: Vec<OffsetEntry>,
    pub recovery_points: Vec<OffsetEntry>,
}

impl<E: Env, O: Observer> BrokerNode<E, O> {
    pub fn new(shell: Shell<E, O>, quorum: QuorumHost, parts: BrokerParts) -> Self {
        let (checkpoints, queue) = mpsc::unbounded_channel();
        let (marks, points) = (parts.high_watermarks, parts.recovery_points);
        shell.env.spawn("checkpoints", checkpoints::serve(shell.env.disk(), marks, points, queue));
        let mut node = BrokerNode {
            cluster_id: shell.config.cluster_id.as_str().into(),
            quorum,
            image: MetadataImage::default(),
            incarnation: parts.incarnation,
            registered: false,
            replicas: parts.replicas,
            lifecycle: parts.lifecycle,
            producer_ids: parts.producer_ids,
            forwards: Forwards::new(shell.config.settings.request_timeout),
            logs: BTreeMap::new(),
            directories: BTreeMap::new(),
            refused: BTreeMap::new(),
            refused_writes: Vec::new(),
            checkpoints,
            sent: BTreeMap::new(),
            replica_output: Output::default(),
            lifecycle_output: Output::default(),
            producer_output: Output::default(),
            ended: None,
            clean_epoch: None,
            shell,
        };
        for found in parts.logs {
            if found.is_usable {
                node.open_log(found.partition, found.paths);
            } else {
                node.refused.insert(found.partition, found.paths);
            }
        }
        // Logs are recovered by now.
        node.lifecycle(LifecycleInput::ReadyToUnfence);
        node
    }

    /// Syncs and closes every log, then writes the checkpoints and, last of all, the mark of a clean stop. There is no
    /// mark when a log could not be used or synced: the next start must look at what is there. A task that died is a
    /// log that was not synced, and keeps nobody waiting: its end of the answer is dropped with it.
    pub async fn close(self) {
        let closing: Vec<_> = self
            .logs
            .iter()
            .map(|(partition, log)| {
                let (closed, answer) = oneshot::channel();
                let operation = LogOperation::Close { closed };
                let _ = log.requests.send(LogRequest { partition: *partition, operation });
                (*partition, answer)
            })
            .collect();
        let mut synced = BTreeSet::new();
        for (partition, answer) in closing {
            if answer.await.unwrap_or(false) {
                synced.insert(partition);
            }
        }
        let mut ends = self.replicas.log_end_offsets();
        ends.retain(|(partition, _)| synced.contains(partition));
        let (saved, answer) = oneshot::channel();
        let last = Checkpoint::Close {
            high_watermarks: self.named(self.replicas.high_watermarks()),
            recovery_points: self.named(ends),
            saved,
        };
        let is_saved = self.checkpoints.send(last).is_ok() && answer.await.unwrap_or(false);
        if is_saved && self.refused.is_empty() && synced.len() == self.logs.len() {
            let marker = CleanShutdown { broker_epoch: self.clean_epoch.unwrap_or(-1) };
            let disk = self.shell.env.disk();
            // Without it the next start takes longer; nothing else is lost.
            let _ =
                files::replace(&disk, DATA_DIRECTORY, files::CLEAN_SHUTDOWN, marker.render().into()).await;
        }
        self.quorum.close().await;
        self.shell.observe(&mut vec![Observation::NodeStopped]);
    }

    /// As checkpoints name them; without replicas whose directory is another's by now.
    fn named(&self, offsets: Vec<(TopicPartition, i64)>) -> Vec<OffsetEntry> {
        let entry = |(partition, offset): (TopicPartition, i64)| {
            let topic = self.logs.get(&partition)?.paths.topic().to_string();
            Some(OffsetEntry { topic, partition: partition.index, offset })
        };
        offsets.into_iter().filter_map(entry).collect()
    }

    // ---- requests

    fn request(&mut self, connection: ConnectionId, frame: Bytes) {
        let whole = frame.clone();
        let Some((header, incoming)) = handlers::read(self.shell.config.role, frame) else {
            self.shell.requests.close_connection(connection);
            return;
        };
        let version = header.api_version;
        let body = match incoming {
            Incoming::ApiVersionsOfUnknownVersion => {
                return self.shell.refuse_api_versions(connection, header);
            }
            Incoming::Body(RequestBody::ApiVersions(body)) => {
                return self.shell.answer_api_versions(connection, header, &body, &self.image);
            }
            Incoming::Body(body) => body,
        };
        let request = self.shell.requests.receive(connection, header);
        match body {
            RequestBody::Produce(body) => {
                let wall_clock_ms = self.shell.env.wall_clock_ms();
                self.replicas(ReplicaInput::Produce { request, version, body, wall_clock_ms });
            }
            RequestBody::Fetch(body) => self.replicas(ReplicaInput::Fetch { request, version, body }),
            RequestBody::ListOffsets(body) => {
                self.replicas(ReplicaInput::ListOffsets { request, version, body })
            }
            RequestBody::OffsetForLeaderEpoch(body) => {
                self.replicas(ReplicaInput::OffsetForLeaderEpoch { request, body });
            }
            RequestBody::Metadata(body) => {
                let view = MetadataView {
                    node: self.shell.config.node,
                    cluster_id: &self.cluster_id,
                    listener: LISTENER,
                };
                let answer = metadata_response(&self.image, &body, &view);
                self.shell.requests.answer(request, &answer.into());
            }
            RequestBody::InitProducerId(body) => {
                self.producer_ids(ProducerIdsInput::InitProducerId { request, body });
            }
            body if is_forwarded(body.key()) => {
                self.forwards.begin(&mut self.shell, self.quorum.quorum.leader(), request, &body, whole);
            }
            _ => self.shell.requests.close(request),
        }
    }

    fn response(&mut self, link: LinkKey, token: u64, result: Result<Bytes, PeerError>) {
        match link.purpose {
            Purpose::QuorumFetch | Purpose::QuorumElection => {
                let news = self.quorum.response(&mut self.shell, token, result);
                self.news(news);
            }
            Purpose::Forward => {
                self.forwards.response(&mut self.shell, self.quorum.quorum.leader(), token, result);
            }
            Purpose::ReplicaFetch | Purpose::Lifecycle | Purpose::AlterPartition | Purpose::ProducerIds => {
                let sent = self.sent.remove(&token).expect("every answer belongs to a request that was sent");
                let result = self.shell.decode(token, result);
                self.machine_response(sent, result);
            }
        }
    }

    fn machine_response(&mut self, sent: Sent, result: Result<ResponseBody, PeerError>) {
        match sent {
            Sent::Fetch { to, fetch } => {
                let result = expect_body(result, |body| match body {
                    ResponseBody::Fetch(body) => Some(body),
                    _ => None,
                });
                self.replicas(ReplicaInput::FetchResponse { from: to, fetch, result });
            }
            Sent::ListOffsets { to, fetch } => {
                let result = expect_body(result, |body| match body {
                    ResponseBody::ListOffsets(body) => Some(body),
                    _ => None,
                });
                self.replicas(ReplicaInput::ListOffsetsResponse { from: to, fetch, result });
            }
            Sent::AlterPartition => {
                let result = expect_body(result, |body| match body {
                    ResponseBody::AlterPartition(body) => Some(body),
                    _ => None,
                });
                self.replicas(ReplicaInput::AlterPartitionResponse { result });
            }
            Sent::Registration { send } => {
                let result = expect_body(result, |body| match body {
                    ResponseBody::BrokerRegistration(body) => Some(body),
                    _ => None,
                });
                self.lifecycle(LifecycleInput::RegistrationResponse { send, result });
            }
            Sent::Heartbeat { send } => {
                let result = expect_body(result, |body| match body {
                    ResponseBody::BrokerHeartbeat(body) => Some(body),
                    _ => None,
                });
                self.lifecycle(LifecycleInput::HeartbeatResponse { send, result });
            }
            Sent::Allocate { send } => {
                let result = expect_body(result, |body| match body {
                    ResponseBody::AllocateProducerIds(body) => Some(body),
                    _ => None,
                });
                self.producer_ids(ProducerIdsInput::Allocated { send, result });
            }
        }
    }

    // ---- metadata

    fn quorum_input(&mut self, input: QuorumInput) {
        let news = self.quorum.handle(&mut self.shell, input);
        self.news(news);
    }

    pub fn news(&mut self, news: Vec<QuorumNews>) {
        for news in news {
            match news {
                QuorumNews::Committed(batches) => self.committed(&batches),
                QuorumNews::LeaderChanged => {
                    self.lifecycle(LifecycleInput::ControllerChanged);
                    self.forwards.tick(&mut self.shell, self.quorum.quorum.leader());
                }
                QuorumNews::Halted => self.ended = Some(Ended::Failed("follow the metadata quorum")),
                QuorumNews::BecameLeader { .. } | QuorumNews::LostLeadership | QuorumNews::Stopped => {
                    unreachable!("an observer neither leads nor hands over")
                }
            }
        }
    }

    fn committed(&mut self, batches: &[CommittedBatch]) {
        for batch in batches {
            for (offset, record) in (batch.base_offset..).zip(&batch.records) {
                let replayed = MetadataRecord::decode(record)
                    .map_err(|_| ())
                    .and_then(|record| self.image.replay(offset, &record).map_err(|_| ()));
                if replayed.is_err() {
                    self.ended = Some(Ended::Failed("replay a committed metadata record"));
                    return;
                }
            }
        }
        self.tell_replicas();
        if let Some(batch) = batches.last() {
            self.lifecycle(LifecycleInput::MetadataReached { offset: batch.last_offset });
        }
    }

    /// Hands the news of the image to the replicas, once it holds this incarnation's registration: an earlier image
    /// may still name this broker as the leader of what a crash took from it.
    fn tell_replicas(&mut self) {
        let own = self.image.broker(self.shell.config.node).filter(|own| own.incarnation == self.incarnation);
        let Some(own) = own else { return };
        let broker_epoch = Some(own.epoch);
        let changes = self.image.take_changes();
        let changed: Vec<TopicPartition> = if self.registered {
            if changes.is_empty() {
                return;
            }
            changes.partitions.into_iter().collect()
        } else {
            self.registered = true;
            self.image.partitions().map(|partition| partition.state.partition).collect()
        };
        let partitions = changed.into_iter().filter_map(|partition| self.assignment(partition)).collect();
        let brokers = self
            .image
            .brokers()
            .map(|broker| {
                let view = BrokerView {
                    broker_epoch: broker.epoch,
                    fenced: broker.fenced,
                    in_controlled_shutdown: broker.in_controlled_shutdown,
                };
                (broker.id, view)
            })
            .collect();
        let removed = changes.removed.into_iter().collect();
        self.replicas(ReplicaInput::Metadata(MetadataUpdate { broker_epoch, brokers, partitions, removed }));
    }

    fn assignment(&self, partition: TopicPartition) -> Option<PartitionAssignment> {
        let topic_name = self.image.topic(partition.topic)?.name.clone();
        let state = self.image.partition(partition)?.state.clone();
        let settings = self.shell.config.topic_settings(&self.image, &topic_name);
        Some(PartitionAssignment { topic_name, state, settings })
    }

    // ---- machines

    fn replicas(&mut self, input: ReplicaInput) {
        self.replicas.handle(self.shell.env.now(), input, &mut self.replica_output);
        self.shell.observe(&mut self.replica_output.observations);
        let mut effects = std::mem::take(&mut self.replica_output.effects);
        for effect in effects.drain(..) {
            self.replica_effect(effect);
        }
        // The vector's memory is kept for the next call.
        self.replica_output.effects = effects;
        // Before anything else is asked of a replica that the machine takes for empty.
        while let Some((partition, write)) = self.refused_writes.pop() {
            self.replicas(ReplicaInput::WriteFailed { partition, write });
        }
    }

    fn replica_effect(&mut self, effect: ReplicaEffect) {
        match effect {
            ReplicaEffect::Reply { request, body } => self.shell.requests.answer(request, &body),
            ReplicaEffect::NoReply { request } => self.shell.requests.read_on(request),
            ReplicaEffect::CloseConnection { request } => self.shell.requests.close(request),
            ReplicaEffect::CreateLog { partition, write, topic_name } => {
                if self.refused.contains_key(&partition) {
                    self.refused_writes.push((partition, write));
                } else {
                    self.create_log(partition, LogPaths::new(&topic_name, partition.index));
                    self.log(partition, LogOperation::Create { write });
                }
            }
            ReplicaEffect::DeleteLog { partition } => {
                if let Some(paths) = self.refused.remove(&partition) {
                    self.open_log(partition, paths);
                }
                // Without a log, its directory is another replica's by now.
                if let Some(log) = self.logs.remove(&partition) {
                    let _ = log.requests.send(LogRequest { partition, operation: LogOperation::Delete });
                }
            }
            ReplicaEffect::Append { partition, write, position, bytes, sync } => {
                self.log(partition, LogOperation::Append { write, position, bytes, sync });
            }
            ReplicaEffect::Truncate { partition, write, size, log_end_offset } => {
                self.log(partition, LogOperation::Truncate { write, size, log_end_offset });
            }
            ReplicaEffect::SaveEpochs { partition, write, epochs } => {
                self.log(partition, LogOperation::SaveEpochs { write, epochs });
            }
            ReplicaEffect::Read { partition, read, position, length } => {
                self.log(partition, LogOperation::Read { read, position, length });
            }
            ReplicaEffect::SaveHighWatermarks { marks } => {
                // The task that saves ends only with the node.
                let _ = self.checkpoints.send(Checkpoint::HighWatermarks(self.named(marks)));
            }
            ReplicaEffect::SendFetch { to, fetch, body } => {
                self.send_to_broker(to, &RequestBody::Fetch(body), Sent::Fetch { to, fetch });
            }
            ReplicaEffect::SendListOffsets { to, fetch, body } => {
                self.send_to_broker(to, &RequestBody::ListOffsets(body), Sent::ListOffsets { to, fetch });
            }
            ReplicaEffect::SendAlterPartition { body } => {
                let body = RequestBody::AlterPartition(body);
                self.send_to_controller(Purpose::AlterPartition, &body, Sent::AlterPartition);
            }
        }
    }

    fn lifecycle(&mut self, input: LifecycleInput) {
        self.lifecycle.handle(self.shell.env.now(), input, &mut self.lifecycle_output);
        self.shell.observe(&mut self.lifecycle_output.observations);
        let effects: Vec<LifecycleEffect> = self.lifecycle_output.effects.drain(..).collect();
        for effect in effects {
            match effect {
                LifecycleEffect::SendRegistration { send, body } => {
                    let body = RequestBody::BrokerRegistration(body);
                    self.send_to_controller(Purpose::Lifecycle, &body, Sent::Registration { send });
                }
                LifecycleEffect::SendHeartbeat { send, body } => {
                    let body = RequestBody::BrokerHeartbeat(body);
                    self.send_to_controller(Purpose::Lifecycle, &body, Sent::Heartbeat { send });
                }
                LifecycleEffect::Registered { broker_epoch } => {
                    self.clean_epoch = Some(broker_epoch);
                    self.producer_ids(ProducerIdsInput::Registered { broker_epoch });
                }
                LifecycleEffect::CaughtUp | LifecycleEffect::Fenced { .. } => {}
                LifecycleEffect::ReadyToStop { broker_epoch, .. } => {
                    self.clean_epoch = broker_epoch;
                    self.ended = Some(Ended::Stopped);
                }
                LifecycleEffect::RegistrationFailed { .. } => {
                    self.ended = Some(Ended::Failed("register with a controller"));
                }
            }
        }
    }

    fn producer_ids(&mut self, input: ProducerIdsInput) {
        self.producer_ids.handle(self.shell.env.now(), input, &mut self.producer_output);
        self.shell.observe(&mut self.producer_output.observations);
        let effects: Vec<ProducerIdsEffect> = self.producer_output.effects.drain(..).collect();
        for effect in effects {
            match effect {
                ProducerIdsEffect::SendAllocate { send, body } => {
                    let body = RequestBody::AllocateProducerIds(body);
                    self.send_to_controller(Purpose::ProducerIds, &body, Sent::Allocate { send });
                }
                ProducerIdsEffect::Reply { request, body } => {
                    self.shell.requests.answer(request, &body.into())
                }
            }
        }
    }

    /// To the leader of the highest quorum epoch that this broker knows; when none is known, the machine is told that
    /// nobody was reached, and tries again after its own pause.
    fn send_to_controller(&mut self, purpose: Purpose, body: &RequestBody, sent: Sent) {
        let leader = self.quorum.quorum.leader();
        let address = leader.and_then(|leader| self.shell.config.voters.get(&leader)).cloned();
        match leader.zip(address) {
            Some((leader, (host, port))) => {
                let token = self.shell.send(leader, purpose, (&host, port), body);
                self.sent.insert(token, sent);
            }
            None => self.machine_response(sent, Err(PeerError::Unreachable)),
        }
    }

    fn send_to_broker(&mut self, to: NodeId, body: &RequestBody, sent: Sent) {
        let endpoint = self.image.broker(to).and_then(|broker| broker.endpoints.first());
        match endpoint.map(|endpoint| (endpoint.host.to_string(), endpoint.port)) {
            Some((host, port)) => {
                let token = self.shell.send(to, Purpose::ReplicaFetch, (&host, port), body);
                self.sent.insert(token, sent);
            }
            None => self.machine_response(sent, Err(PeerError::Unreachable)),
        }
    }

    // ---- logs

    /// Gives a directory that was found at start its task.
    fn open_log(&mut self, partition: TopicPartition, paths: LogPaths) {
        let (requests, queue) = mpsc::unbounded_channel();
        let directory = LogDirectory {
            disk: self.shell.env.disk(),
            paths: paths.clone(),
            holder: Some(partition),
            events: self.shell.events.clone(),
            checkpoints: self.checkpoints.clone(),
        };
        self.shell.env.spawn("log", directory.serve(queue));
        self.directories
            .insert(paths.directory.clone(), Directory { holder: partition, requests: requests.clone() });
        self.logs.insert(partition, Log { paths, requests });
    }

    /// Makes a directory this replica's, whoever had it before: a topic of the same name that is gone, though this
    /// broker may not have been told.
    fn create_log(&mut self, partition: TopicPartition, paths: LogPaths) {
        self.refused.retain(|_, refused| refused.directory != paths.directory);
        let Some(directory) = self.directories.get_mut(&paths.directory) else {
            return self.open_log(partition, paths);
        };
        self.logs.remove(&directory.holder);
        directory.holder = partition;
        let requests = directory.requests.clone();
        self.logs.insert(partition, Log { paths, requests });
    }

    fn log(&self, partition: TopicPartition, operation: LogOperation) {
        let Some(log) = self.logs.get(&partition) else {
            assert!(self.refused.contains_key(&partition), "the log of {partition:?} was never opened");
            return;
        };
        // The task ends only with the node.
        let _ = log.requests.send(LogRequest { partition, operation });
    }
}

impl<E: Env, O: Observer> Serve for BrokerNode<E, O> {
    fn next_deadline(&self) -> Option<Time> {
        [
            self.quorum.next_deadline(),
            self.replicas.next_deadline(),
            self.lifecycle.next_deadline(),
            self.producer_ids.next_deadline(),
            self.forwards.next_deadline(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn event(&mut self, event: Event) -> Option<Ended> {
        match event {
            Event::ConnectionOpened { connection, replies } => {
                self.shell.requests.opened(connection, replies)
            }
            Event::ConnectionClosed { connection } => {
                if let Some(request) = self.shell.requests.closed(connection) {
                    self.replicas(ReplicaInput::Abandoned { request });
                }
            }
            Event::Request { connection, frame } => self.request(connection, frame),
            Event::Response { link, token, result } => self.response(link, token, result),
            Event::LogWritten { partition, write } => {
                self.replicas(ReplicaInput::Written { partition, write })
            }
            Event::LogWriteFailed { partition, write } => {
                self.replicas(ReplicaInput::WriteFailed { partition, write });
            }
            Event::LogRead { read, result } => self.replicas(ReplicaInput::ReadDone { read, result }),
            Event::MetadataLogSynced { write } => self.quorum_input(QuorumInput::LogSynced { write }),
            Event::QuorumStateSaved { save } => self.quorum_input(QuorumInput::StateSaved { save }),
            Event::MetadataFailed => {
                self.ended = Some(Ended::Failed("write the metadata log or quorum state"))
            }
            Event::Shutdown => self.lifecycle(LifecycleInput::ShutDown),
        }
        self.ended.take()
    }

    fn deadline(&mut self, now: Time) -> Option<Ended> {
        let passed = |deadline: Option<Time>| deadline.is_some_and(|deadline| deadline <= now);
        if passed(self.quorum.next_deadline()) {
            self.quorum_input(QuorumInput::Tick);
        }
        if passed(self.replicas.next_deadline()) {
            self.replicas(ReplicaInput::Tick);
        }
        if passed(self.lifecycle.next_deadline()) {
            self.lifecycle(LifecycleInput::Tick);
        }
        if passed(self.producer_ids.next_deadline()) {
            self.producer_ids(ProducerIdsInput::Tick);
        }
        if passed(self.forwards.next_deadline()) {
            self.forwards.tick(&mut self.shell, self.quorum.quorum.leader());
        }
        self.ended.take()
    }
}

fn expect_body<T>(
    result: Result<ResponseBody, PeerError>,
    take: impl FnOnce(ResponseBody) -> Option<T>,
) -> Result<T, PeerError> {
    result.and_then(|body| take(body).ok_or(PeerError::Malformed))
}
