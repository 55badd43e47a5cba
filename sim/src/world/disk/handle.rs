//! What the nodes hold of a disk. Adds to each operation its latency, the check that the process still lives, and
//! its trace.

use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use acked_env::{DirectoryEntry, Disk, File};
use bytes::Bytes;

use super::names::Inode;
use super::state::DiskState;
use crate::world::host::Host;
use crate::world::shared::{Shared, Slot, lock};
use crate::world::streams;
use crate::world::trace::{DiskAction, Happening};

/// One machine's disk, for all its incarnations.
pub(in crate::world) struct DiskShared {
    pub host: Host,
    state: Mutex<DiskState>,
}

impl DiskShared {
    pub(in crate::world) fn new(host: Host, state: DiskState) -> DiskShared {
        DiskShared { host, state: Mutex::new(state) }
    }

    pub(in crate::world) fn lock(&self) -> MutexGuard<'_, DiskState> {
        lock(&self.state)
    }
}

/// A process's access to the disk of its machine. Refused once the process has ended.
#[derive(Clone)]
pub struct SimDisk {
    shared: Arc<Shared>,
    disk: Arc<DiskShared>,
    incarnation: u32,
}

/// When an operation takes effect: a crash in between finds it done or not.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    AtTheEnd,
    /// At the start or at the end, as drawn.
    Either,
}

#[derive(Clone, Copy)]
enum Kind {
    Read,
    Write,
    Sync,
    Metadata,
}

impl SimDisk {
    pub(in crate::world) fn new(shared: &Arc<Shared>, host: Host, incarnation: u32) -> SimDisk {
        SimDisk { shared: Arc::clone(shared), disk: shared.disk(host), incarnation }
    }

    async fn operate<R>(
        &self,
        kind: Kind,
        effect: Effect,
        act: impl FnOnce(&mut DiskState) -> io::Result<R>,
    ) -> io::Result<R> {
        let (latency, first) = {
            let state = &mut *self.disk.lock();
            let (low, high) = match kind {
                Kind::Read => state.settings.read_ns,
                Kind::Write => state.settings.write_ns,
                Kind::Sync => state.settings.sync_ns,
                Kind::Metadata => state.settings.metadata_ns,
            };
            let latency = streams::between(&mut state.random, low, high);
            let first = streams::chance(&mut state.random, 500_000);
            (latency, first && effect == Effect::Either)
        };
        let slot = Slot::new(&self.shared, None);
        let end = self.shared.lock().schedule.now() + latency;
        if first {
            let result = self.now(act);
            slot.set(Some(end));
            poll_fn(|context| slot.poll(context.waker())).await;
            result
        } else {
            slot.set(Some(end));
            poll_fn(|context| slot.poll(context.waker())).await;
            self.now(act)
        }
    }

    fn now<R>(&self, act: impl FnOnce(&mut DiskState) -> io::Result<R>) -> io::Result<R> {
        let state = &mut *self.disk.lock();
        if state.incarnation != self.incarnation {
            return Err(io::ErrorKind::StaleNetworkFileHandle.into());
        }
        act(state)
    }

    fn record(&self, change: DiskAction, position: u64, size: u64, checksum: u32) {
        let host = self.disk.host;
        self.shared.lock().record(Happening::DiskChanged { host, change, position, size, checksum });
    }

    /// A change of names, recorded with its paths once it is done.
    async fn change_names(
        &self,
        change: DiskAction,
        paths: [&str; 2],
        act: impl FnOnce(&mut DiskState) -> io::Result<()>,
    ) -> io::Result<()> {
        let kind = if change == DiskAction::SyncDirectory { Kind::Sync } else { Kind::Metadata };
        let effect = if change == DiskAction::SyncDirectory { Effect::AtTheEnd } else { Effect::Either };
        self.operate(kind, effect, |state| {
            act(state)?;
            self.record(change, 0, 0, checksum(paths));
            Ok(())
        })
        .await
    }
}

impl Disk for SimDisk {
    type File = SimFile;

    async fn open(&self, path: &str, create: bool) -> io::Result<SimFile> {
        let effect = Effect::AtTheEnd;
        self.operate(Kind::Metadata, effect, |state| {
            let (inode, created) = state.open(path, create)?;
            if created {
                self.record(DiskAction::Create, 0, 0, checksum([path, ""]));
            }
            Ok(SimFile { disk: self.clone(), inode })
        })
        .await
    }

    async fn create_directories(&self, path: &str) -> io::Result<()> {
        self.change_names(DiskAction::Create, [path, "/"], |state| state.create_directories(path)).await
    }

    async fn list(&self, path: &str) -> io::Result<Vec<DirectoryEntry>> {
        self.operate(Kind::Metadata, Effect::AtTheEnd, |state| state.list(path)).await
    }

    async fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.change_names(DiskAction::Rename, [from, to], |state| state.rename(from, to)).await
    }

    async fn remove(&self, path: &str) -> io::Result<()> {
        self.change_names(DiskAction::Remove, [path, ""], |state| state.remove(path)).await
    }

    async fn sync_directory(&self, path: &str) -> io::Result<()> {
        self.change_names(DiskAction::SyncDirectory, [path, ""], |state| state.sync_directory(path)).await
    }

    async fn free_space(&self) -> io::Result<u64> {
        self.operate(Kind::Metadata, Effect::AtTheEnd, |state| Ok(state.free_space())).await
    }
}

/// An open file of a process.
pub struct SimFile {
    disk: SimDisk,
    inode: Inode,
}

impl File for SimFile {
    async fn size(&self) -> io::Result<u64> {
        self.disk.operate(Kind::Metadata, Effect::AtTheEnd, |state| Ok(state.size(self.inode))).await
    }

    async fn read_at(&self, position: u64, length: usize) -> io::Result<Bytes> {
        let read = |state: &mut DiskState| Ok(state.read(self.inode, position, length));
        self.disk.operate(Kind::Read, Effect::AtTheEnd, read).await
    }

    async fn write_at(&self, position: u64, bytes: Bytes) -> io::Result<()> {
        self.disk
            .operate(Kind::Write, Effect::Either, |state| {
                state.write(self.inode, position, &bytes)?;
                let checksum = crc32c::crc32c(&bytes);
                self.disk.record(DiskAction::Write, position, bytes.len() as u64, checksum);
                Ok(())
            })
            .await
    }

    async fn truncate(&self, size: u64) -> io::Result<()> {
        self.disk
            .operate(Kind::Write, Effect::Either, |state| {
                state.truncate(self.inode, size)?;
                self.disk.record(DiskAction::Truncate, size, 0, 0);
                Ok(())
            })
            .await
    }

    async fn sync(&self) -> io::Result<()> {
        self.disk
            .operate(Kind::Sync, Effect::AtTheEnd, |state| {
                state.sync(self.inode)?;
                self.disk.record(DiskAction::Sync, 0, state.size(self.inode), 0);
                Ok(())
            })
            .await
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        let state = &mut *self.disk.disk.lock();
        if state.incarnation == self.disk.incarnation {
            state.close(self.inode);
        }
    }
}

fn checksum(paths: [&str; 2]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(paths[0].as_bytes()), paths[1].as_bytes())
}
