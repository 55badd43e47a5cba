//! What a replica has for a fetcher: the checks of one partition, in Kafka's order.

use std::collections::BTreeMap;

use acked_wire::error_code;

use super::request::{Part, Pending};
use crate::observation::Fetcher;
use crate::replica::broker::Broker;
use crate::replica::partition::Replica;
use crate::rules::FollowerPosition;
use crate::types::{NodeId, Time, TopicPartition};

/// From this version on a consumer may read from a follower (KIP-392).
const FOLLOWER_READ_VERSION: i16 = 11;

/// What a replica has for a fetcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offer {
    Refused(i16),
    /// The fetcher's log left ours: our largest epoch not above its last, and where that ends.
    Diverging(i32, i64),
    /// Records from its offset up to this one (exclusive), perhaps none.
    Below(i64),
}

pub(super) fn offer(replica: &Replica, part: &Part, pending: &Pending, broker: &Broker) -> Offer {
    if replica.is_offline() {
        return Offer::Refused(error_code::KAFKA_STORAGE_ERROR);
    }
    if let Err(code) = check_epoch(replica, part.leader_epoch) {
        return Offer::Refused(code);
    }
    let must_lead =
        matches!(pending.fetcher, Fetcher::Follower(_)) || pending.version < FOLLOWER_READ_VERSION;
    if must_lead && replica.leading().is_none() {
        return Offer::Refused(error_code::NOT_LEADER_OR_FOLLOWER);
    }
    if let Fetcher::Follower(follower) = pending.fetcher
        && let Err(code) = check_follower(replica, part, follower, pending.broker_epoch, broker)
    {
        return Offer::Refused(code);
    }
    if part.last_fetched_epoch >= 0 {
        let Some((epoch, end)) = replica.log.end_offset_for_epoch(part.last_fetched_epoch) else {
            return Offer::Refused(error_code::OFFSET_OUT_OF_RANGE);
        };
        if epoch < part.last_fetched_epoch || end < part.offset {
            return Offer::Diverging(epoch, end);
        }
    }
    if part.offset < replica.log.log_start_offset() || part.offset > replica.log.log_end_offset() {
        return Offer::Refused(error_code::OFFSET_OUT_OF_RANGE);
    }
    match pending.fetcher {
        Fetcher::Follower(_) => Offer::Below(replica.writes.end()),
        Fetcher::Consumer => Offer::Below(replica.high_watermark),
    }
}

/// A request of another leader epoch is refused, so that it comes back when both sides know the same.
pub(in crate::replica) fn check_epoch(replica: &Replica, asked: i32) -> Result<(), i16> {
    match asked {
        ..0 => Ok(()),
        _ if asked < replica.leader_epoch() => Err(error_code::FENCED_LEADER_EPOCH),
        _ if asked > replica.leader_epoch() => Err(error_code::UNKNOWN_LEADER_EPOCH),
        _ => Ok(()),
    }
}

fn check_follower(
    replica: &Replica,
    part: &Part,
    follower: NodeId,
    broker_epoch: i64,
    broker: &Broker,
) -> Result<(), i16> {
    let is_assigned = follower != broker.node() && replica.state.replicas.contains(&follower);
    if !is_assigned {
        // With an epoch the assignment may be news that has not come yet: the follower tries again.
        let is_early = part.leader_epoch >= 0;
        let code =
            if is_early { error_code::UNKNOWN_LEADER_EPOCH } else { error_code::NOT_LEADER_OR_FOLLOWER };
        return Err(code);
    }
    let registered = broker.registered.get(&follower).map(|view| view.broker_epoch);
    let is_stale = broker_epoch >= 0 && registered.is_some_and(|registered| broker_epoch < registered);
    if is_stale { Err(error_code::NOT_LEADER_OR_FOLLOWER) } else { Ok(()) }
}

/// Takes down where a follower is, if its fetch is one that its log agrees with. Gives whether it did. A diverging
/// or refused fetch says nothing about what the follower holds.
pub(in crate::replica) fn record(
    pending: &Pending,
    part: &Part,
    replica: &mut Replica,
    broker: &Broker,
    now: Time,
) -> Option<NodeId> {
    let Fetcher::Follower(follower) = pending.fetcher else { return None };
    if part.refused.is_some()
        || !says_position(broker.rules.follower_position, offer(replica, part, pending, broker))
    {
        return None;
    }
    let leader_end = replica.writes.end();
    replica.leading_mut()?.record_fetch(follower, part.offset, pending.broker_epoch, leader_end, now);
    Some(follower)
}

/// Rule seam: whether a fetch that is answered so says where its follower's log ends.
fn says_position(rule: FollowerPosition, offer: Offer) -> bool {
    match offer {
        Offer::Below(_) => true,
        Offer::Diverging(..) => rule == FollowerPosition::FromDivergingFetches,
        Offer::Refused(_) => false,
    }
}

/// Whether a fetch has something to be told before its time is up.
pub(in crate::replica) fn is_ready(
    pending: &Pending,
    replicas: &BTreeMap<TopicPartition, Replica>,
    broker: &Broker,
) -> bool {
    let mut bytes = 0;
    for part in &pending.parts {
        let Some(replica) = replicas.get(&part.partition).filter(|_| part.refused.is_none()) else {
            return true;
        };
        let Offer::Below(end) = offer(replica, part, pending, broker) else { return true };
        if part.offset < end {
            let slice = replica.log.locate(part.offset, end, part.max_bytes, true);
            bytes += slice.map_or(0, |slice| slice.length);
        }
    }
    bytes >= pending.min_bytes
}
