//! Ordered time: what a leader stamps its batches with.
//!
//! A leader's time goes on with its monotonic clock and drifts towards its wall clock by at most
//! 1 %, so that no jump of a host's clock shows. A new leader starts from the later of the log's
//! last stamp and the last time it heard of another leader plus its own monotonic time since; one
//! that has heard of none since it started waits for the wall clocks of a majority and takes the
//! lowest of them, apart from those that nobody has set.
//! Invariant: stamps of one leader rise strictly.

use std::collections::BTreeMap;

use gesmas_machine::Time;

/// What the clocks of this host say. The core has no others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Nanoseconds since some point, never backwards.
    pub monotonic: u64,
    /// Nanoseconds since the Unix epoch, as far as this host knows.
    pub wall: u64,
}

/// A leader's time may drift towards the wall clock by one part in this many.
const SLEW_PARTS: u64 = 100;

/// The beginning of 2020. A wall clock that says less was never set: a host without a battery for its clock
/// begins in 1970. Time that began there would reach the others' by one part in a hundred only.
pub(super) const UNSET: u64 = 1_577_836_800 * 1_000_000_000;

/// The time of a replica that leads.
#[derive(Clone, Debug)]
pub(super) struct LeaderClock {
    time: u64,
    at: u64,
    last_stamp: u64,
}

impl LeaderClock {
    /// A clock that says `time` now.
    pub(super) fn start(time: Time, now: Moment) -> Self {
        Self { time: time.0, at: now.monotonic, last_stamp: time.0 }
    }

    /// The time now.
    pub(super) fn read(&mut self, now: Moment) -> Time {
        let elapsed = now.monotonic.saturating_sub(self.at);
        self.at = self.at.max(now.monotonic);
        self.time = self.time.saturating_add(elapsed);
        let most = elapsed / SLEW_PARTS;
        if now.wall > self.time {
            self.time += (now.wall - self.time).min(most);
        } else {
            self.time -= (self.time - now.wall).min(most);
        }
        Time(self.time)
    }

    /// A stamp for the next batch, later than the one before.
    pub(super) fn stamp(&mut self, now: Moment) -> Time {
        let stamp = self.read(now).0.max(self.last_stamp + 1);
        self.last_stamp = stamp;
        Time(stamp)
    }
}

/// What a replica knows of the time of others.
#[derive(Clone, Debug, Default)]
pub(super) struct HeardClocks {
    /// Time of a leader, and when it was heard.
    leader: Option<(Time, u64)>,
    /// Wall clocks of peers, heard since the last election.
    walls: BTreeMap<u64, u64>,
}

impl HeardClocks {
    /// A leader said its time, or this replica led and knows it.
    pub(super) fn hear_leader(&mut self, time: Time, now: Moment) {
        if self.estimate(now).is_none_or(|estimate| time > estimate) {
            self.leader = Some((time, now.monotonic));
        }
    }

    /// A peer said what its wall clock says.
    pub(super) fn hear_wall(&mut self, peer: u64, wall: u64) {
        self.walls.insert(peer, wall);
    }

    /// Wall clocks are asked for anew after an election.
    pub(super) fn forget_walls(&mut self) {
        self.walls.clear();
    }

    fn estimate(&self, now: Moment) -> Option<Time> {
        self.leader.map(|(time, at)| time.after(now.monotonic.saturating_sub(at)))
    }

    /// The time from which a new leader starts, `last_stamp` being the log's; none while it has to
    /// wait for wall clocks. One that says less than `unset` counts only if all do.
    pub(super) fn start(
        &self,
        last_stamp: Time,
        majority: usize,
        unset: u64,
        now: Moment,
    ) -> Option<Time> {
        if let Some(estimate) = self.estimate(now) {
            return Some(last_stamp.max(estimate));
        }
        if self.walls.len() + 1 < majority {
            return None;
        }
        let walls = || self.walls.values().copied().chain([now.wall]);
        let lowest = walls().filter(|wall| *wall >= unset).min().or_else(|| walls().min());
        Some(last_stamp.max(Time(lowest.unwrap_or(now.wall))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn at(monotonic: u64, wall: u64) -> Moment {
        Moment { monotonic, wall }
    }

    #[test]
    fn a_jump_of_the_wall_clock_does_not_show() {
        let mut clock = LeaderClock::start(Time(1_000 * SECOND), at(0, 1_000 * SECOND));
        let later = clock.read(at(SECOND, 5_000 * SECOND));
        assert_eq!(later, Time(1_001 * SECOND + SECOND / 100));
        let earlier = clock.read(at(2 * SECOND, 0));
        assert_eq!(earlier, Time(later.0 + SECOND - SECOND / 100));
    }

    #[test]
    fn stamps_rise_while_the_clocks_stand_still() {
        let mut clock = LeaderClock::start(Time(7), at(0, 7));
        let stamps: Vec<_> = (0..3).map(|_| clock.stamp(at(0, 7)).0).collect();
        assert_eq!(stamps, [8, 9, 10]);
    }

    #[test]
    fn a_leader_goes_on_from_what_it_heard() {
        let mut heard = HeardClocks::default();
        heard.hear_leader(Time(500), at(10, 0));
        assert_eq!(heard.start(Time(400), 2, UNSET, at(30, 9_999)), Some(Time(520)));
        assert_eq!(heard.start(Time(600), 2, UNSET, at(30, 9_999)), Some(Time(600)));
    }

    #[test]
    fn a_cold_start_takes_the_lowest_wall_clock_of_a_majority() {
        let mut heard = HeardClocks::default();
        assert_eq!(heard.start(Time(0), 2, UNSET, at(0, 900)), None);
        heard.hear_wall(2, 700);
        assert_eq!(heard.start(Time(0), 2, UNSET, at(0, 900)), Some(Time(700)));
        assert_eq!(heard.start(Time(800), 2, UNSET, at(0, 900)), Some(Time(800)), "never back");
    }

    #[test]
    fn a_clock_that_nobody_has_set_does_not_count() {
        let (set, later) = (UNSET + 700, UNSET + 900);
        let mut heard = HeardClocks::default();
        heard.hear_wall(2, 5);
        assert_eq!(heard.start(Time(0), 2, UNSET, at(0, set)), Some(Time(set)), "the peer's");
        heard.hear_wall(3, later);
        assert_eq!(heard.start(Time(0), 2, UNSET, at(0, 9)), Some(Time(later)), "the own one");
        heard.hear_wall(3, 6);
        assert_eq!(heard.start(Time(0), 2, UNSET, at(0, 9)), Some(Time(5)), "there is no other");
    }
}
