//! A producer of unique values at a steady rate, or as fast as a window of records lets it.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use acked_client::{Completion, Completions, Producer};
use acked_core::settings::ProducerSettings;
use acked_env::{Env, Timer};
use bytes::Bytes;

use super::{Memory, value};
use crate::judge::{ClientEvent, content_hash};
use crate::plan::ProducerPlan;
use crate::runner::recorder::Recorder;

/// Records without an answer that a producer without a rate keeps in flight.
const WINDOW: u64 = 5;

/// Sends the records that are left and waits for what becomes of them. Ends early, with what is in flight resolved, once
/// the recorder says that the load is over, or somebody asks it to stop.
pub async fn produce<E: Env>(
    env: E,
    plan: ProducerPlan,
    partitions: i32,
    client: u32,
    bootstrap: Vec<(String, u16)>,
    recorder: Arc<Recorder>,
    memory: Arc<Memory>,
) {
    let settings = ProducerSettings::new(&plan.settings).expect("checked when the plan was made");
    let acks = settings.acks.code();
    let idempotent = settings.enable_idempotence;
    let ordered = idempotent || settings.max_in_flight_requests_per_connection == 1;
    let (producer, mut completions) = Producer::new(&env, &plan.name, settings, bootstrap);
    let topic: Arc<str> = plan.topic.as_str().into();
    let interval = if plan.rate == 0 { Duration::ZERO } else { Duration::from_secs(1) / plan.rate };
    let mut timer = env.timer();
    let mut next_at = env.now();
    let mut in_flight = 0;
    let mut number = memory.next_record();
    let is_over = || recorder.load_is_over() || memory.is_stopping();
    while number < plan.records && !is_over() {
        if plan.rate == 0 {
            while in_flight >= WINDOW {
                let Some(completion) = completions.next().await else { return };
                complete(&recorder, completion);
                in_flight -= 1;
            }
        } else {
            in_flight -= complete_until(&mut timer, next_at, &mut completions, &recorder).await;
            next_at += interval;
        }
        memory.take_record(number);
        let value = value(&plan.name, number, plan.value_bytes);
        let key = (plan.keys > 0).then(|| Bytes::from(format!("key-{}", number % plan.keys)));
        // All records of a key go to one partition.
        let choice = if plan.keys > 0 { number % plan.keys } else { number };
        let partition = i32::try_from(choice % partitions as u64).expect("fewer partitions than 2^31");
        let operation = recorder.next_operation();
        recorder.client(&ClientEvent::SendInvoked {
            client,
            operation,
            topic: &topic,
            index: partition,
            content: content_hash(key.as_deref(), Some(&value), []),
            acks,
            idempotent,
            ordered,
        });
        producer.send_tagged(operation, topic.clone(), partition, key, Some(value), env.wall_clock_ms());
        in_flight += 1;
        number += 1;
    }
    while in_flight > 0 {
        let Some(completion) = completions.next().await else { return };
        complete(&recorder, completion);
        in_flight -= 1;
    }
    producer.close().await;
    if number == plan.records || recorder.load_is_over() {
        recorder.producer_done(client);
    }
}

/// Takes completions in until `deadline`; how many there were.
async fn complete_until(
    timer: &mut impl Timer,
    deadline: Duration,
    completions: &mut Completions,
    recorder: &Recorder,
) -> u64 {
    let mut completed = 0;
    timer.set(Some(deadline));
    poll_fn(|context| {
        while let Poll::Ready(Some(completion)) = completions.poll_next(context) {
            complete(recorder, completion);
            completed += 1;
        }
        timer.poll_fired(context)
    })
    .await;
    completed
}

fn complete(recorder: &Recorder, completion: Completion) {
    let operation = completion.tag;
    recorder.client(&match completion.result {
        Ok(metadata) => ClientEvent::SendOk { operation, offset: metadata.offset.unwrap_or(-1) },
        Err(error) if error.definite => ClientEvent::SendFailed { operation, code: error.code },
        Err(error) => ClientEvent::SendInfo { operation, code: error.code },
    });
}
