//! Which requests go out now, and what is in them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use acked_wire::api::fetch::{FetchPartition, FetchRequest, FetchTopic};
use acked_wire::api::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use acked_wire::api::offset_for_leader_epoch::{
    OffsetForLeaderEpochRequest, OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use acked_wire::{RequestBody, Str};

use super::assigned::{Position, Serial};
use super::machine::{
    Asked, Consumer, EARLIEST_TIMESTAMP, Fetching, Key, LATEST_TIMESTAMP, Listing, Purpose, Validating,
};
use crate::NodeId;
use crate::client::{ClusterView, Peer};

impl Consumer {
    /// Asks leaders for the offsets that are missing.
    pub(super) fn list_offsets(&mut self) {
        let mut drafts: BTreeMap<NodeId, Vec<(Listing, i64)>> = BTreeMap::new();
        if self.poll.is_some() {
            for key in self.asking() {
                let timestamp = match self.assigned[&key].position {
                    Position::Earliest => EARLIEST_TIMESTAMP,
                    Position::Latest => LATEST_TIMESTAMP,
                    Position::NotOlderThan(age) => self.wall_clock_before(age),
                    Position::At { .. } => continue,
                };
                let Some(node) = self.reachable_leader(&key) else { continue };
                let serial = self.pend(&key);
                let listing = Listing { key, purpose: Purpose::Position(serial) };
                drafts.entry(node).or_default().push((listing, timestamp));
            }
        }
        let due = self.questions.iter().filter(|(_, asked)| !asked.pending && asked.retry_at <= self.now);
        let due: Vec<(u64, Key)> = due.map(|(question, asked)| (*question, asked.key.clone())).collect();
        for (question, key) in due {
            let Some(node) = self.reachable_leader(&key) else { continue };
            let asked = self.questions.get_mut(&question).expect("the question was just found");
            asked.pending = true;
            let listing = Listing { key, purpose: Purpose::Question(question) };
            drafts.entry(node).or_default().push((listing, asked.timestamp));
        }
        for (node, draft) in drafts {
            self.send_offsets(node, draft);
        }
    }

    pub(super) fn send_offsets(&mut self, node: NodeId, draft: Vec<(Listing, i64)>) {
        let mut topics: Vec<ListOffsetsTopic> = Vec::new();
        for (listing, timestamp) in &draft {
            let (topic, index) = &listing.key;
            let leader = self.view.leader(topic, *index);
            let partition = ListOffsetsPartition {
                partition_index: *index,
                current_leader_epoch: leader.map_or(-1, |leader| leader.leader_epoch),
                timestamp: *timestamp,
                ..Default::default()
            };
            match topics.last_mut() {
                Some(last) if last.name == **topic => last.partitions.push(partition),
                _ => topics.push(ListOffsetsTopic {
                    name: Str::from(&**topic),
                    partitions: vec![partition],
                    ..Default::default()
                }),
            }
        }
        let body = RequestBody::ListOffsets(ListOffsetsRequest {
            replica_id: -1,
            isolation_level: self.settings.isolation_level.code(),
            topics,
            timeout_ms: milliseconds(self.settings.request_timeout),
            ..Default::default()
        });
        let asked = Asked::Offsets(draft.into_iter().map(|(listing, _)| listing).collect());
        self.links.send(self.now, Peer::Node(node), body, true, asked, &mut self.network);
    }

    /// The wall clock so long ago, in milliseconds since 1970; not before them.
    fn wall_clock_before(&self, age: Duration) -> i64 {
        let (at_poll, polled_at) = self.wall_clock;
        let milliseconds = |duration: Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        let now = at_poll.saturating_add(milliseconds(self.now.saturating_sub(polled_at)));
        now.saturating_sub(milliseconds(age)).max(0)
    }

    /// The leader epoch in which a position still has to be found valid.
    fn unvalidated(&self, key: &Key) -> Option<i32> {
        let epoch = self.view.leader(&key.0, key.1)?.leader_epoch;
        (self.assigned[key].valid_in != Some(epoch)).then_some(epoch)
    }

    /// Asks leaders of a newer epoch, while a poll waits, whether what was read before is still there (KIP-320).
    pub(super) fn validate(&mut self) {
        if self.poll.is_none() {
            return;
        }
        let mut drafts: BTreeMap<NodeId, Vec<(Validating, i32)>> = BTreeMap::new();
        for key in self.asking() {
            let Position::At { leader_epoch: read_in, .. } = self.assigned[&key].position else { continue };
            let Some(leader_epoch) = self.unvalidated(&key) else { continue };
            match read_in.filter(|_| leader_epoch >= 0) {
                Some(read_in) => {
                    let Some(node) = self.reachable_leader(&key) else { continue };
                    let serial = self.pend(&key);
                    drafts.entry(node).or_default().push((Validating { key, serial, leader_epoch }, read_in));
                }
                // There is nothing to compare: no record was read, or the broker knows no epochs.
                None => {
                    let assigned = self.assigned.get_mut(&key).expect("the partition was just found");
                    assigned.valid_in = Some(leader_epoch);
                }
            }
        }
        for (node, draft) in drafts {
            self.send_validation(node, draft);
        }
    }

    fn send_validation(&mut self, node: NodeId, draft: Vec<(Validating, i32)>) {
        let mut topics: Vec<OffsetForLeaderTopic> = Vec::new();
        let mut asked = Vec::with_capacity(draft.len());
        for (validating, read_in) in draft {
            let (topic, index) = &validating.key;
            if topics.last().is_none_or(|last| last.topic != **topic) {
                topics.push(OffsetForLeaderTopic { topic: Str::from(&**topic), ..Default::default() });
            }
            topics.last_mut().expect("one was pushed").partitions.push(OffsetForLeaderPartition {
                partition: *index,
                current_leader_epoch: validating.leader_epoch,
                leader_epoch: read_in,
                ..Default::default()
            });
            asked.push(validating);
        }
        let body = RequestBody::OffsetForLeaderEpoch(OffsetForLeaderEpochRequest {
            replica_id: -1,
            topics,
            ..Default::default()
        });
        self.links.send(self.now, Peer::Node(node), body, true, Asked::Epochs(asked), &mut self.network);
    }

    /// Fetches while a poll waits: one request to each leader, for all of its partitions without records.
    pub(super) fn fetch(&mut self) {
        if self.poll.is_none() {
            return;
        }
        let mut drafts: BTreeMap<NodeId, Vec<(Fetching, FetchPartition)>> = BTreeMap::new();
        for key in self.asking() {
            let Position::At { offset, .. } = self.assigned[&key].position else { continue };
            if self.unvalidated(&key).is_some() {
                continue;
            }
            let Some(node) = self.reachable_leader(&key) else { continue };
            let Some(topic) = self.view.topic_id(&key.0) else { continue };
            if self.fetching.contains(&node) {
                continue;
            }
            let leader = self.view.leader(&key.0, key.1);
            let partition = FetchPartition {
                partition: key.1,
                current_leader_epoch: leader.map_or(-1, |leader| leader.leader_epoch),
                fetch_offset: offset,
                partition_max_bytes: self.settings.max_partition_fetch_bytes,
                ..Default::default()
            };
            let serial = self.pend(&key);
            drafts.entry(node).or_default().push((Fetching { key, topic, serial }, partition));
        }
        for (node, draft) in drafts {
            self.send_fetch(node, draft);
        }
    }

    pub(super) fn send_fetch(&mut self, node: NodeId, draft: Vec<(Fetching, FetchPartition)>) {
        let mut topics: Vec<FetchTopic> = Vec::new();
        let mut partitions = Vec::with_capacity(draft.len());
        for (fetching, partition) in draft {
            match topics.last_mut() {
                Some(last) if last.topic_id == fetching.topic => last.partitions.push(partition),
                _ => topics.push(FetchTopic {
                    topic_id: fetching.topic,
                    partitions: vec![partition],
                    ..Default::default()
                }),
            }
            partitions.push(fetching);
        }
        let body = RequestBody::Fetch(FetchRequest {
            max_wait_ms: milliseconds(self.settings.fetch_max_wait),
            min_bytes: self.settings.fetch_min_bytes,
            max_bytes: self.settings.fetch_max_bytes,
            isolation_level: self.settings.isolation_level.code(),
            // No session: every request says all that it wants.
            session_id: 0,
            session_epoch: -1,
            topics,
            ..Default::default()
        });
        self.fetching.insert(node);
        let asked = Asked::Fetch { node, partitions };
        self.links.send(self.now, Peer::Node(node), body, true, asked, &mut self.network);
    }

    pub(super) fn ask_for_metadata(&mut self) {
        let needed = self.poll.is_some() || !self.questions.is_empty();
        if !needed || !self.refresh.due(self.now) {
            return;
        }
        let Some(peer) = self.links.any(self.now, &self.view, &mut self.network) else { return };
        let topics: BTreeSet<&Arc<str>> = self.keys().map(|(topic, _)| topic).collect();
        let body = RequestBody::Metadata(ClusterView::request(topics.into_iter(), false));
        self.refresh.asked();
        self.links.send(self.now, peer, body, true, Asked::Metadata, &mut self.network);
    }

    /// Every partition that this consumer has to do with.
    pub(super) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.assigned.keys().chain(self.questions.values().map(|question| &question.key))
    }

    pub(super) fn asking(&self) -> Vec<Key> {
        let asking = self.assigned.iter().filter(|(_, assigned)| assigned.asks(self.now));
        asking.map(|(key, _)| key.clone()).collect()
    }

    /// The leader of a partition, if its link is up.
    pub(super) fn reachable_leader(&mut self, key: &Key) -> Option<NodeId> {
        let Some(node) = self.view.leader_node(&key.0, key.1) else {
            self.refresh.want();
            return None;
        };
        self.links.ensure(self.now, Peer::Node(node), &self.view, &mut self.network).then_some(node)
    }

    pub(super) fn pend(&mut self, key: &Key) -> Serial {
        let serial = Serial(self.next_serial);
        self.next_serial += 1;
        let assigned = self.assigned.get_mut(key).expect("only assigned partitions ask");
        assigned.pending = Some(serial);
        serial
    }
}

fn milliseconds(duration: Duration) -> i32 {
    i32::try_from(duration.as_millis()).unwrap_or(i32::MAX)
}
