//! The APIs that are declared, one file each. Names are those of Kafka's schema in `snake_case`; where a
//! request and its response use the same name for different structures, the file has two modules.
//!
//! A nullable field without a stated default begins as an *empty* value, as in Kafka, not as null.

pub mod add_raft_voter;
pub mod allocate_producer_ids;
pub mod alter_partition;
pub mod alter_partition_reassignments;
pub mod api_versions;
pub mod assign_replicas_to_dirs;
pub mod begin_quorum_epoch;
pub mod broker_heartbeat;
pub mod broker_registration;
pub mod controller_registration;
pub mod create_partitions;
pub mod create_topics;
pub mod delete_records;
pub mod delete_topics;
pub mod describe_cluster;
pub mod describe_configs;
pub mod describe_quorum;
pub mod describe_topic_partitions;
pub mod elect_leaders;
pub mod end_quorum_epoch;
pub mod envelope;
pub mod fetch;
pub mod fetch_snapshot;
pub mod incremental_alter_configs;
pub mod init_producer_id;
pub mod list_offsets;
pub mod list_partition_reassignments;
pub mod metadata;
pub mod offset_for_leader_epoch;
pub mod produce;
pub mod remove_raft_voter;
pub mod unregister_broker;
pub mod update_features;
pub mod update_raft_voter;
pub mod vote;

use std::ops::RangeInclusive;

use bytes::{Bytes, BytesMut};

use crate::{ApiKey, Message, Str, WireError, encode_request, encode_response};

/// A request type, tied to its API and to the type of its answer.
pub trait Request: Message {
    const KEY: ApiKey;
    /// Versions that can be decoded and encoded.
    const VERSIONS: RangeInclusive<i16>;
    type Response: Message;
}

macro_rules! apis {
    ($($module:ident: $name:ident, $request:ident, $response:ident;)*) => {
        $(
            pub use $module::{$request, $response};

            impl Request for $request {
                const KEY: ApiKey = ApiKey::$name;
                const VERSIONS: RangeInclusive<i16> = <$request as Message>::DECLARED;
                type Response = $response;
            }

            impl From<$request> for RequestBody {
                fn from(body: $request) -> RequestBody {
                    RequestBody::$name(body)
                }
            }

            impl From<$response> for ResponseBody {
                fn from(body: $response) -> ResponseBody {
                    ResponseBody::$name(body)
                }
            }
        )*

        /// Every declared API with its versions, by ascending number.
        pub const DECLARED: &[(ApiKey, RangeInclusive<i16>)] =
            &[$((ApiKey::$name, <$request as Message>::DECLARED)),*];

        /// Any declared request.
        #[derive(Clone, Debug, PartialEq)]
        pub enum RequestBody {
            $($name($request),)*
        }

        /// Any declared response.
        #[derive(Clone, Debug, PartialEq)]
        pub enum ResponseBody {
            $($name($response),)*
        }

        impl RequestBody {
            pub fn key(&self) -> ApiKey {
                match self {
                    $(RequestBody::$name(_) => ApiKey::$name,)*
                }
            }

            /// Appends the body; see [`Message::encode`].
            pub fn encode(&self, version: i16, out: &mut BytesMut) -> Result<(), WireError> {
                match self {
                    $(RequestBody::$name(body) => body.encode(version, out),)*
                }
            }

            /// The whole frame, its four bytes of length included; see [`encode_request`].
            pub fn frame(
                &self,
                version: i16,
                correlation_id: i32,
                client_id: Option<&Str>,
            ) -> Result<Bytes, WireError> {
                match self {
                    $(RequestBody::$name(body) => encode_request(body, version, correlation_id, client_id),)*
                }
            }
        }

        impl ResponseBody {
            pub fn key(&self) -> ApiKey {
                match self {
                    $(ResponseBody::$name(_) => ApiKey::$name,)*
                }
            }

            /// Appends the body; see [`Message::encode`].
            pub fn encode(&self, version: i16, out: &mut BytesMut) -> Result<(), WireError> {
                match self {
                    $(ResponseBody::$name(body) => body.encode(version, out),)*
                }
            }

            /// The whole frame, its four bytes of length included; see [`encode_response`].
            pub fn frame(&self, version: i16, correlation_id: i32) -> Result<Bytes, WireError> {
                match self {
                    $(ResponseBody::$name(body) => {
                        encode_response(ApiKey::$name, version, correlation_id, body)
                    })*
                }
            }
        }

        /// Reads a request body from the front of `input`; bytes after it remain there. Fails with
        /// [`WireError::UnknownApiKey`] when the API is not declared.
        pub fn decode_request_body(
            key: ApiKey,
            version: i16,
            input: &mut Bytes,
        ) -> Result<RequestBody, WireError> {
            match key {
                $(ApiKey::$name => $request::decode(version, input).map(RequestBody::$name),)*
                _ => Err(WireError::UnknownApiKey { key: key.code() }),
            }
        }

        /// Reads a response body from the front of `input`; bytes after it remain there. Fails with
        /// [`WireError::UnknownApiKey`] when the API is not declared.
        pub fn decode_response_body(
            key: ApiKey,
            version: i16,
            input: &mut Bytes,
        ) -> Result<ResponseBody, WireError> {
            match key {
                $(ApiKey::$name => $response::decode(version, input).map(ResponseBody::$name),)*
                _ => Err(WireError::UnknownApiKey { key: key.code() }),
            }
        }
    };
}

apis! {
    produce: Produce, ProduceRequest, ProduceResponse;
    fetch: Fetch, FetchRequest, FetchResponse;
    list_offsets: ListOffsets, ListOffsetsRequest, ListOffsetsResponse;
    metadata: Metadata, MetadataRequest, MetadataResponse;
    api_versions: ApiVersions, ApiVersionsRequest, ApiVersionsResponse;
    create_topics: CreateTopics, CreateTopicsRequest, CreateTopicsResponse;
    delete_topics: DeleteTopics, DeleteTopicsRequest, DeleteTopicsResponse;
    delete_records: DeleteRecords, DeleteRecordsRequest, DeleteRecordsResponse;
    init_producer_id: InitProducerId, InitProducerIdRequest, InitProducerIdResponse;
    offset_for_leader_epoch: OffsetForLeaderEpoch, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse;
    describe_configs: DescribeConfigs, DescribeConfigsRequest, DescribeConfigsResponse;
    create_partitions: CreatePartitions, CreatePartitionsRequest, CreatePartitionsResponse;
    elect_leaders: ElectLeaders, ElectLeadersRequest, ElectLeadersResponse;
    incremental_alter_configs: IncrementalAlterConfigs, IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse;
    alter_partition_reassignments: AlterPartitionReassignments, AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse;
    list_partition_reassignments: ListPartitionReassignments, ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse;
    vote: Vote, VoteRequest, VoteResponse;
    begin_quorum_epoch: BeginQuorumEpoch, BeginQuorumEpochRequest, BeginQuorumEpochResponse;
    end_quorum_epoch: EndQuorumEpoch, EndQuorumEpochRequest, EndQuorumEpochResponse;
    describe_quorum: DescribeQuorum, DescribeQuorumRequest, DescribeQuorumResponse;
    alter_partition: AlterPartition, AlterPartitionRequest, AlterPartitionResponse;
    update_features: UpdateFeatures, UpdateFeaturesRequest, UpdateFeaturesResponse;
    envelope: Envelope, EnvelopeRequest, EnvelopeResponse;
    fetch_snapshot: FetchSnapshot, FetchSnapshotRequest, FetchSnapshotResponse;
    describe_cluster: DescribeCluster, DescribeClusterRequest, DescribeClusterResponse;
    broker_registration: BrokerRegistration, BrokerRegistrationRequest, BrokerRegistrationResponse;
    broker_heartbeat: BrokerHeartbeat, BrokerHeartbeatRequest, BrokerHeartbeatResponse;
    unregister_broker: UnregisterBroker, UnregisterBrokerRequest, UnregisterBrokerResponse;
    allocate_producer_ids: AllocateProducerIds, AllocateProducerIdsRequest, AllocateProducerIdsResponse;
    controller_registration: ControllerRegistration, ControllerRegistrationRequest, ControllerRegistrationResponse;
    assign_replicas_to_dirs: AssignReplicasToDirs, AssignReplicasToDirsRequest, AssignReplicasToDirsResponse;
    describe_topic_partitions: DescribeTopicPartitions, DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse;
    add_raft_voter: AddRaftVoter, AddRaftVoterRequest, AddRaftVoterResponse;
    remove_raft_voter: RemoveRaftVoter, RemoveRaftVoterRequest, RemoveRaftVoterResponse;
    update_raft_voter: UpdateRaftVoter, UpdateRaftVoterRequest, UpdateRaftVoterResponse;
}

pub use alter_partition_reassignments::{
    ReassignablePartition, ReassignablePartitionResponse, ReassignableTopic, ReassignableTopicResponse,
};
pub use api_versions::{ApiVersion, FinalizedFeatureKey, SupportedFeatureKey};
pub use create_partitions::{CreatePartitionsAssignment, CreatePartitionsTopic, CreatePartitionsTopicResult};
pub use create_topics::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig, CreatableTopicConfigs,
    CreatableTopicResult,
};
pub use delete_records::{
    DeleteRecordsPartition, DeleteRecordsPartitionResult, DeleteRecordsTopic, DeleteRecordsTopicResult,
};
pub use delete_topics::{DeletableTopicResult, DeleteTopicState};
pub use describe_cluster::DescribeClusterBroker;
pub use describe_configs::{
    DescribeConfigsResource, DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
};
pub use describe_topic_partitions::{
    Cursor, DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic, TopicRequest,
};
pub use elect_leaders::{PartitionResult, ReplicaElectionResult, TopicPartitions};
pub use fetch::{
    AbortedTransaction, EpochEndOffset, FetchPartition, FetchTopic, FetchableTopicResponse, ForgottenTopic,
    ReplicaState, SnapshotId,
};
pub use incremental_alter_configs::{AlterConfigsResource, AlterConfigsResourceResponse, AlterableConfig};
pub use list_offsets::{
    ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsTopic, ListOffsetsTopicResponse,
};
pub use list_partition_reassignments::{
    ListPartitionReassignmentsTopics, OngoingPartitionReassignment, OngoingTopicReassignment,
};
pub use metadata::{
    MetadataRequestTopic, MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
pub use offset_for_leader_epoch::{
    OffsetForLeaderPartition, OffsetForLeaderTopic, OffsetForLeaderTopicResult,
};
pub use produce::{
    BatchIndexAndErrorMessage, PartitionProduceData, PartitionProduceResponse, TopicProduceData,
    TopicProduceResponse,
};
pub use update_features::{FeatureUpdateKey, UpdatableFeatureResult};
