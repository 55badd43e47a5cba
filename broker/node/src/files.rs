//! Names, identities and replacement of a node's files (kafka-formats D.1, D.5). Content is read and written by
//! `acked_core::log::checkpoint`; what a found log means is decided by `acked_core::log::recovery`.

use std::io;

use acked_core::NodeId;
use acked_core::log::checkpoint::{MetaProperties, PartitionMetadata};
use acked_env::{Disk, File};
use acked_wire::Uuid;
use bytes::Bytes;

/// The log directory (`log.dirs`), relative to the node's root.
pub const DATA_DIRECTORY: &str = "data";
pub const LEADER_EPOCHS: &str = "leader-epoch-checkpoint";
pub const PARTITION_METADATA: &str = "partition.metadata";
pub const QUORUM_STATE: &str = "quorum-state";
pub const META_PROPERTIES: &str = "meta.properties";
pub const HIGH_WATERMARKS: &str = "replication-offset-checkpoint";
pub const RECOVERY_POINTS: &str = "recovery-point-offset-checkpoint";
pub const CLEAN_SHUTDOWN: &str = ".kafka_cleanshutdown";
pub const METADATA_PARTITION: &str = "__cluster_metadata-0";
const SEGMENT: &str = "00000000000000000000.log";

/// Why a node cannot start on what its disk holds.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    #[error("read or write {path}: {source}")]
    Io { path: String, source: io::Error },
    #[error("parse {path}: {reason}")]
    Content { path: String, reason: String },
    #[error("start on {path}: it belongs to {found}, not to {expected}")]
    Identity { path: String, found: String, expected: String },
}

pub fn io_error(path: &str) -> impl FnOnce(io::Error) -> BootError {
    let path = path.to_string();
    move |source| BootError::Io { path, source }
}

pub fn content_error<E: std::fmt::Display>(path: &str) -> impl FnOnce(E) -> BootError {
    let path = path.to_string();
    move |error| BootError::Content { path, reason: error.to_string() }
}

/// Where one replica's files lie.
#[derive(Clone, Debug)]
pub struct LogPaths {
    pub directory: String,
    pub log: String,
    topic: String,
}

impl LogPaths {
    pub fn new(topic: &str, index: i32) -> LogPaths {
        let directory = format!("{DATA_DIRECTORY}/{topic}-{index}");
        LogPaths { log: format!("{directory}/{SEGMENT}"), directory, topic: topic.to_string() }
    }

    /// Name of the topic.
    pub fn topic(&self) -> &str {
        &self.topic
    }
}

pub fn metadata_directory() -> String {
    format!("{DATA_DIRECTORY}/{METADATA_PARTITION}")
}

pub fn metadata_log() -> String {
    format!("{DATA_DIRECTORY}/{METADATA_PARTITION}/{SEGMENT}")
}

/// Replaces a small file so that a reader sees old or new content, never a mixture (R14): a temporary file is
/// written and synced, renamed over the old one, and the directory is synced.
pub async fn replace<D: Disk>(disk: &D, directory: &str, name: &str, content: Bytes) -> io::Result<()> {
    let path = format!("{directory}/{name}");
    let temporary = format!("{path}.tmp");
    let file = disk.open(&temporary, true).await?;
    file.truncate(0).await?;
    file.write_at(0, content).await?;
    file.sync().await?;
    disk.rename(&temporary, &path).await?;
    disk.sync_directory(directory).await
}

/// A whole file, or `None` when there is none.
pub async fn read_whole<D: Disk>(disk: &D, path: &str) -> Result<Option<Bytes>, BootError> {
    let file = match disk.open(path, false).await {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error(path)(error)),
    };
    let size = file.size().await.map_err(io_error(path))?;
    let length = usize::try_from(size).map_err(content_error(path))?;
    file.read_at(0, length).await.map(Some).map_err(io_error(path))
}

pub async fn read_text<D: Disk>(disk: &D, path: &str) -> Result<Option<String>, BootError> {
    let Some(bytes) = read_whole(disk, path).await? else { return Ok(None) };
    String::from_utf8(bytes.to_vec()).map(Some).map_err(content_error(path))
}

/// Makes a replica's directory, identity and empty log, all of them durable by name before the log is used.
///
/// A directory of the same name goes first, durably: it is left from a topic that was deleted, or from an incarnation
/// that died before it was used, and its log and its leader epochs say nothing of this one.
pub async fn create_log<D: Disk>(disk: &D, paths: &LogPaths, topic: Uuid) -> io::Result<D::File> {
    remove_log(disk, paths).await?;
    disk.create_directories(&paths.directory).await?;
    replace(disk, &paths.directory, PARTITION_METADATA, PartitionMetadata { topic }.render().into()).await?;
    let file = disk.open(&paths.log, true).await?;
    disk.sync_directory(&paths.directory).await?;
    disk.sync_directory(DATA_DIRECTORY).await?;
    Ok(file)
}

/// Removes a replica's directory with everything in it, durably; one that is missing is no error.
pub async fn remove_log<D: Disk>(disk: &D, paths: &LogPaths) -> io::Result<()> {
    match disk.remove(&paths.directory).await {
        Ok(()) => disk.sync_directory(DATA_DIRECTORY).await,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Makes a log directory of an empty disk usable: identity, metadata log and their names, all durable. Does nothing
/// when `meta.properties` is there, and then checks whose it is. Returns the directory id.
///
/// # Errors
/// An I/O error, content that does not parse, or a disk of another cluster or node.
pub async fn format_if_empty<D: Disk>(
    disk: &D,
    cluster_id: &str,
    node: NodeId,
    new_directory: Uuid,
) -> Result<Uuid, BootError> {
    let path = format!("{DATA_DIRECTORY}/{META_PROPERTIES}");
    if let Some(text) = read_text(disk, &path).await? {
        let found = MetaProperties::parse(&text).map_err(content_error(&path))?;
        if found.cluster_id != cluster_id || found.node_id != node.0 {
            return Err(BootError::Identity {
                path,
                found: format!("node {} of cluster {}", found.node_id, found.cluster_id),
                expected: format!("node {node} of cluster {cluster_id}"),
            });
        }
        return Ok(found.directory_id);
    }
    let directory = metadata_directory();
    disk.create_directories(&directory).await.map_err(io_error(&directory))?;
    disk.open(&metadata_log(), true).await.map_err(io_error(&metadata_log()))?;
    disk.sync_directory(&directory).await.map_err(io_error(&directory))?;
    let properties =
        MetaProperties { cluster_id: cluster_id.to_string(), node_id: node.0, directory_id: new_directory };
    let text = properties.render();
    replace(disk, DATA_DIRECTORY, META_PROPERTIES, text.into()).await.map_err(io_error(&path))?;
    // The log directory's own name, in the node's root.
    disk.sync_directory("").await.map_err(io_error(""))?;
    Ok(new_directory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory_disk::{MemoryDisk, finish};

    #[test]
    fn replaced_file_is_old_or_new_wherever_the_replacement_stops() {
        // R14. A longer temporary file is left from an earlier try.
        for carried_out in 0..8 {
            let disk = MemoryDisk::default();
            disk.write("data/x", b"old");
            disk.write("data/x.tmp", b"much longer than the new one");
            disk.fail_after(carried_out);
            let replaced = finish(replace(&disk, "data", "x", Bytes::from_static(b"new")));
            let content = disk.read("data/x").expect("it never goes");
            assert!(content == b"old" || content == b"new", "{content:?} after {carried_out} changes");
            assert!(replaced.is_err() || content == b"new");
            assert_eq!(replaced.is_ok(), carried_out >= 5, "five changes replace a file");
        }
    }

    #[test]
    fn content_is_durable_before_its_name_and_the_name_before_the_answer() {
        let disk = MemoryDisk::default();
        finish(replace(&disk, "data", "x", Bytes::from_static(b"new"))).expect("nothing fails");
        let steps = [
            "create data/x.tmp",
            "truncate data/x.tmp",
            "write data/x.tmp",
            "sync data/x.tmp",
            "rename data/x",
            "sync_directory data",
        ];
        assert_eq!(disk.asked(), steps);
    }

    #[test]
    fn new_log_inherits_nothing_from_a_directory_of_its_name() {
        let disk = MemoryDisk::default();
        let paths = LogPaths::new("orders", 0);
        disk.write("data/orders-0/leader-epoch-checkpoint", b"0\n1\n7 0\n");
        disk.write(&paths.log, b"batches of another topic");
        let file = finish(create_log(&disk, &paths, Uuid([1; 16]))).expect("nothing fails");
        assert_eq!(finish(file.size()).expect("an open file"), 0);
        assert_eq!(
            disk.paths(),
            ["data/orders-0/00000000000000000000.log", "data/orders-0/partition.metadata"]
        );
        let asked = disk.asked();
        // Gone durably before anything takes its place; there durably before it is used.
        assert_eq!(asked[..2], ["remove data/orders-0", "sync_directory data"]);
        assert_eq!(asked[asked.len() - 2..], ["sync_directory data/orders-0", "sync_directory data"]);
    }

    #[test]
    fn disk_of_another_node_or_cluster_is_refused() {
        let disk = MemoryDisk::default();
        let first =
            finish(format_if_empty(&disk, "cluster", NodeId(1), Uuid([1; 16]))).expect("an empty disk");
        let again =
            finish(format_if_empty(&disk, "cluster", NodeId(1), Uuid([2; 16]))).expect("its own disk");
        assert_eq!((first, again), (Uuid([1; 16]), Uuid([1; 16])));
        for (cluster, node) in [("cluster", NodeId(2)), ("other", NodeId(1))] {
            let refused = finish(format_if_empty(&disk, cluster, node, Uuid([2; 16])));
            assert!(matches!(refused, Err(BootError::Identity { .. })));
        }
    }
}
