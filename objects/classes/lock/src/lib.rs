//! `Lock`: mutual exclusion with fencing tokens.
//!
//! Whoever holds the lock holds a *token*, greater than every one before, and hands it to the
//! resource along with each request; a resource that remembers the greatest token it has seen turns
//! away a holder that was late. The permit is owned by the caller's session: when the session is
//! over, the lock passes to the next waiter by itself. Waiters get it in the order in which they
//! came, and exactly one wakes when it is given back.
//! Transient: a lock that nobody holds or waits for takes no room, so names cost nothing.
//! Invariant: `held` is what the holder of the one permit has written; when it ends by the end of
//! its session, a watch clears it.
//! Not here: re-entrance. A session that holds the lock and asks again waits for itself.
//!
//! ```text
//! $ gesmas call Lock/leader try_lock
//! null
//! $ gesmas call Lock/leader holder
//! {"token": "17", "session": "4", "since": "2026-11-27T10:00:00Z"}
//! ```
//!
//! From Rust:
//!
//! ```
//! use gesmas_lock::LockStub;
//! use gesmas_sdk::stub::Invoke;
//!
//! async fn alone(client: impl Invoke) {
//!     let lock = LockStub::new(client, "leader");
//!     if let Ok(token) = lock.lock().await {
//!         println!("storage is written with token {token}");
//!         let _ = lock.unlock(token).await;
//!     }
//! }
//! ```

use gesmas_sdk::prelude::*;

/// A fair lock with fencing tokens, held by sessions.
#[class(transient)]
pub struct Lock {
    mutex: Semaphore,
    held: Value<Held>,
}

/// What is kept of the holder.
#[derive(Value)]
struct Held {
    token: u64,
    session: Session,
    since: Time,
    permit: Permit,
    watch: Alarm,
}

/// Who holds a lock.
#[derive(Clone, Debug, PartialEq, Eq, Value)]
pub struct HolderInfo {
    /// Its fencing token.
    pub token: u64,
    /// Its session.
    pub session: Session,
    /// Since when it holds the lock.
    pub since: Time,
}

/// Why a lock was not taken or given back.
#[error]
pub enum LockError {
    /// the lock is not held with this token (any more)
    NotHeld,
    /// a lock is held by a session, and this call has none
    NoSession,
    /// the call was cancelled
    Cancelled,
}

#[methods]
impl Lock {
    /// A fresh lock is free.
    #[init]
    fn init(&mut self) {
        self.mutex.set(1_u32);
    }

    /// Takes the lock and returns its token; blocks while another holds it.
    pub fn lock(&mut self) -> Result<u64, LockError> {
        let permit = self.mutex.acquire_for_session().map_err(refused)?;
        self.hold(permit)
    }

    /// Takes the lock if it is free, and returns its token; never blocks.
    pub fn try_lock(&mut self) -> Result<Option<u64>, LockError> {
        let permit = self.mutex.try_acquire_for_session().map_err(refused)?;
        permit.map(|permit| self.hold(permit)).transpose()
    }

    /// Takes the lock and returns its token; blocks at most that long, and returns nothing when
    /// the time was up.
    pub fn lock_for(&mut self, duration: Duration) -> Result<Option<u64>, LockError> {
        let permit = self.mutex.acquire_for_session_within(duration).map_err(refused)?;
        permit.map(|permit| self.hold(permit)).transpose()
    }

    /// Gives the lock back. A token that does not hold it (again, too late, or of another) changes
    /// nothing and is `NotHeld`.
    pub fn unlock(&mut self, token: u64) -> Result<(), LockError> {
        let held = self.held.read().filter(|held| held.token == token);
        let held = held.ok_or(LockError::NotHeld)?;
        self.held.take();
        ctx::cancel(held.watch);
        if self.mutex.release(held.permit) { Ok(()) } else { Err(LockError::NotHeld) }
    }

    /// Who holds the lock.
    #[read]
    pub fn holder(&self) -> Result<Option<HolderInfo>> {
        let held = self.held.read();
        Ok(held.map(|Held { token, session, since, .. }| HolderInfo { token, session, since }))
    }

    /// How many calls wait for the lock.
    #[read]
    pub fn waiting(&self) -> Result<u64> {
        Ok(self.mutex.waiters())
    }

    /// The kernel has given the permit of a session back because the session is over; the next
    /// holder may have written itself down already.
    #[handler]
    fn session_over(&mut self, token: u64) {
        if self.held.read().is_some_and(|held| held.token == token) {
            self.held.take();
        }
    }

    fn hold(&mut self, permit: Permit) -> Result<u64, LockError> {
        let session = ctx::session().ok_or(LockError::NoSession)?;
        let token = ctx::fencing_token();
        let watch = ctx::watch_session(session, Self::SESSION_OVER, (token,));
        self.held.set(Held { token, session, since: ctx::now(), permit, watch });
        Ok(token)
    }
}

/// Why there is no permit, in the words of this class.
fn refused(reason: NotAcquired) -> LockError {
    match reason {
        NotAcquired::Cancelled => LockError::Cancelled,
        NotAcquired::SessionOver | NotAcquired::NoSession => LockError::NoSession,
    }
}
