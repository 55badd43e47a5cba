//! The files of one partition replica: one task, which carries operations out in the order in which they were
//! submitted and reports each as an event.

use acked_core::TopicPartition;
use acked_core::log::checkpoint;
use acked_core::replica::{ReadFailed, ReadId, WriteId};
use acked_env::{Disk, Env, File};
use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use crate::checkpoints::Checkpoint;
use crate::event::Event;
use crate::files::{self, LogPaths};

pub enum LogOperation {
    /// Makes directory, identity and an empty log file.
    Create {
        write: WriteId,
    },
    Append {
        write: WriteId,
        position: u64,
        bytes: Bytes,
        sync: bool,
    },
    Truncate {
        write: WriteId,
        size: u64,
        log_end_offset: i64,
    },
    SaveEpochs {
        write: WriteId,
        epochs: Vec<(i32, i64)>,
    },
    Read {
        read: ReadId,
        position: u64,
        length: usize,
    },
    /// Makes everything durable and says so; the last operation of an orderly stop.
    Close {
        closed: oneshot::Sender<bool>,
    },
    Delete,
}

/// Serves one replica's files until the sender is gone. A log that was not found at start is created first.
pub async fn serve<E: Env>(
    env: E,
    partition: TopicPartition,
    paths: LogPaths,
    mut operations: mpsc::UnboundedReceiver<LogOperation>,
    events: mpsc::UnboundedSender<Event>,
    checkpoints: mpsc::UnboundedSender<Checkpoint>,
) {
    let disk = env.disk();
    let mut file = None;
    let mut opened = false;
    while let Some(operation) = operations.recv().await {
        if !opened && !matches!(operation, LogOperation::Create { .. }) {
            file = disk.open(&paths.log, false).await.ok();
        }
        opened = true;
        let event = match operation {
            LogOperation::Create { write } => {
                file = files::create_log(&disk, &paths, partition.topic).await.ok();
                done(partition, write, file.is_some())
            }
            LogOperation::Append { write, position, bytes, sync } => {
                let written = match &file {
                    Some(file) => write_and_sync(file, position, bytes, sync).await.is_ok(),
                    None => false,
                };
                done(partition, write, written)
            }
            LogOperation::Truncate { write, size, log_end_offset } => {
                let (lowered, answer) = oneshot::channel();
                let topic = paths.topic().to_string();
                let lower = Checkpoint::LowerRecoveryPoint {
                    topic,
                    partition: partition.index,
                    offset: log_end_offset,
                    lowered,
                };
                let lowered = checkpoints.send(lower).is_ok() && answer.await.unwrap_or(false);
                let truncated = match &file {
                    Some(file) => lowered && file.truncate(size).await.is_ok(),
                    None => false,
                };
                done(partition, write, truncated)
            }
            LogOperation::SaveEpochs { write, epochs } => {
                let text = checkpoint::render_epochs(&epochs);
                let saved = files::replace(&disk, &paths.directory, files::LEADER_EPOCHS, text.into()).await;
                done(partition, write, saved.is_ok())
            }
            LogOperation::Read { read, position, length } => {
                let result = match &file {
                    Some(file) => file
                        .read_at(position, length)
                        .await
                        .ok()
                        .filter(|bytes| bytes.len() == length)
                        .ok_or(ReadFailed),
                    None => Err(ReadFailed),
                };
                Event::LogRead { read, result }
            }
            LogOperation::Close { closed } => {
                let synced = match &file {
                    Some(file) => file.sync().await.is_ok(),
                    None => false,
                };
                let _ = closed.send(synced);
                return;
            }
            LogOperation::Delete => {
                let _ = disk.remove(&paths.directory).await;
                return;
            }
        };
        if events.send(event).is_err() {
            return;
        }
    }
}

fn done(partition: TopicPartition, write: WriteId, took_effect: bool) -> Event {
    if took_effect {
        Event::LogWritten { partition, write }
    } else {
        Event::LogWriteFailed { partition, write }
    }
}

async fn write_and_sync<F: File>(file: &F, position: u64, bytes: Bytes, sync: bool) -> std::io::Result<()> {
    file.write_at(position, bytes).await?;
    if sync { file.sync().await } else { Ok(()) }
}
