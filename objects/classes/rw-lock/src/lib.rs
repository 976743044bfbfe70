//! `RwLock`: many readers or one writer.
//!
//! Fair: calls get the lock in the order in which they came, and readers that follow each other hold it
//! together. Neither readers nor writers are preferred, so neither can starve the other: a reader that
//! comes after a writer waits for it, even while other readers hold the lock.
//! Held by sessions: when one is over, what it held is given back. Each hold has a *token*, greater
//! than every one before, for a resource to turn away whoever comes late.
//! Transient: a lock that nobody holds or waits for takes no room. Every method but `holders` costs the
//! same however many read or wait.
//! Invariants: outside of a segment the one permit of `room` is owned by the session of the writer, or
//! by nobody while there are readers, or free; only the call whose turn it is waits for it.
//! Not here: re-entrance, and turning a hold for reading into one for writing. A session that asks again
//! may wait for itself.
//!
//! ```text
//! $ gesmas call RwLock/catalogue read_lock --hold
//! 17
//! $ gesmas call RwLock/catalogue try_write_lock
//! null
//! ```
//!
//! From Rust:
//!
//! ```
//! use gesmas_rw_lock::RwLockStub;
//! use gesmas_sdk::stub::Invoke;
//!
//! async fn look(client: impl Invoke) {
//!     let catalogue = RwLockStub::new(client, "catalogue");
//!     if let Ok(token) = catalogue.read_lock().await {
//!         println!("nobody writes");
//!         let _ = catalogue.unlock(token).await;
//!     }
//! }
//! ```

use gesmas_sdk::prelude::*;

/// A fair lock for many readers or one writer, held by sessions.
#[class(transient)]
pub struct RwLock {
    turn: Semaphore,
    room: Semaphore,
    readers: Map<u64, Held>,
    writer: Value<Writer>,
}

/// What is kept of a hold.
#[derive(Value)]
struct Held {
    session: Session,
    since: Time,
    watch: Alarm,
}

/// What is kept of the writer.
#[derive(Value)]
struct Writer {
    token: u64,
    held: Held,
    permit: Permit,
}

/// A hold, as others see it.
#[derive(Clone, Debug, PartialEq, Eq, Value)]
pub struct HolderInfo {
    /// Its fencing token.
    pub token: u64,
    /// Whether it is for writing.
    pub writes: bool,
    /// Its session.
    pub session: Session,
    /// Since when.
    pub since: Time,
}

/// Why the lock was not taken or given back.
#[error]
pub enum RwLockError {
    /// the lock is not held with this token (any more)
    NotHeld,
    /// a lock is held by a session, and this call has none
    NoSession,
    /// the call was cancelled
    Cancelled,
}

/// Holders that `holders` gives at once at most.
const PAGE: usize = 1_000;

#[methods]
impl RwLock {
    /// A fresh lock is free.
    #[init]
    fn init(&mut self) {
        self.turn.set(1_u32);
        self.room.set(1_u32);
    }

    /// Takes the lock for reading and returns a token; blocks while somebody writes or has waited
    /// longer.
    pub fn read_lock(&mut self) -> Result<u64, RwLockError> {
        let session = ctx::session().ok_or(RwLockError::NoSession)?;
        self.turn.acquire()?;
        if self.readers.is_empty() {
            self.room.p()?;
        }
        Ok(self.hold_to_read(session))
    }

    /// Takes the lock for reading if that is possible at once, and returns a token; never blocks.
    pub fn try_read_lock(&mut self) -> Result<Option<u64>, RwLockError> {
        let session = ctx::session().ok_or(RwLockError::NoSession)?;
        let free =
            self.turn.try_acquire().is_some() && (!self.readers.is_empty() || self.room.try_p());
        Ok(free.then(|| self.hold_to_read(session)))
    }

    /// Takes the lock for reading and returns a token; blocks at most that long, and returns nothing
    /// when the time was up.
    pub fn read_lock_for(&mut self, duration: Duration) -> Result<Option<u64>, RwLockError> {
        let session = ctx::session().ok_or(RwLockError::NoSession)?;
        let end = ctx::now() + duration;
        let in_time = self.turn.acquire_until(end)?.is_some()
            && (!self.readers.is_empty() || self.room.p_until(end)?);
        Ok(in_time.then(|| self.hold_to_read(session)))
    }

    /// Takes the lock for writing and returns a token; blocks while anybody holds it or has waited
    /// longer.
    pub fn write_lock(&mut self) -> Result<u64, RwLockError> {
        let session = ctx::session().ok_or(RwLockError::NoSession)?;
        self.turn.acquire()?;
        let permit = self.room.acquire_for_session()?;
        Ok(self.hold_to_write(session, permit))
    }

    /// Takes the lock for writing if that is possible at once, and returns a token; never blocks.
    pub fn try_write_lock(&mut self) -> Result<Option<u64>, RwLockError> {
        let session = ctx::session().ok_or(RwLockError::NoSession)?;
        if self.turn.try_acquire().is_none() {
            return Ok(None);
        }
        let permit = self.room.try_acquire_for_session()?;
        Ok(permit.map(|permit| self.hold_to_write(session, permit)))
    }

    /// Takes the lock for writing and returns a token; blocks at most that long, and returns nothing
    /// when the time was up.
    pub fn write_lock_for(&mut self, duration: Duration) -> Result<Option<u64>, RwLockError> {
        let session = ctx::session().ok_or(RwLockError::NoSession)?;
        let end = ctx::now() + duration;
        if self.turn.acquire_until(end)?.is_none() {
            return Ok(None);
        }
        let permit = self.room.acquire_for_session_until(end)?;
        Ok(permit.map(|permit| self.hold_to_write(session, permit)))
    }

    /// Gives the lock back. A token that does not hold it (again, too late, or of another lock)
    /// changes nothing and is `NotHeld`.
    pub fn unlock(&mut self, token: u64) -> Result<(), RwLockError> {
        if let Some(held) = self.readers.remove(&token) {
            ctx::cancel(held.watch);
            self.reader_left();
            return Ok(());
        }
        let writer = self.writer.read().filter(|writer| writer.token == token);
        let writer = writer.ok_or(RwLockError::NotHeld)?;
        self.writer.take();
        ctx::cancel(writer.held.watch);
        if self.room.release(writer.permit) { Ok(()) } else { Err(RwLockError::NotHeld) }
    }

    /// Who holds the lock: holds after this token, 0 for all, at most `limit` and at most 1,000.
    #[read]
    pub fn holders(&self, after: u64, limit: u32) -> Result<Vec<HolderInfo>> {
        let limit = PAGE.min(limit as usize);
        let info = |token, writes, Held { session, since, .. }| HolderInfo {
            token,
            writes,
            session,
            since,
        };
        let writer = self.writer.read().filter(|writer| writer.token > after);
        let writer = writer.into_iter().map(|writer| info(writer.token, true, writer.held));
        let readers = self.readers.iter_after(&after).map(|(token, held)| info(token, false, held));
        Ok(writer.chain(readers).take(limit).collect())
    }

    /// How many calls wait.
    #[read]
    pub fn waiting(&self) -> Result<u64> {
        Ok(self.turn.waiters() + self.room.waiters())
    }

    /// The session of a hold is over. Of a writer the kernel has given the permit back, and the next
    /// one may have written itself down already; readers have none.
    #[handler]
    fn session_over(&mut self, token: u64) {
        if self.readers.remove(&token).is_some() {
            self.reader_left();
        } else if self.writer.read().is_some_and(|writer| writer.token == token) {
            self.writer.take();
        }
    }

    fn reader_left(&mut self) {
        if self.readers.is_empty() {
            self.room.v();
        }
    }

    fn hold_to_read(&mut self, session: Session) -> u64 {
        let (token, held) = hold(session);
        self.readers.insert(&token, held);
        token
    }

    fn hold_to_write(&mut self, session: Session, permit: Permit) -> u64 {
        let (token, held) = hold(session);
        self.writer.set(Writer { token, held, permit });
        token
    }
}

/// A token, and what is to be kept of its hold.
fn hold(session: Session) -> (u64, Held) {
    let token = ctx::fencing_token();
    let watch = ctx::watch_session(session, RwLock::SESSION_OVER, (token,));
    (token, Held { session, since: ctx::now(), watch })
}
