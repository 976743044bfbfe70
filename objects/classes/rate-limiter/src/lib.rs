//! `RateLimiter`: so many permits in a period, for all callers together.
//!
//! A bucket that holds `burst` permits and is filled at an even rate; a call takes some out of it, and waits
//! until they are there. Calls are served in the order in which they came, and one that wants many is
//! not passed by others that want few; a call that is cancelled while it waits has taken nothing.
//! Time is the ordered time of the cluster, and arithmetic is in whole nanoseconds: the time from one permit
//! to the next is rounded up, so never more pass than was said.
//! Every method costs the same whatever the number of permits and callers.
//! Invariant: the bucket is full at `full_at`, and each permit that is missing moves that by an interval;
//! only the call whose turn it is waits for time to pass, all others for their `turn`.
//! A bucket that could never serve is not created: 0 permits, a period or a burst of 0, and one that takes
//! more than a hundred years to fill, which 64 bits of nanoseconds could not count.
//! Not here: concurrency. `Semaphore` bounds how many work at once.
//!
//! ```text
//! $ gesmas object create RateLimiter/mail 100 1m 10        # 100 a minute, 10 at once
//! $ gesmas call RateLimiter/mail acquire 1
//! $ gesmas call RateLimiter/mail try_acquire 10
//! false
//! ```
//!
//! From Rust:
//!
//! ```
//! use std::time::Duration;
//!
//! use gesmas_rate_limiter::RateLimiterStub;
//! use gesmas_sdk::stub::Invoke;
//!
//! async fn send(client: impl Invoke) {
//!     let mail = RateLimiterStub::new(client, "mail");
//!     let _ = mail.create(100, Duration::from_secs(60), 10).await;
//!     while mail.acquire(1).await.is_ok() {
//!         println!("one may be sent");
//!     }
//! }
//! ```

use gesmas_sdk::prelude::*;

/// A bucket of permits that is filled at an even rate.
#[class]
pub struct RateLimiter {
    rate: Value<Rate>,
    full_at: Value<Time>,
    turn: Semaphore,
    never: Semaphore,
}

/// How a bucket is filled.
#[derive(Value)]
struct Rate {
    /// From one permit to the next.
    interval: Duration,
    burst: u32,
}

/// How long it takes to fill a bucket at most: a hundred years.
const FILLING_MAX: Duration = Duration::from_secs(100 * 365 * 24 * 3_600);

/// Why permits were not taken, or there is no bucket.
#[error]
pub enum RateLimiterError {
    /// so many permits are never there at once
    TooMany {
        /// how many there are at most
        burst: u32,
    },
    /// the call was cancelled
    Cancelled,
    /// a call takes one permit at least, a bucket gets one at least in its period and holds one at least
    ZeroPermits,
    /// the period in which permits come is longer than 0
    ZeroPeriod,
    /// a bucket is full after a hundred years at most
    TooSlow,
}

/// How long a call waits.
#[derive(Clone, Copy)]
enum Patience {
    None,
    Until(Time),
    Endless,
}

#[methods]
impl RateLimiter {
    /// Creates a full bucket that gets that many permits in that period and holds at most `burst`. None of
    /// them is 0.
    #[init]
    fn init(&mut self, permits: u32, period: Duration, burst: u32) -> Result<(), RateLimiterError> {
        if permits == 0 || burst == 0 {
            return Err(RateLimiterError::ZeroPermits);
        }
        if period.is_zero() {
            return Err(RateLimiterError::ZeroPeriod);
        }
        let interval = period.as_nanos().div_ceil(u128::from(permits));
        if interval * u128::from(burst) > FILLING_MAX.as_nanos() {
            return Err(RateLimiterError::TooSlow);
        }
        // What it takes to fill the bucket fits, so this does.
        let interval = Duration::from_nanos(interval as u64);
        self.rate.set(Rate { interval, burst });
        self.turn.set(1_u32);
        Ok(())
    }

    /// Takes that many permits, one at least; blocks until they are there.
    pub fn acquire(&mut self, permits: u32) -> Result<(), RateLimiterError> {
        self.take(permits, Patience::Endless).map(drop)
    }

    /// Takes that many permits if they are there and nobody waits, and tells whether; never blocks.
    pub fn try_acquire(&mut self, permits: u32) -> Result<bool, RateLimiterError> {
        self.take(permits, Patience::None)
    }

    /// Takes that many permits and tells whether; blocks at most that long, and takes nothing when they
    /// will not be there in time, which it may know at once.
    pub fn acquire_for(
        &mut self,
        permits: u32,
        duration: Duration,
    ) -> Result<bool, RateLimiterError> {
        self.take(permits, Patience::Until(ctx::now() + duration))
    }

    /// How many permits are there.
    #[read]
    pub fn available(&self) -> Result<u32> {
        let Rate { interval, burst } = self.rate.read().expect("init sets it");
        let missing = self.full_at.get().since(ctx::now()).as_nanos().div_ceil(interval.as_nanos());
        Ok(burst.saturating_sub(u32::try_from(missing).unwrap_or(u32::MAX)))
    }

    /// How many calls wait.
    #[read]
    pub fn waiting(&self) -> Result<u64> {
        Ok(self.turn.waiters() + self.never.waiters())
    }

    fn take(&mut self, permits: u32, patience: Patience) -> Result<bool, RateLimiterError> {
        let Rate { interval, burst } = self.rate.read().expect("init sets it");
        if permits == 0 {
            return Err(RateLimiterError::ZeroPermits);
        }
        if permits > burst {
            return Err(RateLimiterError::TooMany { burst });
        }
        let turn = match patience {
            Patience::None => self.turn.try_acquire(),
            Patience::Until(time) => self.turn.acquire_until(time)?,
            Patience::Endless => Some(self.turn.acquire()?),
        };
        if turn.is_none() {
            return Ok(false);
        }
        // The bucket may lack this much and still have what is wanted.
        let spare = interval.saturating_mul(burst - permits);
        let ready = self.full_at.get() - spare;
        if ready > ctx::now() {
            let in_time = match patience {
                Patience::None => false,
                Patience::Until(time) => ready <= time,
                Patience::Endless => true,
            };
            if !in_time {
                return Ok(false);
            }
            self.never.p_until(ready)?;
        }
        let full_at = self.full_at.get().max(ctx::now());
        self.full_at.set(full_at + interval.saturating_mul(permits));
        Ok(true)
    }
}
