//! The checkpoint files that all replicas of a broker share, replaced one after the other by one task.

use acked_core::log::checkpoint::{self, OffsetEntry};
use acked_env::Env;
use tokio::sync::{mpsc, oneshot};

use crate::files::{self, DATA_DIRECTORY};

pub enum Checkpoint {
    HighWatermarks(Vec<OffsetEntry>),
    /// A log is about to be cut: its recovery point may not lie above the cut, or recovery would miss what was cut.
    /// `lowered` is told false when that could not be made durable.
    LowerRecoveryPoint {
        topic: String,
        partition: i32,
        offset: i64,
        lowered: oneshot::Sender<bool>,
    },
}

/// Serves until the sender is gone. `recovery_points` are those found at start.
pub async fn serve<E: Env>(
    env: E,
    mut recovery_points: Vec<OffsetEntry>,
    mut queue: mpsc::UnboundedReceiver<Checkpoint>,
) {
    let disk = env.disk();
    while let Some(checkpoint) = queue.recv().await {
        match checkpoint {
            Checkpoint::HighWatermarks(entries) => {
                let text = checkpoint::render_offsets(&entries);
                // What could not be replaced stays, and is older, never wrong.
                let _ = files::replace(&disk, DATA_DIRECTORY, files::HIGH_WATERMARKS, text.into()).await;
            }
            Checkpoint::LowerRecoveryPoint { topic, partition, offset, lowered } => {
                let entry = recovery_points.iter_mut().find(|entry| {
                    entry.topic == topic && entry.partition == partition && entry.offset > offset
                });
                let done = match entry {
                    None => true,
                    Some(entry) => {
                        entry.offset = offset;
                        let text = checkpoint::render_offsets(&recovery_points);
                        files::replace(&disk, DATA_DIRECTORY, files::RECOVERY_POINTS, text.into())
                            .await
                            .is_ok()
                    }
                };
                // The log's task waits for the answer unless its node is gone.
                let _ = lowered.send(done);
            }
        }
    }
}
