//! The active controller: one decision at a time on an image that is replayed through its own pending records.
//!
//! - **Actions**: `Propose` a batch of records (atomic; its offsets are known, as only the active controller appends);
//!   `Reply` once the metadata high watermark passed everything the decision could have seen.
//! - **Transitions**: made when this node leads the quorum and has replayed the log to its end; dropped when it does
//!   not lead any more. Its successor is made from the log alone.
//!
//! Not decided here: what commits. If a proposal is lost with the leadership, so are the replies that waited for it.
//! The idle NoOp records of Kafka's controller are not written: brokers learn the high watermark from the answers to
//! their fetches, with records or without.
//! Source: kafka-rules 3 and 5; KIP-500, KIP-631.

use acked_wire::{
    AllocateProducerIdsRequest, AllocateProducerIdsResponse, AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse, AlterPartitionRequest, AlterPartitionResponse, ApiKey,
    BrokerHeartbeatRequest, BrokerHeartbeatResponse, BrokerRegistrationRequest, BrokerRegistrationResponse,
    CreateTopicsRequest, CreateTopicsResponse, DeleteTopicsRequest, DeleteTopicsResponse,
    ElectLeadersRequest, ElectLeadersResponse, IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse, ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse,
    MetadataRecord, ProducerIdsRecord, RequestBody, ResponseBody, Str, error_code,
};
use rand_chacha::ChaCha8Rng;

use super::alter_configs::alter_configs;
use super::alter_partition::alter_partition;
use super::create_topics::create_topics;
use super::delete_topics::delete_topics;
use super::draft::Draft;
use super::elect_leaders::{elect_leaders, elect_preferred};
use super::features::bootstrap_records;
use super::heartbeat::{elect_leaderless, fence, heartbeat};
use super::image::MetadataImage;
use super::reassignment::{alter_reassignments, list_reassignments};
use super::registration::register;
use super::sessions::Sessions;
use crate::observation::Observation;
use crate::settings::BrokerSettings;
use crate::types::{NodeId, Output, RequestId, Time};

/// Producer ids given out at once.
const PRODUCER_ID_BLOCK: i32 = 1000;

/// What a controller is built from.
#[derive(Clone, Debug)]
pub struct ControllerConfig {
    pub node: NodeId,
    pub cluster_id: Str,
    /// broker.session.timeout.ms
    pub session_timeout: Time,
    /// unclean.leader.election.interval.ms
    pub unclean_election_interval: Time,
    /// How often leadership goes back to preferred replicas by itself (leader.imbalance.check.interval.seconds);
    /// `None` is auto.leader.rebalance.enable=false.
    pub preferred_election_interval: Option<Time>,
    /// unclean.leader.election.enable where neither the topic nor the cluster's default says otherwise.
    pub unclean_leader_election: bool,
    /// num.partitions
    pub num_partitions: i32,
    /// default.replication.factor
    pub default_replication_factor: i16,
}

impl ControllerConfig {
    /// From the controller's settings; leadership does not move back by itself.
    pub fn new(node: NodeId, cluster_id: Str, settings: &BrokerSettings) -> ControllerConfig {
        ControllerConfig {
            node,
            cluster_id,
            session_timeout: settings.broker_session_timeout,
            unclean_election_interval: settings.unclean_leader_election_interval,
            preferred_election_interval: None,
            unclean_leader_election: settings.unclean_leader_election_enable,
            num_partitions: settings.num_partitions,
            default_replication_factor: settings.default_replication_factor,
        }
    }
}

/// A request that the active controller answers.
#[derive(Clone, Debug, PartialEq)]
pub enum ControllerBody {
    BrokerRegistration(BrokerRegistrationRequest),
    BrokerHeartbeat(BrokerHeartbeatRequest),
    AlterPartition(AlterPartitionRequest),
    CreateTopics(CreateTopicsRequest),
    ElectLeaders(ElectLeadersRequest),
    AllocateProducerIds(AllocateProducerIdsRequest),
    DeleteTopics(DeleteTopicsRequest),
    IncrementalAlterConfigs(IncrementalAlterConfigsRequest),
    AlterPartitionReassignments(AlterPartitionReassignmentsRequest),
    ListPartitionReassignments(ListPartitionReassignmentsRequest),
}

impl TryFrom<RequestBody> for ControllerBody {
    type Error = RequestBody;

    /// Gives the body back when it is not for a controller.
    fn try_from(body: RequestBody) -> Result<ControllerBody, RequestBody> {
        match body {
            RequestBody::BrokerRegistration(body) => Ok(ControllerBody::BrokerRegistration(body)),
            RequestBody::BrokerHeartbeat(body) => Ok(ControllerBody::BrokerHeartbeat(body)),
            RequestBody::AlterPartition(body) => Ok(ControllerBody::AlterPartition(body)),
            RequestBody::CreateTopics(body) => Ok(ControllerBody::CreateTopics(body)),
            RequestBody::ElectLeaders(body) => Ok(ControllerBody::ElectLeaders(body)),
            RequestBody::AllocateProducerIds(body) => Ok(ControllerBody::AllocateProducerIds(body)),
            RequestBody::DeleteTopics(body) => Ok(ControllerBody::DeleteTopics(body)),
            RequestBody::IncrementalAlterConfigs(body) => Ok(ControllerBody::IncrementalAlterConfigs(body)),
            RequestBody::AlterPartitionReassignments(body) => {
                Ok(ControllerBody::AlterPartitionReassignments(body))
            }
            RequestBody::ListPartitionReassignments(body) => {
                Ok(ControllerBody::ListPartitionReassignments(body))
            }
            other => Err(other),
        }
    }
}

impl ControllerBody {
    /// The answer that refuses the whole request with one code: NOT_CONTROLLER of a node that does not lead the
    /// quorum, or that stopped leading before its decision was committed.
    pub fn refusal(&self, error_code: i16) -> ResponseBody {
        assert_ne!(error_code, error_code::NONE, "a refusal has an error code");
        match self {
            ControllerBody::BrokerRegistration(_) => {
                ResponseBody::BrokerRegistration(BrokerRegistrationResponse {
                    error_code,
                    ..BrokerRegistrationResponse::default()
                })
            }
            ControllerBody::BrokerHeartbeat(_) => ResponseBody::BrokerHeartbeat(BrokerHeartbeatResponse {
                error_code,
                ..BrokerHeartbeatResponse::default()
            }),
            ControllerBody::AlterPartition(_) => ResponseBody::AlterPartition(AlterPartitionResponse {
                error_code,
                ..AlterPartitionResponse::default()
            }),
            ControllerBody::CreateTopics(request) => {
                use acked_wire::api::create_topics::CreatableTopicResult;
                let refuse = |topic: &acked_wire::api::create_topics::CreatableTopic| CreatableTopicResult {
                    name: topic.name.clone(),
                    error_code,
                    configs: Some(Vec::new()),
                    ..CreatableTopicResult::default()
                };
                let topics = request.topics.iter().map(refuse).collect();
                ResponseBody::CreateTopics(CreateTopicsResponse { topics, ..CreateTopicsResponse::default() })
            }
            ControllerBody::ElectLeaders(_) => ResponseBody::ElectLeaders(ElectLeadersResponse {
                error_code,
                ..ElectLeadersResponse::default()
            }),
            ControllerBody::DeleteTopics(request) => {
                use acked_wire::api::delete_topics::DeletableTopicResult;
                let by_name =
                    request.topic_names.iter().map(|name| (Some(name.clone()), acked_wire::Uuid::ZERO));
                let topics = request.topics.iter().map(|topic| (topic.name.clone(), topic.topic_id));
                let refuse = |(name, topic_id)| DeletableTopicResult {
                    name,
                    topic_id,
                    error_code,
                    ..DeletableTopicResult::default()
                };
                let responses = by_name.chain(topics).map(refuse).collect();
                ResponseBody::DeleteTopics(DeleteTopicsResponse {
                    responses,
                    ..DeleteTopicsResponse::default()
                })
            }
            ControllerBody::IncrementalAlterConfigs(request) => {
                use acked_wire::api::incremental_alter_configs::AlterConfigsResourceResponse;
                let refuse = |resource: &acked_wire::api::incremental_alter_configs::AlterConfigsResource| {
                    AlterConfigsResourceResponse {
                        error_code,
                        error_message: None,
                        resource_type: resource.resource_type,
                        resource_name: resource.resource_name.clone(),
                        ..AlterConfigsResourceResponse::default()
                    }
                };
                let responses = request.resources.iter().map(refuse).collect();
                let response = IncrementalAlterConfigsResponse { responses, ..Default::default() };
                ResponseBody::IncrementalAlterConfigs(response)
            }
            ControllerBody::AlterPartitionReassignments(_) => {
                ResponseBody::AlterPartitionReassignments(AlterPartitionReassignmentsResponse {
                    error_code,
                    error_message: None,
                    ..AlterPartitionReassignmentsResponse::default()
                })
            }
            ControllerBody::ListPartitionReassignments(_) => {
                ResponseBody::ListPartitionReassignments(ListPartitionReassignmentsResponse {
                    error_code,
                    error_message: None,
                    ..ListPartitionReassignmentsResponse::default()
                })
            }
            ControllerBody::AllocateProducerIds(_) => {
                ResponseBody::AllocateProducerIds(AllocateProducerIdsResponse {
                    error_code,
                    ..AllocateProducerIdsResponse::default()
                })
            }
        }
    }
}

/// A client may ask this of any broker, which carries it to the active controller in an Envelope.
pub fn is_forwarded(key: ApiKey) -> bool {
    matches!(
        key,
        ApiKey::CreateTopics
            | ApiKey::ElectLeaders
            | ApiKey::DeleteTopics
            | ApiKey::IncrementalAlterConfigs
            | ApiKey::AlterPartitionReassignments
            | ApiKey::ListPartitionReassignments
    )
}

/// What wakes the active controller.
#[derive(Clone, Debug)]
pub enum ControllerInput {
    Request {
        request: RequestId,
        body: ControllerBody,
    },
    /// A deadline passed.
    Tick,
}

/// What the shell does for it, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum ControllerEffect {
    /// Append these records to the metadata log as one batch, whose first offset is `base_offset`.
    Propose { base_offset: i64, records: Vec<MetadataRecord> },
    /// Answer once the metadata high watermark (exclusive) is at least `after_offset`.
    Reply { request: RequestId, body: ResponseBody, after_offset: i64 },
}

/// The controller while its node leads the quorum.
#[derive(Debug)]
pub struct Controller {
    config: ControllerConfig,
    epoch: i32,
    image: MetadataImage,
    /// End of the metadata log, pending records included.
    next_offset: i64,
    sessions: Sessions,
    rng: ChaCha8Rng,
    unclean_pass_at: Time,
    preferred_pass_at: Option<Time>,
}

impl Controller {
    /// Becomes active in quorum epoch `epoch`. `image` is replayed to the end of the log: every record below this
    /// node's leader change is committed and in it; `next_offset` is that end. An empty log gets the feature levels of
    /// a new cluster. Every unfenced broker gets a fresh session.
    pub fn activate(
        config: ControllerConfig,
        epoch: i32,
        image: MetadataImage,
        next_offset: i64,
        now: Time,
        rng: ChaCha8Rng,
        out: &mut Output<ControllerEffect>,
    ) -> Controller {
        assert!(next_offset > image.offset(), "the image is not ahead of the log");
        out.observe(Observation::ControllerActivated { epoch });
        let sessions = Sessions::new(&image, config.session_timeout, now);
        let unclean_pass_at = now.saturating_add(config.unclean_election_interval);
        let preferred_pass_at =
            config.preferred_election_interval.map(|interval| now.saturating_add(interval));
        let mut controller = Controller {
            config,
            epoch,
            image,
            next_offset,
            sessions,
            rng,
            unclean_pass_at,
            preferred_pass_at,
        };
        if controller.image.is_empty() {
            controller.propose(bootstrap_records(), out);
        }
        controller
    }

    /// The node does not lead the quorum any more. Replies that still wait are the shell's to refuse.
    pub fn deactivate(self, out: &mut Output<ControllerEffect>) {
        out.observe(Observation::ControllerDeactivated { epoch: self.epoch });
    }

    /// The metadata after every record, pending ones included.
    pub fn image(&self) -> &MetadataImage {
        &self.image
    }

    /// The quorum epoch it is active in.
    pub fn epoch(&self) -> i32 {
        self.epoch
    }

    pub fn config(&self) -> &ControllerConfig {
        &self.config
    }

    /// Takes one decision. `next_offset` is the end of the metadata log now.
    pub fn handle(
        &mut self,
        now: Time,
        input: ControllerInput,
        next_offset: i64,
        out: &mut Output<ControllerEffect>,
    ) {
        assert!(
            next_offset >= self.next_offset,
            "the log of the active controller in epoch {} shrank from {} to {next_offset}",
            self.epoch,
            self.next_offset
        );
        self.next_offset = next_offset;
        match input {
            ControllerInput::Request { request, body } => {
                let body = self.decide(now, &body, out);
                out.effect(ControllerEffect::Reply { request, body, after_offset: self.next_offset });
            }
            ControllerInput::Tick => {
                self.fence_silent_brokers(now, out);
                self.run_passes(now, out);
            }
        }
        assert!(self.image.offset() < self.next_offset, "the image ends where the log ends");
    }

    /// When the controller wants a `Tick`.
    pub fn next_deadline(&self) -> Option<Time> {
        let sessions = self.image.brokers().filter(|broker| !broker.fenced);
        sessions
            .filter_map(|broker| self.sessions.expiry_of(broker.id))
            .chain([self.unclean_pass_at])
            .chain(self.preferred_pass_at)
            .min()
    }

    fn decide(
        &mut self,
        now: Time,
        body: &ControllerBody,
        out: &mut Output<ControllerEffect>,
    ) -> ResponseBody {
        let mut draft = Draft::new(&self.image, &self.config, self.epoch, self.next_offset);
        let response = match body {
            ControllerBody::BrokerRegistration(request) => {
                ResponseBody::BrokerRegistration(register(&mut draft, &mut self.sessions, now, request))
            }
            ControllerBody::BrokerHeartbeat(request) => {
                ResponseBody::BrokerHeartbeat(heartbeat(&mut draft, &mut self.sessions, now, request))
            }
            ControllerBody::AlterPartition(request) => {
                ResponseBody::AlterPartition(alter_partition(&mut draft, request))
            }
            ControllerBody::CreateTopics(request) => {
                ResponseBody::CreateTopics(create_topics(&mut draft, &mut self.rng, request))
            }
            ControllerBody::ElectLeaders(request) => {
                ResponseBody::ElectLeaders(elect_leaders(&mut draft, request))
            }
            ControllerBody::AllocateProducerIds(request) => {
                ResponseBody::AllocateProducerIds(allocate_producer_ids(&mut draft, request))
            }
            ControllerBody::DeleteTopics(request) => {
                ResponseBody::DeleteTopics(delete_topics(&mut draft, request))
            }
            ControllerBody::IncrementalAlterConfigs(request) => {
                ResponseBody::IncrementalAlterConfigs(alter_configs(&mut draft, request))
            }
            ControllerBody::AlterPartitionReassignments(request) => {
                ResponseBody::AlterPartitionReassignments(alter_reassignments(&mut draft, request))
            }
            ControllerBody::ListPartitionReassignments(request) => {
                ResponseBody::ListPartitionReassignments(list_reassignments(draft.image(), request))
            }
        };
        let (records, observations) = draft.finish();
        out.observations.extend(observations);
        self.propose(records, out);
        response
    }

    /// Fences every broker whose session ended, one decision after the other, each on what the one before left.
    fn fence_silent_brokers(&mut self, now: Time, out: &mut Output<ControllerEffect>) {
        let mut silent: Vec<(Time, NodeId)> = self
            .image
            .brokers()
            .filter(|broker| !broker.fenced && !self.sessions.is_live(broker.id, broker.epoch, now))
            .map(|broker| (self.sessions.expiry_of(broker.id).unwrap_or(now), broker.id))
            .collect();
        silent.sort();
        for (_, broker) in silent {
            self.on_draft(out, |draft| fence(draft, broker));
            self.sessions.close(broker);
            assert!(!self.image.is_active(broker), "{broker} is fenced");
        }
    }

    fn run_passes(&mut self, now: Time, out: &mut Output<ControllerEffect>) {
        if now >= self.unclean_pass_at {
            self.unclean_pass_at = now.saturating_add(self.config.unclean_election_interval);
            self.on_draft(out, elect_leaderless);
        }
        if self.preferred_pass_at.is_some_and(|at| now >= at) {
            self.preferred_pass_at =
                self.config.preferred_election_interval.map(|interval| now.saturating_add(interval));
            self.on_draft(out, elect_preferred);
        }
    }

    fn on_draft(&mut self, out: &mut Output<ControllerEffect>, decide: impl FnOnce(&mut Draft<'_>)) {
        let mut draft = Draft::new(&self.image, &self.config, self.epoch, self.next_offset);
        decide(&mut draft);
        let (records, observations) = draft.finish();
        out.observations.extend(observations);
        self.propose(records, out);
    }

    fn propose(&mut self, records: Vec<MetadataRecord>, out: &mut Output<ControllerEffect>) {
        if records.is_empty() {
            return;
        }
        let base_offset = self.next_offset;
        for record in &records {
            self.image.replay(self.next_offset, record).unwrap_or_else(|error| {
                panic!("{} decided a record that contradicts its log: {error}", self.config.node)
            });
            self.next_offset += 1;
        }
        out.effect(ControllerEffect::Propose { base_offset, records });
    }
}

/// The next block of producer ids for a broker; no id is ever given twice (KIP-730).
fn allocate_producer_ids(
    draft: &mut Draft<'_>,
    request: &AllocateProducerIdsRequest,
) -> AllocateProducerIdsResponse {
    let broker = draft.image().broker(NodeId(request.broker_id));
    if broker.is_none_or(|broker| broker.epoch != request.broker_epoch) {
        let error_code = error_code::STALE_BROKER_EPOCH;
        return AllocateProducerIdsResponse { error_code, ..AllocateProducerIdsResponse::default() };
    }
    let start = draft.image().next_producer_id();
    let Some(next) = start.checked_add(i64::from(PRODUCER_ID_BLOCK)) else {
        // Kafka's code for "the ids are used up".
        let error_code = error_code::UNKNOWN_SERVER_ERROR;
        return AllocateProducerIdsResponse { error_code, ..AllocateProducerIdsResponse::default() };
    };
    draft.push(MetadataRecord::ProducerIds(ProducerIdsRecord {
        broker_id: request.broker_id,
        broker_epoch: request.broker_epoch,
        next_producer_id: next,
        ..ProducerIdsRecord::default()
    }));
    AllocateProducerIdsResponse {
        producer_id_start: start,
        producer_id_len: PRODUCER_ID_BLOCK,
        ..AllocateProducerIdsResponse::default()
    }
}
