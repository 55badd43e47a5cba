//! UpdateFeatures (key 57): feature levels of the cluster are raised or lowered (KIP-584, KIP-778).

use crate::Str;
use crate::schema::messages;

messages! {
    /// Asks for feature levels to be finalized.
    pub struct UpdateFeaturesRequest [versions 0..=2, flexible 0..] {
        timeout_ms: i32 [0.., default = 60000],
        feature_updates: Vec<FeatureUpdateKey> [0..],
        validate_only: bool [1..],
    }

    /// See [`UpdateFeaturesRequest`].
    pub struct FeatureUpdateKey {
        feature: Str [0..],
        /// The new level; below 1 the feature is switched off.
        max_version_level: i16 [0..],
        /// Version 0 only; see `upgrade_type`.
        allow_downgrade: bool [0..=0],
        /// 1 upgrade only, 2 downgrade without loss, 3 any downgrade.
        upgrade_type: i8 [1.., default = 1],
    }

    /// Answer to [`UpdateFeaturesRequest`].
    pub struct UpdateFeaturesResponse [versions 0..=2, flexible 0..] {
        throttle_time_ms: i32 [0..],
        error_code: i16 [0..],
        error_message: Option<Str> [0.., nullable 0.., default = Some(Str::default())],
        /// Up to version 1; later, all updates succeed or none does.
        results: Vec<UpdatableFeatureResult> [0..=1; ignorable],
    }

    /// See [`UpdateFeaturesResponse`].
    pub struct UpdatableFeatureResult {
        feature: Str [0..],
        error_code: i16 [0..],
        error_message: Option<Str> [0.., nullable 0.., default = Some(Str::default())],
    }
}
