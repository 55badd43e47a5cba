//! What an answer, or the loss of one, means for the partitions and questions that it is about.

use acked_wire::api::fetch::{FetchResponse, PartitionData};
use acked_wire::api::list_offsets::ListOffsetsResponse;
use acked_wire::api::metadata::MetadataResponse;
use acked_wire::api::offset_for_leader_epoch::OffsetForLeaderEpochResponse;
use acked_wire::{ResponseBody, Uuid, error_code};

use super::Event;
use super::assigned::{Position, Serial};
use super::machine::{Asked, Consumer, ConsumerEffect, Fetching, Key, Listing, Purpose, Validating};
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
                (Asked::Epochs(asked), ResponseBody::OffsetForLeaderEpoch(answer)) => {
                    self.on_epoch_ends(asked, &answer, out);
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
            Asked::Epochs(asked) => {
                for validating in asked {
                    match code {
                        // As Kafka's consumer with a broker that cannot be asked.
                        error_code::UNSUPPORTED_VERSION => self.on_valid(&validating),
                        code => self.on_code(&validating.key, validating.serial, code),
                    }
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
        let Position::At { offset, .. } = assigned.position else {
            panic!("a partition is fetched at a position")
        };
        let diverging = &answer.diverging_epoch;
        if diverging.epoch >= 0 || diverging.end_offset >= 0 {
            // It was not asked for; a leader that says so and means nothing by it is asked again later.
            if !self.on_epoch_end(key, diverging.epoch, diverging.end_offset) {
                self.back_off(key, error_code::NONE, None);
            }
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
        for record in &read.records {
            assigned.read_epochs.read(record.leader_epoch, record.offset);
        }
        assigned.records.extend(read.records);
        if let Some((next, epoch)) = read.next {
            assert!(next > offset, "reading moves forward");
            assigned.read_epochs.read(epoch, next - 1);
            assigned.position =
                Position::At { offset: next, leader_epoch: Some(epoch).filter(|epoch| *epoch >= 0) };
        }
        if let Some(code) = read.failure {
            // The batch may be whole on another try, or on the next leader. What is compressed stays so.
            let halted = code == error_code::UNSUPPORTED_COMPRESSION_TYPE;
            self.back_off(key, code, Some(halted));
        }
    }

    /// Leaders said where the epochs of positions end in their logs.
    pub(super) fn on_epoch_ends(
        &mut self,
        asked: Vec<Validating>,
        answer: &OffsetForLeaderEpochResponse,
        out: &mut Output<ConsumerEffect>,
    ) {
        for validating in asked {
            let topics = answer.topics.iter().filter(|topic| topic.topic == *validating.key.0);
            let mut answers = topics.flat_map(|topic| &topic.partitions);
            let told = answers.find(|partition| partition.partition == validating.key.1);
            let code = told.map_or(error_code::NETWORK_EXCEPTION, |told| told.error_code);
            let Some(told) = told.filter(|_| code == error_code::NONE) else {
                self.on_code(&validating.key, validating.serial, code);
                continue;
            };
            let (leader_epoch, end_offset) = (told.leader_epoch, told.end_offset);
            let assigned = self.assigned.get_mut(&validating.key);
            if assigned.is_some_and(|assigned| assigned.pending == Some(validating.serial))
                && !self.on_epoch_end(&validating.key, leader_epoch, end_offset)
            {
                self.on_valid(&validating);
            }
        }
        self.answer_poll(out);
    }

    /// The position is one of the leader's log, as far as can be known.
    fn on_valid(&mut self, validating: &Validating) {
        let assigned = self.assigned.get_mut(&validating.key);
        if let Some(assigned) = assigned.filter(|assigned| assigned.pending == Some(validating.serial)) {
            assigned.pending = None;
            assigned.failures = 0;
            assigned.valid_in = Some(validating.leader_epoch);
        }
    }

    /// Of the epochs up to that of the position, the leader's newest is `epoch`, and ends at `end_offset`. Gives whether
    /// something that was read is not in the leader's log; then the application is told.
    pub(super) fn on_epoch_end(&mut self, key: &Key, epoch: i32, end_offset: i64) -> bool {
        let assigned = self.assigned.get_mut(key).expect("the partition was just found");
        let Position::At { offset, leader_epoch } = assigned.position else {
            panic!("only a position is validated")
        };
        let is_known = epoch >= 0 && end_offset >= 0;
        let shared_end = assigned.read_epochs.shared_end(epoch, end_offset);
        if is_known && shared_end >= offset {
            return false;
        }
        self.counters.truncations += 1;
        assigned.pending = None;
        assigned.failures = 0;
        assigned.valid_in = None;
        let diverges_at = is_known.then_some((shared_end, epoch));
        let resets = match diverges_at {
            Some((shared_end, epoch)) if self.settings.auto_offset_reset != OffsetReset::None => {
                assigned.position = Position::At { offset: shared_end, leader_epoch: Some(epoch) };
                assigned.read_epochs.cut(shared_end);
                true
            }
            Some(_) => {
                assigned.halted = true;
                false
            }
            None => self.reset(key, offset),
        };
        let leader_epoch = leader_epoch.unwrap_or(-1);
        let (topic, partition) = key.clone();
        self.events.push(Event::Truncated { topic, partition, offset, leader_epoch, diverges_at, resets });
        true
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
        let resets = self.reset(key, offset);
        let (topic, partition) = key.clone();
        self.events.push(Event::OutOfRange { topic, partition, offset, resets });
    }

    /// Gives a position up and goes where `auto.offset.reset` says; false when it says nothing, and a seek is waited for.
    fn reset(&mut self, key: &Key, offset: i64) -> bool {
        let assigned = self.assigned.get_mut(key).expect("the partition was just found");
        let position = match self.settings.auto_offset_reset {
            OffsetReset::Earliest => Position::Earliest,
            OffsetReset::Latest => Position::Latest,
            OffsetReset::ByDuration(age) => Position::NotOlderThan(age),
            OffsetReset::None => {
                assigned.halted = true;
                return false;
            }
        };
        assigned.position = position;
        assigned.read_epochs = Default::default();
        assigned.given_up = Some(offset);
        true
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
                Some(found) => Ok((found.offset, found.leader_epoch)),
                None => Err(error_code::NETWORK_EXCEPTION),
            };
            self.on_offset(listing, offset, out);
        }
    }

    /// `found` is an offset, -1 when there is none such, and the leader epoch before it, -1 when not known.
    pub(super) fn on_offset(
        &mut self,
        listing: Listing,
        found: Result<(i64, i32), i16>,
        out: &mut Output<ConsumerEffect>,
    ) {
        match (listing.purpose, found) {
            (Purpose::Question(question), Ok((0.., _)) | Err(_)) => {
                self.on_question(question, found.map(|(offset, _)| offset), out);
            }
            (Purpose::Question(question), Ok(_)) => {
                self.on_question(question, Err(error_code::NETWORK_EXCEPTION), out);
            }
            (Purpose::Position(serial), Err(code)) => self.on_code(&listing.key, serial, code),
            (Purpose::Position(serial), Ok((offset, leader_epoch))) => {
                self.on_start(listing.key, serial, offset, leader_epoch);
            }
        }
    }

    /// A leader said where to begin.
    fn on_start(&mut self, key: Key, serial: Serial, offset: i64, leader_epoch: i32) {
        let Some(assigned) = self.assigned.get_mut(&key).filter(|assigned| assigned.pending == Some(serial))
        else {
            return;
        };
        match assigned.position {
            // No record is as young as that: what comes is.
            Position::NotOlderThan(_) if offset < 0 => {
                assigned.pending = None;
                assigned.position = Position::Latest;
                return;
            }
            _ if offset < 0 => return self.on_code(&key, serial, error_code::NETWORK_EXCEPTION),
            _ => {}
        }
        assigned.pending = None;
        assigned.failures = 0;
        let leader_epoch = Some(leader_epoch).filter(|epoch| *epoch >= 0);
        assigned.position = Position::At { offset, leader_epoch };
        assigned.valid_in = None;
        if let Some(from) = assigned.given_up.take() {
            let (topic, partition) = key;
            self.events.push(Event::Reset { topic, partition, from, offset });
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
