//! What each error code of a produce answer means: whether the batch may be in a log, and what to do next. The only
//! place where the producer looks at error codes.

use acked_wire::error_code as code;

/// Whether the attempt that was answered may have taken effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptEffect {
    /// The batch was appended, by this attempt or an earlier one.
    Appended,
    /// Refused before anything was appended.
    Nothing,
    /// Nobody knows.
    Unknown,
}

/// What the producer does with the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Succeed,
    /// Refresh the metadata, back off, send again.
    Retry,
    /// The broker expects another sequence: wait for what is missing, or number anew.
    Sequence,
    Fail,
}

/// The meaning of one error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub effect: AttemptEffect,
    pub action: Action,
}

/// The table. A code that no broker should answer to a produce request counts as unknown and fails unless Kafka
/// calls it retriable.
pub fn verdict(error: i16) -> Verdict {
    let effect = match error {
        code::NONE | code::DUPLICATE_SEQUENCE_NUMBER => AttemptEffect::Appended,

        // Checks that come before the append.
        code::CORRUPT_MESSAGE
        | code::MESSAGE_TOO_LARGE
        | code::INVALID_TOPIC_EXCEPTION
        | code::RECORD_LIST_TOO_LARGE
        | code::NOT_ENOUGH_REPLICAS
        | code::INVALID_REQUIRED_ACKS
        | code::TOPIC_AUTHORIZATION_FAILED
        | code::CLUSTER_AUTHORIZATION_FAILED
        | code::INVALID_TIMESTAMP
        | code::UNSUPPORTED_VERSION
        | code::INVALID_REQUEST
        | code::UNSUPPORTED_FOR_MESSAGE_FORMAT
        | code::POLICY_VIOLATION
        | code::OUT_OF_ORDER_SEQUENCE_NUMBER
        | code::INVALID_PRODUCER_EPOCH
        | code::INVALID_TXN_STATE
        | code::INVALID_PRODUCER_ID_MAPPING
        | code::CONCURRENT_TRANSACTIONS
        | code::TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        | code::UNKNOWN_PRODUCER_ID
        | code::UNSUPPORTED_COMPRESSION_TYPE
        | code::INVALID_RECORD
        | code::PRODUCER_FENCED
        | code::TRANSACTION_ABORTABLE => AttemptEffect::Nothing,

        // An append that waits for its replicas ends with these when the leader steps down (6), is deleted (3, 100),
        // runs out of time (7) or of replicas (20); a failing disk (56) may have kept it.
        _ => AttemptEffect::Unknown,
    };
    let action = match error {
        code::NONE | code::DUPLICATE_SEQUENCE_NUMBER => Action::Succeed,
        code::OUT_OF_ORDER_SEQUENCE_NUMBER | code::UNKNOWN_PRODUCER_ID | code::INVALID_PRODUCER_EPOCH => {
            Action::Sequence
        }
        _ if code::retriable(error) => Action::Retry,
        _ => Action::Fail,
    };
    Verdict { effect, action }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_before_the_append_are_definite() {
        for error in [code::NOT_ENOUGH_REPLICAS, code::CORRUPT_MESSAGE] {
            assert_eq!(verdict(error), Verdict { effect: AttemptEffect::Nothing, action: Action::Retry });
        }
        for error in [code::MESSAGE_TOO_LARGE, code::INVALID_RECORD, code::TOPIC_AUTHORIZATION_FAILED] {
            assert_eq!(verdict(error), Verdict { effect: AttemptEffect::Nothing, action: Action::Fail });
        }
    }

    #[test]
    fn answers_to_an_append_that_waited_are_not_definite() {
        for error in [
            code::NOT_LEADER_OR_FOLLOWER,
            code::REQUEST_TIMED_OUT,
            code::NOT_ENOUGH_REPLICAS_AFTER_APPEND,
            code::KAFKA_STORAGE_ERROR,
        ] {
            assert_eq!(verdict(error), Verdict { effect: AttemptEffect::Unknown, action: Action::Retry });
        }
        let server_error = Verdict { effect: AttemptEffect::Unknown, action: Action::Fail };
        assert_eq!(verdict(code::UNKNOWN_SERVER_ERROR), server_error);
    }

    #[test]
    fn duplicate_is_success() {
        let duplicate = verdict(code::DUPLICATE_SEQUENCE_NUMBER);
        assert_eq!(duplicate, Verdict { effect: AttemptEffect::Appended, action: Action::Succeed });
    }

    #[test]
    fn success_and_only_success_is_appended() {
        for error in -1..=133 {
            let Verdict { effect, action } = verdict(error);
            assert_eq!(effect == AttemptEffect::Appended, action == Action::Succeed, "{error}");
        }
    }
}
