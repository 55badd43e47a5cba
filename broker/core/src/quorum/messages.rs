//! The quorum's messages in the machine's own words, and back. Decides only whether a message is about the one
//! partition that there is. Source: Kafka's message schemas, newest stable versions.

use acked_wire::api::{begin_quorum_epoch, end_quorum_epoch, fetch, vote};
use acked_wire::{
    BeginQuorumEpochRequest, BeginQuorumEpochResponse, EndQuorumEpochRequest, EndQuorumEpochResponse,
    FetchRequest, FetchResponse, RequestBody, ResponseBody, Str, Uuid, VoteRequest, VoteResponse, error_code,
};
use bytes::Bytes;

use super::config::{FETCH_MAX_BYTES, FETCH_WAIT_MAX, QuorumConfig};
use super::election_state::ReplicaKey;
use crate::types::{NodeId, Time};

/// The topic of the metadata log.
pub const METADATA_TOPIC: &str = "__cluster_metadata";
const LISTENER: &str = "CONTROLLER";

/// The sender's id for "nobody".
const NOBODY: i32 = -1;

/// What every answer tells besides: the newest epoch and leader its sender knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub epoch: i32,
    pub leader: Option<NodeId>,
}

/// An answer to Vote, BeginQuorumEpoch or EndQuorumEpoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub error: i16,
    pub standing: Standing,
    /// Votes only.
    pub granted: bool,
}

/// A Vote request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VoteAsked {
    pub intended: Intended,
    pub candidate: ReplicaKey,
    pub epoch: i32,
    pub last_epoch: i32,
    pub end_offset: i64,
    pub pre_vote: bool,
}

/// The voter that a message was meant for, as far as its sender said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Intended {
    id: i32,
    directory: Uuid,
}

impl Intended {
    /// False when the sender meant another node, or this one with another disk.
    pub fn is(&self, config: &QuorumConfig) -> bool {
        let same_node = self.id == NOBODY || self.id == config.node.0;
        let same_disk = self.directory == Uuid::ZERO || self.directory == config.directory;
        same_node && same_disk
    }
}

/// BeginQuorumEpoch, or EndQuorumEpoch (which is meant for everybody and names successors).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EpochAsked {
    pub intended: Intended,
    pub leader: NodeId,
    pub epoch: i32,
    pub successors: Vec<NodeId>,
}

/// A Fetch request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FetchAsked {
    pub replica: NodeId,
    pub epoch: i32,
    pub offset: i64,
    pub last_epoch: i32,
    pub high_watermark: i64,
    pub max_bytes: usize,
    pub max_wait: Time,
}

/// An answer to Fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FetchAnswer {
    pub error: i16,
    pub standing: Standing,
    /// -1 when unknown.
    pub high_watermark: i64,
    /// `(epoch, end offset)` when the asker's log diverges.
    pub diverging: Option<(i32, i64)>,
    pub records: Bytes,
}

impl FetchAnswer {
    pub fn refused(error: i16, standing: Standing) -> FetchAnswer {
        FetchAnswer { error, standing, high_watermark: -1, diverging: None, records: Bytes::new() }
    }
}

/// Whether the request carries this cluster's id; a sender that says none is let in, as Kafka does.
pub(super) fn is_same_cluster(config: &QuorumConfig, cluster_id: Option<&Str>) -> bool {
    cluster_id.is_none_or(|given| **given == *config.cluster_id)
}

fn node(id: i32) -> Option<NodeId> {
    (id >= 0).then_some(NodeId(id))
}

fn id_or_nobody(node: Option<NodeId>) -> i32 {
    node.map_or(NOBODY, |node| node.0)
}

// Requests that this node makes.

pub(super) fn vote_request(
    config: &QuorumConfig,
    to: NodeId,
    epoch: i32,
    (last_epoch, end_offset): (i32, i64),
    pre_vote: bool,
) -> RequestBody {
    let partition = vote::request::PartitionData {
        replica_epoch: epoch,
        replica_id: config.node.0,
        replica_directory_id: config.directory,
        last_offset_epoch: last_epoch,
        last_offset: end_offset,
        pre_vote,
        ..Default::default()
    };
    let topic = vote::request::TopicData {
        topic_name: METADATA_TOPIC.into(),
        partitions: vec![partition],
        ..Default::default()
    };
    RequestBody::Vote(VoteRequest {
        cluster_id: Some(config.cluster_id.as_str().into()),
        voter_id: to.0,
        topics: vec![topic],
        ..Default::default()
    })
}

pub(super) fn begin_request(config: &QuorumConfig, to: NodeId, epoch: i32) -> RequestBody {
    let partition = begin_quorum_epoch::request::PartitionData {
        leader_id: config.node.0,
        leader_epoch: epoch,
        ..Default::default()
    };
    let topic = begin_quorum_epoch::request::TopicData {
        topic_name: METADATA_TOPIC.into(),
        partitions: vec![partition],
        ..Default::default()
    };
    let endpoint = config.voters.get(&config.node).map(|own| begin_quorum_epoch::request::LeaderEndpoint {
        name: LISTENER.into(),
        host: own.host.as_str().into(),
        port: own.port,
        ..Default::default()
    });
    RequestBody::BeginQuorumEpoch(BeginQuorumEpochRequest {
        cluster_id: Some(config.cluster_id.as_str().into()),
        voter_id: to.0,
        topics: vec![topic],
        leader_endpoints: endpoint.into_iter().collect(),
        ..Default::default()
    })
}

pub(super) fn end_request(config: &QuorumConfig, epoch: i32, successors: &[NodeId]) -> RequestBody {
    let candidates = successors.iter().map(|successor| end_quorum_epoch::request::ReplicaInfo {
        candidate_id: successor.0,
        ..Default::default()
    });
    let partition = end_quorum_epoch::request::PartitionData {
        leader_id: config.node.0,
        leader_epoch: epoch,
        preferred_candidates: candidates.collect(),
        ..Default::default()
    };
    let topic = end_quorum_epoch::request::TopicData {
        topic_name: METADATA_TOPIC.into(),
        partitions: vec![partition],
        ..Default::default()
    };
    let endpoint = config.voters.get(&config.node).map(|own| end_quorum_epoch::request::LeaderEndpoint {
        name: LISTENER.into(),
        host: own.host.as_str().into(),
        port: own.port,
        ..Default::default()
    });
    RequestBody::EndQuorumEpoch(EndQuorumEpochRequest {
        cluster_id: Some(config.cluster_id.as_str().into()),
        topics: vec![topic],
        leader_endpoints: endpoint.into_iter().collect(),
        ..Default::default()
    })
}

pub(super) fn fetch_request(
    config: &QuorumConfig,
    epoch: i32,
    offset: i64,
    last_epoch: i32,
    high_watermark: i64,
) -> RequestBody {
    let partition = fetch::FetchPartition {
        current_leader_epoch: epoch,
        fetch_offset: offset,
        last_fetched_epoch: last_epoch,
        replica_directory_id: config.directory,
        high_watermark,
        ..Default::default()
    };
    let topic = fetch::FetchTopic {
        topic_id: Uuid::METADATA_TOPIC,
        partitions: vec![partition],
        ..Default::default()
    };
    RequestBody::Fetch(FetchRequest {
        cluster_id: Some(config.cluster_id.as_str().into()),
        replica_state: fetch::ReplicaState { replica_id: config.node.0, ..Default::default() },
        max_wait_ms: i32::try_from(FETCH_WAIT_MAX.as_millis()).expect("half a second fits"),
        max_bytes: FETCH_MAX_BYTES,
        topics: vec![topic],
        ..Default::default()
    })
}

// Requests that this node was sent. `None`: not about the metadata log.

pub(super) fn read_vote(request: &VoteRequest) -> Option<VoteAsked> {
    let [topic] = request.topics.as_slice() else { return None };
    let [partition] = topic.partitions.as_slice() else { return None };
    let about_log = *topic.topic_name == *METADATA_TOPIC && partition.partition_index == 0;
    about_log.then(|| VoteAsked {
        intended: Intended { id: request.voter_id, directory: partition.voter_directory_id },
        candidate: ReplicaKey {
            id: NodeId(partition.replica_id),
            directory: (partition.replica_directory_id != Uuid::ZERO)
                .then_some(partition.replica_directory_id),
        },
        epoch: partition.replica_epoch,
        last_epoch: partition.last_offset_epoch,
        end_offset: partition.last_offset,
        pre_vote: partition.pre_vote,
    })
}

pub(super) fn read_begin(request: &BeginQuorumEpochRequest) -> Option<EpochAsked> {
    let [topic] = request.topics.as_slice() else { return None };
    let [partition] = topic.partitions.as_slice() else { return None };
    let about_log = *topic.topic_name == *METADATA_TOPIC && partition.partition_index == 0;
    about_log.then(|| EpochAsked {
        intended: Intended { id: request.voter_id, directory: partition.voter_directory_id },
        leader: NodeId(partition.leader_id),
        epoch: partition.leader_epoch,
        successors: Vec::new(),
    })
}

pub(super) fn read_end(request: &EndQuorumEpochRequest) -> Option<EpochAsked> {
    let [topic] = request.topics.as_slice() else { return None };
    let [partition] = topic.partitions.as_slice() else { return None };
    let about_log = *topic.topic_name == *METADATA_TOPIC && partition.partition_index == 0;
    about_log.then(|| EpochAsked {
        intended: Intended { id: NOBODY, directory: Uuid::ZERO },
        leader: NodeId(partition.leader_id),
        epoch: partition.leader_epoch,
        successors: partition.preferred_candidates.iter().map(|info| NodeId(info.candidate_id)).collect(),
    })
}

pub(super) fn read_fetch(request: &FetchRequest) -> Option<FetchAsked> {
    let [topic] = request.topics.as_slice() else { return None };
    let [partition] = topic.partitions.as_slice() else { return None };
    let about_log = topic.topic_id == Uuid::METADATA_TOPIC && partition.partition == 0;
    about_log.then(|| FetchAsked {
        replica: NodeId(request.replica_state.replica_id),
        epoch: partition.current_leader_epoch,
        offset: partition.fetch_offset,
        last_epoch: partition.last_fetched_epoch,
        high_watermark: partition.high_watermark,
        max_bytes: usize::try_from(request.max_bytes.clamp(0, FETCH_MAX_BYTES))
            .expect("clamped to be positive"),
        max_wait: Time::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0)),
    })
}

/// Fields that no correct sender leaves negative.
pub(super) fn is_well_formed_fetch(request: &FetchRequest, asked: &FetchAsked) -> bool {
    request.max_wait_ms >= 0 && asked.offset >= 0 && asked.last_epoch >= 0 && asked.epoch >= 0
}

// Answers that this node gives.

fn endpoint(config: &QuorumConfig, leader: Option<NodeId>) -> Option<(NodeId, Str, u16)> {
    let leader = leader?;
    let at = config.voters.get(&leader)?;
    Some((leader, at.host.as_str().into(), at.port))
}

pub(super) fn vote_response(config: &QuorumConfig, answer: &Answer) -> ResponseBody {
    let partition = vote::response::PartitionData {
        error_code: answer.error,
        leader_id: id_or_nobody(answer.standing.leader),
        leader_epoch: answer.standing.epoch,
        vote_granted: answer.granted,
        ..Default::default()
    };
    let topic = vote::response::TopicData {
        topic_name: METADATA_TOPIC.into(),
        partitions: vec![partition],
        ..Default::default()
    };
    let endpoint = endpoint(config, answer.standing.leader);
    let endpoint = endpoint.map(|(leader, host, port)| vote::response::NodeEndpoint {
        node_id: leader.0,
        host,
        port,
        ..Default::default()
    });
    ResponseBody::Vote(VoteResponse {
        topics: vec![topic],
        node_endpoints: endpoint.into_iter().collect(),
        ..Default::default()
    })
}

pub(super) fn begin_response(config: &QuorumConfig, answer: &Answer) -> ResponseBody {
    let partition = begin_quorum_epoch::response::PartitionData {
        error_code: answer.error,
        leader_id: id_or_nobody(answer.standing.leader),
        leader_epoch: answer.standing.epoch,
        ..Default::default()
    };
    let topic = begin_quorum_epoch::response::TopicData {
        topic_name: METADATA_TOPIC.into(),
        partitions: vec![partition],
        ..Default::default()
    };
    let endpoint = endpoint(config, answer.standing.leader);
    let endpoint = endpoint.map(|(leader, host, port)| begin_quorum_epoch::response::NodeEndpoint {
        node_id: leader.0,
        host,
        port,
        ..Default::default()
    });
    ResponseBody::BeginQuorumEpoch(BeginQuorumEpochResponse {
        topics: vec![topic],
        node_endpoints: endpoint.into_iter().collect(),
        ..Default::default()
    })
}

pub(super) fn end_response(config: &QuorumConfig, answer: &Answer) -> ResponseBody {
    let partition = end_quorum_epoch::response::PartitionData {
        error_code: answer.error,
        leader_id: id_or_nobody(answer.standing.leader),
        leader_epoch: answer.standing.epoch,
        ..Default::default()
    };
    let topic = end_quorum_epoch::response::TopicData {
        topic_name: METADATA_TOPIC.into(),
        partitions: vec![partition],
        ..Default::default()
    };
    let endpoint = endpoint(config, answer.standing.leader);
    let endpoint = endpoint.map(|(leader, host, port)| end_quorum_epoch::response::NodeEndpoint {
        node_id: leader.0,
        host,
        port,
        ..Default::default()
    });
    ResponseBody::EndQuorumEpoch(EndQuorumEpochResponse {
        topics: vec![topic],
        node_endpoints: endpoint.into_iter().collect(),
        ..Default::default()
    })
}

pub(super) fn fetch_response(config: &QuorumConfig, answer: FetchAnswer) -> ResponseBody {
    let refused = answer.error != error_code::NONE;
    let (epoch, end_offset) = answer.diverging.unwrap_or((-1, -1));
    let partition = fetch::PartitionData {
        error_code: answer.error,
        high_watermark: answer.high_watermark,
        log_start_offset: if refused { -1 } else { 0 },
        diverging_epoch: fetch::EpochEndOffset { epoch, end_offset, ..Default::default() },
        current_leader: fetch::LeaderIdAndEpoch {
            leader_id: id_or_nobody(answer.standing.leader),
            leader_epoch: answer.standing.epoch,
            ..Default::default()
        },
        records: Some(answer.records),
        ..Default::default()
    };
    let topic = fetch::FetchableTopicResponse {
        topic_id: Uuid::METADATA_TOPIC,
        partitions: vec![partition],
        ..Default::default()
    };
    let endpoint = endpoint(config, answer.standing.leader);
    let endpoint = endpoint.map(|(leader, host, port)| fetch::NodeEndpoint {
        node_id: leader.0,
        host,
        port: i32::from(port),
        ..Default::default()
    });
    ResponseBody::Fetch(FetchResponse {
        responses: vec![topic],
        node_endpoints: endpoint.into_iter().collect(),
        ..Default::default()
    })
}

/// The request is not even about this cluster or this log: the error stands at the top of the answer.
pub(super) fn vote_refused(error_code: i16) -> ResponseBody {
    ResponseBody::Vote(VoteResponse { error_code, ..Default::default() })
}

/// As [`vote_refused`].
pub(super) fn begin_refused(error_code: i16) -> ResponseBody {
    ResponseBody::BeginQuorumEpoch(BeginQuorumEpochResponse { error_code, ..Default::default() })
}

/// As [`vote_refused`].
pub(super) fn end_refused(error_code: i16) -> ResponseBody {
    ResponseBody::EndQuorumEpoch(EndQuorumEpochResponse { error_code, ..Default::default() })
}

/// As [`vote_refused`].
pub(super) fn fetch_refused(error_code: i16) -> ResponseBody {
    ResponseBody::Fetch(FetchResponse { error_code, ..Default::default() })
}

// Answers that this node was given. `None`: an error for the whole, or not about the metadata log.

pub(super) fn read_vote_response(response: &VoteResponse) -> Option<Answer> {
    let [topic] = response.topics.as_slice() else { return None };
    let [partition] = topic.partitions.as_slice() else { return None };
    let standing = Standing { epoch: partition.leader_epoch, leader: node(partition.leader_id) };
    let granted = partition.vote_granted;
    (response.error_code == error_code::NONE).then_some(Answer {
        error: partition.error_code,
        standing,
        granted,
    })
}

pub(super) fn read_begin_response(response: &BeginQuorumEpochResponse) -> Option<Answer> {
    let [topic] = response.topics.as_slice() else { return None };
    let [partition] = topic.partitions.as_slice() else { return None };
    let standing = Standing { epoch: partition.leader_epoch, leader: node(partition.leader_id) };
    let error = partition.error_code;
    (response.error_code == error_code::NONE).then_some(Answer { error, standing, granted: false })
}

pub(super) fn read_end_response(response: &EndQuorumEpochResponse) -> Option<Answer> {
    let [topic] = response.topics.as_slice() else { return None };
    let [partition] = topic.partitions.as_slice() else { return None };
    let standing = Standing { epoch: partition.leader_epoch, leader: node(partition.leader_id) };
    let error = partition.error_code;
    (response.error_code == error_code::NONE).then_some(Answer { error, standing, granted: false })
}

pub(super) fn read_fetch_response(response: FetchResponse) -> Option<FetchAnswer> {
    let whole = response.error_code;
    let [topic] = <[_; 1]>::try_from(response.responses).ok()?;
    let [partition] = <[_; 1]>::try_from(topic.partitions).ok()?;
    let about_log = topic.topic_id == Uuid::METADATA_TOPIC && partition.partition_index == 0;
    let diverging = (partition.diverging_epoch.epoch, partition.diverging_epoch.end_offset);
    (about_log && whole == error_code::NONE).then(|| FetchAnswer {
        error: partition.error_code,
        standing: Standing {
            epoch: partition.current_leader.leader_epoch,
            leader: node(partition.current_leader.leader_id),
        },
        high_watermark: partition.high_watermark,
        diverging: (diverging.0 >= 0 && diverging.1 >= 0).then_some(diverging),
        records: partition.records.unwrap_or_default(),
    })
}
