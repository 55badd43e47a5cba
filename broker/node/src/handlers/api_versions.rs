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
    ApiKey::OffsetForLeaderEpoch,
    ApiKey::ElectLeaders,
    ApiKey::DeleteTopics,
    ApiKey::IncrementalAlterConfigs,
    ApiKey::AlterPartitionReassignments,
    ApiKey::ListPartitionReassignments,
];

/// APIs of a controller's listener.
const CONTROLLER: &[ApiKey] = &[
    ApiKey::Fetch,
    ApiKey::ApiVersions,
    ApiKey::CreateTopics,
    ApiKey::ElectLeaders,
    ApiKey::DeleteTopics,
    ApiKey::IncrementalAlterConfigs,
    ApiKey::AlterPartitionReassignments,
    ApiKey::ListPartitionReassignments,
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
    // A client that names its software must name it properly (KIP-511).
    if version >= 3 && !(is_name(&request.client_software_name) && is_name(&request.client_software_version))
    {
        return ApiVersionsResponse {
            error_code: error_code::INVALID_REQUEST,
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

/// Letters and digits, and between them dots and dashes.
fn is_name(name: &str) -> bool {
    let is_inner = |letter: u8| letter.is_ascii_alphanumeric() || b"-.".contains(&letter);
    let ends = [name.bytes().next(), name.bytes().next_back()];
    ends.iter().all(|end| end.is_some_and(|letter| letter.is_ascii_alphanumeric()))
        && name.bytes().all(is_inner)
}

/// Brokers say Produce from 0, though they serve it from its first declared version: older librdkafka would otherwise
/// send some codecs uncompressed (measured).
fn entry(key: ApiKey) -> ApiVersion {
    let declared = acked_wire::DECLARED.iter().find(|(declared, _)| *declared == key);
    let (_, versions) = declared.expect("every served API is declared");
    let min_version = if key == ApiKey::Produce { 0 } else { *versions.start() };
    ApiVersion { api_key: key.code(), min_version, max_version: *versions.end(), ..ApiVersion::default() }
}

#[cfg(test)]
mod tests {
    use acked_wire::{Message, Str};
    use bytes::BytesMut;

    use super::*;

    fn asked(name: &str, version: &str) -> ApiVersionsRequest {
        ApiVersionsRequest {
            client_software_name: name.into(),
            client_software_version: version.into(),
            ..ApiVersionsRequest::default()
        }
    }

    fn answered(role: Role, version: i16, request: &ApiVersionsRequest) -> ApiVersionsResponse {
        let level = Str::from("metadata.version");
        answer(role, version, request, std::iter::once((&level, 30)), 12)
    }

    fn encoded(response: &ApiVersionsResponse, version: i16) -> Vec<u8> {
        let mut bytes = BytesMut::new();
        response.encode(version, &mut bytes).expect("an answer of that version");
        bytes.to_vec()
    }

    #[test]
    fn unknown_version_is_answered_as_4_3_1_does() {
        // The body of the recorded answer to version 99: code 35, one entry, 18 from 0 to 4.
        let recorded = [0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, 4];
        assert_eq!(encoded(&unsupported_version(), 0), recorded);
    }

    #[test]
    fn bad_software_name_is_answered_as_4_3_1_does() {
        // The body of the recorded answer to "bad name!" in version 4.
        let recorded = [0, 42, 1, 0, 0, 0, 0, 0];
        for (name, version) in [
            ("bad name!", "1.0"),
            ("", "1.0"),
            ("good", ""),
            ("-good", "1"),
            ("good.", "1"),
            ("g\u{f6}d", "1"),
        ] {
            assert_eq!(encoded(&answered(Role::Broker, 4, &asked(name, version)), 4), recorded, "{name:?}");
        }
        for (name, version) in [("golden", "1.0"), ("g", "1"), ("apache-kafka-java", "4.3.1")] {
            assert_eq!(answered(Role::Broker, 4, &asked(name, version)).error_code, error_code::NONE);
        }
        // Older versions do not name it.
        assert_eq!(answered(Role::Broker, 2, &asked("", "")).error_code, error_code::NONE);
    }

    #[test]
    fn brokers_say_produce_from_0_and_everything_else_as_it_is() {
        let response = answered(Role::Broker, 4, &asked("golden", "1.0"));
        assert_eq!(response.api_keys.len(), BROKER.len());
        for entry in &response.api_keys {
            let (key, versions) = acked_wire::DECLARED
                .iter()
                .find(|(key, _)| key.code() == entry.api_key)
                .expect("only declared APIs are served");
            let first = if *key == ApiKey::Produce { 0 } else { *versions.start() };
            assert_eq!((entry.min_version, entry.max_version), (first, *versions.end()), "{key:?}");
        }
        let controller = answered(Role::Controller, 4, &asked("golden", "1.0"));
        assert!(controller.api_keys.iter().all(|entry| entry.api_key != ApiKey::Produce.code()));
    }

    #[test]
    fn features_that_start_at_0_are_told_from_version_4_on() {
        let names = |version| -> Vec<String> {
            let response = answered(Role::Broker, version, &asked("golden", "1.0"));
            response.supported_features.iter().map(|feature| feature.name.to_string()).collect()
        };
        assert_eq!(names(3), ["metadata.version"]);
        assert_eq!(names(4), ["kraft.version", "metadata.version"]);
        let response = answered(Role::Broker, 3, &asked("golden", "1.0"));
        assert_eq!(response.finalized_features_epoch, 12);
        assert_eq!(response.finalized_features[0].max_version_level, 30);
    }

    #[test]
    fn readme_says_who_serves_what() {
        let readme = include_str!("../../README.md");
        // What is declared and has no row is served by nobody.
        let nobody = "\u{2013} | \u{2013} |";
        for (key, _) in acked_wire::DECLARED {
            let row = format!("| {} | ", key.name());
            let row = readme.lines().find_map(|line| line.strip_prefix(row.as_str())).unwrap_or(nobody);
            let served: Vec<bool> =
                row.trim_end_matches(" |").split(" | ").map(|by| by != "\u{2013}").collect();
            assert_eq!(served, [serves(Role::Broker, *key), serves(Role::Controller, *key)], "{key:?}");
        }
    }
}
