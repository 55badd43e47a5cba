//! One directed pair of hosts: everything that is drawn for messages from one to the other comes from here.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

use super::latency::Latency;
use crate::world::host::Host;
use crate::world::streams;

/// The first retransmission of lost data, doubled for each further one (RFC 6298, Linux's minimum).
pub(super) const RETRANSMIT_FIRST_NS: u64 = 200_000_000;

pub(super) struct Link {
    pub from: Host,
    pub to: Host,
    pub latency: Latency,
    /// Messages in a million that are lost and sent again.
    pub loss_per_million: u32,
    /// Bytes a second; `None` is unlimited.
    pub bandwidth: Option<u64>,
    /// Blocks in force: more than one split may cut the same link.
    pub blocks: u32,
    random: ChaCha8Rng,
    /// When the bytes sent so far have left, under a bandwidth limit.
    busy_until: u64,
}

/// When a message leaves its sender for the last time and when it arrives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    pub leaves: u64,
    pub arrives: u64,
}

impl Link {
    pub(super) fn new(from: Host, to: Host, latency: Latency, random: ChaCha8Rng) -> Link {
        Link { from, to, latency, loss_per_million: 0, bandwidth: None, blocks: 0, random, busy_until: 0 }
    }

    pub(super) fn latency(&mut self) -> u64 {
        self.latency.draw(&mut self.random)
    }

    /// Chooses the flight of one message of `size` bytes sent at `now`.
    pub(super) fn send(&mut self, now: u64, size: usize) -> Flight {
        let mut leaves = now;
        if let Some(bandwidth) = self.bandwidth {
            let duration = (size as u64).saturating_mul(1_000_000_000) / bandwidth.max(1);
            self.busy_until = self.busy_until.max(now).saturating_add(duration);
            leaves = self.busy_until;
        }
        let latency = self.latency.draw(&mut self.random);
        if self.loss_per_million > 0 {
            leaves = leaves.saturating_add(self.retransmissions());
        }
        Flight { leaves, arrives: leaves.saturating_add(latency) }
    }

    /// Where a segment of `size` bytes breaks in two on its way, if it does: one draw.
    pub(super) fn breaks(&mut self, size: usize, parts_per_million: u32) -> Option<usize> {
        let draw = self.random.next_u64();
        let breaks = ((draw & 0xffff_ffff) * 1_000_000) >> 32 < u64::from(parts_per_million);
        (breaks && size > 1).then(|| 1 + (((draw >> 32) * (size as u64 - 1)) >> 32) as usize)
    }

    /// The delay by repeated loss: nothing, 0.2 s, 0.6 s, 1.4 s …; at most eight losses in a row.
    fn retransmissions(&mut self) -> u64 {
        let mut delay = 0;
        let mut timeout = RETRANSMIT_FIRST_NS;
        for _ in 0..8 {
            if !streams::chance(&mut self.random, self.loss_per_million) {
                break;
            }
            delay += timeout;
            timeout *= 2;
        }
        delay
    }
}

/// The first retransmission at `now` or later of data first sent at `since`.
pub(super) fn next_retransmission(since: u64, now: u64, longest: u64) -> u64 {
    let mut at = since;
    let mut timeout = RETRANSMIT_FIRST_NS;
    while at < now {
        at += timeout;
        timeout = (timeout * 2).min(longest);
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retransmissions_double_from_a_fifth_of_a_second() {
        let second = 1_000_000_000;
        assert_eq!(next_retransmission(0, 1, 60 * second), second / 5);
        assert_eq!(next_retransmission(0, second, 60 * second), 1_400_000_000);
        assert_eq!(next_retransmission(0, 10 * second, 60 * second), 12_600_000_000);
        assert_eq!(next_retransmission(0, 10 * second, 2 * second), 11_000_000_000);
    }
}
