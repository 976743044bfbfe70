//! `Lock`: mutual exclusion with fencing tokens.
//!
//! Whoever holds the lock holds a *token*, greater than every one before, and hands it to the
//! resource along with each request; a resource that remembers the greatest token it has seen turns
//! away a holder that was late. The permit is owned by the caller's session: when the session is
//! over, the lock passes to the next waiter by itself. Waiters get it in the order in which they
//! came, and exactly one wakes when it is given back.
//! Re-entrant by *owner*: a session and a number that the caller chooses. An owner that has the lock gets
//! it again, with the same token, and has given it back after as many `unlock`s. Two tasks on one session
//! exclude each other if each chooses a number of its own, as a client library does for each handle;
//! threads and processes of one owner are not told apart.
//! Transient: a lock that nobody holds or waits for takes no room, so names cost nothing.
//! Invariant: `held` is what the holder of the one permit has written; when it ends by the end of
//! its session, a watch clears it.
//! Every method costs the same however many wait.
//!
//! ```text
//! $ gesmas call Lock/leader try_lock 1
//! null
//! $ gesmas call Lock/leader holder
//! {"token": 17, "session": 4, "owner": 1, "holds": 1, "since": "2026-11-27T10:00:00Z"}
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
//!     if let Ok(token) = lock.lock(1).await {
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
    info: HolderInfo,
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
    /// Which owner it is of its session.
    pub owner: u64,
    /// How often it has taken the lock and not given it back.
    pub holds: u32,
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

    /// Takes the lock for an owner and returns its token; blocks while another holds it.
    pub fn lock(&mut self, owner: u64) -> Result<u64, LockError> {
        let session = ctx::session().ok_or(LockError::NoSession)?;
        if let Some(token) = self.again(session, owner) {
            return Ok(token);
        }
        let permit = self.mutex.acquire_for_session()?;
        Ok(self.hold(session, owner, permit))
    }

    /// Takes the lock for an owner if it is free or its own, and returns its token; never blocks.
    pub fn try_lock(&mut self, owner: u64) -> Result<Option<u64>, LockError> {
        let session = ctx::session().ok_or(LockError::NoSession)?;
        if let Some(token) = self.again(session, owner) {
            return Ok(Some(token));
        }
        let permit = self.mutex.try_acquire_for_session()?;
        Ok(permit.map(|permit| self.hold(session, owner, permit)))
    }

    /// Takes the lock for an owner and returns its token; blocks at most that long, and returns
    /// nothing when the time was up.
    pub fn lock_for(&mut self, owner: u64, duration: Duration) -> Result<Option<u64>, LockError> {
        let session = ctx::session().ok_or(LockError::NoSession)?;
        if let Some(token) = self.again(session, owner) {
            return Ok(Some(token));
        }
        let permit = self.mutex.acquire_for_session_within(duration)?;
        Ok(permit.map(|permit| self.hold(session, owner, permit)))
    }

    /// Gives the lock back once; who took it several times has it until it has given it back as often. A
    /// token that does not hold it (again, too late, or of another) changes nothing and is `NotHeld`.
    pub fn unlock(&mut self, token: u64) -> Result<(), LockError> {
        let held = self.held.read().filter(|held| held.info.token == token);
        let mut held = held.ok_or(LockError::NotHeld)?;
        if held.info.holds > 1 {
            held.info.holds -= 1;
            self.held.set(held);
            return Ok(());
        }
        self.held.take();
        ctx::cancel(held.watch);
        if self.mutex.release(held.permit) { Ok(()) } else { Err(LockError::NotHeld) }
    }

    /// Who holds the lock.
    #[read]
    pub fn holder(&self) -> Result<Option<HolderInfo>> {
        Ok(self.held.read().map(|held| held.info))
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
        if self.held.read().is_some_and(|held| held.info.token == token) {
            self.held.take();
        }
    }

    /// Counts once more for an owner that has the lock.
    fn again(&mut self, session: Session, owner: u64) -> Option<u64> {
        let mut held = self.held.read()?;
        if (held.info.session, held.info.owner) != (session, owner) {
            return None;
        }
        held.info.holds = held.info.holds.checked_add(1).expect("nobody takes a lock that often");
        let token = held.info.token;
        self.held.set(held);
        Some(token)
    }

    fn hold(&mut self, session: Session, owner: u64, permit: Permit) -> u64 {
        let token = ctx::fencing_token();
        let watch = ctx::watch_session(session, Self::SESSION_OVER, (token,));
        let info = HolderInfo { token, session, owner, holds: 1, since: ctx::now() };
        self.held.set(Held { info, permit, watch });
        token
    }
}
