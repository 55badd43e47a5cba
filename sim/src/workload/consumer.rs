//! Consumers that read every partition of every topic: while the load runs, and once more from its start at the end.

use std::sync::Arc;
use std::time::Duration;

use acked_client::Consumer;
use acked_core::consumer::{ConsumedRecord, Event, Start};
use acked_core::settings::ConsumerSettings;
use acked_env::Env;

use super::Memory;
use crate::judge::{ClientEvent, ReadPurpose, ResetReason, content_hash};
use crate::plan::TopicPlan;
use crate::runner::recorder::Recorder;

/// How long one poll waits for records.
const POLL_WAIT: Duration = Duration::from_millis(500);

/// Reads along, from where its application was or else from `first`, until the recorder says that the load is over, or
/// somebody asks it to stop.
#[expect(clippy::too_many_arguments, reason = "everything that a consumer is made of")]
pub async fn tail<E: Env>(
    env: E,
    name: String,
    client: u32,
    topics: Vec<TopicPlan>,
    settings: ConsumerSettings,
    first: Start,
    bootstrap: Vec<(String, u16)>,
    recorder: Arc<Recorder>,
    memory: Arc<Memory>,
) {
    let mut consumer = Consumer::new(&env, &name, settings, bootstrap);
    assign_all(&consumer, &topics, |topic, index| memory.start(topic, index, first));
    let mut batch = Vec::new();
    while !recorder.load_is_over() && !memory.is_stopping() {
        poll(&mut consumer, client, ReadPurpose::Workload, &recorder, &mut batch).await;
        for record in &batch {
            memory.remember(&record.topic, record.partition, record.offset + 1, record.leader_epoch);
        }
    }
}

/// Reads every partition from its start to the end that it had when asked; the position reached by topic and index.
/// Gives up at `deadline`, and says how far it came.
pub async fn read_back<E: Env>(
    env: E,
    client: u32,
    topics: Vec<TopicPlan>,
    settings: ConsumerSettings,
    bootstrap: Vec<(String, u16)>,
    recorder: Arc<Recorder>,
    deadline: Duration,
) -> Vec<ReadTo> {
    let mut consumer = Consumer::new(&env, "read-back", settings, bootstrap);
    let partitions: Vec<(&str, i32)> = topics
        .iter()
        .flat_map(|topic| (0..topic.partitions).map(|index| (topic.name.as_str(), index)))
        .collect();
    let mut reached: Vec<ReadTo> = partitions
        .iter()
        .map(|(topic, index)| ReadTo { topic: (*topic).to_string(), index: *index, position: 0, end: None })
        .collect();
    while env.now() < deadline && reached.iter().any(|one| one.end.is_none()) {
        let operation = recorder.call(client, "end-offsets");
        let ends = consumer.end_offsets(&partitions, Duration::from_secs(5)).await;
        recorder
            .client(&ClientEvent::CallEnded { operation, code: ends.as_ref().err().map_or(0, |e| e.code) });
        if let Ok(ends) = ends {
            for (one, end) in reached.iter_mut().zip(ends) {
                one.end = Some(end);
            }
        }
    }
    assign_all(&consumer, &topics, |_, _| Start::Earliest);
    let mut batch = Vec::new();
    while env.now() < deadline && reached.iter().any(|one| one.end.is_none_or(|end| one.position < end)) {
        poll(&mut consumer, client, ReadPurpose::ReadBack, &recorder, &mut batch).await;
        for record in batch.drain(..) {
            let one = reached
                .iter_mut()
                .find(|one| one.topic == *record.topic && one.index == record.partition)
                .expect("only assigned partitions are read");
            one.position = one.position.max(record.offset + 1);
        }
    }
    reached
}

/// How far the final read of one partition came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadTo {
    pub topic: String,
    pub index: i32,
    /// The next offset that it would have read.
    pub position: i64,
    /// The end of the log as the leader told it; `None` when nobody did.
    pub end: Option<i64>,
}

fn assign_all(consumer: &Consumer, topics: &[TopicPlan], start: impl Fn(&str, i32) -> Start) {
    for topic in topics {
        for index in 0..topic.partitions {
            consumer.assign(topic.name.as_str(), index, start(&topic.name, index));
        }
    }
}

async fn poll(
    consumer: &mut Consumer,
    client: u32,
    purpose: ReadPurpose,
    recorder: &Recorder,
    batch: &mut Vec<ConsumedRecord>,
) {
    let operation = recorder.next_operation();
    recorder.client(&ClientEvent::PollInvoked { client, operation, purpose });
    let polled = consumer.poll(POLL_WAIT).await;
    for event in &polled.events {
        take_event(event, consumer, client, recorder);
    }
    *batch = polled.records;
    let mut run: Vec<(i64, u64)> = Vec::new();
    for (position, record) in batch.iter().enumerate() {
        let value = record.value.as_deref();
        run.push((record.offset, content_hash(record.key.as_deref(), value, [])));
        let ends = batch
            .get(position + 1)
            .is_none_or(|next| next.partition != record.partition || next.topic != record.topic);
        if ends {
            recorder.client(&ClientEvent::Records {
                operation,
                topic: &record.topic,
                index: record.partition,
                records: &run,
                position: record.offset + 1,
            });
            run.clear();
        }
    }
    recorder.client(&ClientEvent::PollEnded { operation, code: 0 });
}

/// Tells of a position that moved other than by reading. Where no policy says how to go on, this application does: from
/// where the logs part, or from the first record.
fn take_event(event: &Event, consumer: &Consumer, client: u32, recorder: &Recorder) {
    let (topic, index, from, to, reason) = match event {
        Event::Truncated { topic, partition, offset, diverges_at, resets, .. } => {
            match diverges_at {
                _ if *resets => {}
                Some((end, epoch)) => consumer.seek(topic.clone(), *partition, *end, Some(*epoch)),
                None => consumer.assign(topic.clone(), *partition, Start::Earliest),
            }
            let to = diverges_at.map(|(end, _)| end);
            (topic, *partition, *offset, to, ResetReason::Truncation)
        }
        Event::OutOfRange { topic, partition, offset, resets } => {
            if !resets {
                consumer.assign(topic.clone(), *partition, Start::Earliest);
            }
            (topic, *partition, *offset, None, ResetReason::OutOfRange)
        }
        Event::Reset { topic, partition, from, offset } => {
            (topic, *partition, *from, Some(*offset), ResetReason::OutOfRange)
        }
        // Nothing moved: it is tried again, or the partition stands still.
        Event::Failed { .. } => return,
    };
    recorder.client(&ClientEvent::PositionReset { client, topic, index, from, to, reason });
}
