//! When leaders' clocks reached which time.
//!
//! Clocks of replicas differ, and so a new leader's time may be ahead of the time of the leader before:
//! what comes due in between is late by the ordered time and not by any clock. Lateness is therefore
//! measured in virtual time, from when some leader's clock reached the time that it was due at.
//! Invariant: times and the virtual times at which they were seen rise together.
//! Not here: what may be late, and by how much (`quiet.rs`, `workloads/yard.rs`).

use std::collections::BTreeMap;

/// See the file's head. It is seen at every look at the cluster, twenty times a second.
#[derive(Debug, Default)]
pub(crate) struct LeaderTimes {
    /// Virtual time by leader's time.
    seen: BTreeMap<u64, u64>,
}

impl LeaderTimes {
    /// A leader's clock says `time` now.
    pub(super) fn note(&mut self, time: u64, now: u64) {
        if self.seen.last_key_value().is_none_or(|(last, _)| *last < time) {
            self.seen.insert(time, now);
        }
    }

    /// The virtual time at which a leader's clock was first seen to have reached `time`.
    pub(crate) fn reached(&self, time: u64) -> Option<u64> {
        self.seen.range(time..).next().map(|(_, now)| *now)
    }

    /// What leaders' clocks had reached at a virtual time; 0 before the first was seen.
    pub(crate) fn at(&self, now: u64) -> u64 {
        self.seen.iter().rev().find(|(_, seen)| **seen <= now).map_or(0, |(time, _)| *time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_due_in_a_leap_was_reached_after_it() {
        let mut times = LeaderTimes::default();
        times.note(100, 10);
        times.note(110, 20);
        times.note(95, 30);
        times.note(200, 40);
        assert_eq!(times.reached(105), Some(20), "an earlier leader was ahead");
        assert_eq!(times.reached(150), Some(40));
        assert_eq!(times.reached(201), None);
        assert_eq!([9, 10, 39, 40].map(|now| times.at(now)), [0, 100, 110, 200]);
    }
}
