//! The first of many deadlines that still lies ahead.

use crate::Time;

/// Collects deadlines. What was due by `now` has been done, or waits for something other than time: it does not count.
#[derive(Clone, Copy, Debug)]
pub struct Earliest {
    now: Time,
    first: Option<Time>,
}

impl Earliest {
    pub fn after(now: Time) -> Earliest {
        Earliest { now, first: None }
    }

    pub fn add(&mut self, deadline: Option<Time>) {
        if let Some(deadline) = deadline
            && deadline > self.now
            && self.first.is_none_or(|first| deadline < first)
        {
            self.first = Some(deadline);
        }
    }

    pub fn deadline(self) -> Option<Time> {
        self.first
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn only_what_lies_ahead_counts() {
        let at = |ms| Some(Duration::from_millis(ms));
        let mut earliest = Earliest::after(Duration::from_millis(10));
        for deadline in [None, at(3), at(10), at(30), at(20), at(25)] {
            earliest.add(deadline);
        }
        assert_eq!(earliest.deadline(), at(20));
    }
}
