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
pub async fn create_log<D: Disk>(disk: &D, paths: &LogPaths, topic: Uuid) -> io::Result<D::File> {
    disk.create_directories(&paths.directory).await?;
    replace(disk, &paths.directory, PARTITION_METADATA, PartitionMetadata { topic }.render().into()).await?;
    let file = disk.open(&paths.log, true).await?;
    // A directory of the same name may be left from an incarnation that died before it was used.
    file.truncate(0).await?;
    disk.sync_directory(&paths.directory).await?;
    disk.sync_directory(DATA_DIRECTORY).await?;
    Ok(file)
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
