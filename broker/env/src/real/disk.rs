//! Files below one root directory, with the operating system's own fsync. Every call runs on tokio's threads for
//! blocking work, one after the other for each file, because each is awaited before the next is issued.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use crate::{DirectoryEntry, Disk, File};

/// The files of one node. Clones share the root.
#[derive(Clone, Debug)]
pub struct TokioDisk {
    root: Arc<PathBuf>,
}

impl TokioDisk {
    pub(super) fn new(root: PathBuf) -> TokioDisk {
        TokioDisk { root: Arc::new(root) }
    }

    /// Where `path` lies. `""` is the root itself.
    fn place(&self, path: &str) -> io::Result<PathBuf> {
        let below_root = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        if below_root && !path.contains('\0') {
            Ok(self.root.join(path))
        } else {
            Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{path:?} is no path below the root")))
        }
    }

    /// Where `path` lies, which must name something below the root.
    fn place_of_name(&self, path: &str) -> io::Result<PathBuf> {
        match path {
            "" => Err(io::Error::new(io::ErrorKind::InvalidInput, "the root has no name")),
            _ => self.place(path),
        }
    }
}

/// Runs `work` where it may block. Fails only as `work` does, and when the runtime is shutting down.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(io::Error::other(error)),
    }
}

impl Disk for TokioDisk {
    type File = TokioFile;

    async fn open(&self, path: &str, create: bool) -> io::Result<TokioFile> {
        let place = self.place_of_name(path)?;
        blocking(move || {
            let file =
                OpenOptions::new().read(true).write(true).create(create).truncate(false).open(place)?;
            Ok(TokioFile { file: Arc::new(file) })
        })
        .await
    }

    async fn create_directories(&self, path: &str) -> io::Result<()> {
        let place = self.place(path)?;
        blocking(move || fs::create_dir_all(place)).await
    }

    async fn list(&self, path: &str) -> io::Result<Vec<DirectoryEntry>> {
        let place = self.place(path)?;
        blocking(move || {
            let mut entries = Vec::new();
            for entry in fs::read_dir(place)? {
                let entry = entry?;
                let name = entry.file_name().into_string().map_err(|name| {
                    io::Error::new(io::ErrorKind::InvalidData, format!("the name {name:?} is not UTF-8"))
                })?;
                entries.push(DirectoryEntry { name, is_directory: entry.file_type()?.is_dir() });
            }
            entries.sort();
            Ok(entries)
        })
        .await
    }

    async fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let (from, to) = (self.place_of_name(from)?, self.place_of_name(to)?);
        blocking(move || fs::rename(from, to)).await
    }

    async fn remove(&self, path: &str) -> io::Result<()> {
        let place = self.place_of_name(path)?;
        blocking(move || {
            if fs::symlink_metadata(&place)?.is_dir() {
                fs::remove_dir_all(place)
            } else {
                fs::remove_file(place)
            }
        })
        .await
    }

    async fn sync_directory(&self, path: &str) -> io::Result<()> {
        let place = self.place(path)?;
        blocking(move || fs::File::open(place)?.sync_all()).await
    }

    async fn free_space(&self) -> io::Result<u64> {
        let root = Arc::clone(&self.root);
        blocking(move || {
            let space = rustix::fs::statvfs(root.as_path())?;
            Ok(space.f_bavail.saturating_mul(space.f_frsize))
        })
        .await
    }
}

/// An open file.
#[derive(Clone, Debug)]
pub struct TokioFile {
    file: Arc<fs::File>,
}

impl File for TokioFile {
    async fn size(&self) -> io::Result<u64> {
        let file = Arc::clone(&self.file);
        blocking(move || Ok(file.metadata()?.len())).await
    }

    async fn read_at(&self, position: u64, length: usize) -> io::Result<Bytes> {
        let file = Arc::clone(&self.file);
        blocking(move || read_at(&file, position, length)).await
    }

    async fn write_at(&self, position: u64, bytes: Bytes) -> io::Result<()> {
        let file = Arc::clone(&self.file);
        blocking(move || file.write_all_at(&bytes, position)).await
    }

    async fn truncate(&self, size: u64) -> io::Result<()> {
        let file = Arc::clone(&self.file);
        blocking(move || file.set_len(size)).await
    }

    async fn sync(&self) -> io::Result<()> {
        let file = Arc::clone(&self.file);
        blocking(move || file.sync_all()).await
    }
}

/// Memory is taken for what the file holds, not for what is asked for.
fn read_at(file: &fs::File, position: u64, length: usize) -> io::Result<Bytes> {
    let held = usize::try_from(file.metadata()?.len().saturating_sub(position)).unwrap_or(usize::MAX);
    let mut bytes = vec![0; length.min(held)];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], position + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(Bytes::from(bytes))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::runtime::Builder;

    use super::*;

    static NEXT: AtomicU32 = AtomicU32::new(0);

    /// Runs a test on a root of its own, and removes it afterwards.
    fn on_disk(test: impl AsyncFnOnce(TokioDisk)) {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("acked-env-{}-{number}", std::process::id()));
        fs::create_dir_all(&root).expect("a temporary directory");
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(test(TokioDisk::new(root.clone())));
        fs::remove_dir_all(root).expect("the temporary directory is ours");
    }

    #[test]
    fn bytes_come_back_from_where_they_were_written() {
        on_disk(async |disk| {
            let file = disk.open("log", true).await.expect("created");
            file.write_at(4, Bytes::from_static(b"later")).await.expect("written");
            file.write_at(0, Bytes::from_static(b"here")).await.expect("written");
            file.sync().await.expect("synced");
            disk.sync_directory("").await.expect("synced");
            assert_eq!(file.size().await.expect("a size"), 9);
            let again = disk.open("log", false).await.expect("it is there");
            assert_eq!(again.read_at(2, 4).await.expect("bytes"), "rela");
            assert_eq!(again.read_at(7, usize::MAX).await.expect("bytes"), "er", "fewer at the end");
            assert_eq!(again.read_at(100, 10).await.expect("bytes"), "");
        });
    }

    #[test]
    fn truncation_cuts_and_extends_with_zeros() {
        on_disk(async |disk| {
            let file = disk.open("log", true).await.expect("created");
            file.write_at(0, Bytes::from_static(b"abcdef")).await.expect("written");
            file.truncate(2).await.expect("cut");
            file.truncate(4).await.expect("extended");
            assert_eq!(file.read_at(0, 10).await.expect("bytes"), "ab\0\0");
            let same = disk.open("log", true).await.expect("opened");
            assert_eq!(same.size().await.expect("a size"), 4, "opening cuts nothing");
        });
    }

    #[test]
    fn names_are_listed_sorted_renamed_and_removed() {
        on_disk(async |disk| {
            disk.create_directories("data/orders-0").await.expect("created");
            disk.create_directories("data/orders-0").await.expect("there already");
            for name in ["data/b.tmp", "data/a", "data/orders-0/log"] {
                disk.open(name, true).await.expect("created");
            }
            disk.rename("data/b.tmp", "data/a").await.expect("replaced");
            let names = |entries: Vec<DirectoryEntry>| {
                entries.into_iter().map(|entry| (entry.name, entry.is_directory))
            };
            let listed: Vec<_> = names(disk.list("data").await.expect("a directory")).collect();
            assert_eq!(listed, [("a".to_string(), false), ("orders-0".to_string(), true)]);
            disk.sync_directory("data").await.expect("synced");
            disk.remove("data/orders-0").await.expect("removed with what it held");
            disk.remove("data/a").await.expect("removed");
            assert_eq!(disk.list("data").await.expect("a directory"), []);
        });
    }

    #[test]
    fn what_is_missing_is_not_found() {
        on_disk(async |disk| {
            let kinds = [
                disk.open("none", false).await.map(drop).expect_err("missing").kind(),
                disk.open("none/log", true).await.map(drop).expect_err("no parent").kind(),
                disk.list("none").await.map(drop).expect_err("missing").kind(),
                disk.remove("none").await.expect_err("missing").kind(),
                disk.rename("none", "some").await.expect_err("missing").kind(),
                disk.sync_directory("none").await.expect_err("missing").kind(),
            ];
            assert_eq!(kinds, [io::ErrorKind::NotFound; 6]);
        });
    }

    #[test]
    fn paths_that_leave_the_root_are_refused() {
        on_disk(async |disk| {
            for path in ["..", "../x", "a/../../x", "/etc/passwd", "a\0b", "./x", ""] {
                let error = disk.open(path, true).await.map(drop).expect_err(path);
                assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{path:?}");
            }
            assert_eq!(disk.remove("").await.expect_err("the root").kind(), io::ErrorKind::InvalidInput);
        });
    }

    #[test]
    fn free_space_is_told() {
        on_disk(async |disk| assert!(disk.free_space().await.expect("a file system") > 0));
    }
}
