//! The feature levels of a new cluster and what a broker of this version supports (KIP-584).
//!
//! eligible.leader.replicas.version, group.version and transaction.version are not finalized: the image holds no
//! ELR, and neither groups nor transactions are served.

use acked_wire::{FeatureLevelRecord, MetadataRecord, Str};

/// metadata.version 4.3-IV0.
pub const METADATA_VERSION: i16 = 30;

/// Name, lowest and highest level that this version supports.
pub const FEATURES: [(&str, i16, i16); 2] =
    [("kraft.version", 0, 1), ("metadata.version", 7, METADATA_VERSION)];

/// [`FEATURES`] in the form of a registration.
pub fn supported_features() -> Vec<acked_wire::api::broker_registration::Feature> {
    FEATURES
        .iter()
        .map(|(name, min, max)| acked_wire::api::broker_registration::Feature {
            name: Str::from_static(name),
            min_supported_version: *min,
            max_supported_version: *max,
            ..Default::default()
        })
        .collect()
}

/// What the first active controller writes into an empty log.
pub(super) fn bootstrap_records() -> Vec<MetadataRecord> {
    vec![MetadataRecord::FeatureLevel(FeatureLevelRecord {
        name: Str::from_static("metadata.version"),
        feature_level: METADATA_VERSION,
        ..FeatureLevelRecord::default()
    })]
}
