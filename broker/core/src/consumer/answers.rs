//! What an answer, or the loss of one, means for the partitions and questions that it is about.

use acked_wire::api::fetch::{FetchResponse, PartitionData};
use acked_wire::api::list_offsets::ListOffsetsResponse;
use acked_wire::api::metadata::MetadataResponse;
use acked_wire::{ResponseBody, Uuid, error_code};

use super::Event;
use super::assigned::{Position, Serial};
use super::machine::{Asked, Consumer, ConsumerEffect, Fetching, Key, Listing, Purpose};
use super::records::{Reading, read};
use crate::client::{ClusterView, LinkEvent};
use crate::settings::{IsolationLevel, OffsetReset};
use crate::{NodeId, Output};

impl Consumer {
    pub(super) fn on_link(&mut self, event: LinkEvent<Asked>, out: &mut Output<ConsumerEffect>) {
        match event {
            LinkEvent::Stale | LinkEvent::Up(_) | LinkEvent::Written { .. } => {}
            LinkEvent::Down { lost, .. } => {
                self.counters.disconnects += 1;
                self.refresh.want();
                for asked in lost {
                    self.on_failed(asked, error_code::NETWORK_EXCEPTION, out);
                }
            }
            LinkEvent::Unsupported { what, .. } => {
                self.on_failed(what, error_code::UNSUPPORTED_VERSION, out);
            }
            LinkEvent::Answer { what, body, .. } => match (what, body) {
                (Asked::Metadata, ResponseBody::Metadata(answer)) => self.on_metadata(&answer, out),
                (Asked::Fetch { node, partitions }, ResponseBody::Fetch(answer)) => {
                    self.on_fetched(node, partitions, answer, out);
                }
                (Asked::Offsets(listings), ResponseBody::ListOffsets(answer)) => {
                    self.on_listed(listings, &answer, out);
                }
                // An answer to something else than was asked is as good as none.
                (asked, _) => self.on_failed(asked, error_code::NETWORK_EXCEPTION, out),
            },
        }
    }

    pub(super) fn on_failed(&mut self, asked: Asked, code: i16, out: &mut Output<ConsumerEffect>) {
        match asked {
            Asked::Metadata => self.refresh.failed(self.now, &mut self.rng),
            Asked::Fetch { node, partitions } => {
                self.fetching.remove(&node);
                for fetching in partitions {
                    self.on_code(&fetching.key, fetching.serial, code);
                }
            }
            Asked::Offsets(listings) => {
                for listing in listings {
                    self.on_offset(listing, Err(code), out);
                }
            }
        }
    }

    pub(super) fn on_metadata(&mut self, answer: &MetadataResponse, out: &mut Output<ConsumerEffect>) {
        if !self.view.update(answer) {
            self.refresh.failed(self.now, &mut self.rng);
            return;
        }
        self.links.drop_bootstrap(&mut self.network);
        let settled =
            self.keys().all(|(topic, partition)| self.view.leader_node(topic, *partition).is_some());
        self.refresh.answered(self.now, settled, &mut self.rng);
        let hopeless = |view: &ClusterView, key: &Key| {
            let code = view.topic_code(&key.0);
            (code != error_code::NONE && !error_code::retriable(code)).then_some(code)
        };
        for (key, assigned) in self.assigned.iter_mut().filter(|(_, assigned)| !assigned.halted) {
            if let Some(code) = hopeless(&self.view, key) {
                assigned.halted = true;
                assigned.pending = None;
                let (topic, partition) = key.clone();
                self.events.push(Event::Failed { topic, partition, code, halted: true });
            }
        }
        self.questions.retain(|question, asked| {
            let code = hopeless(&self.view, &asked.key);
            if let Some(code) = code {
                out.effect(ConsumerEffect::Listed { question: *question, offset: Err(code) });
            }
            code.is_none()
        });
        self.answer_poll(out);
    }

    pub(super) fn on_fetched(
        &mut self,
        node: NodeId,
        partitions: Vec<Fetching>,
        answer: FetchResponse,
        out: &mut Output<ConsumerEffect>,
    ) {
        assert!(self.fetching.remove(&node), "an answer follows a fetch");
        self.counters.fetches += 1;
        for endpoint in &answer.node_endpoints {
            if let Ok(port) = u16::try_from(endpoint.port) {
                self.view.learn_address(NodeId(endpoint.node_id), &endpoint.host, port);
            }
        }
        for Fetching { key, topic, serial } in partitions {
            let topics = answer.responses.iter().filter(|response| response.topic_id == topic);
            let mut answers = topics.flat_map(|response| &response.partitions);
            match answers.find(|partition| partition.partition_index == key.1) {
                Some(partition) if answer.error_code == error_code::NONE => {
                    self.on_partition(&key, topic, serial, partition);
                }
                _ => self.on_code(&key, serial, answer.error_code),
            }
        }
        self.answer_poll(out);
    }

    /// The leader answered for one partition.
    pub(super) fn on_partition(&mut self, key: &Key, topic: Uuid, serial: Serial, answer: &PartitionData) {
        let leader = answer.current_leader.leader_id;
        if leader >= 0 {
            self.view.learn_leader(topic, key.1, NodeId(leader), answer.current_leader.leader_epoch);
        }
        if answer.error_code != error_code::NONE {
            self.on_code(key, serial, answer.error_code);
            return;
        }
        let Some(assigned) = self.assigned.get_mut(key).filter(|assigned| assigned.pending == Some(serial))
        else {
            return;
        };
        assigned.pending = None;
        let Position::At { offset, leader_epoch } = assigned.position else {
            panic!("a partition is fetched at a position")
        };
        let diverging = &answer.diverging_epoch;
        if diverging.epoch >= 0 || diverging.end_offset >= 0 {
            let (epoch, end_offset) = (diverging.epoch, diverging.end_offset);
            self.on_truncated(key, offset, leader_epoch.unwrap_or(-1), epoch, end_offset);
            return;
        }
        assigned.failures = 0;
        let Some(bytes) = &answer.records else { return };
        let committed_only = self.settings.isolation_level == IsolationLevel::ReadCommitted;
        let aborted = answer.aborted_transactions.as_deref().unwrap_or(&[]);
        let reading = Reading {
            topic: &key.0,
            partition: key.1,
            from: offset,
            check_crcs: self.settings.check_crcs,
            aborted: committed_only.then_some(aborted),
        };
        let read = read(bytes, reading);
        assert!(assigned.records.is_empty(), "nothing is fetched while records wait");
        assigned.records.extend(read.records);
        if let Some((next, epoch)) = read.next {
            assert!(next > offset, "reading moves forward");
            assigned.position =
                Position::At { offset: next, leader_epoch: Some(epoch).filter(|epoch| *epoch >= 0) };
        }
        if let Some(code) = read.failure {
            // The batch may be whole on another try, or on the next leader. What is compressed stays so.
            let halted = code == error_code::UNSUPPORTED_COMPRESSION_TYPE;
            self.back_off(key, code, Some(halted));
        }
    }

    /// The leader's log is not the one that was read.
    pub(super) fn on_truncated(
        &mut self,
        key: &Key,
        offset: i64,
        leader_epoch: i32,
        epoch: i32,
        end_offset: i64,
    ) {
        self.counters.truncations += 1;
        let resets = self.settings.auto_offset_reset != OffsetReset::None;
        let common = end_offset.clamp(0, offset);
        let assigned = self.assigned.get_mut(key).expect("the partition was just found");
        if resets {
            let leader_epoch = Some(epoch).filter(|epoch| *epoch >= 0);
            assigned.position = Position::At { offset: common, leader_epoch };
        } else {
            assigned.halted = true;
        }
        let (topic, partition) = key.clone();
        let resumes_at = resets.then_some(common);
        self.events.push(Event::Truncated { topic, partition, offset, leader_epoch, end_offset, resumes_at });
    }

    /// A fetch brought an error instead of records.
    pub(super) fn on_code(&mut self, key: &Key, serial: Serial, code: i16) {
        *self.counters.errors.entry(code).or_insert(0) += 1;
        let Some(assigned) = self.assigned.get_mut(key).filter(|assigned| assigned.pending == Some(serial))
        else {
            return;
        };
        assigned.pending = None;
        if let (error_code::OFFSET_OUT_OF_RANGE, Position::At { offset, .. }) = (code, assigned.position) {
            self.on_out_of_range(key, offset);
        } else if error_code::retriable(code) || code == error_code::NONE {
            self.back_off(key, code, None);
        } else {
            // A broker in trouble may recover, or its leadership move.
            let halted = code != error_code::UNKNOWN_SERVER_ERROR;
            self.back_off(key, code, Some(halted));
        }
    }

    pub(super) fn on_out_of_range(&mut self, key: &Key, offset: i64) {
        let assigned = self.assigned.get_mut(key).expect("the partition was just found");
        let resets = match self.settings.auto_offset_reset {
            OffsetReset::Earliest => {
                assigned.position = Position::Earliest;
                true
            }
            OffsetReset::Latest => {
                assigned.position = Position::Latest;
                true
            }
            OffsetReset::None => {
                assigned.halted = true;
                false
            }
        };
        assigned.given_up = resets.then_some(offset);
        let (topic, partition) = key.clone();
        self.events.push(Event::OutOfRange { topic, partition, offset, resets });
    }

    /// Asks again later, of a leader known anew; or not at all. `reported` says whether, and with which `halted`, the
    /// application hears of it.
    pub(super) fn back_off(&mut self, key: &Key, code: i16, reported: Option<bool>) {
        self.refresh.want();
        let assigned = self.assigned.get_mut(key).expect("the partition was just found");
        assigned.failures = assigned.failures.saturating_add(1);
        assigned.retry_at = self.now.saturating_add(self.retry.delay(assigned.failures, &mut self.rng));
        if let Some(halted) = reported {
            assigned.halted = halted;
            let (topic, partition) = key.clone();
            self.events.push(Event::Failed { topic, partition, code, halted });
        }
    }

    pub(super) fn on_listed(
        &mut self,
        listings: Vec<Listing>,
        answer: &ListOffsetsResponse,
        out: &mut Output<ConsumerEffect>,
    ) {
        for listing in listings {
            let topics = answer.topics.iter().filter(|topic| topic.name == *listing.key.0);
            let mut answers = topics.flat_map(|topic| &topic.partitions);
            let offset = match answers.find(|partition| partition.partition_index == listing.key.1) {
                Some(found) if found.error_code != error_code::NONE => Err(found.error_code),
                Some(found) if found.offset >= 0 => Ok(found.offset),
                _ => Err(error_code::NETWORK_EXCEPTION),
            };
            self.on_offset(listing, offset, out);
        }
    }

    pub(super) fn on_offset(
        &mut self,
        listing: Listing,
        offset: Result<i64, i16>,
        out: &mut Output<ConsumerEffect>,
    ) {
        match listing.purpose {
            Purpose::Question(question) => self.on_question(question, offset, out),
            Purpose::Position(serial) => match offset {
                Err(code) => self.on_code(&listing.key, serial, code),
                Ok(offset) => {
                    let assigned = self.assigned.get_mut(&listing.key);
                    if let Some(assigned) = assigned.filter(|assigned| assigned.pending == Some(serial)) {
                        assigned.pending = None;
                        assigned.failures = 0;
                        // Nothing was read yet, so there is no history to compare.
                        assigned.position = Position::At { offset, leader_epoch: None };
                        if let Some(from) = assigned.given_up.take() {
                            let (topic, partition) = listing.key;
                            self.events.push(Event::Reset { topic, partition, from, offset });
                        }
                    }
                }
            },
        }
    }

    pub(super) fn on_question(
        &mut self,
        question: u64,
        offset: Result<i64, i16>,
        out: &mut Output<ConsumerEffect>,
    ) {
        let Some(asked) = self.questions.get_mut(&question) else { return };
        asked.pending = false;
        match offset {
            Err(code) if error_code::retriable(code) => {
                *self.counters.errors.entry(code).or_insert(0) += 1;
                asked.failures = asked.failures.saturating_add(1);
                asked.retry_at = self.now.saturating_add(self.retry.delay(asked.failures, &mut self.rng));
                self.refresh.want();
            }
            offset => {
                self.questions.remove(&question);
                out.effect(ConsumerEffect::Listed { question, offset });
            }
        }
    }
}
