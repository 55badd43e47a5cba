//! The bytes of one file: what the page cache holds, and how the platter differs from it.
//!
//! Only the cache is kept whole. For each page that is dirty (written or cut since the last sync) the platter's own
//! version is kept aside, so that a sync costs nothing and a power loss looks at dirty pages only.

use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;

use crate::world::streams::{below, chance};

/// The unit that reaches the platter or does not.
pub const PAGE: usize = 4096;
/// The unit of a torn page.
pub const SECTOR: usize = 512;
/// Sizes remembered between two syncs; any of them may be the one that a power loss leaves.
const SIZES_KEPT: usize = 64;

#[derive(Clone, Debug, Default)]
pub(in crate::world) struct Content {
    cache: Vec<u8>,
    platter_size: usize,
    /// The platter's version of each dirty page, cut at the platter's size. A page that is not here is the same in both.
    platter_pages: BTreeMap<usize, Vec<u8>>,
    /// Sizes the cache has had since the last sync.
    sizes: Vec<usize>,
}

/// What a power loss did to one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::world) struct ContentLoss {
    /// The first byte position at which the file differs from what the cache held.
    pub first_difference: Option<usize>,
    /// Bytes of the cache that are gone or different.
    pub bytes_lost: u64,
    pub pages_dropped: u64,
    pub pages_torn: u64,
    pub size_reverted: bool,
}

/// How the dirty pages of one file fare.
#[derive(Clone, Copy, Debug)]
enum Survival {
    None,
    All,
    /// Pages before this one of the dirty pages; itself torn.
    Prefix(usize),
    /// Pages from this one of the dirty pages on.
    Suffix(usize),
    /// Each page by itself, with this many chances in a million.
    Each(u32),
}

impl Content {
    pub(in crate::world) fn bytes(&self) -> &[u8] {
        &self.cache
    }

    pub(in crate::world) fn is_clean(&self) -> bool {
        self.platter_pages.is_empty() && self.platter_size == self.cache.len()
    }

    pub(in crate::world) fn read(&self, position: usize, length: usize) -> &[u8] {
        let start = position.min(self.cache.len());
        let end = start.saturating_add(length).min(self.cache.len());
        &self.cache[start..end]
    }

    pub(in crate::world) fn write(&mut self, position: usize, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let end = position + bytes.len();
        self.dirty(position.min(self.cache.len()), end);
        if end > self.cache.len() {
            self.cache.resize(end, 0);
            self.note_size();
        }
        self.cache[position..end].copy_from_slice(bytes);
    }

    pub(in crate::world) fn truncate(&mut self, size: usize) {
        let old = self.cache.len();
        if size == old {
            return;
        }
        self.dirty(size.min(old), size.max(old));
        self.cache.resize(size, 0);
        self.note_size();
    }

    /// Everything reaches the platter.
    pub(in crate::world) fn sync(&mut self) {
        self.platter_pages.clear();
        self.platter_size = self.cache.len();
        self.sizes.clear();
        assert!(self.is_clean(), "a sync leaves nothing dirty");
    }

    /// The machine loses power: from now on cache and platter hold the same.
    pub(in crate::world) fn lose_power(&mut self, random: &mut ChaCha8Rng) -> ContentLoss {
        if self.is_clean() {
            return ContentLoss::default();
        }
        let dirty = self.platter_pages.len();
        let survival = draw_survival(random, dirty);
        let size = self.draw_size(survival, random);
        let before = std::mem::take(&mut self.cache);
        let mut after = before.clone();
        after.resize(size, 0);
        let mut loss = ContentLoss { size_reverted: size != before.len(), ..ContentLoss::default() };
        for (order, (page, platter)) in std::mem::take(&mut self.platter_pages).into_iter().enumerate() {
            let sectors = surviving_sectors(survival, order, random);
            match sectors {
                0xff => {}
                0 => loss.pages_dropped += 1,
                _ => loss.pages_torn += 1,
            }
            // A page that the cache no longer has was cut off: while the size says it exists, it is the old one.
            let sectors = if page * PAGE >= before.len() { 0 } else { sectors };
            restore(&mut after, page, &platter, sectors);
        }
        loss.first_difference = first_difference(&before, &after);
        let common = before.iter().zip(&after).filter(|(old, new)| old != new).count();
        loss.bytes_lost = (common + before.len().saturating_sub(after.len())) as u64;
        self.cache = after;
        self.sync();
        loss
    }

    /// Keeps the platter's version of every page of `start..end` that is still clean.
    fn dirty(&mut self, start: usize, end: usize) {
        for page in start / PAGE..end.div_ceil(PAGE) {
            let (cache, platter_size) = (&self.cache, self.platter_size);
            self.platter_pages.entry(page).or_insert_with(|| {
                let limit = cache.len().min(platter_size);
                let from = (page * PAGE).min(limit);
                let to = ((page + 1) * PAGE).min(limit);
                cache[from..to].to_vec()
            });
        }
    }

    fn note_size(&mut self) {
        if self.sizes.len() == SIZES_KEPT {
            let mut keep = false;
            self.sizes.retain(|_| {
                keep = !keep;
                keep
            });
        }
        self.sizes.push(self.cache.len());
    }

    /// The size on the platter is independent of the pages, so that a longer file may hold zeros.
    fn draw_size(&self, survival: Survival, random: &mut ChaCha8Rng) -> usize {
        let which = below(random, 3);
        let between = below(random, self.sizes.len().max(1) as u64) as usize;
        match (survival, which) {
            (Survival::None, _) | (_, 0) => self.platter_size,
            (Survival::All, _) | (_, 1) => self.cache.len(),
            _ => self.sizes.get(between).copied().unwrap_or(self.platter_size),
        }
    }
}

fn draw_survival(random: &mut ChaCha8Rng, dirty: usize) -> Survival {
    let which = below(random, 8);
    let page = below(random, dirty.max(1) as u64) as usize;
    let chances = below(random, 1_000_001) as u32;
    match which {
        0 => Survival::None,
        1 => Survival::All,
        2 | 3 => Survival::Prefix(page),
        4 => Survival::Suffix(page),
        _ => Survival::Each(chances),
    }
}

/// One bit for each sector of a page that survives in the cache's version.
fn surviving_sectors(survival: Survival, order: usize, random: &mut ChaCha8Rng) -> u8 {
    let torn = below(random, 256) as u8;
    let tears = chance(random, 125_000);
    let kept = |survives: bool| if survives { 0xff } else { 0 };
    match survival {
        Survival::None => 0,
        Survival::All => 0xff,
        Survival::Prefix(page) if order == page => torn,
        Survival::Prefix(page) => kept(order < page),
        Survival::Suffix(page) => kept(order >= page),
        Survival::Each(_) if tears => torn,
        Survival::Each(chances) => kept(chance(random, chances)),
    }
}

/// Puts the platter's version back, but for the surviving sectors. Where the platter had nothing, there are zeros.
fn restore(file: &mut [u8], page: usize, platter: &[u8], sectors: u8) {
    for sector in 0..PAGE / SECTOR {
        if sectors & (1 << sector) != 0 {
            continue;
        }
        let start = (page * PAGE + sector * SECTOR).min(file.len());
        let end = (start + SECTOR).min(file.len());
        for (offset, byte) in file[start..end].iter_mut().enumerate() {
            *byte = platter.get(sector * SECTOR + offset).copied().unwrap_or(0);
        }
    }
}

fn first_difference(before: &[u8], after: &[u8]) -> Option<usize> {
    let common = before.iter().zip(after).position(|(old, new)| old != new);
    common.or_else(|| (before.len() != after.len()).then(|| before.len().min(after.len())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::streams::stream;
    use proptest::prelude::*;

    #[test]
    fn synced_bytes_survive_and_unsynced_ones_survive_only_sometimes() {
        let (mut whole, mut gone, mut partial) = (0, 0, 0);
        for seed in 0..200 {
            let mut content = Content::default();
            content.write(0, &[1; 3 * PAGE]);
            content.sync();
            content.write(3 * PAGE, &[2; 3 * PAGE]);
            let loss = content.lose_power(&mut stream(seed, "content"));
            assert_eq!(content.bytes()[..3 * PAGE], [1; 3 * PAGE]);
            assert_eq!(loss.first_difference.is_none(), content.bytes()[3 * PAGE..] == [2; 3 * PAGE]);
            match content.bytes().iter().filter(|byte| **byte == 2).count() {
                0 => gone += 1,
                count if count == 3 * PAGE => whole += 1,
                _ => partial += 1,
            }
        }
        assert!(whole > 10 && gone > 10 && partial > 10, "{whole} {gone} {partial}");
    }

    #[test]
    fn a_file_may_come_back_longer_than_its_data() {
        let zero_filled = (0..200).any(|seed| {
            let mut content = Content::default();
            content.write(0, &[7; 2 * PAGE]);
            content.lose_power(&mut stream(seed, "zeros"));
            content.bytes().contains(&0)
        });
        assert!(zero_filled);
    }

    #[test]
    fn a_cut_may_come_undone() {
        let undone = (0..200).any(|seed| {
            let mut content = Content::default();
            content.write(0, &[7; 3 * PAGE]);
            content.sync();
            content.truncate(PAGE + 100);
            content.lose_power(&mut stream(seed, "cut"));
            content.bytes() == [7; 3 * PAGE]
        });
        assert!(undone);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Write { position: usize, length: usize, byte: u8 },
        Truncate(usize),
        Sync,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let write = (0..3 * PAGE, 1..2 * PAGE, 1..=255_u8).prop_map(|(position, length, byte)| Step::Write {
            position,
            length,
            byte,
        });
        let truncate = (0..4 * PAGE).prop_map(Step::Truncate);
        proptest::collection::vec(prop_oneof![4 => write, 2 => truncate, 1 => Just(Step::Sync)], 1..12)
    }

    proptest! {
        /// The model keeps every version of every byte since the last sync, and every size.
        #[test]
        fn after_power_loss_each_byte_and_the_size_are_ones_the_file_had_since_its_last_sync(
            steps in steps(), seed in 0_u64..u64::MAX,
        ) {
            let mut content = Content::default();
            let mut plain: Vec<u8> = Vec::new();
            let mut versions: Vec<Vec<u8>> = vec![Vec::new()];
            for step in steps {
                match step {
                    Step::Write { position, length, byte } => {
                        content.write(position, &vec![byte; length]);
                        plain.resize(plain.len().max(position + length), 0);
                        plain[position..position + length].fill(byte);
                    }
                    Step::Truncate(size) => {
                        content.truncate(size);
                        plain.resize(size, 0);
                    }
                    Step::Sync => {
                        content.sync();
                        versions.clear();
                    }
                }
                versions.push(plain.clone());
                prop_assert_eq!(content.bytes(), &plain[..]);
            }
            let loss = content.lose_power(&mut stream(seed, "model"));
            let after = content.bytes();
            prop_assert!(versions.iter().any(|version| version.len() == after.len()));
            for (position, byte) in after.iter().enumerate() {
                let known = versions.iter().any(|version| version.get(position).copied().unwrap_or(0) == *byte);
                prop_assert!(known, "byte {} at {} was never there", byte, position);
            }
            prop_assert_eq!(loss.first_difference, super::first_difference(&plain, after));
        }
    }
}
