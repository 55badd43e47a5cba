//! The files of the metadata quorum: its log and the quorum state. Every write is synced before it
//! is reported, but for appends that ask for none ([`acked_core::rules::QuorumAppend`]).

use acked_core::log::checkpoint::QuorumStateFile;
use acked_env::{Disk, File};
use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use crate::event::Event;
use crate::files;

pub enum MetadataOperation {
    Append {
        write: u64,
        position: u64,
        bytes: Bytes,
        sync: bool,
    },
    Truncate {
        write: u64,
        size: u64,
    },
    SaveState {
        save: u64,
        state: QuorumStateFile,
    },
    /// Says that everything before is done; the last operation of an orderly stop.
    Close {
        closed: oneshot::Sender<()>,
    },
}

/// Serves the quorum's files until it is closed, the sender is gone or a write fails.
pub async fn serve<D: Disk>(
    disk: D,
    mut operations: mpsc::UnboundedReceiver<MetadataOperation>,
    events: mpsc::UnboundedSender<Event>,
) {
    let Ok(log) = disk.open(&files::metadata_log(), false).await else {
        let _ = events.send(Event::MetadataFailed);
        return;
    };
    while let Some(operation) = operations.recv().await {
        let done = match operation {
            MetadataOperation::Append { write, position, bytes, sync } => {
                append(&log, position, bytes, sync).await.map(|()| Event::MetadataLogSynced { write })
            }
            MetadataOperation::Truncate { write, size } => {
                cut(&log, size).await.map(|()| Event::MetadataLogSynced { write })
            }
            MetadataOperation::SaveState { save, state } => {
                let text = state.render();
                files::replace(&disk, &files::metadata_directory(), files::QUORUM_STATE, text.into())
                    .await
                    .map(|()| Event::QuorumStateSaved { save })
            }
            MetadataOperation::Close { closed } => {
                // Whoever asked waits for the answer, unless the node is gone.
                let _ = closed.send(());
                return;
            }
        };
        let failed = done.is_err();
        // A node that stops listens no more, but what it queued before is still written.
        let _ = events.send(done.unwrap_or(Event::MetadataFailed));
        if failed {
            return;
        }
    }
}

async fn append<F: File>(log: &F, position: u64, bytes: Bytes, sync: bool) -> std::io::Result<()> {
    log.write_at(position, bytes).await?;
    if sync { log.sync().await } else { Ok(()) }
}

async fn cut<F: File>(log: &F, size: u64) -> std::io::Result<()> {
    log.truncate(size).await?;
    log.sync().await
}
