//! A run's history as its clients would have printed it, had they been Kafka's verifiable clients. The value of a
//! record is `CLIENT.N`: the client's number and the number of its send. Judges nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::line::{Line, Range, Tool, TopicPartition};
use crate::History;
use crate::history::{Completion, Partition, Read};

/// What every client of one run printed, by its number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcript {
    pub producers: BTreeMap<u32, Vec<Line>>,
    pub consumers: BTreeMap<u32, Vec<Line>>,
    /// What stands for each content that was sent.
    pub values: BTreeMap<u64, Arc<str>>,
}

impl Transcript {
    /// Of everything in `history`. A content that was never sent shows as its hash.
    pub fn of(history: &History) -> Transcript {
        let mut transcript = Transcript::default();
        let mut topics: BTreeMap<Partition, Arc<str>> = BTreeMap::new();
        let mut topic = |partition: Partition| {
            topics.entry(partition).or_insert_with(|| history.topic_name(partition.topic).into()).clone()
        };
        let mut numbers: BTreeMap<u32, u64> = BTreeMap::new();
        let mut printed: Vec<(u32, Line)> = Vec::with_capacity(history.sends.len());
        for send in &history.sends {
            let number = numbers.entry(send.client).or_default();
            let value: Arc<str> = format!("{}.{number}", send.client).into();
            *number += 1;
            transcript.values.insert(send.content, value.clone());
            let topic = topic(send.partition);
            let tool = match send.completion {
                Completion::Ok => Tool::ProducerSendSuccess {
                    key: None,
                    value,
                    topic,
                    partition: send.partition.index,
                    offset: send.offset.unwrap_or(-1),
                },
                Completion::Fail | Completion::Info => Tool::ProducerSendError {
                    key: None,
                    value,
                    topic,
                    exception: "class org.apache.kafka.common.errors.ApiException".to_owned(),
                    message: None,
                },
                // The client died over it, and printed nothing.
                Completion::Open => continue,
            };
            printed.push((send.client, Line { timestamp: millis(send.completed_us), tool }));
        }
        printed.sort_by_key(|(client, line)| (*client, line.timestamp));
        for (client, number) in &numbers {
            transcript.producers.insert(*client, vec![Line { timestamp: 0, tool: Tool::StartupComplete }]);
            assert!(*number > 0, "a producer has sent something");
        }
        for (client, line) in printed {
            transcript.producers.entry(client).or_default().push(line);
        }
        for (client, lines) in &mut transcript.producers {
            let timestamp = lines.last().map_or(0, |line| line.timestamp);
            let acked = lines.iter().filter(|line| matches!(line.tool, Tool::ProducerSendSuccess { .. }));
            let acked = acked.count() as u64;
            lines.push(Line { timestamp, tool: Tool::ShutdownComplete });
            let sent = numbers[client];
            let avg_throughput = acked as f64 * 1000.0 / timestamp.max(1) as f64;
            let tool = Tool::ToolData { sent, acked, target_throughput: -1, avg_throughput };
            lines.push(Line { timestamp, tool });
        }

        // A position that does not go on where it was is an assignment of its own.
        let mut positions: BTreeMap<(u32, Partition), i64> = BTreeMap::new();
        let mut resets = history.resets.iter().peekable();
        for (number, read) in history.reads.iter().enumerate() {
            while let Some(reset) = resets.next_if(|reset| reset.reads_before <= number) {
                positions.remove(&(reset.client, reset.partition));
            }
            let topic = topic(read.partition);
            let lines = transcript
                .consumers
                .entry(read.client)
                .or_insert_with(|| vec![Line { timestamp: 0, tool: Tool::StartupComplete }]);
            let timestamp = millis(read.at_us);
            let position = positions.insert((read.client, read.partition), read.position);
            let first = read.records.first().map_or(read.position, |(offset, _)| *offset);
            if position.is_none_or(|position| first < position) {
                let partitions =
                    vec![TopicPartition { topic: topic.clone(), partition: read.partition.index }];
                lines.push(Line { timestamp, tool: Tool::PartitionsAssigned { partitions } });
            }
            print_read(read, topic, timestamp, &transcript.values, lines);
        }
        for lines in transcript.consumers.values_mut() {
            let timestamp = lines.last().map_or(0, |line| line.timestamp);
            lines.push(Line { timestamp, tool: Tool::ShutdownComplete });
        }
        transcript
    }
}

fn print_read(
    read: &Read,
    topic: Arc<str>,
    timestamp: i64,
    values: &BTreeMap<u64, Arc<str>>,
    lines: &mut Vec<Line>,
) {
    let partition = read.partition.index;
    for (offset, content) in &read.records {
        let value = values.get(content).cloned().unwrap_or_else(|| format!("{content:016x}").into());
        let tool = Tool::RecordData {
            key: None,
            value: Some(value),
            topic: topic.clone(),
            partition,
            offset: *offset,
        };
        lines.push(Line { timestamp, tool });
    }
    if let (Some((first, _)), Some((last, _))) = (read.records.first(), read.records.last()) {
        let count = read.records.len() as u64;
        let range = Range { topic, partition, count, min_offset: *first, max_offset: *last };
        lines.push(Line { timestamp, tool: Tool::RecordsConsumed { count, partitions: vec![range] } });
    }
}

fn millis(micros: u64) -> i64 {
    i64::try_from(micros / 1000).expect("a run lasts less than 2^63 milliseconds")
}
