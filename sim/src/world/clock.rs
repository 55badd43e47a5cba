//! The clock of one machine: monotonic time with an offset and a rate, and a wall clock with an offset of its own.
//! Integers only, so that every build agrees.

use std::time::Duration;

/// 2024-01-01T00:00:00Z in milliseconds since 1970: the wall clock of every machine when the world starts.
pub const WALL_EPOCH_MS: i64 = 1_704_067_200_000;

const MILLION: u64 = 1_000_000;

/// No event is due at this time.
pub(super) const NEVER: u64 = u64::MAX;

/// Maps the world's time (nanoseconds) to a machine's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// World time at which the present rate took effect, and the machine's time then.
    base_world: u64,
    base_local: u64,
    /// Local nanoseconds per million world nanoseconds.
    rate: u64,
    wall_offset_ms: i64,
    origin: u64,
    /// The machine stands still since this world time: its clocks do too.
    frozen_at: Option<u64>,
}

impl Clock {
    /// A clock that runs at the world's rate and shows `origin` (nanoseconds) when the world starts.
    pub(super) fn new(origin: u64) -> Clock {
        Clock { base_world: 0, base_local: origin, rate: MILLION, wall_offset_ms: 0, origin, frozen_at: None }
    }

    pub(super) fn local(&self, world: u64) -> u64 {
        let world = self.frozen_at.map_or(world, |frozen_at| frozen_at.min(world));
        let passed = world.saturating_sub(self.base_world);
        self.base_local + scale(passed, self.rate, MILLION)
    }

    /// The first world time at which the machine shows `local` or more; never, for a later time than it stands still at.
    pub(super) fn world(&self, local: u64) -> u64 {
        if self.frozen_at.is_some_and(|frozen_at| self.local(frozen_at) < local) {
            return NEVER;
        }
        let remaining = local.saturating_sub(self.base_local);
        if self.rate == MILLION {
            return self.base_world.saturating_add(remaining);
        }
        self.base_world.saturating_add(scale(remaining, MILLION, self.rate).saturating_add(1))
    }

    pub(super) fn wall_ms(&self, world: u64) -> i64 {
        let passed_ms = (self.local(world) - self.origin) / MILLION;
        WALL_EPOCH_MS + passed_ms as i64 + self.wall_offset_ms
    }

    /// From `world` on the clock gains `drift` millionths (loses, when negative). At most half a million either way.
    pub(super) fn set_drift(&mut self, world: u64, drift: i32) {
        assert!(drift.unsigned_abs() <= 500_000, "a clock drifts by at most one half");
        self.base_local = self.local(world);
        self.base_world = world;
        self.rate = MILLION.saturating_add_signed(i64::from(drift));
    }

    /// From `world` on all clocks of the machine stand still, until [`Clock::thaw`].
    pub(super) fn freeze(&mut self, world: u64) {
        self.frozen_at.get_or_insert(world);
    }

    /// The clocks go on from where they stood; the wall clock is behind from now on, as after a pause of a virtual machine.
    pub(super) fn thaw(&mut self, world: u64) {
        self.base_local = self.local(world);
        self.base_world = world;
        self.frozen_at = None;
    }

    pub(super) fn step_wall(&mut self, by_ms: i64) {
        self.wall_offset_ms += by_ms;
    }

    pub(super) fn rate(&self) -> i64 {
        self.rate as i64
    }

    pub(super) fn wall_offset_ms(&self) -> i64 {
        self.wall_offset_ms
    }
}

fn scale(value: u64, by: u64, over: u64) -> u64 {
    if by == over {
        return value;
    }
    u64::try_from(u128::from(value) * u128::from(by) / u128::from(over)).unwrap_or(u64::MAX)
}

pub(super) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_fast_clock_gains_and_never_jumps_when_its_rate_changes() {
        let mut clock = Clock::new(500);
        clock.set_drift(1_000_000, 100_000);
        assert_eq!(clock.local(1_000_000), 1_000_500);
        assert_eq!(clock.local(2_000_000), 2_100_500);
        clock.set_drift(2_000_000, -100_000);
        assert_eq!(clock.local(3_000_000), 3_000_500);
    }

    #[test]
    fn a_frozen_clock_stands_still_and_goes_on_from_there() {
        let mut clock = Clock::new(100);
        clock.freeze(1_000);
        assert_eq!((clock.local(1_000), clock.local(9_000)), (1_100, 1_100));
        assert_eq!((clock.world(1_100), clock.world(1_101)), (1_000, NEVER));
        clock.thaw(10_000);
        assert_eq!((clock.local(10_000), clock.local(10_007)), (1_100, 1_107));
        assert_eq!(clock.world(1_107), 10_007);
    }

    #[test]
    fn a_step_moves_the_wall_clock_only() {
        let mut clock = Clock::new(0);
        clock.step_wall(-3_600_000);
        assert_eq!(clock.wall_ms(5_000_000), WALL_EPOCH_MS + 5 - 3_600_000);
        assert_eq!(clock.local(5_000_000), 5_000_000);
    }

    proptest! {
        #[test]
        fn a_deadline_is_never_early_and_at_most_two_ticks_late(
            drift in -500_000_i32..500_000, ahead in 0_u64..1_000_000_000_000,
        ) {
            let mut clock = Clock::new(77);
            clock.set_drift(1_234, drift);
            let deadline = clock.local(1_234) + ahead;
            let fires = clock.world(deadline);
            prop_assert!(clock.local(fires) >= deadline);
            prop_assert!(clock.local(fires) <= deadline + 3);
        }
    }
}
