//! The committed set C of one partition: every record that a leader's high watermark passed, by offset, with what
//! became of it. Decides nothing; S4 and S19 are checked where records enter.

use super::finding::Rule;
use super::mirror::Entry;

/// What became of a committed record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Protected: every leader to come must hold it.
    Live,
    /// The faults that fired were allowed to destroy it.
    Licensed(Rule),
    /// Removed on purpose (rule 0): nobody needs to hold it.
    Removed,
    /// A leader acted without it and nothing permits that; reported once.
    Violated,
}

/// Acks levels at which a broker stated success.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acks {
    pub one: bool,
    pub all: bool,
}

impl Acks {
    pub fn any(self) -> bool {
        self.one || self.all
    }

    /// Adds acks=1 or acks=-1.
    pub fn add(&mut self, acks: i16) {
        match acks {
            1 => self.one = true,
            _ => self.all = true,
        }
    }
}

/// One committed record.
#[derive(Clone, Copy, Debug)]
pub struct CommittedRecord {
    pub entry: Entry,
    /// Leader epoch in which the high watermark passed it.
    pub committed_in: i32,
    /// The highest leader epoch that had acted by then.
    pub acted_by_then: i32,
    pub acks: Acks,
    pub standing: Standing,
}

/// Committed records by offset, one at each.
#[derive(Debug, Default)]
pub struct CommittedSet {
    records: Vec<CommittedRecord>,
}

impl CommittedSet {
    /// Offset after the last committed record.
    pub fn end(&self) -> i64 {
        self.records.last().map_or(0, |record| record.entry.offset + 1)
    }

    pub fn len(&self) -> usize {
        self.records.len()
    }

    pub fn records(&self) -> &[CommittedRecord] {
        &self.records
    }

    pub fn get(&self, offset: i64) -> Option<&CommittedRecord> {
        self.position(offset).ok().map(|position| &self.records[position])
    }

    pub fn get_mut(&mut self, offset: i64) -> Option<&mut CommittedRecord> {
        self.position(offset).ok().map(|position| &mut self.records[position])
    }

    /// The records below an offset.
    pub fn below_mut(&mut self, offset: i64) -> &mut [CommittedRecord] {
        let count = self.records.partition_point(|record| record.entry.offset < offset);
        &mut self.records[..count]
    }

    /// Puts a record at its offset and gives back the one that was there.
    pub fn put(&mut self, record: CommittedRecord) -> Option<CommittedRecord> {
        match self.position(record.entry.offset) {
            Ok(position) => Some(std::mem::replace(&mut self.records[position], record)),
            Err(position) => {
                self.records.insert(position, record);
                None
            }
        }
    }

    fn position(&self, offset: i64) -> Result<usize, usize> {
        let Some(first) = self.records.first() else { return Err(0) };
        let guess = usize::try_from(offset - first.entry.offset).unwrap_or(0);
        match self.records.get(guess) {
            Some(record) if record.entry.offset == offset => Ok(guess),
            None if self.end() <= offset => Err(self.records.len()),
            _ => self.records.binary_search_by_key(&offset, |record| record.entry.offset),
        }
    }
}
