//! What a node finds on its disk before it serves: who it is, what it voted, its metadata log and its replicas'
//! logs. What a found log means is decided in core; this reads, carries the plan out, and reports.

use std::collections::BTreeMap;

use acked_core::log::checkpoint::{self, CleanShutdown, OffsetEntry, PartitionMetadata, QuorumStateFile};
use acked_core::log::recovery::{FoundLog, RecoveredLog, RecoveryPlan, recover};
use acked_core::quorum::{self, QuorumState};
use acked_core::{NodeId, Observation, TopicPartition};
use acked_env::{Disk, Env, File};
use acked_wire::Uuid;
use rand_chacha::rand_core::Rng;

use crate::config::{NodeConfig, Role};
use crate::files::{self, BootError, DATA_DIRECTORY, LogPaths, content_error, io_error};

/// Everything that a node starts from.
pub struct Booted {
    pub directory: Uuid,
    pub incarnation: Uuid,
    pub quorum_state: Option<QuorumState>,
    pub metadata_log: quorum::RecoveredLog,
    /// `None` after an unclean stop.
    pub previous_broker_epoch: Option<i64>,
    pub replicas: BTreeMap<TopicPartition, Replica>,
    pub high_watermarks: Vec<OffsetEntry>,
    pub recovery_points: Vec<OffsetEntry>,
    pub observations: Vec<Observation>,
}

pub struct Replica {
    pub paths: LogPaths,
    /// `None` when what was synced is missing or damaged: the replica must not be served.
    pub log: Option<(RecoveredLog, i64)>,
}

/// Reads the disk, formatting it when it is empty.
///
/// # Errors
/// I/O errors, files that do not parse, a disk of another node or cluster, a metadata log damaged where it was synced.
pub async fn boot<E: Env>(env: &E, config: &NodeConfig) -> Result<Booted, BootError> {
    let disk = env.disk();
    // A stream of its own for each start: incarnations differ, everything else is unmoved.
    let mut random = env.rng("incarnation");
    let directory =
        files::format_if_empty(&disk, &config.cluster_id, config.node, random_id(&mut random)).await?;
    let incarnation = random_id(&mut random);
    let path = format!("{}/{}", files::metadata_directory(), files::QUORUM_STATE);
    let quorum_state = match files::read_text(&disk, &path).await? {
        None => None,
        Some(text) => Some(quorum_state(&QuorumStateFile::parse(&text).map_err(content_error(&path))?)),
    };
    let metadata_log = metadata_log(&disk).await?;
    let mut booted = Booted {
        directory,
        incarnation,
        quorum_state,
        metadata_log,
        previous_broker_epoch: None,
        replicas: BTreeMap::new(),
        high_watermarks: Vec::new(),
        recovery_points: Vec::new(),
        observations: vec![Observation::NodeStarted { incarnation }],
    };
    if config.role == Role::Broker {
        replicas(&disk, &mut booted).await?;
    }
    Ok(booted)
}

fn random_id(random: &mut impl Rng) -> Uuid {
    let mut id = [0; 16];
    random.fill_bytes(&mut id);
    Uuid(id)
}

fn quorum_state(file: &QuorumStateFile) -> QuorumState {
    let node = |id: i32| (id >= 0).then_some(NodeId(id));
    QuorumState { epoch: file.leader_epoch, leader: node(file.leader_id), voted: node(file.voted_id) }
}

async fn metadata_log<D: Disk>(disk: &D) -> Result<quorum::RecoveredLog, BootError> {
    let path = files::metadata_log();
    let bytes = files::read_whole(disk, &path).await?.unwrap_or_default();
    let recovered = quorum::recover_log(&bytes, 0).map_err(content_error(&path))?;
    // Cut and sync before anything is counted as durable: what the page cache showed may never have reached the disk.
    let file = disk.open(&path, false).await.map_err(io_error(&path))?;
    if recovered.kept_bytes() < recovered.found_bytes() {
        file.truncate(recovered.kept_bytes()).await.map_err(io_error(&path))?;
    }
    file.sync().await.map_err(io_error(&path))?;
    Ok(recovered)
}

async fn replicas<D: Disk>(disk: &D, booted: &mut Booted) -> Result<(), BootError> {
    let marker_path = format!("{DATA_DIRECTORY}/{}", files::CLEAN_SHUTDOWN);
    let marker = match files::read_text(disk, &marker_path).await? {
        None => None,
        Some(text) => Some(CleanShutdown::parse(&text).map_err(content_error(&marker_path))?),
    };
    if marker.is_some() {
        // Gone, durably, before any log is loaded: a crash from here on is not clean.
        disk.remove(&marker_path).await.map_err(io_error(&marker_path))?;
        disk.sync_directory(DATA_DIRECTORY).await.map_err(io_error(DATA_DIRECTORY))?;
    }
    booted.previous_broker_epoch = marker.map(|marker| marker.broker_epoch).filter(|epoch| *epoch >= 0);
    let recovery_points = offsets(disk, files::RECOVERY_POINTS).await?;
    let high_watermarks = offsets(disk, files::HIGH_WATERMARKS).await?;
    for entry in disk.list(DATA_DIRECTORY).await.map_err(io_error(DATA_DIRECTORY))? {
        let Some((topic, index)) = partition_directory(&entry.name).filter(|_| entry.is_directory) else {
            continue;
        };
        let paths = LogPaths::new(topic, index);
        let path = format!("{}/{}", paths.directory, files::PARTITION_METADATA);
        // A directory without identity or log died while it was created: the replica is made anew when it is assigned.
        let Some(text) = files::read_text(disk, &path).await? else { continue };
        let identity = PartitionMetadata::parse(&text).map_err(content_error(&path))?;
        let Some(bytes) = files::read_whole(disk, &paths.log).await? else { continue };
        let path = format!("{}/{}", paths.directory, files::LEADER_EPOCHS);
        let epochs =
            files::read_text(disk, &path).await?.and_then(|text| checkpoint::parse_epochs(&text).ok());
        let found_bytes = bytes.len() as u64;
        let recovery_point = offset_of(&recovery_points, topic, index);
        let epochs_found = epochs.clone();
        let plan = recover(FoundLog {
            bytes,
            clean_shutdown: marker.is_some(),
            recovery_point,
            log_start_offset: 0,
            has_gaps: false,
            epochs,
            high_watermark: offset_of(&high_watermarks, topic, index),
        });
        let partition = TopicPartition { topic: identity.topic, index };
        let log = carry_out(disk, &paths, plan).await?;
        booted.observations.push(match &log {
            Some((log, high_watermark)) => Observation::LogRecovered {
                partition,
                found_bytes,
                kept_bytes: log.size(),
                log_start_offset: log.log_start_offset(),
                log_end_offset: log.log_end_offset(),
                high_watermark: *high_watermark,
                recovery_point,
                epochs_found,
                epochs: log.epochs().pairs(),
                clean: marker.is_some(),
            },
            None => Observation::LogOffline { partition },
        });
        booted.replicas.insert(partition, Replica { paths, log });
    }
    (booted.high_watermarks, booted.recovery_points) = (high_watermarks, recovery_points);
    Ok(())
}

async fn carry_out<D: Disk>(
    disk: &D,
    paths: &LogPaths,
    plan: RecoveryPlan,
) -> Result<Option<(RecoveredLog, i64)>, BootError> {
    let RecoveryPlan::Serve { truncate_to, sync, rewrite_epochs, log, high_watermark, cut: _ } = plan else {
        return Ok(None);
    };
    let file = disk.open(&paths.log, false).await.map_err(io_error(&paths.log))?;
    if let Some(size) = truncate_to {
        file.truncate(size).await.map_err(io_error(&paths.log))?;
    }
    if sync {
        file.sync().await.map_err(io_error(&paths.log))?;
    }
    if let Some(epochs) = rewrite_epochs {
        let text = checkpoint::render_epochs(&epochs);
        let path = format!("{}/{}", paths.directory, files::LEADER_EPOCHS);
        files::replace(disk, &paths.directory, files::LEADER_EPOCHS, text.into())
            .await
            .map_err(io_error(&path))?;
    }
    Ok(Some((log, high_watermark)))
}

/// The entries of a checkpoint; an unreadable one counts as missing, as in Kafka.
async fn offsets<D: Disk>(disk: &D, name: &str) -> Result<Vec<OffsetEntry>, BootError> {
    let path = format!("{DATA_DIRECTORY}/{name}");
    let text = files::read_text(disk, &path).await?.unwrap_or_default();
    Ok(checkpoint::parse_offsets(&text).unwrap_or_default())
}

fn offset_of(entries: &[OffsetEntry], topic: &str, index: i32) -> Option<i64> {
    entries.iter().find(|entry| entry.topic == topic && entry.partition == index).map(|entry| entry.offset)
}

/// `orders-0` as topic and index; `None` for directories that are no replica's.
fn partition_directory(name: &str) -> Option<(&str, i32)> {
    let (topic, index) = name.rsplit_once('-')?;
    let index = index.parse().ok().filter(|index| *index >= 0)?;
    Some((topic, index)).filter(|_| name != files::METADATA_PARTITION)
}
