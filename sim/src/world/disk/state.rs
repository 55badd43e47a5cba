//! One whole disk and its operations, each told to the tap when it happens. No waiting: latencies are the handle's.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use acked_core::NodeId;
use acked_env::DirectoryEntry;
use bytes::Bytes;
use rand_chacha::ChaCha8Rng;

use super::content::Content;
use super::names::{Entry, Inode, Names, ROOT};
use crate::world::tap::{DiskChange, DiskTap};

/// How fast and how large a disk is. Latencies in nanoseconds, uniform between the bounds.
#[derive(Clone, Debug)]
pub struct DiskSettings {
    pub read_ns: (u64, u64),
    pub write_ns: (u64, u64),
    pub sync_ns: (u64, u64),
    /// Opening, listing, creating, renaming, removing.
    pub metadata_ns: (u64, u64),
    /// Bytes of file content.
    pub capacity: u64,
}

impl Default for DiskSettings {
    fn default() -> DiskSettings {
        DiskSettings {
            read_ns: (5_000, 20_000),
            write_ns: (10_000, 50_000),
            sync_ns: (200_000, 2_000_000),
            metadata_ns: (5_000, 50_000),
            capacity: 100 << 30,
        }
    }
}

/// What faults really did to a disk, since the start of the world or by one fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskEffects {
    /// Bytes of files that are gone or different.
    pub bytes_lost: u64,
    pub pages_dropped: u64,
    pub pages_torn: u64,
    pub sizes_reverted: u64,
    /// Changes of names that did not survive.
    pub names_reverted: u64,
    /// Files with any difference.
    pub files_changed: u64,
    pub syncs_failed: u64,
}

impl DiskEffects {
    /// What was added since `before`.
    pub fn since(self, before: DiskEffects) -> DiskEffects {
        DiskEffects {
            bytes_lost: self.bytes_lost - before.bytes_lost,
            pages_dropped: self.pages_dropped - before.pages_dropped,
            pages_torn: self.pages_torn - before.pages_torn,
            sizes_reverted: self.sizes_reverted - before.sizes_reverted,
            names_reverted: self.names_reverted - before.names_reverted,
            files_changed: self.files_changed - before.files_changed,
            syncs_failed: self.syncs_failed - before.syncs_failed,
        }
    }

    fn add(&mut self, other: DiskEffects) {
        self.bytes_lost += other.bytes_lost;
        self.pages_dropped += other.pages_dropped;
        self.pages_torn += other.pages_torn;
        self.sizes_reverted += other.sizes_reverted;
        self.names_reverted += other.names_reverted;
        self.files_changed += other.files_changed;
        self.syncs_failed += other.syncs_failed;
    }
}

pub(in crate::world) struct DiskState {
    pub settings: DiskSettings,
    pub random: ChaCha8Rng,
    /// Handles of earlier incarnations are refused.
    pub incarnation: u32,
    /// So many of the next syncs fail.
    pub syncs_to_fail: u64,
    pub tap: Option<Arc<dyn DiskTap>>,
    node: Option<NodeId>,
    files: BTreeMap<Inode, File>,
    names: Names,
    next_inode: Inode,
    used: u64,
    effects: DiskEffects,
}

struct File {
    content: Content,
    /// `None` once it has no name.
    path: Option<String>,
    handles: u32,
}

impl DiskState {
    pub(in crate::world) fn new(
        node: Option<NodeId>,
        settings: DiskSettings,
        random: ChaCha8Rng,
    ) -> DiskState {
        DiskState {
            settings,
            random,
            incarnation: 0,
            syncs_to_fail: 0,
            tap: None,
            node,
            files: BTreeMap::new(),
            names: Names::default(),
            next_inode: ROOT + 1,
            used: 0,
            effects: DiskEffects::default(),
        }
    }

    /// Opens a file; the caller then holds a handle. Says whether it was created.
    pub(in crate::world) fn open(&mut self, path: &str, create: bool) -> io::Result<(Inode, bool)> {
        let (inode, created) = match self.names.find(path)? {
            Some(Entry::File(inode)) => (inode, false),
            Some(Entry::Directory(_)) => return Err(io::ErrorKind::IsADirectory.into()),
            None if !create => return Err(io::ErrorKind::NotFound.into()),
            None => {
                let place = self.names.place(path)?;
                let inode = self.inode();
                self.names.create(place, Entry::File(inode));
                let file = File { content: Content::default(), path: Some(path.to_owned()), handles: 0 };
                self.files.insert(inode, file);
                self.tell(&DiskChange::Truncated { path, size: 0 });
                (inode, true)
            }
        };
        self.file_mut(inode).handles += 1;
        Ok((inode, created))
    }

    pub(in crate::world) fn close(&mut self, inode: Inode) {
        let Some(file) = self.files.get_mut(&inode) else { return };
        file.handles = file.handles.saturating_sub(1);
        if file.handles == 0 && file.path.is_none() {
            self.forget_unnamed();
        }
    }

    pub(in crate::world) fn size(&self, inode: Inode) -> u64 {
        self.files[&inode].content.bytes().len() as u64
    }

    pub(in crate::world) fn read(&self, inode: Inode, position: u64, length: usize) -> Bytes {
        let position = usize::try_from(position).unwrap_or(usize::MAX);
        Bytes::copy_from_slice(self.files[&inode].content.read(position, length))
    }

    pub(in crate::world) fn write(&mut self, inode: Inode, position: u64, bytes: &[u8]) -> io::Result<()> {
        let end = position.checked_add(bytes.len() as u64).ok_or(io::ErrorKind::FileTooLarge)?;
        self.reserve(inode, end)?;
        self.file_mut(inode).content.write(position as usize, bytes);
        self.tell_of(inode, |path| DiskChange::Written { path, position, bytes });
        Ok(())
    }

    pub(in crate::world) fn truncate(&mut self, inode: Inode, size: u64) -> io::Result<()> {
        self.reserve(inode, size)?;
        let before = self.size(inode);
        self.file_mut(inode).content.truncate(size as usize);
        self.used -= before.saturating_sub(size);
        self.tell_of(inode, |path| DiskChange::Truncated { path, size });
        Ok(())
    }

    pub(in crate::world) fn sync(&mut self, inode: Inode) -> io::Result<()> {
        if self.syncs_to_fail > 0 {
            self.syncs_to_fail -= 1;
            self.effects.syncs_failed += 1;
            return Err(io::Error::other("the disk reports an input/output error"));
        }
        self.file_mut(inode).content.sync();
        self.tell_of(inode, |path| DiskChange::Synced { path });
        Ok(())
    }

    pub(in crate::world) fn create_directories(&mut self, path: &str) -> io::Result<()> {
        let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
        for end in ends {
            let part = &path[..end];
            match self.names.find(part)? {
                Some(Entry::Directory(_)) => {}
                Some(Entry::File(_)) => return Err(io::ErrorKind::AlreadyExists.into()),
                None => {
                    let place = self.names.place(part)?;
                    let inode = self.inode();
                    self.names.create(place, Entry::Directory(inode));
                }
            }
        }
        Ok(())
    }

    pub(in crate::world) fn list(&self, path: &str) -> io::Result<Vec<DirectoryEntry>> {
        let directory = self.directory(path)?;
        let entry = |(name, entry): (&str, Entry)| DirectoryEntry {
            name: name.to_owned(),
            is_directory: matches!(entry, Entry::Directory(_)),
        };
        Ok(self.names.list(directory).map(entry).collect())
    }

    pub(in crate::world) fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let entry = self.names.find(from)?.ok_or(io::ErrorKind::NotFound)?;
        let (source, target) = (self.names.place(from)?, self.names.place(to)?);
        let replaced = self.names.find(to)?;
        match (entry, replaced) {
            _ if source == target => return Ok(()),
            (_, None) | (Entry::File(_), Some(Entry::File(_))) => {}
            (Entry::File(_), Some(Entry::Directory(_))) => return Err(io::ErrorKind::IsADirectory.into()),
            (Entry::Directory(_), Some(Entry::File(_))) => return Err(io::ErrorKind::NotADirectory.into()),
            (Entry::Directory(_), Some(Entry::Directory(directory))) => {
                if self.names.list(directory).next().is_some() {
                    return Err(io::ErrorKind::DirectoryNotEmpty.into());
                }
            }
        }
        if to.strip_prefix(from).is_some_and(|rest| rest.starts_with('/')) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let moved = self.names.files_under(from, entry);
        if let Some(Entry::File(inode)) = replaced {
            self.file_mut(inode).path = None;
        }
        self.names.rename(source, target, entry);
        for (path, inode) in moved {
            let renamed = format!("{to}{}", &path[from.len()..]);
            self.tell(&DiskChange::Renamed { from: &path, to: &renamed });
            self.file_mut(inode).path = Some(renamed);
        }
        Ok(())
    }

    pub(in crate::world) fn remove(&mut self, path: &str) -> io::Result<()> {
        let entry = self.names.find(path)?.ok_or(io::ErrorKind::NotFound)?;
        let place = self.names.place(path)?;
        let removed = self.names.files_under(path, entry);
        self.names.remove(place);
        for (path, inode) in removed {
            self.file_mut(inode).path = None;
            self.tell(&DiskChange::Removed { path: &path });
        }
        Ok(())
    }

    pub(in crate::world) fn sync_directory(&mut self, path: &str) -> io::Result<()> {
        let directory = self.directory(path)?;
        self.names.sync(directory);
        self.forget_unnamed();
        Ok(())
    }

    pub(in crate::world) fn free_space(&self) -> u64 {
        self.settings.capacity.saturating_sub(self.used)
    }

    /// The process is gone: its handles are void, everything else stays.
    pub(in crate::world) fn process_ended(&mut self, incarnation: u32) {
        self.incarnation = incarnation;
        for file in self.files.values_mut() {
            file.handles = 0;
        }
        self.forget_unnamed();
    }

    /// The machine lost power: a random subset of what was not synced survives.
    pub(in crate::world) fn lose_power(&mut self, incarnation: u32) -> DiskEffects {
        self.process_ended(incarnation);
        let before = self.names.files();
        let mut loss =
            DiskEffects { names_reverted: self.names.lose_power(&mut self.random), ..DiskEffects::default() };
        let mut first_differences: BTreeMap<Inode, Option<u64>> = BTreeMap::new();
        for (inode, file) in &mut self.files {
            let content = file.content.lose_power(&mut self.random);
            first_differences.insert(*inode, content.first_difference.map(|position| position as u64));
            loss.bytes_lost += content.bytes_lost;
            loss.pages_dropped += content.pages_dropped;
            loss.pages_torn += content.pages_torn;
            loss.sizes_reverted += u64::from(content.size_reverted);
        }
        loss.files_changed = self.replace_all(&before, &first_differences);
        self.effects.add(loss);
        loss
    }

    /// An empty disk takes this one's place.
    pub(in crate::world) fn wipe(&mut self, incarnation: u32) -> DiskEffects {
        self.process_ended(incarnation);
        let before = self.names.files();
        let mut loss = DiskEffects { names_reverted: before.len() as u64, ..DiskEffects::default() };
        loss.bytes_lost = before.iter().map(|(_, inode)| self.size(*inode)).sum();
        self.names.clear();
        loss.files_changed = self.replace_all(&before, &BTreeMap::new());
        self.effects.add(loss);
        loss
    }

    pub(in crate::world) fn effects(&self) -> DiskEffects {
        self.effects
    }

    /// What the page cache holds under `path`.
    pub(in crate::world) fn inspect(&self, path: &str) -> Option<Bytes> {
        match self.names.find(path) {
            Ok(Some(Entry::File(inode))) => Some(Bytes::copy_from_slice(self.files[&inode].content.bytes())),
            _ => None,
        }
    }

    pub(in crate::world) fn files(&self) -> Vec<String> {
        self.names.files().into_iter().map(|(path, _)| path).collect()
    }

    /// The names are what the platter has: paths follow, what has no name is forgotten, and the tap hears of every
    /// file that is or was. Returns how many files differ from what the page cache held under their path.
    fn replace_all(
        &mut self,
        before: &[(String, Inode)],
        first_differences: &BTreeMap<Inode, Option<u64>>,
    ) -> u64 {
        let after: BTreeMap<String, Inode> = self.names.files().into_iter().collect();
        for file in self.files.values_mut() {
            file.path = None;
        }
        for (path, inode) in &after {
            self.file_mut(*inode).path = Some(path.clone());
        }
        self.files.retain(|_, file| file.path.is_some());
        self.used = self.files.values().map(|file| file.content.bytes().len() as u64).sum();
        let before: BTreeMap<&str, Inode> =
            before.iter().map(|(path, inode)| (path.as_str(), *inode)).collect();
        let mut changed = 0;
        for path in before.keys().copied().filter(|path| !after.contains_key(*path)) {
            changed += 1;
            self.tell(&DiskChange::Replaced { path, content: None, first_difference: Some(0) });
        }
        for (path, inode) in &after {
            let same_file = before.get(path.as_str()) == Some(inode);
            let known = first_differences.get(inode).copied().flatten();
            let first_difference = if same_file { known } else { Some(0) };
            changed += u64::from(first_difference.is_some());
            let content = Some(self.files[inode].content.bytes());
            self.tell(&DiskChange::Replaced { path, content, first_difference });
        }
        changed
    }

    fn reserve(&mut self, inode: Inode, end: u64) -> io::Result<()> {
        let more = end.saturating_sub(self.size(inode));
        if more > self.free_space() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.used += more;
        Ok(())
    }

    /// Forgets files without a name that no handle holds and no power loss can bring back.
    fn forget_unnamed(&mut self) {
        let (names, used) = (&self.names, &mut self.used);
        self.files.retain(|inode, file| {
            let keep = file.path.is_some() || file.handles > 0 || names.mentions(*inode);
            if !keep {
                *used -= file.content.bytes().len() as u64;
            }
            keep
        });
    }

    fn directory(&self, path: &str) -> io::Result<Inode> {
        match self.names.find(path)? {
            Some(Entry::Directory(directory)) => Ok(directory),
            Some(Entry::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn inode(&mut self) -> Inode {
        self.next_inode += 1;
        self.next_inode
    }

    fn file_mut(&mut self, inode: Inode) -> &mut File {
        self.files.get_mut(&inode).expect("a file that is named or held exists")
    }

    fn tell_of<'a>(&'a self, inode: Inode, change: impl FnOnce(&'a str) -> DiskChange<'a>) {
        if let Some(path) = &self.files[&inode].path {
            self.tell(&change(path));
        }
    }

    fn tell(&self, change: &DiskChange<'_>) {
        if let (Some(tap), Some(node)) = (&self.tap, self.node) {
            tap.changed(node, change);
        }
    }
}
