//! What survives a process crash and what a power loss, through the handles that a node has.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::{Arc, Mutex};

use acked_core::NodeId;
use acked_env::{Disk, Env, File};
use bytes::Bytes;
use proptest::prelude::*;

use super::{idle, in_world, in_world_of};
use crate::world::shared::lock;
use crate::world::tap::{DiskChange, DiskTap};
use crate::world::{CrashKind, SimEnv, World, WorldSettings};

async fn write(env: &SimEnv, path: &str, content: &'static [u8]) -> crate::world::SimFile {
    let file = env.disk().open(path, true).await.expect("the parent exists");
    file.write_at(0, Bytes::from_static(content)).await.expect("the disk has room");
    file
}

#[test]
fn a_process_crash_keeps_the_page_cache() {
    in_world(|world, [b1, _, _]| async move {
        let env = world.start(b1, idle).await;
        env.disk().create_directories("data/t-0").await.expect("the names are new");
        write(&env, "data/t-0/log", b"unsynced").await;
        assert_eq!(world.crash(b1, CrashKind::Process).bytes_lost, 0);
        let env = world.restart(b1).await;
        let file = env.disk().open("data/t-0/log", false).await.expect("the name survived");
        assert_eq!(file.size().await.expect("the handle is fresh"), 8);
        assert_eq!(&file.read_at(2, 100).await.expect("the handle is fresh")[..], b"synced");
        assert_eq!(world.files(b1), ["data/t-0/log"]);
        assert_eq!(world.inspect(b1, "data/t-0/log").as_deref(), Some(&b"unsynced"[..]));
    });
}

#[test]
fn power_loss_keeps_what_was_synced_with_its_name() {
    for seed in 0..20 {
        let settings = WorldSettings::default();
        in_world_of(seed, settings, |world, [b1, _, _]| async move {
            let env = world.start(b1, idle).await;
            write(&env, "log", b"synced").await.sync().await.expect("the disk works");
            env.disk().sync_directory("").await.expect("the root exists");
            let file = env.disk().open("log", false).await.expect("the name exists");
            file.write_at(6, Bytes::from_static(b"unsynced")).await.expect("the disk has room");
            world.crash(b1, CrashKind::Power);
            let content = world.inspect(b1, "log").expect("the name is durable");
            assert!(content.starts_with(b"synced") && content.len() <= 14, "{content:?}");
        });
    }
}

#[test]
fn an_unsynced_name_disappears_though_its_content_was_synced() {
    let survived: Vec<bool> = (0..20)
        .map(|seed| {
            in_world_of(seed, WorldSettings::default(), |world, [b1, _, _]| async move {
                let env = world.start(b1, idle).await;
                write(&env, "log", b"synced").await.sync().await.expect("the disk works");
                let lost = world.crash(b1, CrashKind::Power);
                let content = world.inspect(b1, "log");
                assert!(content.as_deref().is_none_or(|content| content == b"synced"));
                assert_eq!(lost.names_reverted, u64::from(content.is_none()));
                content.is_some()
            })
        })
        .collect();
    assert!(survived.contains(&true) && survived.contains(&false), "{survived:?}");
}

#[test]
fn a_rename_may_persist_before_the_content_it_names() {
    let outcomes: Vec<Vec<u8>> = (0..60)
        .map(|seed| {
            in_world_of(seed, WorldSettings::default(), |world, [b1, _, _]| async move {
                let env = world.start(b1, idle).await;
                write(&env, "checkpoint", b"old").await.sync().await.expect("the disk works");
                env.disk().sync_directory("").await.expect("the root exists");
                write(&env, "checkpoint.tmp", b"newer").await;
                env.disk().rename("checkpoint.tmp", "checkpoint").await.expect("the name exists");
                world.crash(b1, CrashKind::Power);
                world.inspect(b1, "checkpoint").expect("a replacing rename leaves one of the two").to_vec()
            })
        })
        .collect();
    let seen = |content: &[u8]| outcomes.iter().any(|outcome| outcome == content);
    assert!(seen(b"old") && seen(b"newer"), "{outcomes:?}");
    assert!(seen(b"") || seen(b"\0\0\0\0\0"), "the renamed file may be empty or hold zeros: {outcomes:?}");
}

#[test]
fn handles_of_an_ended_process_are_refused() {
    in_world(|world, [b1, _, _]| async move {
        let env = world.start(b1, idle).await;
        let file = write(&env, "log", b"old").await;
        world.crash(b1, CrashKind::Process);
        let late = file.sync().await.map_err(|error| error.kind());
        assert_eq!(late, Err(ErrorKind::StaleNetworkFileHandle), "also before the next start");
        let socket = env.connect("b2", 9092).await.map(|_| ()).map_err(|error| error.kind());
        assert_eq!(socket, Err(ErrorKind::NotConnected));
        world.restart(b1).await;
        let late = file.write_at(0, Bytes::from_static(b"new")).await.map_err(|error| error.kind());
        assert_eq!(late, Err(ErrorKind::StaleNetworkFileHandle));
        let late = env.disk().open("log", false).await.map(|_| ()).map_err(|error| error.kind());
        assert_eq!(late, Err(ErrorKind::StaleNetworkFileHandle));
        assert_eq!(world.inspect(b1, "log").as_deref(), Some(&b"old"[..]));
    });
}

#[test]
fn names_are_listed_moved_and_removed() {
    in_world(|world, [b1, _, _]| async move {
        let env = world.start(b1, idle).await;
        let disk = env.disk();
        disk.create_directories("data/t-0").await.expect("the names are new");
        write(&env, "data/t-0/log", b"bytes").await;
        let missing = disk.open("data/t-1/log", true).await.map(|_| ()).map_err(|error| error.kind());
        assert_eq!(missing, Err(ErrorKind::NotFound));
        disk.rename("data/t-0", "data/t-0-delete").await.expect("the name exists");
        let names = disk.list("data").await.expect("the directory exists");
        assert_eq!(names.iter().map(|entry| &entry.name[..]).collect::<Vec<_>>(), ["t-0-delete"]);
        assert_eq!(world.files(b1), ["data/t-0-delete/log"]);
        disk.remove("data/t-0-delete").await.expect("the name exists");
        assert!(world.files(b1).is_empty());
        let gone = disk.list("data/t-0-delete").await.map_err(|error| error.kind());
        assert_eq!(gone, Err(ErrorKind::NotFound));
        let outside = disk.open("../secret", true).await.map(|_| ()).map_err(|error| error.kind());
        assert_eq!(outside, Err(ErrorKind::InvalidInput));
    });
}

#[test]
fn a_full_disk_and_a_failing_sync_say_so() {
    in_world(|world, [b1, _, _]| async move {
        let env = world.start(b1, idle).await;
        world.set_disk(b1, |disk| disk.capacity = 10);
        let file = write(&env, "log", b"0123456789").await;
        assert_eq!(env.disk().free_space().await.ok(), Some(0));
        let full = file.write_at(5, Bytes::from_static(b"567890")).await.map_err(|error| error.kind());
        assert_eq!(full, Err(ErrorKind::StorageFull));
        world.fail_syncs(b1, 1);
        assert!(file.sync().await.is_err());
        assert!(file.sync().await.is_ok());
        assert_eq!(world.disk_effects(b1).syncs_failed, 1);
    });
}

#[test]
fn a_wiped_disk_is_empty() {
    in_world(|world, [b1, _, _]| async move {
        let env = world.start(b1, idle).await;
        write(&env, "log", b"bytes").await.sync().await.expect("the disk works");
        world.crash(b1, CrashKind::Process);
        assert_eq!(world.wipe_disk(b1).bytes_lost, 5);
        assert!(world.files(b1).is_empty());
    });
}

/// What a judge can keep of a disk by the tap alone.
#[derive(Default)]
struct Mirror(Mutex<BTreeMap<String, Vec<u8>>>);

impl DiskTap for Mirror {
    fn changed(&self, _: NodeId, change: &DiskChange<'_>) {
        let files = &mut *lock(&self.0);
        match change {
            DiskChange::Written { path, position, bytes } => {
                let file = files.entry((*path).to_owned()).or_default();
                let end = *position as usize + bytes.len();
                file.resize(file.len().max(end), 0);
                file[*position as usize..end].copy_from_slice(bytes);
            }
            DiskChange::Truncated { path, size } => {
                files.entry((*path).to_owned()).or_default().resize(*size as usize, 0);
            }
            DiskChange::Synced { path } => assert!(files.contains_key(*path)),
            DiskChange::Removed { path } => {
                files.remove(*path).expect("what is removed was there");
            }
            DiskChange::Renamed { from, to } => {
                let file = files.remove(*from).expect("what is renamed was there");
                files.insert((*to).to_owned(), file);
            }
            DiskChange::Replaced { path, content, first_difference } => {
                let before = files.remove(*path);
                if let Some(content) = content {
                    let before = before.unwrap_or_default();
                    let differs = before.iter().zip(*content).position(|(old, new)| old != new);
                    let shorter = before.len().min(content.len());
                    let differs = differs.or((before.len() != content.len()).then_some(shorter));
                    if let Some(differs) = differs {
                        let told = first_difference.expect("a difference is told");
                        assert!(told <= differs as u64);
                    }
                    files.insert((*path).to_owned(), content.to_vec());
                }
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Write { file: u8, position: u16, length: u16, byte: u8 },
    Truncate { file: u8, size: u16 },
    Sync { file: u8 },
    Rename { from: u8, to: u8 },
    Remove { file: u8 },
    SyncNames,
    Crash,
    LosePower,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let file = 0..3_u8;
    let write = (file.clone(), 0..9000_u16, 1..9000_u16, 1..=255_u8)
        .prop_map(|(file, position, length, byte)| Step::Write { file, position, length, byte });
    let truncate = (file.clone(), 0..12_000_u16).prop_map(|(file, size)| Step::Truncate { file, size });
    let sync = file.clone().prop_map(|file| Step::Sync { file });
    let rename = (file.clone(), file.clone()).prop_map(|(from, to)| Step::Rename { from, to });
    let remove = file.prop_map(|file| Step::Remove { file });
    let others = prop_oneof![Just(Step::SyncNames), Just(Step::Crash), Just(Step::LosePower)];
    let step = prop_oneof![4 => write, 1 => truncate, 2 => sync, 1 => rename, 1 => remove, 2 => others];
    proptest::collection::vec(step, 1..25)
}

fn name(file: u8) -> String {
    format!("f{file}")
}

/// Carries the steps out; after each, the disk, the plain model and the mirror agree. Across a power loss, what was
/// synced under a synced name and not touched since is the same.
async fn follow(world: World, host: crate::world::Host, mirror: Arc<Mirror>, steps: Vec<Step>) {
    let mut env = world.start(host, idle).await;
    let mut plain: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let mut synced: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let mut safe: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for step in steps {
        let disk = env.disk();
        match step {
            Step::Write { file, position, length, byte } => {
                let handle = disk.open(&name(file), true).await.expect("the root exists");
                let bytes = vec![byte; usize::from(length)];
                handle.write_at(u64::from(position), bytes.clone().into()).await.expect("there is room");
                let content = plain.entry(name(file)).or_default();
                let end = usize::from(position) + bytes.len();
                content.resize(content.len().max(end), 0);
                content[usize::from(position)..end].copy_from_slice(&bytes);
                synced.remove(&name(file));
                safe.remove(&name(file));
            }
            Step::Truncate { file, size } => {
                let Ok(handle) = disk.open(&name(file), false).await else { continue };
                handle.truncate(u64::from(size)).await.expect("there is room");
                plain.entry(name(file)).or_default().resize(usize::from(size), 0);
                synced.remove(&name(file));
                safe.remove(&name(file));
            }
            Step::Sync { file } => {
                let Ok(handle) = disk.open(&name(file), false).await else { continue };
                handle.sync().await.expect("the disk works");
                synced.insert(name(file), plain[&name(file)].clone());
            }
            Step::Rename { from, to } => {
                if disk.rename(&name(from), &name(to)).await.is_ok() && from != to {
                    let content = plain.remove(&name(from)).expect("the model has it");
                    plain.insert(name(to), content);
                    for known in [&mut synced, &mut safe] {
                        known.remove(&name(from));
                        known.remove(&name(to));
                    }
                }
            }
            Step::Remove { file } => {
                let removed = disk.remove(&name(file)).await.is_ok();
                assert_eq!(removed, plain.remove(&name(file)).is_some());
                synced.remove(&name(file));
                safe.remove(&name(file));
            }
            Step::SyncNames => {
                disk.sync_directory("").await.expect("the root exists");
                safe = synced.clone();
            }
            Step::Crash => {
                world.crash(host, CrashKind::Process);
                env = world.restart(host).await;
            }
            Step::LosePower => {
                world.crash(host, CrashKind::Power);
                env = world.restart(host).await;
                let found = |path: &String| world.inspect(host, path).map(|bytes| bytes.to_vec());
                assert!(safe.iter().all(|(path, content)| found(path).as_ref() == Some(content)));
                plain = world
                    .files(host)
                    .into_iter()
                    .map(|path| (path.clone(), found(&path).expect("it is listed")))
                    .collect();
                synced = plain.clone();
                safe = plain.clone();
            }
        }
        let files = world.files(host);
        let now: BTreeMap<String, Vec<u8>> = files
            .into_iter()
            .map(|path| (path.clone(), world.inspect(host, &path).expect("it is listed").to_vec()))
            .collect();
        assert_eq!(now, plain);
        assert_eq!(now, *lock(&mirror.0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]
    #[test]
    fn the_disk_agrees_with_a_plain_model_and_with_what_its_tap_tells(
        steps in steps(), seed in 0_u64..u64::MAX,
    ) {
        let mirror = Arc::new(Mirror::default());
        let tap: Arc<dyn DiskTap> = Arc::clone(&mirror) as Arc<dyn DiskTap>;
        let settings = WorldSettings { disk_tap: Some(tap), ..WorldSettings::default() };
        in_world_of(seed, settings, |world, [b1, _, _]| follow(world, b1, mirror, steps));
    }
}
