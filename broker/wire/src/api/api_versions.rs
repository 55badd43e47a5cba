//! ApiVersions (key 18): which APIs and features a node serves (KIP-35, KIP-584).
//!
//! The answer's header is version 0 in every version; a version that is not served is answered in version 0
//! with UNSUPPORTED_VERSION.

use crate::Str;
use crate::schema::messages;

messages! {
    /// Asks what is served, and says which client asks (KIP-511).
    pub struct ApiVersionsRequest [versions 0..=4, flexible 3..] {
        client_software_name: Str [3..; ignorable],
        client_software_version: Str [3..; ignorable],
    }

    /// Answer to [`ApiVersionsRequest`].
    pub struct ApiVersionsResponse [versions 0..=4, flexible 3..] {
        error_code: i16 [0..],
        api_keys: Vec<ApiVersion> [0..],
        throttle_time_ms: i32 [1..; ignorable],
        /// Versions up to 3 leave out features whose smallest level is 0.
        supported_features: Vec<SupportedFeatureKey> [3.., tag 0; ignorable],
        /// -1 when not known. Clients of the transaction protocol look at the finalized features.
        finalized_features_epoch: i64 [3.., tag 1, default = -1; ignorable],
        finalized_features: Vec<FinalizedFeatureKey> [3.., tag 2; ignorable],
        zk_migration_ready: bool [3.., tag 3; ignorable],
    }

    /// See [`ApiVersionsResponse`].
    pub struct ApiVersion {
        api_key: i16 [0..],
        min_version: i16 [0..],
        max_version: i16 [0..],
    }

    /// See [`ApiVersionsResponse`].
    pub struct SupportedFeatureKey {
        name: Str [3..],
        min_version: i16 [3..],
        max_version: i16 [3..],
    }

    /// See [`ApiVersionsResponse`].
    pub struct FinalizedFeatureKey {
        name: Str [3..],
        max_version_level: i16 [3..],
        min_version_level: i16 [3..],
    }
}
