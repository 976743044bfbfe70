//! Time as leases need it: it goes on while the machine sleeps, and it never goes back.
//!
//! The cluster counts a session's timeout whether this machine sleeps or not. A clock that stands still
//! meanwhile would hold a session for safe that ended long ago; one that goes back, too. So:
//! - On Linux time is CLOCK_BOOTTIME. Elsewhere it is a steady clock, and what the wall clock has gained
//!   on it at most: after a sleep the wall clock is ahead by as much. Somebody who sets the wall clock
//!   forward makes the client doubt early, which is safe.
//! - A clock that is set back goes on from where it was, whatever it is made of: it counts what passes
//!   between two readings, and nothing for the one in which it was set back.
//!
//! Invariant: everything that a lease or a deadline is counted by is read here.
//! Not here: waiting. Timers of the system stand still while the machine sleeps, so whoever waits for a
//! time looks again every [`LOOK`].

use std::{
    fmt,
    ops::{Add, AddAssign, Sub},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// How long a timer is trusted: a machine may have slept longer than it ran.
const LOOK: Duration = Duration::from_millis(250);

/// A time that a [`Clock`] read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(Duration);

impl Moment {
    /// How long ago an earlier moment was; nothing for a later one.
    pub(crate) const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// Nanoseconds on its clock.
    pub(crate) fn nanoseconds(self) -> u64 {
        u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX)
    }

    /// The moment of this many nanoseconds.
    pub(crate) const fn at(nanoseconds: u64) -> Self {
        Self(Duration::from_nanos(nanoseconds))
    }
}

/// The sum of what never comes is the last moment of all, which never comes either.
impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}

impl AddAssign<Duration> for Moment {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl Sub<Duration> for Moment {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(duration))
    }
}

/// What a client tells time by.
///
/// Clients have [`Clock::system`]. Tests of programs give theirs a clock of their own
/// ([`ClientBuilder::clock`](crate::ClientBuilder::clock)), and let it leap or sleep.
#[derive(Clone)]
pub struct Clock {
    read: Arc<dyn Fn() -> Duration + Send + Sync>,
    hand: Arc<Mutex<Hand>>,
}

#[derive(Debug, Default)]
struct Hand {
    /// What was read last.
    read: Duration,
    /// What has passed since the clock was made.
    passed: Duration,
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clock").field("hand", &self.hand).finish_non_exhaustive()
    }
}

impl Clock {
    /// A clock that reads what `read` gives: the time since any beginning, sleep of the machine
    /// included. Where that goes back, the clock goes on from where it was.
    pub fn new(read: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        let hand = Hand { read: read(), passed: Duration::ZERO };
        Self { read: Arc::new(read), hand: Arc::new(Mutex::new(hand)) }
    }

    /// The clock of the system. See the file's head.
    #[must_use]
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn system() -> Self {
        Self::new(|| {
            let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
            let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
            Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
        })
    }

    /// The clock of the system. See the file's head.
    #[must_use]
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub fn system() -> Self {
        use std::time::{Instant, SystemTime};

        let ratchet = Mutex::new(Ratchet::default());
        let start = Instant::now();
        Self::new(move || {
            let mut ratchet = ratchet.lock().unwrap_or_else(PoisonError::into_inner);
            let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            ratchet.read(start.elapsed(), wall)
        })
    }

    /// The time.
    pub(crate) fn now(&self) -> Moment {
        let mut hand = self.hand.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the lock: of two readings the later one counts.
        let read = (self.read)();
        hand.passed = hand.passed.saturating_add(read.saturating_sub(hand.read));
        hand.read = read;
        Moment(hand.passed)
    }

    /// Sleeps until a moment, or a little longer after the machine has slept. Cancel safe.
    pub(crate) async fn sleep_until(&self, moment: Moment) {
        loop {
            let left = moment.since(self.now());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.min(LOOK)).await;
        }
    }
}

/// A steady clock, and the most that a wall clock was ever ahead of it.
#[cfg(any(test, not(any(target_os = "linux", target_os = "android"))))]
#[derive(Debug, Default)]
struct Ratchet {
    lead: Duration,
}

#[cfg(any(test, not(any(target_os = "linux", target_os = "android"))))]
impl Ratchet {
    fn read(&mut self, steady: Duration, wall: Duration) -> Duration {
        self.lead = self.lead.max(wall.saturating_sub(steady));
        steady.saturating_add(self.lead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_clock_that_is_set_back_goes_on_from_where_it_was() {
        let hand = Arc::new(Mutex::new(seconds(100)));
        let clock = Clock::new({
            let hand = hand.clone();
            move || *hand.lock().expect("nobody panics with it")
        });
        let start = clock.now();
        let mut reads = Vec::new();
        for time in [105, 20, 21, 90, 3_690, 80, 81] {
            *hand.lock().expect("nobody panics with it") = seconds(time);
            reads.push(clock.clone().now().since(start).as_secs());
        }
        assert_eq!(reads, [5, 5, 6, 75, 3_675, 3_675, 3_676]);
    }

    /// What a steady clock and a wall clock gain, and what time gains by it. A lead that was counted is not
    /// counted again: of a sleep after a step back, only what exceeds it.
    #[test]
    fn without_a_clock_that_counts_sleep_the_wall_clock_tells_of_it() {
        let mut ratchet = Ratchet::default();
        let (mut steady, mut wall) = (seconds(0), seconds(1_000_000_000));
        let mut last = ratchet.read(steady, wall);
        let story = [
            ("they run", 10, 10, 10),
            ("the machine sleeps for an hour", 0, 3_600, 3_600),
            ("it is set forward by a minute", 1, 61, 61),
            ("and back again", 1, -59, 1),
            ("they run", 30, 30, 30),
            ("the machine sleeps for an hour", 0, 3_600, 3_540),
            ("it is set back by a day", 5, -86_395, 5),
            ("they run", 5, 5, 5),
        ];
        for (what, steadily, walls, gains) in story {
            steady += seconds(steadily);
            wall = if walls < 0 {
                wall - seconds(i64::unsigned_abs(walls))
            } else {
                wall + seconds(walls.unsigned_abs())
            };
            let now = ratchet.read(steady, wall);
            assert_eq!(now - last, seconds(gains), "{what}");
            last = now;
        }
    }
}
