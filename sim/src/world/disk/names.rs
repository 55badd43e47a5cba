//! The tree of names of one disk, as the cache has it and as the platter has it. Knows no contents.
//!
//! Every change (create, remove, rename) is one unit: a rename is never half done. A change becomes durable when any
//! directory it touches is synced, together with the earlier changes of the same names.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use rand_chacha::ChaCha8Rng;

use crate::world::streams::{below, chance};

/// The identity of a file or directory, whatever its name.
pub(in crate::world) type Inode = u64;

pub(in crate::world) const ROOT: Inode = 0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::world) enum Entry {
    File(Inode),
    Directory(Inode),
}

type Directories = BTreeMap<Inode, BTreeMap<String, Entry>>;

#[derive(Clone, Debug)]
pub(in crate::world) struct Names {
    cache: Directories,
    durable: Directories,
    /// Changes that are not durable, in order.
    pending: Vec<Change>,
}

#[derive(Clone, Debug)]
struct Change {
    edits: Vec<Edit>,
}

#[derive(Clone, Debug)]
struct Edit {
    place: Place,
    before: Option<Entry>,
    after: Option<Entry>,
}

/// A name in a directory.
pub(in crate::world) type Place = (Inode, String);

impl Default for Names {
    fn default() -> Names {
        let root: Directories = [(ROOT, BTreeMap::new())].into();
        Names { cache: root.clone(), durable: root, pending: Vec::new() }
    }
}

impl Names {
    /// The entry at `path`, and the place that names it (`None` for the root).
    pub(in crate::world) fn find(&self, path: &str) -> io::Result<Option<Entry>> {
        let mut entry = Entry::Directory(ROOT);
        for part in parts(path)? {
            let Entry::Directory(directory) = entry else { return Ok(None) };
            match self.cache.get(&directory).and_then(|names| names.get(part)) {
                Some(next) => entry = *next,
                None => return Ok(None),
            }
        }
        Ok(Some(entry))
    }

    /// The place of `path`, whose parent must exist.
    pub(in crate::world) fn place(&self, path: &str) -> io::Result<Place> {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        if parts(name)?.is_empty() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        match self.find(parent)? {
            Some(Entry::Directory(directory)) => Ok((directory, name.to_owned())),
            Some(Entry::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    pub(in crate::world) fn list(&self, directory: Inode) -> impl Iterator<Item = (&str, Entry)> {
        self.cache.get(&directory).into_iter().flatten().map(|(name, entry)| (name.as_str(), *entry))
    }

    pub(in crate::world) fn create(&mut self, place: Place, entry: Entry) {
        if let Entry::Directory(directory) = entry {
            self.cache.insert(directory, BTreeMap::new());
        }
        self.change(vec![(place, Some(entry))]);
    }

    pub(in crate::world) fn remove(&mut self, place: Place) {
        self.change(vec![(place, None)]);
    }

    pub(in crate::world) fn rename(&mut self, from: Place, to: Place, entry: Entry) {
        self.change(vec![(from, None), (to, Some(entry))]);
    }

    /// Makes the names in `directory` durable.
    pub(in crate::world) fn sync(&mut self, directory: Inode) {
        let mut needed: BTreeSet<Place> = BTreeSet::new();
        let mut chosen = vec![false; self.pending.len()];
        for (index, change) in self.pending.iter().enumerate().rev() {
            let touches = |edit: &Edit| edit.place.0 == directory || needed.contains(&edit.place);
            if change.edits.iter().any(touches) {
                chosen[index] = true;
                needed.extend(change.edits.iter().map(|edit| edit.place.clone()));
            }
        }
        let mut kept = Vec::new();
        for (change, chosen) in std::mem::take(&mut self.pending).into_iter().zip(chosen) {
            if chosen {
                apply(&mut self.durable, &change);
            } else {
                kept.push(change);
            }
        }
        self.pending = kept;
        let durable = self.durable.entry(directory).or_default();
        assert_eq!(Some(&*durable), self.cache.get(&directory), "a synced directory is as the cache has it");
    }

    /// The machine loses power. Either a prefix of the pending changes survives (an ordered journal), or each by
    /// itself where the names it found are still so. Returns how many changes were lost.
    pub(in crate::world) fn lose_power(&mut self, random: &mut ChaCha8Rng) -> u64 {
        let pending = std::mem::take(&mut self.pending);
        let ordered = chance(random, 500_000);
        let prefix = below(random, pending.len() as u64 + 1) as usize;
        let chances = below(random, 1_000_001) as u32;
        let mut lost = 0;
        for (index, change) in pending.iter().enumerate() {
            let survives = chance(random, chances);
            let survives = if ordered { index < prefix } else { survives };
            let found = |edit: &Edit| {
                let names = self.durable.get(&edit.place.0);
                names.and_then(|names| names.get(&edit.place.1)).copied() == edit.before
            };
            if survives && change.edits.iter().all(found) {
                apply(&mut self.durable, change);
            } else {
                lost += 1;
            }
        }
        let reachable = reachable_directories(&self.durable);
        self.durable.retain(|directory, _| reachable.contains(directory));
        for directory in reachable {
            self.durable.entry(directory).or_default();
        }
        self.cache = self.durable.clone();
        lost
    }

    /// Everything is gone, durably.
    pub(in crate::world) fn clear(&mut self) {
        *self = Names::default();
    }

    /// The paths of all files, sorted.
    pub(in crate::world) fn files(&self) -> Vec<(String, Inode)> {
        let mut files = Vec::new();
        self.collect(ROOT, "", &mut files);
        files.sort();
        files
    }

    /// The paths of all files at or under `path`, whose entry is `entry`, sorted.
    pub(in crate::world) fn files_under(&self, path: &str, entry: Entry) -> Vec<(String, Inode)> {
        match entry {
            Entry::File(inode) => vec![(path.to_owned(), inode)],
            Entry::Directory(directory) => {
                let mut files = Vec::new();
                self.collect(directory, path, &mut files);
                files.sort();
                files
            }
        }
    }

    /// Whether a file may still come back by a power loss or is named now.
    pub(in crate::world) fn mentions(&self, inode: Inode) -> bool {
        let holds = |directories: &Directories| {
            directories.values().any(|names| names.values().any(|entry| *entry == Entry::File(inode)))
        };
        let pending = self.pending.iter().flat_map(|change| &change.edits);
        holds(&self.cache)
            || holds(&self.durable)
            || pending.into_iter().any(|edit| edit.after == Some(Entry::File(inode)))
    }

    fn collect(&self, directory: Inode, path: &str, files: &mut Vec<(String, Inode)>) {
        for (name, entry) in self.list(directory) {
            let path = if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
            match entry {
                Entry::File(inode) => files.push((path, inode)),
                Entry::Directory(inner) => self.collect(inner, &path, files),
            }
        }
    }

    fn change(&mut self, edits: Vec<(Place, Option<Entry>)>) {
        let edits: Vec<Edit> = edits
            .into_iter()
            .map(|(place, after)| {
                let before = self.cache.get(&place.0).and_then(|names| names.get(&place.1)).copied();
                Edit { place, before, after }
            })
            .collect();
        let change = Change { edits };
        apply(&mut self.cache, &change);
        self.pending.push(change);
    }
}

fn apply(directories: &mut Directories, change: &Change) {
    for edit in &change.edits {
        let names = directories.entry(edit.place.0).or_default();
        match edit.after {
            Some(entry) => names.insert(edit.place.1.clone(), entry),
            None => names.remove(&edit.place.1),
        };
    }
}

fn reachable_directories(directories: &Directories) -> BTreeSet<Inode> {
    let mut reached = BTreeSet::new();
    let mut next = vec![ROOT];
    while let Some(directory) = next.pop() {
        if reached.insert(directory) {
            let names = directories.get(&directory).into_iter().flat_map(|names| names.values());
            next.extend(names.filter_map(|entry| match entry {
                Entry::Directory(inner) => Some(*inner),
                Entry::File(_) => None,
            }));
        }
    }
    reached
}

/// The parts of a relative path; `""` and `"."` are the root.
fn parts(path: &str) -> io::Result<Vec<&str>> {
    if path.is_empty() || path == "." {
        return Ok(Vec::new());
    }
    let parts: Vec<&str> = path.split('/').collect();
    if parts.iter().any(|part| part.is_empty() || *part == "." || *part == "..") {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{path:?} is not a relative path")));
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::streams::stream;
    use proptest::prelude::*;

    fn place(directory: Inode, name: &str) -> Place {
        (directory, name.to_owned())
    }

    #[test]
    fn a_name_is_durable_once_its_directory_is_synced() {
        for seed in 0..50 {
            let mut names = Names::default();
            names.create(place(ROOT, "kept"), Entry::File(1));
            names.sync(ROOT);
            names.create(place(ROOT, "unsynced"), Entry::File(2));
            names.lose_power(&mut stream(seed, "names"));
            assert_eq!(names.find("kept").expect("a valid path"), Some(Entry::File(1)));
        }
    }

    #[test]
    fn a_replacing_rename_leaves_the_old_or_the_new_file_never_none() {
        let (mut old, mut new) = (0, 0);
        for seed in 0..100 {
            let mut names = Names::default();
            names.create(place(ROOT, "checkpoint"), Entry::File(1));
            names.sync(ROOT);
            names.create(place(ROOT, "checkpoint.tmp"), Entry::File(2));
            names.rename(place(ROOT, "checkpoint.tmp"), place(ROOT, "checkpoint"), Entry::File(2));
            names.lose_power(&mut stream(seed, "rename"));
            match names.find("checkpoint").expect("a valid path") {
                Some(Entry::File(1)) => old += 1,
                Some(Entry::File(2)) => new += 1,
                other => panic!("the name is {other:?}"),
            }
        }
        assert!(old > 10 && new > 10, "{old} {new}");
    }

    #[test]
    fn syncing_the_target_of_a_move_does_not_bring_the_source_back() {
        let mut names = Names::default();
        names.create(place(ROOT, "p"), Entry::Directory(1));
        names.create(place(ROOT, "q"), Entry::Directory(2));
        names.create(place(1, "file"), Entry::File(3));
        names.rename(place(1, "file"), place(2, "file"), Entry::File(3));
        names.sync(ROOT);
        names.sync(2);
        names.sync(1);
        names.lose_power(&mut stream(0, "move"));
        assert_eq!(names.files(), vec![("q/file".to_owned(), 3)]);
    }

    #[test]
    fn paths_outside_the_root_are_refused() {
        for path in ["/etc", "a//b", "a/../b", "..", "a/"] {
            assert!(parts(path).is_err(), "{path}");
        }
    }

    proptest! {
        /// The model: every name is one that the cache had at some moment since the last sync, and no file has two.
        #[test]
        fn after_power_loss_every_name_is_one_it_had_since_the_last_sync(
            steps in proptest::collection::vec((0..4_u8, 0..3_u8, 0..3_u8), 1..20), seed in 0_u64..u64::MAX,
        ) {
            let mut names = Names::default();
            let name = |number: u8| format!("n{number}");
            let snapshot = |names: &Names| names.files().into_iter().collect::<BTreeMap<String, Inode>>();
            let mut moments = vec![BTreeMap::new()];
            for (index, (kind, from, to)) in steps.into_iter().enumerate() {
                let found = names.find(&name(from)).expect("a valid path");
                match (kind, found) {
                    (0, None) => names.create((ROOT, name(from)), Entry::File(index as u64 + 1)),
                    (1, Some(_)) => names.remove((ROOT, name(from))),
                    (2, Some(entry)) if from != to => names.rename((ROOT, name(from)), (ROOT, name(to)), entry),
                    (3, _) => {
                        names.sync(ROOT);
                        moments.clear();
                    }
                    _ => continue,
                }
                moments.push(snapshot(&names));
            }
            names.lose_power(&mut stream(seed, "model"));
            let after = snapshot(&names);
            for number in 0..3 {
                let value = after.get(&name(number));
                prop_assert!(moments.iter().any(|moment| moment.get(&name(number)) == value));
            }
            let inodes: BTreeSet<&Inode> = after.values().collect();
            prop_assert_eq!(inodes.len(), after.len());
        }
    }
}
