//! `Lease`: something that one holder has for a time.
//!
//! A lease belongs to no session. It is taken, renewed and given back through one, and runs out by
//! itself whatever becomes of the session.
//! Invariant: a lease is held for safe only for its duration from when the call was *made* that took or
//! renewed it, which is before the cluster began to count; see `clock.rs` for what counts here.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use gesmas_lease::{Granted, LeaseCalls, LeaseError, LeaseStub};
use gesmas_sdk::{
    abi::value::{Bytes, Time},
    stub::{StubError, TypedCall},
};
use tokio::sync::Mutex;

use super::{Hold, Taken, patience};
use crate::{clock::Moment, handle::Session};

/// A lease that may be taken through this session.
#[derive(Clone, Debug)]
pub struct Lease {
    session: Session,
    calls: LeaseCalls,
    object: String,
}

impl Lease {
    pub(super) fn new(session: Session, object: String) -> Self {
        Self { session, calls: LeaseCalls::new(object.clone()), object }
    }

    /// Takes the lease for that long, as this holder; waits as long as another has it.
    ///
    /// A lease that was waited for is renewed once before it is handed out, since nobody knows how much of
    /// it has passed.
    ///
    /// # Errors
    /// As a stub's: nothing is held then.
    pub async fn acquire(
        &self,
        holder: impl Into<Bytes>,
        duration: Duration,
    ) -> Taken<LeaseHold, LeaseError> {
        let made = self.session.now();
        let call = self.calls.acquire(holder.into(), duration);
        let hold = self.session.acquire(call, self.release()).await?;
        self.hand_out(hold, made, duration).await
    }

    /// Takes the lease for that long if nobody has it.
    ///
    /// # Errors
    /// As a stub's: nothing is held then.
    pub async fn try_acquire(
        &self,
        holder: impl Into<Bytes>,
        duration: Duration,
    ) -> Taken<Option<LeaseHold>, LeaseError> {
        let call = self.calls.try_acquire(holder.into(), duration);
        self.try_take(call, self.session.deadline(), duration).await
    }

    /// Takes the lease for that long; waits at most for `limit`.
    ///
    /// # Errors
    /// As a stub's: nothing is held then.
    pub async fn acquire_for(
        &self,
        holder: impl Into<Bytes>,
        duration: Duration,
        limit: Duration,
    ) -> Taken<Option<LeaseHold>, LeaseError> {
        let call = self.calls.acquire_for(holder.into(), duration, limit);
        self.try_take(call, patience(limit), duration).await
    }

    /// Everything else that the class offers.
    #[must_use]
    pub fn stub(&self) -> LeaseStub<Session> {
        LeaseStub::new(self.session.clone(), self.object.as_str())
    }

    async fn try_take(
        &self,
        call: TypedCall<Option<Granted>, LeaseError>,
        patience: Option<Duration>,
        duration: Duration,
    ) -> Taken<Option<LeaseHold>, LeaseError> {
        let made = self.session.now();
        let hold = self.session.try_acquire(call, patience, self.release()).await;
        match hold? {
            Some(hold) => Ok(Some(self.hand_out(hold, made, duration).await?)),
            None => Ok(None),
        }
    }

    /// The hold is dropped, and so given back, if this future is.
    async fn hand_out(
        &self,
        hold: Hold<Granted, LeaseError>,
        made: Moment,
        duration: Duration,
    ) -> Taken<LeaseHold, LeaseError> {
        let (until, renewing) = (AtomicU64::new((made + duration).nanoseconds()), Mutex::new(()));
        let lease = LeaseHold { hold, stub: self.stub(), until, renewing };
        if self.session.now().since(made) > duration / 4 {
            lease.renew(duration).await?;
        }
        Ok(lease)
    }

    fn release(&self) -> impl Fn(&Granted) -> TypedCall<(), LeaseError> + Send + Sync + 'static {
        let calls = self.calls.clone();
        move |granted| calls.release(granted.key)
    }
}

/// A lease that is held. Dropped, it is given back.
#[derive(Debug)]
#[must_use = "a lease is given back when it is dropped"]
pub struct LeaseHold {
    hold: Hold<Granted, LeaseError>,
    stub: LeaseStub<Session>,
    /// Until when it is held for certain, on the session's clock.
    until: AtomicU64,
    /// Held by the one renewal that is made.
    renewing: Mutex<()>,
}

impl LeaseHold {
    /// The fencing token.
    #[must_use]
    pub const fn token(&self) -> u64 {
        self.hold.granted().token
    }

    /// For how long it is certainly held yet.
    #[must_use]
    pub fn left(&self) -> Duration {
        self.until().since(self.hold.session().now())
    }

    /// Whether it has, or may have, run out.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.left().is_zero()
    }

    /// Ends when it has, or may have, run out, renewals included.
    pub async fn lost(&self) {
        while !self.is_lost() {
            self.hold.session().sleep_until(self.until()).await;
        }
    }

    /// It runs out that long from now instead, which may be sooner; gives when, by the cluster's time.
    ///
    /// Renewals are made one after the other. Of one that is given up, or fails, nobody knows whether it
    /// was made: the lease is then held for certain for the shorter of both times.
    ///
    /// # Errors
    /// [`LeaseError::NotHeld`] when it had run out.
    pub async fn renew(&self, duration: Duration) -> Taken<Time, LeaseError> {
        let _alone = self.renewing.lock().await;
        let until = (self.hold.session().now() + duration).nanoseconds();
        self.until.fetch_min(until, Ordering::Relaxed);
        let renewed = self.stub.renew(self.hold.granted().key, duration).await;
        match &renewed {
            Ok(_) => self.until.store(until, Ordering::Relaxed),
            Err(StubError::Failed(LeaseError::NotHeld)) => self.until.store(0, Ordering::Relaxed),
            Err(_) => {}
        }
        renewed
    }

    /// Gives it back and tells whether it was held until now.
    ///
    /// # Errors
    /// As of [`Hold::release`].
    pub async fn release(self) -> Taken<(), LeaseError> {
        self.hold.release().await
    }

    /// Leaves the lease to run out, and gives what was granted: the program that knows its key renews it.
    #[must_use]
    pub fn keep(self) -> Granted {
        self.hold.keep()
    }

    fn until(&self) -> Moment {
        Moment::at(self.until.load(Ordering::Relaxed))
    }
}
