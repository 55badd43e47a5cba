//! Rule seam of museum 0: success is answered on receipt, with the offset that the append will get, and the append
//! follows in a later event of the node.

use std::time::Duration;

use acked_wire::ProduceRequest;

use super::append::original;
use super::pending::Pending;
use super::purgatory::acked;
use crate::log::PreparedAppend;
use crate::replica::broker::Broker;
use crate::replica::partition::Replica;
use crate::rules::ProduceReply;
use crate::types::Time;

/// Appends that were acknowledged before they were made: only the rule `OnReceipt` fills this (museum 0).
#[derive(Debug, Default)]
pub(in crate::replica) struct AckedBeforeAppend {
    due: Option<Time>,
    requests: Vec<(ProduceRequest, i64)>,
}

impl AckedBeforeAppend {
    /// How long the appends wait for a later event of the node.
    const DELAY: Duration = Duration::from_millis(1);

    pub fn push(&mut self, body: ProduceRequest, wall_clock_ms: i64, now: Time) {
        self.due.get_or_insert(now + Self::DELAY);
        self.requests.push((body, wall_clock_ms));
    }

    pub fn next_deadline(&self) -> Option<Time> {
        self.due
    }

    pub fn take(&mut self) -> Vec<(ProduceRequest, i64)> {
        self.due = None;
        std::mem::take(&mut self.requests)
    }
}

/// Rule seam: whether a request that would be appended whole is answered before that.
pub(in crate::replica) fn answers_on_receipt(rule: ProduceReply) -> bool {
    match rule {
        ProduceReply::WhenDurable => false,
        ProduceReply::OnReceipt => true,
    }
}

/// Success for a part whose append has not happened: with the offset that it will get.
pub(in crate::replica) fn promise(
    pending: &mut Pending,
    replica: &Replica,
    prepared: &PreparedAppend,
    broker: &Broker,
) {
    pending.acked_part(replica, original(replica, prepared), acked(replica, broker));
}
