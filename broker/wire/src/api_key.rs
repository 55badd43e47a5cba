//! Every API of Apache Kafka 4.3.1: its number, its stable versions, and which header precedes it.
//!
//! What this program itself declares, and so can serve, is in [`crate::api`].

use std::fmt;
use std::ops::RangeInclusive;

use crate::WireError;
use crate::schema::NEVER;

macro_rules! api_keys {
    ($($name:ident = $key:literal, $versions:expr, $flexible:expr;)*) => {
        /// An API by its number in request headers.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(i16)]
        pub enum ApiKey {
            $($name = $key,)*
        }

        impl ApiKey {
            /// All of them, by ascending number.
            pub const ALL: &[ApiKey] = &[$(ApiKey::$name),*];

            /// Kafka's name, without "Request" or "Response".
            pub const fn name(self) -> &'static str {
                match self {
                    $(ApiKey::$name => stringify!($name),)*
                }
            }

            /// Stable versions in Kafka 4.3.1.
            pub const fn kafka_versions(self) -> RangeInclusive<i16> {
                match self {
                    $(ApiKey::$name => $versions,)*
                }
            }

            fn is_flexible(self, version: i16) -> bool {
                match self {
                    $(ApiKey::$name => ($flexible).contains(&version),)*
                }
            }
        }

        impl TryFrom<i16> for ApiKey {
            type Error = WireError;

            fn try_from(key: i16) -> Result<ApiKey, WireError> {
                match key {
                    $($key => Ok(ApiKey::$name),)*
                    _ => Err(WireError::UnknownApiKey { key }),
                }
            }
        }
    };
}

impl ApiKey {
    /// The number in request headers.
    pub const fn code(self) -> i16 {
        self as i16
    }

    /// 2 in flexible versions, else 1. Unknown versions count as the newest: their header must be readable to
    /// refuse them.
    pub fn request_header_version(self, version: i16) -> i16 {
        if self.is_flexible(version) { 2 } else { 1 }
    }

    /// 1 in flexible versions, else 0. Always 0 for ApiVersions, whose answer is read before versions are
    /// agreed on.
    pub fn response_header_version(self, version: i16) -> i16 {
        if self != ApiKey::ApiVersions && self.is_flexible(version) { 1 } else { 0 }
    }
}

impl fmt::Display for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

api_keys! {
    Produce = 0, 3..=13, 9..;
    Fetch = 1, 4..=18, 12..;
    ListOffsets = 2, 1..=11, 6..;
    Metadata = 3, 0..=13, 9..;
    OffsetCommit = 8, 2..=10, 8..;
    OffsetFetch = 9, 1..=10, 6..;
    FindCoordinator = 10, 0..=6, 3..;
    JoinGroup = 11, 0..=9, 6..;
    Heartbeat = 12, 0..=4, 4..;
    LeaveGroup = 13, 0..=5, 4..;
    SyncGroup = 14, 0..=5, 4..;
    DescribeGroups = 15, 0..=6, 5..;
    ListGroups = 16, 0..=5, 3..;
    SaslHandshake = 17, 0..=1, NEVER;
    ApiVersions = 18, 0..=4, 3..;
    CreateTopics = 19, 2..=7, 5..;
    DeleteTopics = 20, 1..=6, 4..;
    DeleteRecords = 21, 0..=2, 2..;
    InitProducerId = 22, 0..=5, 2..;
    OffsetForLeaderEpoch = 23, 2..=4, 4..;
    AddPartitionsToTxn = 24, 0..=5, 3..;
    AddOffsetsToTxn = 25, 0..=4, 3..;
    EndTxn = 26, 0..=5, 3..;
    WriteTxnMarkers = 27, 1..=2, 1..;
    TxnOffsetCommit = 28, 0..=5, 3..;
    DescribeAcls = 29, 1..=3, 2..;
    CreateAcls = 30, 1..=3, 2..;
    DeleteAcls = 31, 1..=3, 2..;
    DescribeConfigs = 32, 1..=4, 4..;
    AlterConfigs = 33, 0..=2, 2..;
    AlterReplicaLogDirs = 34, 1..=2, 2..;
    DescribeLogDirs = 35, 1..=5, 2..;
    SaslAuthenticate = 36, 0..=2, 2..;
    CreatePartitions = 37, 0..=3, 2..;
    CreateDelegationToken = 38, 1..=3, 2..;
    RenewDelegationToken = 39, 1..=2, 2..;
    ExpireDelegationToken = 40, 1..=2, 2..;
    DescribeDelegationToken = 41, 1..=3, 2..;
    DeleteGroups = 42, 0..=2, 2..;
    ElectLeaders = 43, 0..=2, 2..;
    IncrementalAlterConfigs = 44, 0..=1, 1..;
    AlterPartitionReassignments = 45, 0..=1, 0..;
    ListPartitionReassignments = 46, 0..=0, 0..;
    OffsetDelete = 47, 0..=0, NEVER;
    DescribeClientQuotas = 48, 0..=1, 1..;
    AlterClientQuotas = 49, 0..=1, 1..;
    DescribeUserScramCredentials = 50, 0..=0, 0..;
    AlterUserScramCredentials = 51, 0..=0, 0..;
    Vote = 52, 0..=2, 0..;
    BeginQuorumEpoch = 53, 0..=1, 1..;
    EndQuorumEpoch = 54, 0..=1, 1..;
    DescribeQuorum = 55, 0..=2, 0..;
    AlterPartition = 56, 2..=3, 2..;
    UpdateFeatures = 57, 0..=2, 0..;
    Envelope = 58, 0..=0, 0..;
    FetchSnapshot = 59, 0..=1, 0..;
    DescribeCluster = 60, 0..=2, 0..;
    DescribeProducers = 61, 0..=0, 0..;
    BrokerRegistration = 62, 0..=4, 0..;
    BrokerHeartbeat = 63, 0..=2, 0..;
    UnregisterBroker = 64, 0..=0, 0..;
    DescribeTransactions = 65, 0..=0, 0..;
    ListTransactions = 66, 0..=2, 0..;
    AllocateProducerIds = 67, 0..=0, 0..;
    ConsumerGroupHeartbeat = 68, 0..=1, 0..;
    ConsumerGroupDescribe = 69, 0..=1, 0..;
    ControllerRegistration = 70, 0..=0, 0..;
    GetTelemetrySubscriptions = 71, 0..=0, 0..;
    PushTelemetry = 72, 0..=0, 0..;
    AssignReplicasToDirs = 73, 0..=0, 0..;
    ListConfigResources = 74, 0..=1, 0..;
    DescribeTopicPartitions = 75, 0..=0, 0..;
    ShareGroupHeartbeat = 76, 1..=1, 1..;
    ShareGroupDescribe = 77, 1..=1, 1..;
    ShareFetch = 78, 1..=2, 1..;
    ShareAcknowledge = 79, 1..=2, 1..;
    AddRaftVoter = 80, 0..=1, 0..;
    RemoveRaftVoter = 81, 0..=0, 0..;
    UpdateRaftVoter = 82, 0..=0, 0..;
    InitializeShareGroupState = 83, 0..=0, 0..;
    ReadShareGroupState = 84, 0..=0, 0..;
    WriteShareGroupState = 85, 0..=1, 0..;
    DeleteShareGroupState = 86, 0..=0, 0..;
    ReadShareGroupStateSummary = 87, 0..=1, 0..;
    StreamsGroupHeartbeat = 88, 0..=0, 0..;
    StreamsGroupDescribe = 89, 0..=0, 0..;
    DescribeShareGroupOffsets = 90, 0..=1, 0..;
    AlterShareGroupOffsets = 91, 0..=0, 0..;
    DeleteShareGroupOffsets = 92, 0..=0, 0..;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_ascend_and_are_read_back() {
        assert_eq!(ApiKey::ALL.len(), 89);
        assert!(ApiKey::ALL.is_sorted());
        for key in ApiKey::ALL {
            assert_eq!(ApiKey::try_from(key.code()), Ok(*key));
        }
        // The four APIs that left with ZooKeeper.
        for gone in 4..8 {
            assert_eq!(ApiKey::try_from(gone), Err(WireError::UnknownApiKey { key: gone }));
        }
    }

    #[test]
    fn headers_follow_the_flexible_versions() {
        assert_eq!(
            (ApiKey::Produce.request_header_version(8), ApiKey::Produce.response_header_version(8)),
            (1, 0)
        );
        assert_eq!(
            (ApiKey::Produce.request_header_version(9), ApiKey::Produce.response_header_version(9)),
            (2, 1)
        );
        assert_eq!(ApiKey::ApiVersions.request_header_version(99), 2);
        assert_eq!(ApiKey::ApiVersions.response_header_version(4), 0);
        assert_eq!(ApiKey::SaslHandshake.request_header_version(1), 1);
    }
}
