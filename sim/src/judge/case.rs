//! Everything that the judge knows of one partition besides its logs: committed set, elections, who leads, who acted,
//! what was acknowledged. The invariants are written as further `impl` blocks, a file each.

use std::collections::BTreeMap;

use acked_core::observation::PartitionState;
use acked_core::{NodeId, TopicPartition};

use super::committed::{Acks, CommittedRecord, CommittedSet, Standing};
use super::elections::{Election, Elections, Kind};
use super::finding::{RecordKey, Rule};
use super::idempotence::Sequences;
use super::input::TopicContract;
use super::last_replicas::Starts;
use super::ledger::{Ledger, Question, loss_permitted};
use super::log_matching::Matched;
use super::mirror::{Entry, LogMirror, Mirror};
use super::recovery::Recoveries;
use super::reporter::{Place, Reporter};
use super::superset::Known;
use super::watermark_monotonic::Watermarks;

/// What a broker believes itself to be for one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Leader(i32),
    Follower(i32),
}

/// A record acknowledged at acks=1 that no high watermark has passed yet.
#[derive(Clone, Copy, Debug)]
pub struct SingleAck {
    pub entry: Entry,
    /// The leader that acknowledged it, and its epoch.
    pub leader: NodeId,
    pub leader_epoch: i32,
}

/// A record that stood in the committed set or was acknowledged at acks=1, and was displaced.
#[derive(Clone, Copy, Debug)]
pub struct Gone {
    pub entry: Entry,
    pub acks: Acks,
}

/// Who led and acted.
#[derive(Debug, Default)]
pub struct Acting {
    /// The first broker that acted as leader, by leader epoch.
    pub acted: BTreeMap<i32, NodeId>,
    /// The first broker that appended as leader, by leader epoch.
    pub appended: BTreeMap<i32, NodeId>,
    /// The newest act, so that all but the first of a leader cost nothing.
    pub newest: Option<(NodeId, i32)>,
    pub newest_append: Option<(NodeId, i32)>,
}

/// What a check needs besides the partition.
pub struct Court<'a> {
    pub mirror: &'a Mirror,
    pub ledger: &'a mut Ledger,
    pub starts: &'a Starts,
    pub reporter: &'a mut Reporter,
    pub elr: bool,
}

/// One partition.
#[derive(Debug)]
pub struct PartitionCase {
    pub id: TopicPartition,
    pub contract: TopicContract,
    /// The smallest `min.insync.replicas` that a leader may still go by.
    pub laxest_min_insync: i32,
    pub elections: Elections,
    pub committed: CommittedSet,
    pub acting: Acting,
    pub sequences: Sequences,
    /// By offset and the entry's leader epoch.
    pub single_acks: BTreeMap<(i64, i32), SingleAck>,
    pub gone: Vec<Gone>,
    /// By offset and content: leader epoch of a record that a broker cut off, so that it can be told from another one
    /// that takes its offset.
    pub cut_off: BTreeMap<(i64, u64), i32>,
    /// Records that were removed on purpose (rule 0).
    pub removed: Vec<Entry>,
    /// The topic is deleted: everything in it is removed, whatever else happens to it.
    pub deleted: bool,
    /// By offset: leader epoch and content of a record that was found to have been sent (S16).
    pub sent: Vec<(i32, u64)>,
    pub watermarks: Watermarks,
    /// What its leaders know of the committed states.
    pub known: Known,
    pub matched: Matched,
    pub recoveries: Recoveries,
    /// By leader epoch of an unclean election: where the chosen replica's log parted from the committed records.
    pub parts_at: BTreeMap<i32, i64>,
    roles: Vec<(NodeId, Role)>,
    /// The last epoch that each running broker led.
    led: Vec<(NodeId, i32)>,
}

impl PartitionCase {
    pub fn new(id: TopicPartition, contract: TopicContract) -> PartitionCase {
        PartitionCase {
            id,
            contract,
            laxest_min_insync: contract.effective_min_insync(),
            elections: Elections::default(),
            committed: CommittedSet::default(),
            acting: Acting::default(),
            sequences: Sequences::default(),
            single_acks: BTreeMap::new(),
            gone: Vec::new(),
            cut_off: BTreeMap::new(),
            removed: Vec::new(),
            deleted: false,
            sent: Vec::new(),
            watermarks: Watermarks::default(),
            known: Known::default(),
            matched: Matched::default(),
            recoveries: Recoveries::default(),
            parts_at: BTreeMap::new(),
            roles: Vec::new(),
            led: Vec::new(),
        }
    }

    pub fn role(&self, node: NodeId) -> Option<Role> {
        self.roles.iter().find(|(known, _)| *known == node).map(|(_, role)| *role)
    }

    /// The broker led this epoch in its present life; true as well when nothing is known of it. An answer may leave
    /// just after its leader stepped down.
    pub fn led(&self, node: NodeId, leader_epoch: i32) -> bool {
        match self.led.iter().find(|(known, _)| *known == node) {
            Some((_, led)) => *led == leader_epoch,
            None => self.role(node).is_none(),
        }
    }

    /// The broker took a role.
    pub fn took_role(&mut self, node: NodeId, role: Role) {
        self.known.forget(node);
        if let Role::Leader(leader_epoch) = role {
            self.led.retain(|(known, _)| *known != node);
            self.led.push((node, leader_epoch));
        }
        match self.roles.iter_mut().find(|(known, _)| *known == node) {
            Some(entry) => entry.1 = role,
            None => self.roles.push((node, role)),
        }
    }

    /// The broker's process ended or began: it believes nothing.
    pub fn forgot_role(&mut self, node: NodeId) {
        self.known.forget(node);
        self.watermarks.node_started(node);
        self.roles.retain(|(known, _)| *known != node);
        self.led.retain(|(known, _)| *known != node);
    }

    /// The highest leader epoch in which somebody acted, -1 for none.
    pub fn highest_acted(&self) -> i32 {
        self.acting.acted.last_key_value().map_or(-1, |(epoch, _)| *epoch)
    }

    pub fn place(&self, node: NodeId, epoch: i32, offset: i64) -> Place {
        Place { partition: Some(self.id), node: Some(node), epoch, offset: Some(offset) }
    }

    pub fn key(&self, entry: &Entry) -> RecordKey {
        RecordKey {
            partition: self.id,
            offset: entry.offset,
            leader_epoch: entry.leader_epoch,
            content: entry.content,
        }
    }

    /// Rule 3 for a committed record that the leader of `acting_in` lacks.
    pub fn loss_permitted(
        &self,
        record: &CommittedRecord,
        acting_in: i32,
        mirror: &Mirror,
        elr: bool,
    ) -> Option<Rule> {
        loss_permitted(&Question {
            elections: self.elections.list(),
            committed_in: record.committed_in,
            acting_in,
            elr,
            acted: &|epoch| epoch > record.acted_by_then && self.acting.acted.contains_key(&epoch),
            lost: &|node| mirror.log(self.id, node).is_some_and(|log| log.lost(&record.entry)),
        })
    }

    /// A controller replayed a committed state.
    pub fn state_committed(&mut self, state: &PartitionState, court: &mut Court<'_>) {
        self.check_order_of_states(state, court);
        if self.elections.committed(state, self.contract, court.elr, court.reporter) {
            self.check_shape(state, court);
            if let Some(Election { kind: Kind::Unclean { .. }, leader: Some(leader), leader_epoch, .. }) =
                self.elections.list().last()
                && *leader_epoch == state.leader_epoch
                && !self.parts_at.contains_key(leader_epoch)
            {
                let (leader, leader_epoch) = (*leader, *leader_epoch);
                self.chosen_uncleanly(leader, leader_epoch, court);
            }
            if !self.deleted {
                self.check_candidates(state, court);
            }
        }
    }

    /// Gives a licence for one record and lets its sequence lapse.
    pub fn license(&mut self, entry: &Entry, rule: Rule, leader: NodeId, epoch: i32, court: &mut Court<'_>) {
        let key = self.key(entry);
        court.ledger.license(key, rule, leader, epoch, court.reporter.now);
        if entry.producer_id >= 0 {
            self.sequences.lapse(entry.producer_id, entry.producer_epoch, entry.sequence);
        }
    }
}

/// The log holds the record, or a fault took it from there after it was held.
pub fn holds_or_lost(log: Option<&LogMirror>, record: &Entry) -> bool {
    log.is_some_and(|log| log.holds(record) || log.lost(record))
}

impl CommittedRecord {
    /// Every leader to come must hold it.
    pub fn is_protected(&self) -> bool {
        self.standing == Standing::Live
    }
}
