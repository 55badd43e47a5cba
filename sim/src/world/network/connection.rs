//! The state of one connection: two ends and two directions. Data only; [`super::fabric`] decides.

use std::collections::VecDeque;
use std::io;
use std::task::Waker;

use super::filter::Conversation;
use crate::world::host::Host;
use crate::world::trace::Travelling;

/// End 0 asked for the connection, end 1 accepted it. Direction 0 carries bytes from end 0 to end 1.
pub(super) struct Connection {
    pub generation: u32,
    pub ends: [End; 2],
    pub directions: [Direction; 2],
    /// Connection attempts sent so far.
    pub attempts: u32,
    pub started_at: u64,
    /// What is said on it, where filters may ask.
    pub conversation: Option<Box<Conversation>>,
    /// The slot waits for another connection.
    pub free: bool,
}

pub(super) struct End {
    pub host: Host,
    pub port: u16,
    pub state: EndState,
    /// What reads (after the data that had arrived) and writes report.
    pub error: Option<io::ErrorKind>,
    /// A [`super::stream::SimStream`] exists for this end.
    pub held: bool,
    pub reset_sent: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndState {
    /// End 0 asks; end 1 has not seen the last message of the handshake.
    Opening,
    Open,
    /// The process let go; the kernel still sends what was written, and FIN.
    Closed,
    /// The kernel knows the connection no more: reset, given up, or the machine lost power. Whatever arrives is
    /// answered with a reset.
    Gone,
}

/// One direction. Invariant: `buffer` holds `readable` bytes that have arrived, then those of the items in flight.
pub(super) struct Direction {
    pub link: usize,
    pub buffer: VecDeque<u8>,
    pub readable: usize,
    pub items: VecDeque<Item>,
    pub last_arrival: u64,
    /// An event for the first item is in the schedule.
    pub armed: bool,
    /// The first item could not be delivered and waits for the link or the machine.
    pub stuck: bool,
    pub fin_sent: bool,
    pub fin_arrived: bool,
    /// Bytes the sender may still send.
    pub credit: usize,
    /// Bytes the receiver has read and not yet told the sender.
    pub unreported: usize,
    /// Since when the sender has sent in vain.
    pub unacknowledged_since: Option<u64>,
    pub give_up_queued: bool,
    pub reader: Option<Waker>,
    pub writer: Option<Waker>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub written: u64,
    pub leaves: u64,
    pub arrives: u64,
    /// Bytes of data, or of room in a window.
    pub amount: u32,
    pub what: Travelling,
}

impl Direction {
    pub(super) fn new(link: usize, window: usize) -> Direction {
        Direction {
            link,
            buffer: VecDeque::new(),
            readable: 0,
            items: VecDeque::new(),
            last_arrival: 0,
            armed: false,
            stuck: false,
            fin_sent: false,
            fin_arrived: false,
            credit: window,
            unreported: 0,
            unacknowledged_since: None,
            give_up_queued: false,
            reader: None,
            writer: None,
        }
    }

    /// Forgets everything that is in flight; what has arrived stays readable.
    pub(super) fn drop_in_flight(&mut self) {
        self.items.clear();
        self.buffer.truncate(self.readable);
        self.stuck = false;
        self.unacknowledged_since = None;
    }

    /// The sender sends no more: what has left arrives, the rest is lost, and so is what was stuck.
    pub(super) fn drop_unsent(&mut self, now: u64) {
        if self.stuck {
            self.drop_in_flight();
            return;
        }
        while self.items.back().is_some_and(|item| item.leaves > now) {
            let item = self.items.pop_back().expect("the last item was just seen");
            if item.what == Travelling::Data {
                let rest = self.buffer.len() - item.amount as usize;
                self.buffer.truncate(rest);
            }
        }
        self.unacknowledged_since = None;
    }

    /// The first `amount` bytes in flight, in the two pieces in which the buffer has them.
    pub(super) fn in_flight(&self, amount: usize) -> (&[u8], &[u8]) {
        let (front, back) = self.buffer.as_slices();
        let (from, to) = (self.readable, self.readable + amount);
        let cut = |slice: &'_ [u8], from: usize, to: usize| (from.min(slice.len()), to.min(slice.len()));
        let (a, b) = cut(front, from, to);
        let (c, d) = cut(back, from.saturating_sub(front.len()), to.saturating_sub(front.len()));
        (&front[a..b], &back[c..d])
    }

    /// The receiver reads no more: what has arrived is thrown away.
    pub(super) fn drop_readable(&mut self) {
        self.buffer.drain(..self.readable);
        self.readable = 0;
    }
}

impl Connection {
    /// Nobody holds it and nothing of it travels any more.
    pub(super) fn is_over(&self) -> bool {
        let ended = |end: &End| !end.held && matches!(end.state, EndState::Closed | EndState::Gone);
        self.ends.iter().all(ended) && self.directions.iter().all(|direction| direction.items.is_empty())
    }
}
