//! `Lock`: mutual exclusion with fencing tokens.
//!
//! A holder has a *token*, greater than every one before, and hands it to the resource along with each
//! request; a resource that remembers the greatest token it has seen turns away a holder that was late.
//! The permit is owned by the holder's session: when the session is over, the lock passes to the next
//! waiter by itself. Waiters get it in the order in which they came, and exactly one wakes when it is
//! given back. Only the holder's session gives it back: everybody can read the token.
//! Re-entrant by *owner*: a session and a number that the caller chooses, any number. An owner that has
//! the lock gets it again, with the same token, and has given it back after as many `unlock`s. So a call
//! never waits for its own owner: several calls of an owner that wait, a retry and the call before it,
//! get the lock together. One of them has a place in the queue; if it gives up, the next of them takes a
//! place at the end. Two tasks on one session exclude each other if each chooses a number of its own, as
//! a client library does for each handle; threads and processes of one owner are not told apart.
//! Transient: a lock that nobody holds or waits for takes no room, so names cost nothing.
//! Invariants: `held` is what the holder of the one permit has written; when it ends by the end of
//! its session, a watch clears it. Of the calls of an owner that wait, the one that owns the permit of
//! its `line` waits for the lock, the others wait for that permit; each of these owns a permit of
//! `followers`, which bounds how many calls go on in one step.
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

/// Calls that may wait for the lock itself, since each needs a semaphore for its owner.
const WAITING: u64 = 50_000;
/// Calls that may wait for another call of their owner: they go on in one step.
const FOLLOWERS: u32 = 1_000;

/// A fair lock with fencing tokens, held by sessions.
#[class(transient)]
pub struct Lock {
    mutex: Semaphore,
    line: SemaphoreMap<Me>,
    followers: Semaphore,
    held: Value<Held>,
}

/// An owner.
type Me = (Session, u64);

/// What is kept of the holder.
#[derive(Value)]
struct Held {
    info: HolderInfo,
    permit: Permit,
    watch: Alarm,
}

/// The holder of a lock.
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
    /// another session holds the lock with this token, and only that session gives it back
    NotHolder,
    /// the owner has the lock as often as an owner may have it
    TooOften,
    /// as many calls wait for the lock as may wait
    TooManyWaiting {
        /// how many that are
        limit: u64,
    },
    /// a lock is held by a session, and this call has none
    NoSession,
    /// the call was cancelled
    Cancelled,
}

/// How long a call waits.
#[derive(Clone, Copy)]
enum Patience {
    None,
    Until(Time),
    Endless,
}

#[methods]
impl Lock {
    /// A fresh lock is free.
    #[init]
    fn init(&mut self) {
        self.mutex.set(1_u32);
        self.followers.set(FOLLOWERS);
    }

    /// Takes the lock for an owner and returns its token; blocks while another holds it.
    pub fn lock(&mut self, owner: u64) -> Result<u64, LockError> {
        self.take(owner, Patience::Endless)?.ok_or(LockError::Cancelled)
    }

    /// Takes the lock for an owner if it is free or its own, and returns its token; never blocks.
    pub fn try_lock(&mut self, owner: u64) -> Result<Option<u64>, LockError> {
        self.take(owner, Patience::None)
    }

    /// Takes the lock for an owner and returns its token; blocks at most that long, and returns
    /// nothing when the time was up.
    pub fn lock_for(&mut self, owner: u64, duration: Duration) -> Result<Option<u64>, LockError> {
        self.take(owner, Patience::Until(ctx::now() + duration))
    }

    /// Gives the lock back once; an owner that took it several times has it until it has given it back as
    /// often. A token that does not hold it (again, too late, or of another lock) changes nothing and is
    /// `NotHeld`; that of another session changes nothing and is `NotHolder`.
    pub fn unlock(&mut self, token: u64) -> Result<(), LockError> {
        let held = self.held.read().filter(|held| held.info.token == token);
        let mut held = held.ok_or(LockError::NotHeld)?;
        if ctx::session() != Some(held.info.session) {
            return Err(LockError::NotHolder);
        }
        if held.info.holds > 1 {
            held.info.holds -= 1;
            self.held.set(held);
            return Ok(());
        }
        self.held.take();
        ctx::cancel(held.watch);
        if self.mutex.release(held.permit) { Ok(()) } else { Err(LockError::NotHeld) }
    }

    /// The holder of the lock.
    #[read]
    pub fn holder(&self) -> Result<Option<HolderInfo>> {
        Ok(self.held.read().map(|held| held.info))
    }

    /// How many calls wait for the lock.
    #[read]
    pub fn waiting(&self) -> Result<u64> {
        Ok(self.mutex.waiters() + u64::from(FOLLOWERS).saturating_sub(self.followers.value()))
    }

    /// The kernel has given the permit of a session back because the session is over; the next
    /// holder may have written itself down already.
    #[handler]
    fn session_over(&mut self, token: u64) {
        if self.held.read().is_some_and(|held| held.info.token == token) {
            self.held.take();
        }
    }

    fn take(&mut self, owner: u64, patience: Patience) -> Result<Option<u64>, LockError> {
        let me = (ctx::session().ok_or(LockError::NoSession)?, owner);
        if let Some(token) = self.again(me)? {
            return Ok(Some(token));
        }
        if let Some(permit) = self.mutex.try_acquire_for_session()? {
            return Ok(Some(self.hold(me, permit)));
        }
        if matches!(patience, Patience::None) { Ok(None) } else { self.wait(me, patience) }
    }

    /// Waits, and what is true on arrival is true when the wait is over: an owner that has the lock by
    /// then gets it again.
    fn wait(&mut self, me: Me, patience: Patience) -> Result<Option<u64>, LockError> {
        let mut line = self.line.at(&me);
        let place = if line.owners().is_empty() {
            if self.mutex.waiters() >= WAITING {
                return Err(LockError::TooManyWaiting { limit: WAITING });
            }
            if line.value() == 0 {
                line.v();
            }
            line.try_acquire()
        } else {
            let limit = u64::from(FOLLOWERS);
            self.followers.try_acquire().ok_or(LockError::TooManyWaiting { limit })?;
            acquire(&mut line, patience)?
        };
        let Some(place) = place else { return Ok(None) };
        let outcome = self.wait_in_place(me, patience);
        // It goes to the next in line, and if there is none, the line goes.
        line.release(place);
        line.try_p();
        outcome
    }

    fn wait_in_place(&mut self, me: Me, patience: Patience) -> Result<Option<u64>, LockError> {
        if let Some(token) = self.again(me)? {
            return Ok(Some(token));
        }
        let permit = match patience {
            Patience::None => self.mutex.try_acquire_for_session()?,
            Patience::Until(time) => self.mutex.acquire_for_session_until(time)?,
            Patience::Endless => Some(self.mutex.acquire_for_session()?),
        };
        Ok(permit.map(|permit| self.hold(me, permit)))
    }

    /// Counts once more for an owner that has the lock.
    fn again(&mut self, me: Me) -> Result<Option<u64>, LockError> {
        let Some(mut held) = self.held.read() else { return Ok(None) };
        if (held.info.session, held.info.owner) != me {
            return Ok(None);
        }
        held.info.holds = held.info.holds.checked_add(1).ok_or(LockError::TooOften)?;
        let token = held.info.token;
        self.held.set(held);
        Ok(Some(token))
    }

    fn hold(&mut self, (session, owner): Me, permit: Permit) -> u64 {
        let token = ctx::fencing_token();
        let watch = ctx::watch_session(session, Self::SESSION_OVER, (token,));
        let info = HolderInfo { token, session, owner, holds: 1, since: ctx::now() };
        self.held.set(Held { info, permit, watch });
        token
    }
}

fn acquire(line: &mut Semaphore, patience: Patience) -> Result<Option<Permit>> {
    match patience {
        Patience::None => Ok(line.try_acquire()),
        Patience::Until(time) => line.acquire_until(time),
        Patience::Endless => line.acquire().map(Some),
    }
}
