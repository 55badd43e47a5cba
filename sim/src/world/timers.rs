//! Deadlines by slot, on a machine's clock or on the world's. A slot keeps at most one useful entry in the schedule:
//! moving a deadline later costs nothing, and an old entry is recognised by its time.

use std::task::{Poll, Waker};

use super::clock::NEVER;
use super::host::{Host, HostState};
use super::schedule::{Event, Schedule};

#[derive(Default)]
pub(super) struct Timers {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Default)]
struct Slot {
    generation: u32,
    host: Option<Host>,
    /// In nanoseconds of the host's clock, or of the world's without a host.
    deadline: Option<u64>,
    fired: bool,
    /// The time of the entry in the schedule that will look at this slot.
    queued: Option<u64>,
    waker: Option<Waker>,
}

impl Timers {
    pub(super) fn create(&mut self, host: Option<Host>) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            u32::try_from(self.slots.len() - 1).expect("fewer than four billion timers")
        });
        self.slots[slot as usize].host = host;
        slot
    }

    pub(super) fn remove(&mut self, slot: u32) {
        let entry = &mut self.slots[slot as usize];
        let generation = entry.generation.wrapping_add(1);
        *entry = Slot { generation, ..Slot::default() };
        self.free.push(slot);
    }

    pub(super) fn set(
        &mut self,
        slot: u32,
        deadline: Option<u64>,
        hosts: &[HostState],
        schedule: &mut Schedule,
    ) {
        let entry = &mut self.slots[slot as usize];
        entry.fired = false;
        entry.deadline = deadline;
        entry.queue(slot, hosts, schedule);
    }

    /// Ready when the deadline has passed by the clock, or has fired; disarms then.
    pub(super) fn poll(&mut self, slot: u32, now: u64, hosts: &[HostState], waker: &Waker) -> Poll<()> {
        let entry = &mut self.slots[slot as usize];
        if entry.fired || entry.world_deadline(hosts).is_some_and(|deadline| deadline <= now) {
            entry.fired = false;
            entry.deadline = None;
            return Poll::Ready(());
        }
        if !entry.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
            entry.waker = Some(waker.clone());
        }
        Poll::Pending
    }

    /// An entry of the schedule came up. Says whose timer fired, if one did.
    pub(super) fn due(
        &mut self,
        (slot, generation): (u32, u32),
        at: u64,
        now: u64,
        hosts: &[HostState],
        schedule: &mut Schedule,
    ) -> Option<(Option<Host>, Option<Waker>)> {
        let entry = &mut self.slots[slot as usize];
        if entry.generation != generation || entry.queued != Some(at) {
            return None;
        }
        entry.queued = None;
        if entry.world_deadline(hosts)? > now {
            entry.queue(slot, hosts, schedule);
            return None;
        }
        entry.deadline = None;
        entry.fired = true;
        Some((entry.host, entry.waker.take()))
    }

    /// The clock of `host` changed its rate: its deadlines may come earlier now.
    pub(super) fn requeue(&mut self, host: Host, hosts: &[HostState], schedule: &mut Schedule) {
        for (slot, entry) in self.slots.iter_mut().enumerate() {
            if entry.host == Some(host) {
                entry.queue(slot as u32, hosts, schedule);
            }
        }
    }

    /// Slots in use.
    pub(super) fn count(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

impl Slot {
    fn world_deadline(&self, hosts: &[HostState]) -> Option<u64> {
        let deadline = self.deadline?;
        Some(match self.host {
            Some(host) => hosts[usize::from(host.0)].clock.world(deadline),
            None => deadline,
        })
    }

    fn queue(&mut self, slot: u32, hosts: &[HostState], schedule: &mut Schedule) {
        // On a clock that stands still nothing is due; the slot is queued again when it goes on.
        let Some(at) = self.world_deadline(hosts).filter(|at| *at != NEVER) else { return };
        if self.queued.is_none_or(|queued| queued > at) {
            self.queued = Some(at);
            schedule.push(at, Event::Timer { slot, generation: self.generation });
        }
    }
}
