//! The files of the metadata quorum: its log and the quorum state. Every write is synced before it is reported.

use acked_core::log::checkpoint::QuorumStateFile;
use acked_env::{Disk, Env, File};
use bytes::Bytes;
use tokio::sync::mpsc;

use crate::event::Event;
use crate::files;

pub enum MetadataOperation {
    Append { write: u64, position: u64, bytes: Bytes },
    Truncate { write: u64, size: u64 },
    SaveState { save: u64, state: QuorumStateFile },
}

/// Serves the quorum's files until the sender is gone or a write fails.
pub async fn serve<E: Env>(
    env: E,
    mut operations: mpsc::UnboundedReceiver<MetadataOperation>,
    events: mpsc::UnboundedSender<Event>,
) {
    let disk = env.disk();
    let Ok(log) = disk.open(&files::metadata_log(), false).await else {
        let _ = events.send(Event::MetadataFailed);
        return;
    };
    while let Some(operation) = operations.recv().await {
        let done = match operation {
            MetadataOperation::Append { write, position, bytes } => {
                append(&log, position, bytes).await.map(|()| Event::MetadataLogSynced { write })
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
        };
        let failed = done.is_err();
        if events.send(done.unwrap_or(Event::MetadataFailed)).is_err() || failed {
            return;
        }
    }
}

async fn append<F: File>(log: &F, position: u64, bytes: Bytes) -> std::io::Result<()> {
    log.write_at(position, bytes).await?;
    log.sync().await
}

async fn cut<F: File>(log: &F, size: u64) -> std::io::Result<()> {
    log.truncate(size).await?;
    log.sync().await
}
