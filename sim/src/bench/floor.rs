//! F, the unit of cost: one event of a bare simulation loop, in which six nodes pass 64 messages of 1 KiB around, each
//! freshly allocated, copied twice and checksummed. Measured in the same process as what is expressed in it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::cpu::thread_cpu;

const NODES: usize = 6;
const IN_FLIGHT: usize = 64;
const MESSAGE: usize = 1024;

/// CPU time of one F event, over `events` events; `None` where CPU time cannot be read.
pub fn measure(events: u64) -> Option<Duration> {
    let started = thread_cpu()?;
    let checksum = run(events);
    let spent = thread_cpu()?.checked_sub(started)?;
    std::hint::black_box(checksum);
    Some(spent / u32::try_from(events).expect("a measurement is shorter than 2^32 events"))
}

fn run(events: u64) -> u32 {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut inboxes: Vec<Vec<u8>> = (0..NODES).map(|node| vec![node as u8; MESSAGE]).collect();
    let mut heap = BinaryHeap::with_capacity(IN_FLIGHT);
    let mut payloads: Vec<Vec<u8>> = Vec::with_capacity(IN_FLIGHT);
    for slot in 0..IN_FLIGHT {
        payloads.push(vec![slot as u8; MESSAGE]);
        heap.push(Reverse((u64::from(random.next_u32()), slot as u64, slot % NODES, slot)));
    }
    let mut checksum = 0;
    for sequence in (IN_FLIGHT as u64..).take(usize::try_from(events).expect("a measurement is bounded")) {
        let Reverse((time, _, node, slot)) = heap.pop().expect("every event schedules another");
        let message = std::mem::take(&mut payloads[slot]);
        checksum ^= crc32c::crc32c(&message);
        inboxes[node].copy_from_slice(&message);
        let mut next = Vec::with_capacity(MESSAGE);
        next.extend_from_slice(&inboxes[node]);
        next[0] = next[0].wrapping_add(1);
        payloads[slot] = next;
        let draw = random.next_u64();
        heap.push(Reverse((time + 1 + (draw & 0xffff), sequence, (draw >> 32) as usize % NODES, slot)));
    }
    checksum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loop_does_the_same_work_every_time() {
        assert_eq!(run(10_000), run(10_000));
        assert_ne!(run(10_000), run(10_001));
    }
}
