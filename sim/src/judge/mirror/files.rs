//! Which file of which node is the log of which partition. The topic id of a folder is read from its
//! `partition.metadata`; until that is written, from the topic's creation. Only data logs are mirrored, and one
//! segment each.

use std::collections::{BTreeMap, BTreeSet};

use acked_core::{NodeId, TopicPartition};
use acked_wire::Uuid;

use super::log::{Changed, Entry, LogMirror};
use crate::world::tap::DiskChange;

const LOG_FILE: &str = "00000000000000000000.log";
const METADATA_FILE: &str = "partition.metadata";
const METADATA_LOG: &str = "__cluster_metadata";

/// What became of one partition's log on one node.
#[derive(Debug)]
pub struct LogChange {
    pub node: NodeId,
    pub partition: TopicPartition,
    /// Records that the broker cut off or removed; what a fault takes is not among them.
    pub removed: Vec<Entry>,
    /// Index of the first new entry in the log.
    pub appended_from: usize,
    /// Number of the log, for [`Mirror::log_at`].
    pub log: usize,
}

/// One folder `<topic>-<index>` of one node.
#[derive(Debug)]
struct Folder {
    topic: String,
    index: i32,
    /// The topic id that its `partition.metadata` states.
    stated: Option<Uuid>,
    log: usize,
}

#[derive(Clone, Copy, Debug)]
enum FileKind {
    /// The log of this folder.
    Log(usize),
    /// The `partition.metadata` of this folder, or the temporary file that becomes it.
    Metadata(usize),
    Other,
}

/// All logs of all nodes.
#[derive(Debug, Default)]
pub struct Mirror {
    files: BTreeMap<NodeId, BTreeMap<String, FileKind>>,
    folders: Vec<Folder>,
    folder_numbers: BTreeMap<(NodeId, String), usize>,
    /// Metadata files not complete yet, by folder.
    metadata_bytes: BTreeMap<usize, Vec<u8>>,
    logs: Vec<LogMirror>,
    bound: BTreeMap<TopicPartition, Vec<(NodeId, usize)>>,
    /// Topic names seen to be created, newest id.
    created: BTreeMap<String, Uuid>,
    names: BTreeMap<Uuid, String>,
    /// Topics whose creation was stated.
    stated: BTreeSet<Uuid>,
}

impl Mirror {
    /// A topic was created: its id until a folder says otherwise. Only the first statement counts: a controller that
    /// replays its log states the creation of deleted topics again.
    pub fn topic_created(&mut self, name: &str, topic: Uuid) {
        if !self.stated.insert(topic) {
            return;
        }
        self.created.insert(name.to_owned(), topic);
        self.names.insert(topic, name.to_owned());
    }

    /// The newest id of a topic.
    pub fn topic_id(&self, name: &str) -> Option<Uuid> {
        self.created.get(name).copied()
    }

    pub fn topic_name(&self, topic: Uuid) -> Option<&str> {
        self.names.get(&topic).map(String::as_str)
    }

    /// Every topic name seen, by id.
    pub fn names(&self) -> &BTreeMap<Uuid, String> {
        &self.names
    }

    /// The log of a partition on a node; `None` when the node never had one.
    pub fn log(&self, partition: TopicPartition, node: NodeId) -> Option<&LogMirror> {
        self.replicas(partition).iter().find(|(replica, _)| *replica == node).map(|(_, log)| &self.logs[*log])
    }

    /// The logs of a partition: node and number of its log, in the order of their first appearance.
    pub fn replicas(&self, partition: TopicPartition) -> &[(NodeId, usize)] {
        self.bound.get(&partition).map_or(&[], Vec::as_slice)
    }

    /// # Panics
    /// If the number did not come from this mirror.
    pub fn log_at(&self, log: usize) -> &LogMirror {
        &self.logs[log]
    }

    /// Takes one change of one node's disk. Gives what it did to a log whose partition is known.
    pub fn changed(&mut self, node: NodeId, change: &DiskChange<'_>) -> Option<LogChange> {
        match *change {
            DiskChange::Written { path, position, bytes } => match self.kind(node, path) {
                FileKind::Log(folder) => {
                    let changed = self.log_of(folder).written(position, bytes);
                    self.log_change(node, folder, changed)
                }
                FileKind::Metadata(folder) => self.metadata_written(node, folder, position, bytes),
                FileKind::Other => None,
            },
            DiskChange::Truncated { path, size } => match self.kind(node, path) {
                FileKind::Log(folder) => {
                    let changed = self.log_of(folder).truncated(size);
                    self.log_change(node, folder, changed)
                }
                FileKind::Metadata(folder) => {
                    let keep = usize::try_from(size).unwrap_or(usize::MAX);
                    self.metadata_bytes.entry(folder).or_default().truncate(keep);
                    None
                }
                FileKind::Other => None,
            },
            DiskChange::Synced { .. } => None,
            DiskChange::Removed { path } => match self.kind(node, path) {
                FileKind::Log(folder) => {
                    let changed = self.log_of(folder).removed();
                    self.log_change(node, folder, changed)
                }
                FileKind::Metadata(_) | FileKind::Other => None,
            },
            // Only small files are renamed: the temporary one becomes the real one, with the same content.
            DiskChange::Renamed { .. } => None,
            DiskChange::Replaced { path, content, first_difference } => match self.kind(node, path) {
                FileKind::Log(folder) => {
                    match content {
                        Some(content) => self.log_of(folder).replaced(content, first_difference),
                        None => self.log_of(folder).lost_file(),
                    }
                    None
                }
                FileKind::Metadata(_) | FileKind::Other => None,
            },
        }
    }

    fn log_of(&mut self, folder: usize) -> &mut LogMirror {
        &mut self.logs[self.folders[folder].log]
    }

    fn log_change(&mut self, node: NodeId, folder: usize, changed: Changed) -> Option<LogChange> {
        let Folder { index, stated, log, .. } = self.folders[folder];
        let topic = match stated {
            Some(topic) => topic,
            None => {
                let topic = self.created.get(&self.folders[folder].topic).copied()?;
                self.bind(node, folder, topic);
                topic
            }
        };
        Some(LogChange {
            node,
            partition: TopicPartition { topic, index },
            removed: changed.removed,
            appended_from: changed.appended_from,
            log,
        })
    }

    /// Takes the next bytes of a `partition.metadata` and binds the folder once the topic id can be read.
    fn metadata_written(
        &mut self,
        node: NodeId,
        folder: usize,
        position: u64,
        bytes: &[u8],
    ) -> Option<LogChange> {
        /// Longer than any real one: two short lines.
        const LIMIT: usize = 1024;
        let content = self.metadata_bytes.entry(folder).or_default();
        content.truncate(usize::try_from(position).unwrap_or(usize::MAX));
        if content.len() + bytes.len() <= LIMIT {
            content.extend_from_slice(bytes);
        }
        let topic = std::str::from_utf8(content)
            .ok()?
            .lines()
            .find_map(|line| line.strip_prefix("topic_id:"))
            .and_then(|id| id.trim().parse().ok())?;
        self.bind(node, folder, topic);
        None
    }

    /// From now on the folder is this topic's. Another topic of the same name begins with a log of its own.
    fn bind(&mut self, node: NodeId, folder: usize, topic: Uuid) {
        if self.folders[folder].stated == Some(topic) {
            return;
        }
        if self.folders[folder].stated.is_some() {
            self.folders[folder].log = self.logs.len();
            self.logs.push(LogMirror::default());
        }
        let Folder { topic: ref name, index, log, .. } = self.folders[folder];
        self.names.entry(topic).or_insert_with(|| name.clone());
        self.created.entry(name.clone()).or_insert(topic);
        let replicas = self.bound.entry(TopicPartition { topic, index }).or_default();
        replicas.retain(|(replica, _)| *replica != node);
        replicas.push((node, log));
        self.folders[folder].stated = Some(topic);
    }

    fn kind(&mut self, node: NodeId, path: &str) -> FileKind {
        if let Some(kind) = self.files.get(&node).and_then(|files| files.get(path)) {
            return *kind;
        }
        let kind = self.classify(node, path);
        self.files.entry(node).or_default().insert(path.to_owned(), kind);
        kind
    }

    fn classify(&mut self, node: NodeId, path: &str) -> FileKind {
        let Some((folder_path, file)) = path.rsplit_once('/') else { return FileKind::Other };
        let is_metadata =
            file.strip_prefix(METADATA_FILE).is_some_and(|rest| rest.is_empty() || rest == ".tmp");
        if file != LOG_FILE && !is_metadata {
            return FileKind::Other;
        }
        let name = folder_path.rsplit_once('/').map_or(folder_path, |(_, name)| name);
        let Some((topic, index)) = name.rsplit_once('-') else { return FileKind::Other };
        let Ok(index) = index.parse() else { return FileKind::Other };
        if topic == METADATA_LOG {
            return FileKind::Other;
        }
        let key = (node, folder_path.to_owned());
        let folder = match self.folder_numbers.get(&key) {
            Some(folder) => *folder,
            None => {
                let folder = self.folders.len();
                let log = self.logs.len();
                self.logs.push(LogMirror::default());
                self.folders.push(Folder { topic: topic.to_owned(), index, stated: None, log });
                self.folder_numbers.insert(key, folder);
                folder
            }
        };
        if is_metadata { FileKind::Metadata(folder) } else { FileKind::Log(folder) }
    }
}

#[cfg(test)]
mod tests {
    use acked_wire::batch::BatchBuilder;

    use super::*;

    const ID: Uuid = Uuid([7; 16]);
    const PARTITION: TopicPartition = TopicPartition { topic: ID, index: 2 };

    fn batch() -> Vec<u8> {
        let mut builder = BatchBuilder::new(0).leader_epoch(3);
        builder.push(0, None, Some(b"value"), &[]);
        builder.build().to_vec()
    }

    fn state_id(mirror: &mut Mirror, id: Uuid) {
        let text = format!("version: 0\ntopic_id: {id}\n");
        let (first, second) = text.as_bytes().split_at(15);
        let path = "data/orders-new-2/partition.metadata.tmp";
        mirror.changed(NodeId(1), &DiskChange::Truncated { path, size: 0 });
        mirror.changed(NodeId(1), &DiskChange::Written { path, position: 0, bytes: first });
        mirror.changed(NodeId(1), &DiskChange::Written { path, position: 15, bytes: second });
    }

    fn append(mirror: &mut Mirror) -> Option<LogChange> {
        let path = "data/orders-new-2/00000000000000000000.log";
        mirror.changed(NodeId(1), &DiskChange::Written { path, position: 0, bytes: &batch() })
    }

    #[test]
    fn folder_is_known_by_its_metadata_file() {
        let mut mirror = Mirror::default();
        state_id(&mut mirror, ID);
        let change = append(&mut mirror).expect("the folder is bound");
        assert_eq!((change.partition, change.appended_from), (PARTITION, 0));
        assert_eq!(mirror.log(PARTITION, NodeId(1)).map(LogMirror::log_end_offset), Some(1));
        assert_eq!(mirror.topic_name(ID), Some("orders-new"));
        assert!(mirror.log(PARTITION, NodeId(2)).is_none());
    }

    #[test]
    fn folder_without_metadata_is_known_by_the_creation_of_its_topic() {
        let mut mirror = Mirror::default();
        assert!(append(&mut mirror).is_none(), "nobody knows the topic");
        mirror.topic_created("orders-new", ID);
        let path = "data/orders-new-2/00000000000000000000.log";
        let change = mirror.changed(NodeId(1), &DiskChange::Truncated { path, size: 0 });
        assert_eq!(change.expect("the folder is bound").removed.len(), 1);
    }

    #[test]
    fn topic_of_the_same_name_begins_empty() {
        let mut mirror = Mirror::default();
        state_id(&mut mirror, ID);
        append(&mut mirror);
        let other = Uuid([8; 16]);
        state_id(&mut mirror, other);
        assert_eq!(mirror.log(PARTITION, NodeId(1)).map(LogMirror::log_end_offset), Some(1));
        let recreated = TopicPartition { topic: other, index: 2 };
        assert_eq!(mirror.log(recreated, NodeId(1)).map(LogMirror::log_end_offset), Some(0));
    }

    #[test]
    fn other_files_are_no_logs() {
        let mut mirror = Mirror::default();
        mirror.topic_created("orders", ID);
        for path in [
            "data/meta.properties",
            "data/__cluster_metadata-0/00000000000000000000.log",
            "data/orders-x/00000000000000000000.log",
            "00000000000000000000.log",
        ] {
            let change = DiskChange::Written { path, position: 0, bytes: &batch() };
            assert!(mirror.changed(NodeId(1), &change).is_none(), "{path}");
        }
    }
}
