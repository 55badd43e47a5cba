//! The files of one replica's directory: one task, which carries operations out in the order in which they were
//! submitted and reports each as an event.
//!
//! A directory is named after its topic, a replica is known by its topic's id: a topic that is deleted and made anew
//! has the same directory. Its task serves one replica after the other, so that the new log is made after the old one
//! is gone, and refuses what still comes for the old one.

use acked_core::TopicPartition;
use acked_core::log::checkpoint;
use acked_core::replica::{ReadFailed, ReadId, WriteId};
use acked_env::{Disk, File};
use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use crate::checkpoints::Checkpoint;
use crate::event::Event;
use crate::files::{self, LogPaths};

/// What is to be done about the files of one replica.
pub struct LogRequest {
    pub partition: TopicPartition,
    pub operation: LogOperation,
}

pub enum LogOperation {
    /// Makes directory, identity and an empty log file, and the directory this replica's.
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
    /// Makes everything durable and says whether it is; the last operation of an orderly stop.
    Close {
        closed: oneshot::Sender<bool>,
    },
    Delete,
}

/// One replica directory.
pub struct LogDirectory<D: Disk> {
    pub disk: D,
    pub paths: LogPaths,
    /// The replica whose files are there; `None` when the directory is to be made first.
    pub holder: Option<TopicPartition>,
    pub events: mpsc::UnboundedSender<Event>,
    pub checkpoints: mpsc::UnboundedSender<Checkpoint>,
}

enum Log<F> {
    /// Not touched yet.
    Closed,
    Open(F),
    /// Something failed: what the files hold is unknown, so nothing is written any more. Least of all is a sync tried
    /// again: the second one may succeed without the pages that the first one lost (R4).
    Failed,
}

impl<D: Disk> LogDirectory<D> {
    /// Serves until the sender is gone. Goes on when nobody listens to its events any more: what was queued before an
    /// orderly stop is still written.
    pub async fn serve(mut self, mut requests: mpsc::UnboundedReceiver<LogRequest>) {
        let mut log = Log::Closed;
        while let Some(LogRequest { partition, operation }) = requests.recv().await {
            if let LogOperation::Create { write } = operation {
                self.holder = Some(partition);
                log = match self.create(partition).await {
                    Ok(file) => Log::Open(file),
                    Err(_) => Log::Failed,
                };
                self.report(partition, write, matches!(log, Log::Open(_)));
                continue;
            }
            let is_holder = self.holder == Some(partition);
            if is_holder && matches!(log, Log::Closed) {
                log = match self.disk.open(&self.paths.log, false).await {
                    Ok(file) => Log::Open(file),
                    Err(_) => Log::Failed,
                };
            }
            let file = match &log {
                Log::Open(file) if is_holder => Some(file),
                Log::Closed | Log::Open(_) | Log::Failed => None,
            };
            match operation {
                LogOperation::Create { .. } => unreachable!("carried out above"),
                LogOperation::Append { write, position, bytes, sync } => {
                    let written = match file {
                        Some(file) => write_and_sync(file, position, bytes, sync).await,
                        None => Err(std::io::ErrorKind::NotFound.into()),
                    };
                    self.finish(partition, write, written, &mut log);
                }
                LogOperation::Truncate { write, size, log_end_offset } => {
                    let truncated = match file {
                        Some(file) => self.truncate(file, partition, size, log_end_offset).await,
                        None => Err(std::io::ErrorKind::NotFound.into()),
                    };
                    self.finish(partition, write, truncated, &mut log);
                }
                LogOperation::SaveEpochs { write, epochs } => {
                    let saved = match file {
                        Some(_) => self.save_epochs(&epochs).await,
                        None => Err(std::io::ErrorKind::NotFound.into()),
                    };
                    self.finish(partition, write, saved, &mut log);
                }
                LogOperation::Read { read, position, length } => {
                    let bytes = match file {
                        Some(file) => file.read_at(position, length).await.ok(),
                        None => None,
                    };
                    let result = bytes.filter(|bytes| bytes.len() == length).ok_or(ReadFailed);
                    self.tell(Event::LogRead { read, result });
                }
                LogOperation::Close { closed } => {
                    let synced = match file {
                        Some(file) => file.sync().await.is_ok(),
                        None => false,
                    };
                    // Whoever asked waits for the answer, unless the node is gone.
                    let _ = closed.send(synced);
                }
                LogOperation::Delete => {
                    if is_holder {
                        self.holder = None;
                        log = Log::Closed;
                        // What cannot be removed is a stray: nobody is assigned its topic id again.
                        if self.forget(partition).await {
                            let _ = files::remove_log(&self.disk, &self.paths).await;
                        }
                    }
                }
            }
        }
    }

    async fn create(&self, partition: TopicPartition) -> std::io::Result<D::File> {
        // Before the log is there: an old recovery point would make the new log look damaged.
        if !self.forget(partition).await {
            return Err(std::io::Error::other("the checkpoints could not be saved"));
        }
        files::create_log(&self.disk, &self.paths, partition.topic).await
    }

    /// Cuts the log and syncs it before anything may follow.
    ///
    /// Without the sync, a power loss could leave batches of the old branch between those of the new one: the cut was
    /// only in the page cache, an old page had reached the platter before, and the new page over it had not. Recovery
    /// sees batches that are whole, in order and of rising epochs. The order of the epoch checkpoint alone does not
    /// tell them apart: it unmasks an old batch that is older than what follows the cut, but after an unclean election
    /// the old branch may be of a newer epoch than the batches that took its place. Cuts are rare; a sync is cheap.
    ///
    /// The checkpoints go down before: recovery refuses a log that ends below its recovery point, and what is appended
    /// behind the cut is not committed because the high watermark once was there (R7).
    async fn truncate(
        &self,
        file: &D::File,
        partition: TopicPartition,
        size: u64,
        log_end_offset: i64,
    ) -> std::io::Result<()> {
        let (lowered, answer) = oneshot::channel();
        let topic = self.paths.topic().to_string();
        let offset = log_end_offset;
        let lower = Checkpoint::Lower { topic, partition: partition.index, offset, lowered };
        if self.checkpoints.send(lower).is_err() || !answer.await.unwrap_or(false) {
            return Err(std::io::Error::other("the recovery point could not be lowered"));
        }
        file.truncate(size).await?;
        file.sync().await
    }

    async fn save_epochs(&self, epochs: &[(i32, i64)]) -> std::io::Result<()> {
        let text = checkpoint::render_epochs(epochs);
        files::replace(&self.disk, &self.paths.directory, files::LEADER_EPOCHS, text.into()).await
    }

    async fn forget(&self, partition: TopicPartition) -> bool {
        let (forgotten, answer) = oneshot::channel();
        let topic = self.paths.topic().to_string();
        let forget = Checkpoint::Forget { topic, partition: partition.index, forgotten };
        self.checkpoints.send(forget).is_ok() && answer.await.unwrap_or(false)
    }

    fn finish(
        &self,
        partition: TopicPartition,
        write: WriteId,
        done: std::io::Result<()>,
        log: &mut Log<D::File>,
    ) {
        if done.is_err() && self.holder == Some(partition) {
            *log = Log::Failed;
        }
        self.report(partition, write, done.is_ok());
    }

    fn report(&self, partition: TopicPartition, write: WriteId, took_effect: bool) {
        self.tell(if took_effect {
            Event::LogWritten { partition, write }
        } else {
            Event::LogWriteFailed { partition, write }
        });
    }

    fn tell(&self, event: Event) {
        // A node that stops listens no more.
        let _ = self.events.send(event);
    }
}

async fn write_and_sync<F: File>(file: &F, position: u64, bytes: Bytes, sync: bool) -> std::io::Result<()> {
    file.write_at(position, bytes).await?;
    if sync { file.sync().await } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use acked_core::log::checkpoint::OffsetEntry;
    use acked_wire::Uuid;

    use super::*;
    use crate::checkpoints;
    use crate::memory_disk::{MemoryDisk, finish};

    const OLD: TopicPartition = TopicPartition { topic: Uuid([1; 16]), index: 0 };
    const NEW: TopicPartition = TopicPartition { topic: Uuid([2; 16]), index: 0 };
    const LOG: &str = "data/orders-0/00000000000000000000.log";

    /// The directory of `OLD`, with a log of ten bytes and a recovery point of 10.
    fn disk() -> MemoryDisk {
        let disk = MemoryDisk::default();
        disk.write(LOG, b"0123456789");
        disk
    }

    /// Carries the requests out and gives what was reported: reads as their bytes, writes as their outcome.
    fn serve(disk: &MemoryDisk, operations: Vec<(TopicPartition, LogOperation)>) -> Vec<Event> {
        let (requests, queue) = mpsc::unbounded_channel();
        let (checkpoints, checkpoint_queue) = mpsc::unbounded_channel();
        let (events, mut reported) = mpsc::unbounded_channel();
        let paths = LogPaths::new("orders", 0);
        let directory = LogDirectory { disk: disk.clone(), paths, holder: Some(OLD), events, checkpoints };
        for (partition, operation) in operations {
            requests.send(LogRequest { partition, operation }).expect("the queue is there");
        }
        drop(requests);
        let found = vec![OffsetEntry { topic: "orders".to_string(), partition: 0, offset: 10 }];
        let checkpoints = checkpoints::serve(disk.clone(), found.clone(), found, checkpoint_queue);
        finish(async { tokio::join!(directory.serve(queue), checkpoints) });
        std::iter::from_fn(|| reported.try_recv().ok()).collect()
    }

    fn append(write: u64, position: u64, sync: bool) -> LogOperation {
        LogOperation::Append { write: WriteId(write), position, bytes: Bytes::from_static(b"abc"), sync }
    }

    /// Writes that took effect, and those that failed.
    fn outcomes(events: &[Event]) -> (Vec<u64>, Vec<u64>) {
        let (mut written, mut failed) = (Vec::new(), Vec::new());
        for event in events {
            match event {
                Event::LogWritten { write, .. } => written.push(write.0),
                Event::LogWriteFailed { write, .. } => failed.push(write.0),
                _ => {}
            }
        }
        (written, failed)
    }

    #[test]
    fn cut_is_durable_before_anything_follows_it() {
        let disk = disk();
        let cut = LogOperation::Truncate { write: WriteId(1), size: 4, log_end_offset: 4 };
        let events = serve(&disk, vec![(OLD, cut), (OLD, append(2, 4, false))]);
        assert_eq!(outcomes(&events), (vec![1, 2], vec![]));
        assert_eq!(disk.read(LOG).expect("a log"), b"0123abc");
        let places = [
            "rename data/replication-offset-checkpoint",
            "rename data/recovery-point-offset-checkpoint",
            &format!("truncate {LOG}"),
            &format!("sync {LOG}"),
            &format!("write {LOG}"),
        ]
        .map(|asked| disk.place(asked));
        assert!(places.is_sorted(), "{:?}", disk.asked());
        assert_eq!(disk.read("data/recovery-point-offset-checkpoint").expect("saved"), b"0\n1\norders 0 4\n");
    }

    #[test]
    fn topic_made_anew_in_the_same_directory_starts_empty_and_its_elder_is_heard_no_more() {
        let disk = disk();
        let create = LogOperation::Create { write: WriteId(1) };
        let read = LogOperation::Read { read: ReadId(1), position: 0, length: 3 };
        let operations = vec![
            (OLD, LogOperation::Delete),
            (NEW, create),
            (NEW, append(2, 0, false)),
            (OLD, append(3, 3, false)),
            (OLD, LogOperation::Delete),
            (NEW, read),
        ];
        let events = serve(&disk, operations);
        assert_eq!(outcomes(&events), (vec![1, 2], vec![3]));
        let Some(Event::LogRead { result: Ok(bytes), .. }) = events.last() else {
            panic!("nothing was read")
        };
        assert_eq!(bytes, "abc");
        // The old entry would say that ten offsets of the new log were synced and committed.
        for file in ["recovery-point-offset-checkpoint", "replication-offset-checkpoint"] {
            assert_eq!(disk.read(&format!("data/{file}")).expect("saved"), b"0\n0\n");
        }
    }

    #[test]
    fn nothing_is_written_after_a_failed_sync_and_the_log_is_not_closed_clean() {
        let disk = disk();
        disk.fail(&format!("sync {LOG}"));
        let (closed, mut answer) = oneshot::channel();
        let operations = vec![
            (OLD, append(1, 10, true)),
            (OLD, append(2, 13, false)),
            (OLD, LogOperation::Close { closed }),
        ];
        let events = serve(&disk, operations);
        assert_eq!(outcomes(&events), (vec![], vec![1, 2]));
        assert_eq!(answer.try_recv(), Ok(false));
        assert_eq!(disk.read(LOG).expect("a log"), b"0123456789abc");
    }

    #[test]
    fn what_was_queued_before_an_orderly_stop_is_written_though_nobody_listens() {
        let disk = disk();
        let (requests, queue) = mpsc::unbounded_channel();
        let (events, _) = mpsc::unbounded_channel();
        let (checkpoints, _) = mpsc::unbounded_channel();
        let paths = LogPaths::new("orders", 0);
        let directory = LogDirectory { disk: disk.clone(), paths, holder: Some(OLD), events, checkpoints };
        let (closed, mut answer) = oneshot::channel();
        for operation in [append(1, 10, false), LogOperation::Close { closed }] {
            requests.send(LogRequest { partition: OLD, operation }).expect("the queue is there");
        }
        drop(requests);
        finish(directory.serve(queue));
        assert_eq!(answer.try_recv(), Ok(true));
        assert_eq!(disk.read(LOG).expect("a log"), b"0123456789abc");
    }
}
