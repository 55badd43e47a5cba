//! Whether one part of a produce request is taken. Changes nothing before everything was checked.

use acked_wire::batch::{Compression, parse_header};
use acked_wire::error_code;
use bytes::Bytes;

use crate::log::{AppendError, Prepared, PreparedAppend};
use crate::replica::broker::Broker;
use crate::replica::interface::ReplicaEffect;
use crate::replica::partition::Replica;
use crate::rules::ProducerState;
use crate::settings::TimestampType;
use crate::types::Output;

/// `acks` of a produce request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::replica) enum Acks {
    None,
    Leader,
    All,
}

impl Acks {
    /// Any other number is INVALID_REQUIRED_ACKS.
    pub fn from_wire(acks: i16) -> Option<Acks> {
        match acks {
            0 => Some(Acks::None),
            1 => Some(Acks::Leader),
            -1 => Some(Acks::All),
            _ => None,
        }
    }

    pub fn to_wire(self) -> i16 {
        match self {
            Acks::None => 0,
            Acks::Leader => 1,
            Acks::All => -1,
        }
    }
}

/// A batch that the log holds, or will hold.
#[derive(Clone, Copy, Debug)]
pub(in crate::replica) struct Taken {
    pub base_offset: i64,
    pub last_offset: i64,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub base_sequence: i32,
    pub is_duplicate: bool,
    /// As the answer says it: -1 for an original with CreateTime, its largest timestamp for a duplicate.
    pub log_append_time_ms: i64,
}

/// A refusal before the append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::replica) struct Refused {
    pub code: i16,
    /// The real one where Kafka tells it, else -1.
    pub log_start_offset: i64,
}

impl Refused {
    pub fn with(code: i16) -> Refused {
        Refused { code, log_start_offset: -1 }
    }
}

/// Produce requests may carry zstd from here on (KIP-110). Fetch has no such bound any more: below version 10 too,
/// zstd is answered as it lies in the log (measured).
const ZSTD_FROM: i16 = 7;

/// Whether records are compressed in a way that a request of this version must not carry.
pub(in crate::replica) fn is_too_new(version: i16, records: Option<&Bytes>) -> bool {
    let header = records.and_then(|records| parse_header(records).ok());
    version < ZSTD_FROM && header.is_some_and(|header| header.compression() == Compression::Zstd)
}

/// Checks and validates one part without changing anything.
pub(in crate::replica) fn examine(
    replica: &Replica,
    records: Option<&Bytes>,
    acks: Acks,
    wall_clock_ms: i64,
    broker: &Broker,
) -> Result<Prepared, Refused> {
    if replica.is_offline() {
        return Err(Refused::with(error_code::KAFKA_STORAGE_ERROR));
    }
    let Some(leading) = replica.leading() else {
        return Err(Refused::with(error_code::NOT_LEADER_OR_FOLLOWER));
    };
    let in_sync = leading.committed_isr(&broker.rules, &replica.state.isr).count();
    if acks == Acks::All && in_sync < replica.min_insync() {
        return Err(Refused::with(error_code::NOT_ENOUGH_REPLICAS));
    }
    let Some(records) = records else { return Err(Refused::with(error_code::INVALID_RECORD)) };
    let log = &replica.log;
    let window = broker.rules.dedupe_window;
    log.prepare_append(records, replica.leader_epoch(), &replica.limits, window, wall_clock_ms)
        .map_err(|error| refused(&error, log.log_start_offset()))
}

/// Rule seam: whether the batch of a part that is refused is remembered all the same, as if the log held it.
pub(in crate::replica) fn after_refusal(
    replica: &mut Replica,
    records: Option<&Bytes>,
    refused: Refused,
    wall_clock_ms: i64,
    broker: &Broker,
) {
    match broker.rules.producer_state {
        ProducerState::AfterAppend => {}
        ProducerState::BeforeAppend => {
            let (epoch, window) = (replica.leader_epoch(), broker.rules.dedupe_window);
            if refused.code == error_code::NOT_ENOUGH_REPLICAS
                && let Some(records) = records
                && let Ok(Prepared::Append(prepared)) =
                    replica.log.prepare_append(records, epoch, &replica.limits, window, wall_clock_ms)
            {
                replica.log.remember_unappended(&prepared);
            }
        }
    }
}

fn refused(error: &AppendError, log_start_offset: i64) -> Refused {
    let log_start_offset = if error.tells_log_start_offset() { log_start_offset } else { -1 };
    Refused { code: error.code(), log_start_offset }
}

/// Appends what was examined, or recognises what the log holds already.
pub(in crate::replica) fn take(
    replica: &mut Replica,
    records: Option<&Bytes>,
    prepared: Prepared,
    broker: &mut Broker,
    out: &mut Output<ReplicaEffect>,
) -> Taken {
    match prepared {
        Prepared::Append(prepared) => {
            let taken = original(replica, &prepared);
            replica.append(prepared, broker, out);
            taken
        }
        Prepared::Duplicate { base_offset, last_offset, timestamp_ms } => {
            let header = records.and_then(|records| parse_header(records).ok());
            let header = header.expect("a batch that was validated has a header");
            Taken {
                base_offset,
                last_offset,
                producer_id: header.producer_id,
                producer_epoch: header.producer_epoch,
                base_sequence: header.base_sequence,
                is_duplicate: true,
                log_append_time_ms: timestamp_ms,
            }
        }
    }
}

pub(super) fn original(replica: &Replica, prepared: &PreparedAppend) -> Taken {
    let log_append_time_ms = match replica.limits.timestamp_type {
        TimestampType::CreateTime => -1,
        TimestampType::LogAppendTime => prepared.max_timestamp,
    };
    Taken {
        base_offset: prepared.base_offset,
        last_offset: prepared.last_offset,
        producer_id: prepared.producer_id,
        producer_epoch: prepared.producer_epoch,
        base_sequence: prepared.base_sequence,
        is_duplicate: false,
        log_append_time_ms,
    }
}
