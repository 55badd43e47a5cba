//! What a client's application keeps outside its process, as on a disk of its own: it survives the end of the process,
//! and the next one goes on from there.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use acked_core::consumer::Start;

/// One client's memory, shared by its processes of which only one lives.
#[derive(Debug, Default)]
pub struct Memory {
    /// The number of the next record that the producer sends: no number is used twice.
    next_record: AtomicU64,
    /// Where the consumer goes on reading, by topic and index.
    positions: Mutex<BTreeMap<(String, i32), (i64, i32)>>,
    /// Somebody asked the process to end in order.
    stopping: AtomicBool,
}

impl Memory {
    /// A new process begins: nobody has asked it to end yet.
    pub fn begin(&self) {
        self.stopping.store(false, Ordering::Relaxed);
    }

    pub fn ask_to_stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    pub fn next_record(&self) -> u64 {
        self.next_record.load(Ordering::Relaxed)
    }

    /// Remembers that record `number` is taken, before anything of it can be sent.
    pub fn take_record(&self, number: u64) {
        assert!(number >= self.next_record(), "a record's number is used once");
        self.next_record.store(number + 1, Ordering::Relaxed);
    }

    /// Where reading of a partition goes on, or `first` if it has not begun.
    pub fn start(&self, topic: &str, index: i32, first: Start) -> Start {
        let known = self.positions().get(&(topic.to_string(), index)).copied();
        known.map_or(first, |(offset, epoch)| Start::At { offset, leader_epoch: Some(epoch) })
    }

    /// A record of this epoch just before `position` was handed to the application.
    pub fn remember(&self, topic: &str, index: i32, position: i64, leader_epoch: i32) {
        self.positions().insert((topic.to_string(), index), (position, leader_epoch));
    }

    fn positions(&self) -> MutexGuard<'_, BTreeMap<(String, i32), (i64, i32)>> {
        self.positions.lock().expect("nothing panics while it holds positions")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_process_goes_on_where_the_last_one_stopped() {
        let memory = Memory::default();
        memory.ask_to_stop();
        memory.begin();
        assert!(!memory.is_stopping());
        assert_eq!(memory.next_record(), 0);
        memory.take_record(0);
        assert_eq!(memory.next_record(), 1);
        assert_eq!(memory.start("orders", 0, Start::Earliest), Start::Earliest);
        memory.remember("orders", 0, 7, 2);
        let known = Start::At { offset: 7, leader_epoch: Some(2) };
        assert_eq!(memory.start("orders", 0, Start::Earliest), known);
        assert_eq!(memory.start("orders", 1, Start::Latest), Start::Latest);
    }
}
