//! The checkpoint files that all replicas of a broker share, replaced one after the other by one task, which holds
//! their entries. An entry stays until it is replaced or its log is forgotten: an old one is lower than it could be,
//! never wrong, and the only witness of what a log that cannot be used once held.

use std::collections::BTreeMap;

use acked_core::log::checkpoint::{self, OffsetEntry};
use acked_env::Disk;
use tokio::sync::{mpsc, oneshot};

use crate::files::{self, DATA_DIRECTORY};

pub enum Checkpoint {
    HighWatermarks(Vec<OffsetEntry>),
    /// A log is about to be cut: its recovery point may not lie above the cut, or recovery would miss what was cut,
    /// and what follows the cut is not committed because something else there was. `lowered` is told false when that
    /// could not be made durable.
    Lower {
        topic: String,
        partition: i32,
        offset: i64,
        lowered: oneshot::Sender<bool>,
    },
    /// A log is about to be made anew or removed: what is known of its name is of another log. `forgotten` is told
    /// false when that could not be made durable.
    Forget {
        topic: String,
        partition: i32,
        forgotten: oneshot::Sender<bool>,
    },
    /// The last ones of an orderly stop; recovery points only of logs that were synced. `saved` is told whether they
    /// are durable.
    Close {
        high_watermarks: Vec<OffsetEntry>,
        recovery_points: Vec<OffsetEntry>,
        saved: oneshot::Sender<bool>,
    },
}

/// Serves until the sender is gone. What was found at start goes in first.
pub async fn serve<D: Disk>(
    disk: D,
    high_watermarks: Vec<OffsetEntry>,
    recovery_points: Vec<OffsetEntry>,
    mut queue: mpsc::UnboundedReceiver<Checkpoint>,
) {
    let mut high_watermarks = OffsetFile::new(files::HIGH_WATERMARKS, high_watermarks);
    let mut recovery_points = OffsetFile::new(files::RECOVERY_POINTS, recovery_points);
    while let Some(checkpoint) = queue.recv().await {
        // Whoever waits for an answer is gone only with the node.
        match checkpoint {
            Checkpoint::HighWatermarks(entries) => {
                high_watermarks.merge(entries);
                // What could not be replaced stays, and is older, never wrong.
                let _ = high_watermarks.save(&disk).await;
            }
            Checkpoint::Lower { topic, partition, offset, lowered } => {
                let place = (topic, partition);
                high_watermarks.lower(&place, offset);
                recovery_points.lower(&place, offset);
                let _ = lowered.send(high_watermarks.save(&disk).await & recovery_points.save(&disk).await);
            }
            Checkpoint::Forget { topic, partition, forgotten } => {
                let place = (topic, partition);
                high_watermarks.forget(&place);
                recovery_points.forget(&place);
                let saved = high_watermarks.save(&disk).await & recovery_points.save(&disk).await;
                let _ = forgotten.send(saved);
            }
            Checkpoint::Close { high_watermarks: marks, recovery_points: points, saved } => {
                high_watermarks.merge(marks);
                recovery_points.merge(points);
                // The empty ones of a broker that never had a replica are there as well, as in Kafka.
                high_watermarks.is_saved = false;
                recovery_points.is_saved = false;
                let _ = saved.send(high_watermarks.save(&disk).await & recovery_points.save(&disk).await);
            }
        }
    }
}

/// One file of offsets, by name of the topic and index of the partition.
struct OffsetFile {
    name: &'static str,
    entries: BTreeMap<(String, i32), i64>,
    /// The file says what `entries` say.
    is_saved: bool,
}

impl OffsetFile {
    fn new(name: &'static str, found: Vec<OffsetEntry>) -> OffsetFile {
        let mut file = OffsetFile { name, entries: BTreeMap::new(), is_saved: true };
        file.merge(found);
        file.is_saved = true;
        file
    }

    fn merge(&mut self, entries: Vec<OffsetEntry>) {
        for entry in entries {
            let before = self.entries.insert((entry.topic, entry.partition), entry.offset);
            self.is_saved &= before == Some(entry.offset);
        }
    }

    fn lower(&mut self, place: &(String, i32), offset: i64) {
        if let Some(entry) = self.entries.get_mut(place).filter(|entry| **entry > offset) {
            *entry = offset;
            self.is_saved = false;
        }
    }

    fn forget(&mut self, place: &(String, i32)) {
        self.is_saved &= self.entries.remove(place).is_none();
    }

    /// Whether the file now says, durably, what the entries say.
    async fn save<D: Disk>(&mut self, disk: &D) -> bool {
        if !self.is_saved {
            let entries: Vec<OffsetEntry> = self
                .entries
                .iter()
                .map(|((topic, partition), offset)| OffsetEntry {
                    topic: topic.clone(),
                    partition: *partition,
                    offset: *offset,
                })
                .collect();
            let text = checkpoint::render_offsets(&entries);
            self.is_saved = files::replace(disk, DATA_DIRECTORY, self.name, text.into()).await.is_ok();
        }
        self.is_saved
    }
}
