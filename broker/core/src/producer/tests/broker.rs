//! A short model of a cluster whose elections are clean: each partition is one log, and whoever leads appends to it.

use std::collections::{BTreeMap, VecDeque};

use acked_wire::api::init_producer_id::InitProducerIdResponse;
use acked_wire::api::metadata::{
    MetadataResponse, MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use acked_wire::api::produce::{
    PartitionProduceData, PartitionProduceResponse, ProduceRequest, ProduceResponse, TopicProduceResponse,
};
use acked_wire::batch::BatchView;
use acked_wire::{RequestBody, ResponseBody, Str, Uuid, error_code};

pub const TOPIC: Uuid = Uuid([7; 16]);

/// Batches that a leader remembers of each producer.
const WINDOW: usize = 5;

/// What goes wrong while a produce request is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    None,
    /// NOT_ENOUGH_REPLICAS, nothing appended.
    Refuse,
    /// NOT_ENOUGH_REPLICAS_AFTER_APPEND.
    AppendAndFail,
    /// MESSAGE_TOO_LARGE: no retry helps.
    RefuseForGood,
}

#[derive(Debug, Default)]
struct KnownProducer {
    epoch: i16,
    /// First and last sequence, base offset; oldest first.
    window: VecDeque<(i32, i32, i64)>,
}

#[derive(Debug, Default)]
pub struct Log {
    pub leader: i32,
    pub leader_epoch: i32,
    /// Values of the records, by offset.
    pub records: Vec<u64>,
    producers: BTreeMap<i64, KnownProducer>,
}

#[derive(Debug)]
pub struct Cluster {
    pub brokers: i32,
    pub logs: Vec<Log>,
    next_producer: i64,
}

impl Cluster {
    pub fn new(brokers: i32, partitions: usize) -> Cluster {
        let log = |index: usize| Log { leader: 1 + index as i32 % brokers, ..Log::default() };
        Cluster { brokers, logs: (0..partitions).map(log).collect(), next_producer: 1000 }
    }

    pub fn move_leader(&mut self, partition: usize) {
        let log = &mut self.logs[partition];
        log.leader = log.leader % self.brokers + 1;
        log.leader_epoch += 1;
    }

    /// The leaders forget what they know of every producer, as after losing it by a permitted loss.
    pub fn forget_producers(&mut self) {
        for log in &mut self.logs {
            for known in log.producers.values_mut() {
                known.window = VecDeque::from([(1_000_000, 1_000_000, 0)]);
            }
        }
    }

    /// What broker `node` answers; `None` with acks=0.
    pub fn serve(&mut self, node: i32, request: &RequestBody, trouble: Trouble) -> Option<ResponseBody> {
        match request {
            RequestBody::Metadata(_) => Some(ResponseBody::Metadata(self.metadata())),
            RequestBody::InitProducerId(_) => {
                self.next_producer += 1;
                Some(ResponseBody::InitProducerId(InitProducerIdResponse {
                    producer_id: self.next_producer,
                    producer_epoch: 0,
                    ..Default::default()
                }))
            }
            RequestBody::Produce(request) => {
                let answer = ResponseBody::Produce(self.produce(node, request, trouble));
                (request.acks != 0).then_some(answer)
            }
            other => panic!("a producer does not ask {:?}", other.key()),
        }
    }

    fn metadata(&self) -> MetadataResponse {
        MetadataResponse {
            brokers: (1..=self.brokers)
                .map(|node_id| MetadataResponseBroker {
                    node_id,
                    host: Str::from(node_id.to_string()),
                    port: 1,
                    ..Default::default()
                })
                .collect(),
            topics: vec![MetadataResponseTopic {
                name: Some(Str::from("t")),
                topic_id: TOPIC,
                partitions: (0..)
                    .zip(&self.logs)
                    .map(|(partition_index, log)| MetadataResponsePartition {
                        partition_index,
                        leader_id: log.leader,
                        leader_epoch: log.leader_epoch,
                        ..Default::default()
                    })
                    .collect(),
                ..Default::default()
            }],
            ..Default::default()
        }
    }

    fn produce(&mut self, node: i32, request: &ProduceRequest, trouble: Trouble) -> ProduceResponse {
        let topics = request.topic_data.iter().map(|topic| {
            assert_eq!(topic.topic_id, TOPIC, "the producer learned the topic's id");
            let parts = topic.partition_data.iter();
            let partition_responses = parts.map(|part| self.append(node, part, trouble)).collect();
            TopicProduceResponse { topic_id: TOPIC, partition_responses, ..Default::default() }
        });
        ProduceResponse { responses: topics.collect(), ..Default::default() }
    }

    fn append(
        &mut self,
        node: i32,
        part: &PartitionProduceData,
        trouble: Trouble,
    ) -> PartitionProduceResponse {
        let log = &mut self.logs[part.index as usize];
        let records = part.records.as_ref().expect("a producer sends records");
        let batch = BatchView::only(records).expect("one whole batch");
        batch.validate().expect("a good batch");
        let outcome = if log.leader != node {
            Err(error_code::NOT_LEADER_OR_FOLLOWER)
        } else {
            match trouble {
                Trouble::Refuse => Err(error_code::NOT_ENOUGH_REPLICAS),
                Trouble::RefuseForGood => Err(error_code::MESSAGE_TOO_LARGE),
                Trouble::None => log.take_in(&batch),
                Trouble::AppendAndFail => {
                    log.take_in(&batch).and(Err(error_code::NOT_ENOUGH_REPLICAS_AFTER_APPEND))
                }
            }
        };
        PartitionProduceResponse {
            index: part.index,
            error_code: outcome.err().unwrap_or(error_code::NONE),
            base_offset: outcome.unwrap_or(-1),
            ..Default::default()
        }
    }
}

impl Log {
    /// The base offset, or why not (kafka-clients' view of `ProducerStateManager`).
    fn take_in(&mut self, batch: &BatchView<'_>) -> Result<i64, i16> {
        let header = batch.header;
        if header.has_producer_id() {
            let (first, last) = (header.base_sequence, header.last_sequence());
            match self.producers.get(&header.producer_id) {
                None => {}
                Some(known) if header.producer_epoch < known.epoch => {
                    return Err(error_code::INVALID_PRODUCER_EPOCH);
                }
                Some(known) if header.producer_epoch > known.epoch && first != 0 => {
                    return Err(error_code::OUT_OF_ORDER_SEQUENCE_NUMBER);
                }
                Some(known) if header.producer_epoch > known.epoch => {}
                Some(known) => {
                    let same = |(a, b, _): &&(i32, i32, i64)| (*a, *b) == (first, last);
                    if let Some((_, _, offset)) = known.window.iter().find(same) {
                        return Ok(*offset);
                    }
                    let (_, newest, _) = known.window.back().expect("a known producer has appended");
                    if first != newest.wrapping_add(1) & i32::MAX {
                        return Err(error_code::OUT_OF_ORDER_SEQUENCE_NUMBER);
                    }
                }
            }
            let offset = self.records.len() as i64;
            let known = self.producers.entry(header.producer_id).or_default();
            if known.epoch != header.producer_epoch {
                *known = KnownProducer { epoch: header.producer_epoch, ..Default::default() };
            }
            known.window.push_back((first, last, offset));
            while known.window.len() > WINDOW {
                known.window.pop_front();
            }
        }
        let base_offset = self.records.len() as i64;
        for record in batch.records().expect("not compressed") {
            let value = record.expect("a good record").value.expect("a value");
            self.records.push(u64::from_be_bytes(value.try_into().expect("a number")));
        }
        Ok(base_offset)
    }
}
