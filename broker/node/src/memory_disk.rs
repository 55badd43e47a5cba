//! A disk in memory for this crate's tests: it tells what it was asked, in order, and fails what it is told to fail.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use acked_env::{DirectoryEntry, Disk, File};
use bytes::Bytes;

type Content = Arc<Mutex<Vec<u8>>>;

#[derive(Default)]
struct State {
    files: BTreeMap<String, Content>,
    directories: BTreeSet<String>,
    asked: Vec<String>,
    failing: BTreeSet<String>,
    fails_from: Option<usize>,
}

/// See the file's header. Clones share everything.
#[derive(Clone, Default)]
pub struct MemoryDisk(Arc<Mutex<State>>);

pub struct MemoryFile {
    disk: MemoryDisk,
    path: String,
    content: Content,
}

impl MemoryDisk {
    /// Changes that were asked for, as `operation path`.
    pub fn asked(&self) -> Vec<String> {
        self.state().asked.clone()
    }

    /// Where `operation path` stands among what was asked for.
    pub fn place(&self, asked: &str) -> usize {
        let all = self.asked();
        all.iter().position(|one| one == asked).unwrap_or_else(|| panic!("{asked:?} is not in {all:?}"))
    }

    /// Fails `operation path` whenever it is asked for.
    pub fn fail(&self, asked: &str) {
        self.state().failing.insert(asked.to_string());
    }

    /// Carries out so many more changes and fails all that come then.
    pub fn fail_after(&self, changes: usize) {
        let mut state = self.state();
        state.fails_from = Some(state.asked.len() + changes);
    }

    pub fn write(&self, path: &str, content: &[u8]) {
        self.state().files.insert(path.to_string(), Arc::new(Mutex::new(content.to_vec())));
    }

    pub fn read(&self, path: &str) -> Option<Vec<u8>> {
        let content = self.state().files.get(path).cloned()?;
        let content = content.lock().expect("no test panics while it holds a file");
        Some(content.clone())
    }

    pub fn paths(&self) -> Vec<String> {
        self.state().files.keys().cloned().collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no test panics while it holds the disk")
    }

    fn change(&self, operation: &str, path: &str) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.state();
        let asked = format!("{operation} {path}");
        let fails =
            state.failing.contains(&asked) || state.fails_from.is_some_and(|from| state.asked.len() >= from);
        state.asked.push(asked);
        if fails { Err(io::Error::other("told to fail")) } else { Ok(state) }
    }
}

impl Disk for MemoryDisk {
    type File = MemoryFile;

    async fn open(&self, path: &str, create: bool) -> io::Result<MemoryFile> {
        let missing = !self.state().files.contains_key(path);
        if missing && !create {
            return Err(io::ErrorKind::NotFound.into());
        }
        if missing {
            self.change("create", path)?.files.insert(path.to_string(), Content::default());
        }
        let content = Arc::clone(&self.state().files[path]);
        Ok(MemoryFile { disk: self.clone(), path: path.to_string(), content })
    }

    async fn create_directories(&self, path: &str) -> io::Result<()> {
        self.change("create_directories", path)?.directories.insert(path.to_string());
        Ok(())
    }

    async fn list(&self, _path: &str) -> io::Result<Vec<DirectoryEntry>> {
        unreachable!("no test lists a directory")
    }

    async fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.change("rename", to)?;
        let content = state.files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.files.insert(to.to_string(), content);
        Ok(())
    }

    async fn remove(&self, path: &str) -> io::Result<()> {
        let inside = format!("{path}/");
        let is_there =
            |state: &State| state.files.keys().any(|file| file == path || file.starts_with(&inside));
        if !is_there(&self.state()) && !self.state().directories.contains(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let mut state = self.change("remove", path)?;
        state.files.retain(|file, _| file != path && !file.starts_with(&inside));
        state.directories.remove(path);
        Ok(())
    }

    async fn sync_directory(&self, path: &str) -> io::Result<()> {
        self.change("sync_directory", path).map(drop)
    }

    async fn free_space(&self) -> io::Result<u64> {
        Ok(u64::MAX)
    }
}

impl MemoryFile {
    fn content(&self) -> MutexGuard<'_, Vec<u8>> {
        self.content.lock().expect("no test panics while it holds a file")
    }
}

impl File for MemoryFile {
    async fn size(&self) -> io::Result<u64> {
        Ok(self.content().len() as u64)
    }

    async fn read_at(&self, position: u64, length: usize) -> io::Result<Bytes> {
        let content = self.content();
        let from = usize::try_from(position).expect("small").min(content.len());
        Ok(Bytes::copy_from_slice(&content[from..content.len().min(from + length)]))
    }

    async fn write_at(&self, position: u64, bytes: Bytes) -> io::Result<()> {
        drop(self.disk.change("write", &self.path)?);
        let mut content = self.content();
        let from = usize::try_from(position).expect("small");
        let end = content.len().max(from + bytes.len());
        content.resize(end, 0);
        content[from..from + bytes.len()].copy_from_slice(&bytes);
        Ok(())
    }

    async fn truncate(&self, size: u64) -> io::Result<()> {
        drop(self.disk.change("truncate", &self.path)?);
        self.content().resize(usize::try_from(size).expect("small"), 0);
        Ok(())
    }

    async fn sync(&self) -> io::Result<()> {
        self.disk.change("sync", &self.path).map(drop)
    }
}

/// Runs what waits for nothing but other parts of itself.
pub fn finish<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    // Each poll goes on until everything waits; nothing here has more steps than this.
    for _ in 0..10_000 {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return value;
        }
    }
    panic!("it waits for ever")
}
