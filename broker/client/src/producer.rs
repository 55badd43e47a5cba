//! The handle of a producer: sends records, hears what became of each exactly once.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use acked_core::settings::ProducerSettings;
use acked_env::Env;
use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

/// Where an acknowledged record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordMetadata {
    pub partition: i32,
    /// `None` with acks=0, and when the broker only said that it has the record already.
    pub offset: Option<i64>,
    /// Milliseconds since 1970, as the record carries it.
    pub timestamp_ms: i64,
}

/// Why a record was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("send record: error code {code}, {}", if *.definite { "it has no effect" } else { "it may have taken effect" })]
pub struct SendError {
    /// Kafka's error code; 7 (REQUEST_TIMED_OUT) when `delivery.timeout.ms` ended it.
    pub code: i16,
    /// True when the record certainly is in no log; false when it may be, or may still get there.
    pub definite: bool,
}

/// What became of one record.
pub type SendResult = Result<RecordMetadata, SendError>;

/// Resolves when the record is acknowledged or given up.
#[derive(Debug)]
pub struct SendFuture(oneshot::Receiver<SendResult>);

impl Future for SendFuture {
    type Output = SendResult;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<SendResult> {
        Pin::new(&mut self.0).poll(context).map(|answer| answer.unwrap_or(Err(ENDED)))
    }
}

/// The producer ended with the record unanswered.
const ENDED: SendError = SendError { code: -1, definite: false };

/// What became of a record that was sent with a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    pub tag: u64,
    pub result: SendResult,
}

/// The completions of every tagged record of one producer, in the order in which they happened.
#[derive(Debug)]
pub struct Completions(mpsc::UnboundedReceiver<Completion>);

impl Completions {
    /// The next completion; `None` once the producer is gone and everything was delivered.
    pub async fn next(&mut self) -> Option<Completion> {
        self.0.recv().await
    }

    pub fn try_next(&mut self) -> Option<Completion> {
        self.0.try_recv().ok()
    }

    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Completion>> {
        self.0.poll_recv(context)
    }
}

#[expect(dead_code, reason = "the task that reads these is being written")]
enum Command {
    Send {
        topic: Arc<str>,
        partition: i32,
        key: Option<Bytes>,
        value: Option<Bytes>,
        timestamp_ms: i64,
        waiter: Waiter,
    },
    Flush(oneshot::Sender<()>),
    Close(oneshot::Sender<()>),
}

#[expect(dead_code, reason = "the task that reads these is being written")]
enum Waiter {
    Future(oneshot::Sender<SendResult>),
    Tag(u64),
}

/// Sends records to named partitions. Dropping it ends its task at once: records without an answer resolve to an
/// indeterminate error. [`Producer::close`] waits for them instead.
#[derive(Debug)]
pub struct Producer {
    mailbox: mpsc::UnboundedSender<Command>,
}

impl Producer {
    /// Starts the producer's task. `bootstrap` lists host and port of brokers to ask first, in order of preference.
    pub fn new<E: Env>(
        env: &E,
        client_id: &str,
        settings: ProducerSettings,
        bootstrap: Vec<(String, u16)>,
    ) -> (Producer, Completions) {
        let _ = (env, client_id, settings, bootstrap);
        let (mailbox, _commands) = mpsc::unbounded_channel();
        let (_completed, completions) = mpsc::unbounded_channel();
        (Producer { mailbox }, Completions(completions))
    }

    /// Sends one record; the future resolves once, whatever happens. Needs no polling to make progress.
    pub fn send(
        &self,
        topic: impl Into<Arc<str>>,
        partition: i32,
        key: Option<Bytes>,
        value: Option<Bytes>,
        timestamp_ms: i64,
    ) -> SendFuture {
        let (sender, receiver) = oneshot::channel();
        let waiter = Waiter::Future(sender);
        self.tell(Command::Send { topic: topic.into(), partition, key, value, timestamp_ms, waiter });
        SendFuture(receiver)
    }

    /// Sends one record; what becomes of it arrives at [`Completions`] under `tag`. Cheaper than [`Producer::send`].
    pub fn send_tagged(
        &self,
        tag: u64,
        topic: impl Into<Arc<str>>,
        partition: i32,
        key: Option<Bytes>,
        value: Option<Bytes>,
        timestamp_ms: i64,
    ) {
        let waiter = Waiter::Tag(tag);
        self.tell(Command::Send { topic: topic.into(), partition, key, value, timestamp_ms, waiter });
    }

    /// Waits until every record sent before is acknowledged or given up; lets nothing linger.
    pub async fn flush(&self) {
        let (sender, receiver) = oneshot::channel();
        self.tell(Command::Flush(sender));
        let _ = receiver.await;
    }

    /// Flushes, then ends the task.
    pub async fn close(self) {
        let (sender, receiver) = oneshot::channel();
        self.tell(Command::Close(sender));
        let _ = receiver.await;
    }

    fn tell(&self, command: Command) {
        // The task only ends before the handle when its node dies, and then nobody waits for the answer.
        let _ = self.mailbox.send(command);
    }
}
