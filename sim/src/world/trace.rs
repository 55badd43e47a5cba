//! The fingerprint of a run: every delivery, disk change, timer and fault feeds one rolling hash. Same seed, same
//! build ⇒ same hash, whatever the process, thread or optimisation level. Keeps no events itself.

use std::time::Duration;

use super::host::Host;

/// One thing that happened outside the nodes, as the hash and an optional log see it. Sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// Bytes entered a connection; `checksum` is their CRC-32C.
    Sent {
        from: Host,
        to: Host,
        connection: u32,
        size: usize,
        checksum: u32,
    },
    /// What travelled on a connection arrived: `what` is the item's kind, `size` its bytes (0 for control items).
    Delivered {
        from: Host,
        to: Host,
        connection: u32,
        what: Travelling,
        size: u32,
    },
    /// A connection attempt reached its target, whose answer was `accepted`.
    Connected {
        from: Host,
        to: Host,
        connection: u32,
        accepted: bool,
    },
    /// An end gave up on data that nobody acknowledged.
    GaveUp {
        host: Host,
        connection: u32,
    },
    TimerFired {
        host: Option<Host>,
    },
    /// The page cache or the names of a disk changed; `checksum` covers path and content.
    DiskChanged {
        host: Host,
        change: DiskAction,
        position: u64,
        size: u64,
        checksum: u32,
    },
    Started {
        host: Host,
        incarnation: u32,
    },
    Ended {
        host: Host,
        how: Ending,
    },
    Paused {
        host: Host,
        paused: bool,
    },
    Blocked {
        from: Host,
        to: Host,
        blocked: bool,
    },
    ClockChanged {
        host: Host,
        rate: i64,
        wall_offset_ms: i64,
    },
    /// A fault broke a connection: `reset`, or closed in the middle of what travelled from `from` to `to`.
    Broken {
        from: Host,
        to: Host,
        connection: u32,
        reset: bool,
    },
    /// The machine stood still from here on, its clocks included, or goes on.
    Frozen {
        host: Host,
        frozen: bool,
    },
    /// A fault of the nemesis, numbered by its owner.
    Fault {
        number: u64,
    },
}

/// What an item on the wire is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Travelling {
    /// The last message of the handshake, which lets the server accept.
    Open,
    Data,
    Fin,
    Reset,
    /// Room in the receiver's window.
    Window,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskAction {
    Write,
    Truncate,
    Sync,
    Create,
    Rename,
    Remove,
    SyncDirectory,
    PowerLoss,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Its main future returned.
    Exit,
    /// It was killed; the machine, its kernel and its page cache stayed.
    Process,
    /// The machine lost power.
    Power,
}

/// Receives every happening with its time since the start of the world. Must not call the world.
pub type Log = Box<dyn FnMut(Duration, &Happening) + Send>;

#[derive(Default)]
pub(super) struct Trace {
    hash: u64,
    events: u64,
    log: Option<Log>,
}

impl Trace {
    pub(super) fn record(&mut self, now: u64, happening: Happening) {
        self.events += 1;
        self.feed(now);
        for word in words(happening) {
            self.feed(word);
        }
        if let Some(log) = &mut self.log {
            log(Duration::from_nanos(now), &happening);
        }
    }

    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    pub(super) fn events(&self) -> u64 {
        self.events
    }

    pub(super) fn set_log(&mut self, log: Option<Log>) {
        self.log = log;
    }

    /// A multiplication by an odd constant and a shift: order matters, and no word can be cancelled by a later one.
    fn feed(&mut self, word: u64) {
        let mixed = (self.hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.hash = mixed ^ (mixed >> 32);
    }
}

fn words(happening: Happening) -> [u64; 3] {
    let pair = |a: Host, b: Host| (u64::from(a.0) << 16) | u64::from(b.0);
    let head = |tag: u64, rest: u64| (tag << 56) | rest;
    match happening {
        Happening::Sent { from, to, connection, size, checksum } => {
            [head(1, pair(from, to)), (u64::from(connection) << 32) | u64::from(checksum), size as u64]
        }
        Happening::Delivered { from, to, connection, what, size } => {
            [head(2, pair(from, to)), (u64::from(connection) << 32) | u64::from(size), what as u64]
        }
        Happening::Connected { from, to, connection, accepted } => {
            [head(3, pair(from, to)), u64::from(connection), u64::from(accepted)]
        }
        Happening::GaveUp { host, connection } => [head(4, u64::from(host.0)), u64::from(connection), 0],
        Happening::TimerFired { host } => {
            [head(5, host.map_or(u64::from(u16::MAX), |h| u64::from(h.0))), 0, 0]
        }
        Happening::DiskChanged { host, change, position, size, checksum } => [
            head(6, (u64::from(host.0) << 8) | change as u64),
            position.wrapping_mul(0x1_0000_0001) ^ u64::from(checksum),
            size,
        ],
        Happening::Started { host, incarnation } => [head(7, u64::from(host.0)), u64::from(incarnation), 0],
        Happening::Ended { host, how } => [head(8, u64::from(host.0)), how as u64, 0],
        Happening::Paused { host, paused } => [head(9, u64::from(host.0)), u64::from(paused), 0],
        Happening::Blocked { from, to, blocked } => [head(10, pair(from, to)), u64::from(blocked), 0],
        Happening::ClockChanged { host, rate, wall_offset_ms } => {
            [head(11, u64::from(host.0)), rate as u64, wall_offset_ms as u64]
        }
        Happening::Fault { number } => [head(12, 0), number, 0],
        Happening::Broken { from, to, connection, reset } => {
            [head(13, pair(from, to)), u64::from(connection), u64::from(reset)]
        }
        Happening::Frozen { host, frozen } => [head(14, u64::from(host.0)), u64::from(frozen), 0],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_depends_on_order_time_and_content() {
        let hash_of = |events: &[(u64, u64)]| {
            let mut trace = Trace::default();
            for (now, number) in events {
                trace.record(*now, Happening::Fault { number: *number });
            }
            trace.hash()
        };
        let base = hash_of(&[(1, 1), (2, 2)]);
        assert_eq!(base, hash_of(&[(1, 1), (2, 2)]));
        assert_ne!(base, hash_of(&[(1, 2), (2, 1)]));
        assert_ne!(base, hash_of(&[(1, 1), (3, 2)]));
        assert_ne!(base, hash_of(&[(1, 1)]));
    }
}
