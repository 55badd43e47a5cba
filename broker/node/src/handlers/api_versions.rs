//! ApiVersions: which APIs and versions this node serves (KIP-35, KIP-511).

use acked_core::controller::FEATURES;
use acked_wire::{
    ApiKey, ApiVersion, ApiVersionsRequest, ApiVersionsResponse, FinalizedFeatureKey, SupportedFeatureKey,
    error_code,
};

use crate::config::Role;

/// APIs of a broker's client listener.
const BROKER: &[ApiKey] = &[
    ApiKey::Produce,
    ApiKey::Fetch,
    ApiKey::ListOffsets,
    ApiKey::Metadata,
    ApiKey::ApiVersions,
    ApiKey::CreateTopics,
    ApiKey::InitProducerId,
    ApiKey::ElectLeaders,
];

/// APIs of a controller's listener.
const CONTROLLER: &[ApiKey] = &[
    ApiKey::Fetch,
    ApiKey::ApiVersions,
    ApiKey::CreateTopics,
    ApiKey::ElectLeaders,
    ApiKey::Vote,
    ApiKey::BeginQuorumEpoch,
    ApiKey::EndQuorumEpoch,
    ApiKey::AlterPartition,
    ApiKey::Envelope,
    ApiKey::BrokerRegistration,
    ApiKey::BrokerHeartbeat,
    ApiKey::AllocateProducerIds,
];

/// Whether a node of that role takes the request.
pub fn serves(role: Role, key: ApiKey) -> bool {
    apis(role).contains(&key)
}

fn apis(role: Role) -> &'static [ApiKey] {
    match role {
        Role::Broker => BROKER,
        Role::Controller => CONTROLLER,
    }
}

/// The answer to a version that this build does not have: code 35 in the format of version 0, with one entry, so that
/// the client can ask again (KIP-511; measured on 4.3.1).
pub fn unsupported_version() -> ApiVersionsResponse {
    ApiVersionsResponse {
        error_code: error_code::UNSUPPORTED_VERSION,
        api_keys: vec![entry(ApiKey::ApiVersions)],
        ..ApiVersionsResponse::default()
    }
}

/// `finalized` are the feature levels in force, with the metadata offset at which they were read.
pub fn answer<'a>(
    role: Role,
    version: i16,
    request: &ApiVersionsRequest,
    finalized: impl Iterator<Item = (&'a acked_wire::Str, i16)>,
    finalized_offset: i64,
) -> ApiVersionsResponse {
    let named = |name: &str| {
        let mut letters = name.bytes();
        letters.next().is_some_and(|letter| letter.is_ascii_alphanumeric())
            && letters.all(|letter| letter.is_ascii_alphanumeric() || b"-.".contains(&letter))
    };
    // A client that names its software must name it properly (KIP-511).
    if version >= 3 && !(named(&request.client_software_name) && named(&request.client_software_version)) {
        return ApiVersionsResponse {
            error_code: error_code::INVALID_REQUEST,
            api_keys: apis(role).iter().copied().map(entry).collect(),
            ..ApiVersionsResponse::default()
        };
    }
    let features = FEATURES.iter().filter(|(_, min, _)| version >= 4 || *min > 0);
    ApiVersionsResponse {
        api_keys: apis(role).iter().copied().map(entry).collect(),
        supported_features: features
            .map(|(name, min_version, max_version)| SupportedFeatureKey {
                name: (*name).into(),
                min_version: *min_version,
                max_version: *max_version,
                ..SupportedFeatureKey::default()
            })
            .collect(),
        finalized_features_epoch: finalized_offset,
        finalized_features: finalized
            .map(|(name, level)| FinalizedFeatureKey {
                name: name.clone(),
                max_version_level: level,
                min_version_level: level,
                ..FinalizedFeatureKey::default()
            })
            .collect(),
        ..ApiVersionsResponse::default()
    }
}

/// Brokers say Produce from 0, though they serve it from its first declared version: older librdkafka would otherwise
/// send some codecs uncompressed (measured).
fn entry(key: ApiKey) -> ApiVersion {
    let declared = acked_wire::DECLARED.iter().find(|(declared, _)| *declared == key);
    let (_, versions) = declared.expect("every served API is declared");
    let min_version = if key == ApiKey::Produce { 0 } else { *versions.start() };
    ApiVersion { api_key: key.code(), min_version, max_version: *versions.end(), ..ApiVersion::default() }
}
