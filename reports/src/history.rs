//! What clients did and saw: sends and reads with their invocation and completion, in the order in which they
//! happened. Holds no opinion; the anomalies read it. Jepsen's words: invoke, ok, fail (definitely without effect),
//! info (the outcome is unknown).

use std::collections::BTreeMap;

/// Index of a topic in [`History::topics`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TopicNumber(pub u32);

/// A partition as clients name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Partition {
    pub topic: TopicNumber,
    pub index: i32,
}

/// One record at one offset: what a licence forgives. A later record at the same offset with another content is
/// another key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub partition: Partition,
    pub offset: i64,
    /// Hash of what the sender gave: key, value, headers.
    pub content: u64,
}

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// Not ended yet.
    Open,
    Ok,
    /// Definitely without effect.
    Fail,
    /// Unknown: may take effect at any later time, or have taken it.
    Info,
}

/// Why something is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadPurpose {
    /// An ordinary consumer of the workload.
    Workload,
    /// The final pass over a partition from its start to its end, after everything healed.
    ReadBack,
}

/// One attempt of a client to write one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Send {
    pub client: u32,
    pub partition: Partition,
    pub content: u64,
    /// 0, 1 or -1 (all).
    pub acks: i16,
    /// The producer was idempotent.
    pub idempotent: bool,
    /// Order was promised: idempotent, or one request in flight.
    pub ordered: bool,
    /// The offset told, `None` unless ok with a position.
    pub offset: Option<i64>,
    pub completion: Completion,
    /// Microseconds since the run began.
    pub invoked_us: u64,
    pub completed_us: u64,
}

/// Records of one partition that one read returned, in the order given to the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    pub client: u32,
    pub partition: Partition,
    pub purpose: ReadPurpose,
    /// Offset and content.
    pub records: Vec<(i64, u64)>,
    /// Where the client stood after it: the next offset it would read.
    pub position: i64,
    pub at_us: u64,
}

/// Why a reader's position moved other than by reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetReason {
    /// The log that was read is gone from some offset below the position on.
    Truncation,
    /// The leader has no such offset: it is below the first or above the last.
    OutOfRange,
}

/// A reader was told that its position no longer holds, and went elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reset {
    pub client: u32,
    pub partition: Partition,
    /// The next offset that it would have read.
    pub from: i64,
    /// The next offset that it reads now; `None` while a leader has to be asked for it.
    pub to: Option<i64>,
    pub reason: ResetReason,
    /// How many reads of [`History::reads`] came before it.
    pub reads_before: usize,
    pub at_us: u64,
}

/// One entry of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    Send(Send),
    Read(Read),
    /// `reads_before` is set anew from its place among the operations.
    Reset(Reset),
}

/// Everything that the clients of one run did, sends in invocation order, reads in completion order.
#[derive(Clone, Debug, Default)]
pub struct History {
    topics: Vec<String>,
    numbers: BTreeMap<String, TopicNumber>,
    pub sends: Vec<Send>,
    pub reads: Vec<Read>,
    /// In the order in which readers were told.
    pub resets: Vec<Reset>,
}

impl History {
    /// The number of a topic, given out at its first mention.
    pub fn topic(&mut self, name: &str) -> TopicNumber {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = TopicNumber(u32::try_from(self.topics.len()).expect("fewer topics than 2^32"));
        self.topics.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }

    /// The number of a topic that was mentioned before.
    pub fn known_topic(&self, name: &str) -> Option<TopicNumber> {
        self.numbers.get(name).copied()
    }

    /// # Panics
    /// If the number was not given out by this history.
    pub fn topic_name(&self, number: TopicNumber) -> &str {
        &self.topics[number.0 as usize]
    }

    /// Builds a history from a list of operations, as a recorded one is read.
    pub fn from_operations(
        topics: impl IntoIterator<Item = String>,
        operations: impl IntoIterator<Item = Operation>,
    ) -> History {
        let mut history = History::default();
        for name in topics {
            history.topic(&name);
        }
        for operation in operations {
            match operation {
                Operation::Send(send) => history.sends.push(send),
                Operation::Read(read) => history.reads.push(read),
                Operation::Reset(reset) => {
                    let reads_before = history.reads.len();
                    history.resets.push(Reset { reads_before, ..reset });
                }
            }
        }
        history
    }

    /// Sends that were acknowledged with a position.
    pub fn acknowledged(&self) -> impl Iterator<Item = (&Send, Key)> {
        self.sends.iter().filter_map(|send| {
            let offset = send.offset.filter(|_| send.completion == Completion::Ok)?;
            Some((send, Key { partition: send.partition, offset, content: send.content }))
        })
    }
}
