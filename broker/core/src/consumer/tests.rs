//! The consumer against a model of one partition: single rules by hand, order and completeness by random walks.

use std::collections::BTreeMap;
use std::time::Duration;

use acked_wire::api::fetch::{FetchRequest, FetchResponse, FetchableTopicResponse, PartitionData};
use acked_wire::api::list_offsets::{
    ListOffsetsPartitionResponse, ListOffsetsResponse, ListOffsetsTopicResponse,
};
use acked_wire::api::metadata::{
    MetadataResponse, MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use acked_wire::api::offset_for_leader_epoch::{
    EpochEndOffset, OffsetForLeaderEpochResponse, OffsetForLeaderTopicResult,
};
use acked_wire::batch::BatchBuilder;
use acked_wire::{RequestBody, ResponseBody, Str, Uuid, error_code};
use bytes::BytesMut;
use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::{Consumer, ConsumerEffect, ConsumerInput, Event, OffsetEnd, Polled, Start};
use crate::client::{ConnectionId, NetworkEffect, NetworkInput};
use crate::settings::{ConsumerSettings, OffsetReset};
use crate::{Output, Time};

const MS: Duration = Duration::from_millis(1);
const TOPIC: Uuid = Uuid([7; 16]);

/// One partition: the leader epoch of each record, by offset. A record's value is its offset.
#[derive(Debug)]
struct Log {
    leader: i32,
    leader_epoch: i32,
    epochs: Vec<i32>,
    /// It answers as if it had no epoch that is asked for.
    forgets_epochs: bool,
}

impl Log {
    fn append(&mut self, count: usize) {
        self.epochs.extend(std::iter::repeat_n(self.leader_epoch, count));
    }

    fn elect(&mut self, leader: i32) {
        self.leader = leader;
        self.leader_epoch += 1;
    }

    fn serve(&self, node: i32, request: &RequestBody) -> ResponseBody {
        match request {
            RequestBody::Metadata(_) => ResponseBody::Metadata(self.metadata()),
            RequestBody::Fetch(request) => ResponseBody::Fetch(self.fetch(node, request)),
            RequestBody::ListOffsets(request) => {
                let asked = &request.topics[0].partitions[0];
                let offset = match asked.timestamp {
                    -2 => 0,
                    -1 => self.epochs.len() as i64,
                    // A record's timestamp is its offset.
                    time if time < self.epochs.len() as i64 => time,
                    _ => -1,
                };
                let partition = match self.refusal(node, asked.current_leader_epoch) {
                    Some(error_code) => ListOffsetsPartitionResponse { error_code, ..Default::default() },
                    None => ListOffsetsPartitionResponse { offset, ..Default::default() },
                };
                ResponseBody::ListOffsets(ListOffsetsResponse {
                    topics: vec![ListOffsetsTopicResponse {
                        name: Str::from("t"),
                        partitions: vec![partition],
                        ..Default::default()
                    }],
                    ..Default::default()
                })
            }
            RequestBody::OffsetForLeaderEpoch(request) => {
                let asked = &request.topics[0].partitions[0];
                let partition = match self.refusal(node, asked.current_leader_epoch) {
                    Some(error_code) => EpochEndOffset { error_code, ..Default::default() },
                    None => self.epoch_end(asked.leader_epoch),
                };
                ResponseBody::OffsetForLeaderEpoch(OffsetForLeaderEpochResponse {
                    topics: vec![OffsetForLeaderTopicResult {
                        topic: Str::from("t"),
                        partitions: vec![partition],
                        ..Default::default()
                    }],
                    ..Default::default()
                })
            }
            other => panic!("a consumer does not ask {:?}", other.key()),
        }
    }

    /// The newest epoch up to the asked one, and where its last record ends.
    fn epoch_end(&self, asked: i32) -> EpochEndOffset {
        if self.forgets_epochs {
            return EpochEndOffset::default();
        }
        let last = self.epochs.iter().rposition(|epoch| *epoch <= asked);
        let (leader_epoch, end_offset) = match last {
            Some(last) => (self.epochs[last], last as i64 + 1),
            None => (asked, 0),
        };
        EpochEndOffset { leader_epoch, end_offset, ..Default::default() }
    }

    fn metadata(&self) -> MetadataResponse {
        let broker = |node_id: i32| MetadataResponseBroker {
            node_id,
            host: Str::from(node_id.to_string()),
            port: 1,
            ..Default::default()
        };
        let partition = MetadataResponsePartition {
            leader_id: self.leader,
            leader_epoch: self.leader_epoch,
            ..Default::default()
        };
        let topic = MetadataResponseTopic {
            name: Some(Str::from("t")),
            topic_id: TOPIC,
            partitions: vec![partition],
            ..Default::default()
        };
        MetadataResponse { brokers: vec![broker(1), broker(2)], topics: vec![topic], ..Default::default() }
    }

    fn refusal(&self, node: i32, epoch: i32) -> Option<i16> {
        match epoch.cmp(&self.leader_epoch) {
            std::cmp::Ordering::Less => Some(error_code::FENCED_LEADER_EPOCH),
            std::cmp::Ordering::Greater => Some(error_code::UNKNOWN_LEADER_EPOCH),
            std::cmp::Ordering::Equal if node != self.leader => Some(error_code::NOT_LEADER_OR_FOLLOWER),
            std::cmp::Ordering::Equal => None,
        }
    }

    fn fetch(&self, node: i32, request: &FetchRequest) -> FetchResponse {
        let asked = &request.topics[0].partitions[0];
        let mut answer = PartitionData::default();
        if let Some(code) = self.refusal(node, asked.current_leader_epoch) {
            answer.error_code = code;
        } else if asked.fetch_offset > self.epochs.len() as i64 {
            answer.error_code = error_code::OFFSET_OUT_OF_RANGE;
        } else {
            let mut bytes = BytesMut::new();
            for offset in asked.fetch_offset..(self.epochs.len() as i64).min(asked.fetch_offset + 3) {
                let epoch = self.epochs[offset as usize];
                let mut batch = BatchBuilder::new(0).base_offset(offset).leader_epoch(epoch);
                batch.push(0, None, Some(&offset.to_be_bytes()), &[]);
                bytes.extend_from_slice(&batch.build());
            }
            answer.records = Some(bytes.freeze());
        }
        FetchResponse {
            responses: vec![FetchableTopicResponse {
                topic_id: TOPIC,
                partitions: vec![answer],
                ..Default::default()
            }],
            ..Default::default()
        }
    }
}

struct World {
    now: Time,
    consumer: Consumer,
    log: Log,
    /// Node and unanswered requests of each connection that is up.
    wires: BTreeMap<ConnectionId, (i32, Vec<(i32, RequestBody)>)>,
    connecting: Vec<(ConnectionId, i32)>,
    /// Questions where an epoch ends.
    validations: usize,
    wall_clock_ms: i64,
    polled: Vec<Polled>,
    listed: Vec<Result<i64, i16>>,
}

fn world(reset: OffsetReset) -> World {
    let settings = ConsumerSettings {
        auto_offset_reset: reset,
        retry_backoff: 10 * MS,
        retry_backoff_max: 100 * MS,
        reconnect_backoff: 10 * MS,
        reconnect_backoff_max: 100 * MS,
        ..ConsumerSettings::default()
    };
    let bootstrap = vec![("1".to_string(), 1)];
    World {
        now: Time::ZERO,
        consumer: Consumer::new(settings, bootstrap, ChaCha8Rng::seed_from_u64(1)),
        log: Log { leader: 1, leader_epoch: 0, epochs: Vec::new(), forgets_epochs: false },
        validations: 0,
        wires: BTreeMap::new(),
        connecting: Vec::new(),
        wall_clock_ms: 0,
        polled: Vec::new(),
        listed: Vec::new(),
    }
}

impl World {
    fn tell(&mut self, input: ConsumerInput) {
        let mut out = Output::default();
        self.consumer.handle(self.now, input, &mut out);
        for effect in out.effects {
            match effect {
                ConsumerEffect::Polled { polled, .. } => self.polled.push(polled),
                ConsumerEffect::Listed { offset, .. } => self.listed.push(offset),
                ConsumerEffect::Network(NetworkEffect::Connect { connection, host, .. }) => {
                    self.connecting.push((connection, host.parse().expect("a node")));
                }
                ConsumerEffect::Network(NetworkEffect::Disconnect { connection }) => {
                    self.wires.remove(&connection);
                }
                ConsumerEffect::Network(NetworkEffect::Send { connection, correlation, body, .. }) => {
                    let (_, requests) = self.wires.get_mut(&connection).expect("the connection is up");
                    requests.push((correlation, body));
                }
            }
        }
    }

    fn assign(&mut self, start: Start) {
        self.tell(ConsumerInput::Assign { topic: "t".into(), partition: 0, start });
    }

    fn start_poll(&mut self, max_wait: Duration) {
        self.tell(ConsumerInput::Poll { poll: 1, max_wait, wall_clock_ms: self.wall_clock_ms });
    }

    /// Connects what connects and answers one request; false when there is nothing to do.
    fn step(&mut self) -> bool {
        if let Some((connection, node)) = self.connecting.pop() {
            self.wires.insert(connection, (node, Vec::new()));
            self.tell(ConsumerInput::Network(NetworkInput::Connected { connection }));
            return true;
        }
        let busy = self.wires.iter_mut().find(|(_, (_, requests))| !requests.is_empty());
        let Some((&connection, (node, requests))) = busy else { return false };
        let node = *node;
        let (correlation, request) = requests.remove(0);
        self.validations += usize::from(matches!(request, RequestBody::OffsetForLeaderEpoch(_)));
        let body = self.log.serve(node, &request);
        self.tell(ConsumerInput::Network(NetworkInput::Answer { connection, correlation, body }));
        true
    }

    fn break_wires(&mut self) {
        for connection in std::mem::take(&mut self.wires).into_keys() {
            self.tell(ConsumerInput::Network(NetworkInput::Disconnected { connection }));
        }
    }

    /// What the poll gives, with as much time as it takes.
    fn poll(&mut self, max_wait: Duration) -> Polled {
        self.start_poll(max_wait);
        self.wait_for_poll()
    }

    fn wait_for_poll(&mut self) -> Polled {
        for _ in 0..3000 {
            if let Some(polled) = self.polled.pop() {
                return polled;
            }
            // The model does not let fetches wait, so the clock has to move for polls to end.
            self.now += MS / 2;
            if !self.step() {
                self.now = self.consumer.next_deadline().expect("a poll has a deadline");
                self.tell(ConsumerInput::Tick);
            }
        }
        panic!("a poll ends");
    }

    fn offsets(&mut self) -> Vec<i64> {
        self.poll(1000 * MS).records.iter().map(|record| record.offset).collect()
    }
}

#[test]
fn records_come_in_order_from_the_first_on() {
    let mut world = world(OffsetReset::Latest);
    world.log.append(5);
    world.assign(Start::Earliest);
    assert_eq!(world.offsets(), [0, 1, 2]);
    assert_eq!(world.consumer.position(&"t".into(), 0), Some(3));
    assert_eq!(world.offsets(), [3, 4]);
}

#[test]
fn latest_starts_behind_what_is_there() {
    let mut world = world(OffsetReset::Earliest);
    world.log.append(5);
    world.assign(Start::Latest);
    world.start_poll(10 * MS);
    assert!(world.wait_for_poll().records.is_empty());
    world.log.append(1);
    assert_eq!(world.offsets(), [5]);
}

#[test]
fn poll_without_records_ends_in_time() {
    let mut world = world(OffsetReset::Earliest);
    world.assign(Start::Earliest);
    assert_eq!(world.poll(5 * MS), Polled::default());
    assert!(world.now <= 6 * MS);
}

#[test]
fn new_leader_is_found_by_the_fenced_epoch() {
    let mut world = world(OffsetReset::None);
    world.log.append(2);
    world.assign(Start::Earliest);
    assert_eq!(world.offsets(), [0, 1]);
    world.log.elect(2);
    world.log.append(2);
    let polled = world.poll(1000 * MS);
    let read: Vec<_> = polled.records.iter().map(|record| (record.offset, record.leader_epoch)).collect();
    assert_eq!((read, polled.events), (vec![(2, 1), (3, 1)], vec![]));
}

/// Two records of epoch 1 were read, and are gone in epoch 2.
fn truncated(reset: OffsetReset) -> World {
    let mut world = world(reset);
    world.log.append(2);
    world.log.elect(2);
    world.log.append(2);
    world.assign(Start::Earliest);
    assert_eq!(world.offsets(), [0, 1, 2]);
    assert_eq!(world.offsets(), [3]);
    world.log.epochs.truncate(2);
    world.log.elect(1);
    world.log.append(3);
    world
}

#[test]
fn truncation_is_reported_and_reading_goes_on_where_the_logs_part() {
    let mut world = truncated(OffsetReset::Earliest);
    let polled = world.poll(1000 * MS);
    let event = Event::Truncated {
        topic: "t".into(),
        partition: 0,
        offset: 4,
        leader_epoch: 1,
        diverges_at: Some((2, 0)),
        resets: true,
    };
    assert_eq!((polled.records, polled.events), (vec![], vec![event]));
    assert_eq!(world.offsets(), [2, 3, 4]);
}

#[test]
fn truncation_without_a_reset_policy_waits_for_a_seek() {
    let mut world = truncated(OffsetReset::None);
    let polled = world.poll(1000 * MS);
    assert!(matches!(polled.events[..], [Event::Truncated { diverges_at: Some((2, 0)), resets: false, .. }]));
    assert_eq!(world.poll(100 * MS), Polled::default());
    world.assign(Start::At { offset: 2, leader_epoch: Some(0) });
    assert_eq!(world.offsets(), [2, 3, 4]);
}

#[test]
fn longer_branch_is_no_continuation_of_the_one_that_was_read() {
    let mut world = world(OffsetReset::Latest);
    world.log.append(2);
    world.log.elect(2);
    world.log.append(1);
    world.assign(Start::Earliest);
    assert_eq!(world.offsets(), [0, 1, 2]);
    // The next leader has none of epoch 1, and more of epoch 0 than was read of it.
    world.log.epochs = vec![0; 6];
    world.log.elect(1);
    let polled = world.poll(1000 * MS);
    assert!(matches!(polled.events[..], [Event::Truncated { offset: 3, diverges_at: Some((2, 0)), .. }]));
    assert_eq!(world.offsets(), [2, 3, 4]);
}

#[test]
fn leader_that_knows_no_such_epoch_is_asked_where_to_go() {
    let mut world = truncated(OffsetReset::Latest);
    world.log.forgets_epochs = true;
    let polled = world.poll(1000 * MS);
    assert!(matches!(polled.events[..], [Event::Truncated { diverges_at: None, resets: true, .. }]));
    world.log.forgets_epochs = false;
    let polled = world.poll(1000 * MS);
    assert!(matches!(polled.events[..], [Event::Reset { from: 4, offset: 5, .. }]));
    world.log.append(1);
    assert_eq!(world.offsets(), [5]);
}

#[test]
fn same_leader_epoch_is_validated_once() {
    let mut world = world(OffsetReset::None);
    world.log.append(9);
    world.assign(Start::At { offset: 1, leader_epoch: Some(0) });
    for expected in [[1, 2, 3], [4, 5, 6]] {
        assert_eq!(world.offsets(), expected);
    }
    assert_eq!(world.validations, 1);
    world.log.elect(2);
    assert_eq!(world.offsets(), [7, 8]);
    assert_eq!(world.validations, 2);
}

#[test]
fn reset_by_duration_goes_to_the_first_record_young_enough_or_to_the_end() {
    for (now_ms, expected) in [(12, 2), (2, 0), (100, 5)] {
        let mut world = world(OffsetReset::ByDuration(10 * MS));
        world.wall_clock_ms = now_ms;
        world.log.append(5);
        world.assign(Start::At { offset: 9, leader_epoch: None });
        // Time does not pass while the leader is asked.
        world.start_poll(1000 * MS);
        while world.step() {}
        world.start_poll(1000 * MS);
        while world.step() {}
        let events: Vec<Event> = world.polled.drain(..).flat_map(|polled| polled.events).collect();
        let reset = events.iter().find_map(|event| match event {
            Event::Reset { from: 9, offset, .. } => Some(*offset),
            _ => None,
        });
        assert_eq!(reset, Some(expected), "at {now_ms} ms: {events:?}");
    }
}

#[test]
fn position_out_of_range_is_reported_and_reset_by_policy() {
    let mut world = world(OffsetReset::Earliest);
    world.log.append(1);
    world.assign(Start::At { offset: 9, leader_epoch: None });
    let polled = world.poll(1000 * MS);
    assert!(matches!(polled.events[..], [Event::OutOfRange { offset: 9, resets: true, .. }]));
    let polled = world.poll(1000 * MS);
    assert!(matches!(polled.events[..], [Event::Reset { from: 9, offset: 0, .. }]));
    assert_eq!(world.offsets(), [0]);
}

#[test]
fn position_out_of_range_without_policy_waits_for_a_seek() {
    let mut world = world(OffsetReset::None);
    world.log.append(1);
    world.assign(Start::At { offset: 9, leader_epoch: None });
    let polled = world.poll(1000 * MS);
    assert!(matches!(polled.events[..], [Event::OutOfRange { resets: false, .. }]));
    assert_eq!(world.poll(100 * MS), Polled::default());
}

#[test]
fn answer_to_a_fetch_before_a_seek_is_forgotten() {
    let mut world = world(OffsetReset::None);
    world.log.append(6);
    world.assign(Start::At { offset: 0, leader_epoch: None });
    world.start_poll(1000 * MS);
    let fetches = |world: &World| {
        let requests = world.wires.values().flat_map(|(_, requests)| requests);
        requests.filter(|(_, body)| matches!(body, RequestBody::Fetch(_))).count()
    };
    while fetches(&world) == 0 {
        assert!(world.step());
    }
    world.assign(Start::At { offset: 4, leader_epoch: None });
    let offsets: Vec<i64> = world.wait_for_poll().records.iter().map(|record| record.offset).collect();
    assert_eq!(offsets, [4, 5]);
}

#[test]
fn offsets_are_listed_without_assignment_or_given_up_in_time() {
    let mut world = world(OffsetReset::None);
    world.log.append(6);
    let ask = |question, end| ConsumerInput::ListOffset {
        question,
        topic: "t".into(),
        partition: 0,
        end,
        max_wait: 100 * MS,
    };
    world.tell(ask(1, OffsetEnd::Last));
    while world.step() {}
    world.tell(ask(2, OffsetEnd::First));
    while world.step() {}
    assert_eq!(world.listed, [Ok(6), Ok(0)]);
    world.tell(ask(3, OffsetEnd::Last));
    world.now += 100 * MS;
    world.tell(ConsumerInput::Tick);
    assert_eq!(world.listed[2], Err(error_code::REQUEST_TIMED_OUT));
}

#[derive(Clone, Copy, Debug)]
enum Move {
    Append(usize),
    Elect(i32),
    Break,
    Poll,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn every_record_is_read_once_and_in_order(moves in prop::collection::vec(prop_oneof![
        (1..8_usize).prop_map(Move::Append),
        (1..3_i32).prop_map(Move::Elect),
        Just(Move::Break),
        Just(Move::Poll),
    ], 0..60)) {
        let mut world = world(OffsetReset::None);
        world.assign(Start::Earliest);
        let mut read = Vec::new();
        for next in moves {
            match next {
                Move::Append(count) => world.log.append(count),
                Move::Elect(leader) => world.log.elect(leader),
                Move::Break => world.break_wires(),
                Move::Poll => read.extend(world.poll(20 * MS).records),
            }
        }
        while read.len() < world.log.epochs.len() {
            read.extend(world.poll(1000 * MS).records);
        }
        for (offset, (record, epoch)) in read.iter().zip(&world.log.epochs).enumerate() {
            prop_assert_eq!((record.offset, record.leader_epoch), (offset as i64, *epoch));
        }
        prop_assert_eq!(read.len(), world.log.epochs.len());
    }
}

#[derive(Clone, Copy, Debug)]
enum Fork {
    Append(usize),
    /// A leader takes over that has so many records less of the log, and then so many of an epoch that it alone knows.
    Elect(usize, usize),
    Poll,
}

/// Appends to the model's log and to what is known of each of its records.
fn append(world: &mut World, branch: &mut Vec<u64>, count: usize, written: &mut u64) {
    world.log.append(count);
    for _ in 0..count {
        *written += 1;
        branch.push(*written);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// V20 on the model "every record ever written has a number of its own": what a reader holds is always a prefix of
    /// one log, but between a switch of branches and its being told.
    #[test]
    fn no_reader_switches_branches_without_being_told(moves in prop::collection::vec(prop_oneof![
        (1..5_usize).prop_map(Fork::Append),
        (0..6_usize, 0..4_usize).prop_map(|(less, own)| Fork::Elect(less, own)),
        Just(Fork::Poll),
        Just(Fork::Poll),
    ], 0..60)) {
        let mut world = world(OffsetReset::Earliest);
        world.assign(Start::Earliest);
        // The number of each record of the log, and of each record that the reader holds.
        let (mut branch, mut read): (Vec<u64>, Vec<u64>) = (Vec::new(), Vec::new());
        let mut written = 0;
        for next in moves {
            match next {
                Fork::Append(count) => append(&mut world, &mut branch, count, &mut written),
                Fork::Elect(less, own) => {
                    let kept = branch.len().saturating_sub(less);
                    world.log.epochs.truncate(kept);
                    branch.truncate(kept);
                    // An epoch in which it led, and which nobody else saw.
                    world.log.elect(1);
                    append(&mut world, &mut branch, own, &mut written);
                    let leader = 1 + world.log.leader_epoch % 2;
                    world.log.elect(leader);
                }
                Fork::Poll => {
                    let polled = world.poll(20 * MS);
                    let is_told = polled != Polled::default();
                    for event in polled.events {
                        let Event::Truncated { offset, diverges_at, resets: true, .. } = event else {
                            return Err(TestCaseError::fail(format!("{event:?}")));
                        };
                        prop_assert_eq!(offset, read.len() as i64);
                        let shared = read.iter().zip(&branch).take_while(|(one, other)| one == other).count();
                        prop_assert_eq!(diverges_at.map(|(end, _)| end), Some(shared as i64));
                        read.truncate(shared);
                    }
                    for record in polled.records {
                        prop_assert_eq!(record.offset, read.len() as i64);
                        read.push(branch[read.len()]);
                    }
                    if is_told {
                        let is_prefix = read.len() <= branch.len() && read[..] == branch[..read.len()];
                        prop_assert!(is_prefix, "{read:?} of {branch:?}");
                    }
                }
            }
        }
    }
}
