//! `Lease`: something that one holder has for a time, and keeps by renewing.
//!
//! Unlike a `Lock` it belongs to no session: a caller that has its *key* renews it or gives it back, from
//! wherever, and it runs out by itself when nobody does. So it suits holders that come and go between two
//! renewals, jobs started by cron, say, or clients of the HTTP interface. The key is a random number that
//! only the holder is told.
//! Tokens are fencing tokens, which everybody can read: each is greater than every one before, and a
//! resource that remembers the greatest turns away a holder that was late. A token renews nothing.
//! A lease lasts from when it was granted, by the time of the cluster. A holder cannot know how long the reply
//! was on its way; from a `renew` it knows that the lease lasts for `duration` from when it sent the
//! call.
//! Transient: a lease that nobody holds or waits for takes no room. Every method costs the same however
//! many wait.
//! Invariant: outside of a segment `free` counts a permit, or it is on its way to a waiter, exactly
//! when nobody holds the lease.
//! Not here: re-entrance. A lease knows keys and no owners, so that a holder which asks again waits as
//! others do; a call that is sent again under its own number or key takes effect once.
//!
//! ```text
//! $ gesmas call Lease/nightly try_acquire '{"text": "host-3"}' 1h
//! {"token": 17, "key": 11823904526120497203, "ends": "2026-11-27T11:00:00Z"}
//! $ gesmas call Lease/nightly release 11823904526120497203
//! ```
//!
//! From Rust:
//!
//! ```
//! use std::time::Duration;
//!
//! use gesmas_lease::LeaseStub;
//! use gesmas_sdk::stub::Invoke;
//!
//! async fn nightly(client: impl Invoke) {
//!     let lease = LeaseStub::new(client, "nightly");
//!     let hour = Duration::from_secs(3600);
//!     if let Ok(Some(granted)) = lease.try_acquire("host-3".into(), hour).await {
//!         println!("ours until {:?}", granted.ends);
//!         let _ = lease.release(granted.key).await;
//!     }
//! }
//! ```

use gesmas_sdk::prelude::*;

/// A lease on one thing.
#[class(transient)]
pub struct Lease {
    free: Semaphore,
    held: Value<Held>,
}

/// Bytes that a holder may say of itself.
const HOLDER: usize = 64 << 10;

/// What is kept of the holder.
#[derive(Value)]
struct Held {
    info: HolderInfo,
    key: u64,
    alarm: Alarm,
}

/// What a holder gets.
#[derive(Clone, Debug, PartialEq, Eq, Value)]
pub struct Granted {
    /// Its fencing token.
    pub token: u64,
    /// What the lease is renewed and given back with, which nobody else is told.
    pub key: u64,
    /// When it runs out.
    pub ends: Time,
}

/// The holder of a lease.
#[derive(Clone, Debug, PartialEq, Eq, Value)]
pub struct HolderInfo {
    /// Its token.
    pub token: u64,
    /// What it said of itself.
    pub holder: Bytes,
    /// Since when it holds the lease.
    pub since: Time,
    /// When the lease runs out.
    pub ends: Time,
}

/// Why a lease was not taken, renewed or given back.
#[error]
pub enum LeaseError {
    /// the lease is not held with this key (any more)
    NotHeld,
    /// a lease lasts longer than no time at all
    NoDuration,
    /// the holder says more of itself than it may
    HolderTooLong {
        /// how many bytes it may
        limit: u64,
    },
    /// the call was cancelled
    Cancelled,
}

#[methods]
impl Lease {
    /// Nobody holds a fresh lease.
    #[init]
    fn init(&mut self) {
        self.free.set(1_u32);
    }

    /// Takes the lease for that long; blocks while another holds it.
    pub fn acquire(&mut self, holder: Bytes, duration: Duration) -> Result<Granted, LeaseError> {
        check(&holder, duration)?;
        self.free.p()?;
        Ok(self.hold(holder, duration))
    }

    /// Takes the lease for that long if nobody holds it; never blocks.
    pub fn try_acquire(
        &mut self,
        holder: Bytes,
        duration: Duration,
    ) -> Result<Option<Granted>, LeaseError> {
        check(&holder, duration)?;
        Ok(self.free.try_p().then(|| self.hold(holder, duration)))
    }

    /// Takes the lease for that long; blocks at most for `patience`, and returns nothing when that was
    /// up.
    pub fn acquire_for(
        &mut self,
        holder: Bytes,
        duration: Duration,
        patience: Duration,
    ) -> Result<Option<Granted>, LeaseError> {
        check(&holder, duration)?;
        let free = self.free.p_for(patience)?;
        Ok(free.then(|| self.hold(holder, duration)))
    }

    /// The lease runs out that long from now instead, which may be sooner; returns when.
    pub fn renew(&mut self, key: u64, duration: Duration) -> Result<Time, LeaseError> {
        check(&[], duration)?;
        let info = self.end(key)?;
        Ok(self.begin(info, key, duration))
    }

    /// Gives the lease back. A key that does not hold it (again, too late, or of another lease) changes
    /// nothing and is `NotHeld`.
    pub fn release(&mut self, key: u64) -> Result<(), LeaseError> {
        self.end(key)?;
        self.free.v();
        Ok(())
    }

    /// The holder of the lease.
    #[read]
    pub fn holder(&self) -> Result<Option<HolderInfo>> {
        Ok(self.held.read().map(|held| held.info))
    }

    /// How many calls wait for the lease.
    #[read]
    pub fn waiting(&self) -> Result<u64> {
        Ok(self.free.waiters())
    }

    #[handler]
    fn ran_out(&mut self, token: u64) {
        if self.held.read().is_some_and(|held| held.info.token == token) {
            self.held.take();
            self.free.v();
        }
    }

    fn hold(&mut self, holder: Bytes, duration: Duration) -> Granted {
        let (token, key, since) = (ctx::fencing_token(), ctx::random(), ctx::now());
        let ends = self.begin(HolderInfo { token, holder, since, ends: since }, key, duration);
        Granted { token, key, ends }
    }

    fn begin(&mut self, info: HolderInfo, key: u64, duration: Duration) -> Time {
        let ends = ctx::now() + duration;
        let alarm = ctx::after(duration, Self::RAN_OUT, (info.token,));
        self.held.set(Held { info: HolderInfo { ends, ..info }, key, alarm });
        ends
    }

    fn end(&mut self, key: u64) -> Result<HolderInfo, LeaseError> {
        let held = self.held.read().filter(|held| held.key == key);
        let held = held.ok_or(LeaseError::NotHeld)?;
        self.held.take();
        ctx::cancel(held.alarm);
        Ok(held.info)
    }
}

/// What a holder asks for.
fn check(holder: &[u8], duration: Duration) -> Result<(), LeaseError> {
    if duration.is_zero() {
        return Err(LeaseError::NoDuration);
    }
    let limit = HOLDER as u64;
    if holder.len() > HOLDER { Err(LeaseError::HolderTooLong { limit }) } else { Ok(()) }
}
