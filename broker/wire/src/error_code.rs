//! Kafka's error codes, as numbers: the fields of messages hold them as `i16`.
//!
//! Which code an error of ours becomes is decided where it is answered, not here.

macro_rules! error_codes {
    ($($name:ident = $code:literal $(, $retriable:ident)?;)*) => {
        $(pub const $name: i16 = $code;)*

        /// All codes, by ascending number.
        pub const ALL: &[i16] = &[$($name),*];

        /// Kafka's name, or `UNKNOWN_CODE`.
        pub const fn name(code: i16) -> &'static str {
            match code {
                $($name => stringify!($name),)*
                _ => "UNKNOWN_CODE",
            }
        }

        /// The code of a name.
        pub fn from_name(name: &str) -> Option<i16> {
            ALL.iter().copied().find(|code| self::name(*code) == name)
        }

        /// Whether a client may ask again without change and hope for another answer.
        pub const fn retriable(code: i16) -> bool {
            match code {
                $($name => false $(|| is_retriable(stringify!($retriable)))?,)*
                _ => false,
            }
        }
    };
}

const fn is_retriable(word: &str) -> bool {
    !word.is_empty()
}

error_codes! {
    UNKNOWN_SERVER_ERROR = -1;
    NONE = 0;
    OFFSET_OUT_OF_RANGE = 1;
    CORRUPT_MESSAGE = 2, retriable;
    UNKNOWN_TOPIC_OR_PARTITION = 3, retriable;
    INVALID_FETCH_SIZE = 4;
    LEADER_NOT_AVAILABLE = 5, retriable;
    NOT_LEADER_OR_FOLLOWER = 6, retriable;
    REQUEST_TIMED_OUT = 7, retriable;
    BROKER_NOT_AVAILABLE = 8;
    REPLICA_NOT_AVAILABLE = 9, retriable;
    MESSAGE_TOO_LARGE = 10;
    STALE_CONTROLLER_EPOCH = 11;
    OFFSET_METADATA_TOO_LARGE = 12;
    NETWORK_EXCEPTION = 13, retriable;
    COORDINATOR_LOAD_IN_PROGRESS = 14, retriable;
    COORDINATOR_NOT_AVAILABLE = 15, retriable;
    NOT_COORDINATOR = 16, retriable;
    INVALID_TOPIC_EXCEPTION = 17;
    RECORD_LIST_TOO_LARGE = 18;
    NOT_ENOUGH_REPLICAS = 19, retriable;
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, retriable;
    INVALID_REQUIRED_ACKS = 21;
    ILLEGAL_GENERATION = 22;
    INCONSISTENT_GROUP_PROTOCOL = 23;
    INVALID_GROUP_ID = 24;
    UNKNOWN_MEMBER_ID = 25;
    INVALID_SESSION_TIMEOUT = 26;
    REBALANCE_IN_PROGRESS = 27;
    INVALID_COMMIT_OFFSET_SIZE = 28;
    TOPIC_AUTHORIZATION_FAILED = 29;
    GROUP_AUTHORIZATION_FAILED = 30;
    CLUSTER_AUTHORIZATION_FAILED = 31;
    INVALID_TIMESTAMP = 32;
    UNSUPPORTED_SASL_MECHANISM = 33;
    ILLEGAL_SASL_STATE = 34;
    UNSUPPORTED_VERSION = 35;
    TOPIC_ALREADY_EXISTS = 36;
    INVALID_PARTITIONS = 37;
    INVALID_REPLICATION_FACTOR = 38;
    INVALID_REPLICA_ASSIGNMENT = 39;
    INVALID_CONFIG = 40;
    NOT_CONTROLLER = 41, retriable;
    INVALID_REQUEST = 42;
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43;
    POLICY_VIOLATION = 44;
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45;
    DUPLICATE_SEQUENCE_NUMBER = 46;
    INVALID_PRODUCER_EPOCH = 47;
    INVALID_TXN_STATE = 48;
    INVALID_PRODUCER_ID_MAPPING = 49;
    INVALID_TRANSACTION_TIMEOUT = 50;
    CONCURRENT_TRANSACTIONS = 51, retriable;
    TRANSACTION_COORDINATOR_FENCED = 52;
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53;
    SECURITY_DISABLED = 54;
    OPERATION_NOT_ATTEMPTED = 55;
    KAFKA_STORAGE_ERROR = 56, retriable;
    LOG_DIR_NOT_FOUND = 57;
    SASL_AUTHENTICATION_FAILED = 58;
    UNKNOWN_PRODUCER_ID = 59;
    REASSIGNMENT_IN_PROGRESS = 60;
    DELEGATION_TOKEN_AUTH_DISABLED = 61;
    DELEGATION_TOKEN_NOT_FOUND = 62;
    DELEGATION_TOKEN_OWNER_MISMATCH = 63;
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64;
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65;
    DELEGATION_TOKEN_EXPIRED = 66;
    INVALID_PRINCIPAL_TYPE = 67;
    NON_EMPTY_GROUP = 68;
    GROUP_ID_NOT_FOUND = 69;
    FETCH_SESSION_ID_NOT_FOUND = 70, retriable;
    INVALID_FETCH_SESSION_EPOCH = 71, retriable;
    LISTENER_NOT_FOUND = 72, retriable;
    TOPIC_DELETION_DISABLED = 73;
    FENCED_LEADER_EPOCH = 74, retriable;
    UNKNOWN_LEADER_EPOCH = 75, retriable;
    UNSUPPORTED_COMPRESSION_TYPE = 76;
    STALE_BROKER_EPOCH = 77;
    OFFSET_NOT_AVAILABLE = 78, retriable;
    MEMBER_ID_REQUIRED = 79;
    PREFERRED_LEADER_NOT_AVAILABLE = 80, retriable;
    GROUP_MAX_SIZE_REACHED = 81;
    FENCED_INSTANCE_ID = 82;
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, retriable;
    ELECTION_NOT_NEEDED = 84, retriable;
    NO_REASSIGNMENT_IN_PROGRESS = 85;
    GROUP_SUBSCRIBED_TO_TOPIC = 86;
    INVALID_RECORD = 87;
    UNSTABLE_OFFSET_COMMIT = 88, retriable;
    THROTTLING_QUOTA_EXCEEDED = 89, retriable;
    PRODUCER_FENCED = 90;
    RESOURCE_NOT_FOUND = 91;
    DUPLICATE_RESOURCE = 92;
    UNACCEPTABLE_CREDENTIAL = 93;
    INCONSISTENT_VOTER_SET = 94;
    INVALID_UPDATE_VERSION = 95;
    FEATURE_UPDATE_FAILED = 96;
    PRINCIPAL_DESERIALIZATION_FAILURE = 97;
    SNAPSHOT_NOT_FOUND = 98;
    POSITION_OUT_OF_RANGE = 99;
    UNKNOWN_TOPIC_ID = 100, retriable;
    DUPLICATE_BROKER_REGISTRATION = 101;
    BROKER_ID_NOT_REGISTERED = 102;
    INCONSISTENT_TOPIC_ID = 103, retriable;
    INCONSISTENT_CLUSTER_ID = 104;
    TRANSACTIONAL_ID_NOT_FOUND = 105;
    FETCH_SESSION_TOPIC_ID_ERROR = 106, retriable;
    INELIGIBLE_REPLICA = 107;
    NEW_LEADER_ELECTED = 108;
    OFFSET_MOVED_TO_TIERED_STORAGE = 109;
    FENCED_MEMBER_EPOCH = 110;
    UNRELEASED_INSTANCE_ID = 111;
    UNSUPPORTED_ASSIGNOR = 112;
    STALE_MEMBER_EPOCH = 113;
    MISMATCHED_ENDPOINT_TYPE = 114;
    UNSUPPORTED_ENDPOINT_TYPE = 115;
    UNKNOWN_CONTROLLER_ID = 116;
    UNKNOWN_SUBSCRIPTION_ID = 117;
    TELEMETRY_TOO_LARGE = 118;
    INVALID_REGISTRATION = 119;
    TRANSACTION_ABORTABLE = 120;
    INVALID_RECORD_STATE = 121;
    SHARE_SESSION_NOT_FOUND = 122, retriable;
    INVALID_SHARE_SESSION_EPOCH = 123, retriable;
    FENCED_STATE_EPOCH = 124;
    INVALID_VOTER_KEY = 125;
    DUPLICATE_VOTER = 126;
    VOTER_NOT_FOUND = 127;
    INVALID_REGULAR_EXPRESSION = 128;
    REBOOTSTRAP_REQUIRED = 129;
    STREAMS_INVALID_TOPOLOGY = 130;
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131;
    STREAMS_TOPOLOGY_FENCED = 132;
    SHARE_SESSION_LIMIT_REACHED = 133, retriable;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_the_135_of_kafka_and_named() {
        assert_eq!(ALL.len(), 135);
        assert!(ALL.is_sorted());
        for code in ALL {
            assert_eq!(from_name(name(*code)), Some(*code));
        }
        assert_eq!(name(12_345), "UNKNOWN_CODE");
    }

    #[test]
    fn retriable_codes_are_those_of_kafkas_retriable_exceptions() {
        assert_eq!(ALL.iter().filter(|code| retriable(**code)).count(), 32);
        assert!(retriable(NOT_ENOUGH_REPLICAS_AFTER_APPEND) && retriable(NOT_LEADER_OR_FOLLOWER));
        assert!(!retriable(OUT_OF_ORDER_SEQUENCE_NUMBER) && !retriable(NONE));
    }
}
