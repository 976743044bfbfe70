//! `RwLock`: many readers or one writer.
//!
//! Fair: calls get the lock in the order in which they came, and readers that follow each other hold it
//! together. Neither readers nor writers are preferred, so neither can starve the other: a reader that
//! comes after a writer waits for it, even while other readers hold the lock.
//! Held by sessions: when one is over, what it held is given back, a thousand holds at a time. Only the
//! holder's session gives a hold back: everybody can read the tokens. Each hold has a *token*, greater
//! than every one before, for a resource to turn away a holder that is late.
//! Re-entrant by *owner*, as `Lock`: a session and a number that the caller chooses. An owner that has
//! the lock gets it again at once, with the same token, and has given it back after as many `unlock`s; an
//! owner that writes may read. An owner that reads and wants to write would wait for itself, and is told
//! so at once. What is true on arrival is true when a wait is over: several calls of an owner that wait
//! get the lock together.
//! Transient: a lock that nobody holds or waits for takes no room. Every method but `holders` costs the
//! same however many read or wait; an `unlock` by a writer lets all readers go on that wait for it.
//! Invariants: outside of a segment the one permit of `room` is owned by the session of the writer, or
//! by nobody while there are readers, or free; only the call whose turn it is waits for it. Each hold
//! has an entry in `owners`; each session in `watches` has a watch and as many holds as are counted
//! there. Each call that waits owns a permit of `places`, which bounds how many go on in one step. Of the
//! calls of an owner that wait, the one that owns the permit of its `line` waits for its turn, the
//! others for that permit.
//! Not here: turning a hold for reading into one for writing.
//!
//! ```text
//! $ gesmas call RwLock/catalogue read_lock 1 --hold
//! 17
//! $ gesmas call RwLock/catalogue try_write_lock 1
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
//!     if let Ok(token) = catalogue.read_lock(1).await {
//!         println!("nobody writes");
//!         let _ = catalogue.unlock(token).await;
//!     }
//! }
//! ```

mod held;

use gesmas_sdk::prelude::*;

use held::{Held, Me, Watch, Writer};

/// A fair lock for many readers or one writer, held by sessions.
#[class(transient)]
pub struct RwLock {
    turn: Semaphore,
    room: Semaphore,
    line: SemaphoreMap<Me>,
    places: Semaphore,
    readers: Map<u64, Held>,
    writer: Value<Writer>,
    owners: Map<Me, u64>,
    watches: Map<Session, Watch>,
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
    /// Which owner it is of its session.
    pub owner: u64,
    /// How often it has taken the lock and not given it back.
    pub holds: u32,
    /// Since when.
    pub since: Time,
}

/// Some holds, in the order of their tokens.
#[derive(Clone, Debug, PartialEq, Eq, Value)]
pub struct Holders {
    /// The holds.
    pub holders: Vec<HolderInfo>,
    /// The token after which the list goes on; none at its end.
    pub next: Option<u64>,
}

/// Why the lock was not taken or given back.
#[error]
pub enum RwLockError {
    /// the lock is not held with this token (any more)
    NotHeld,
    /// another session holds the lock with this token, and only that session gives it back
    NotHolder,
    /// the owner reads and wants to write: it would wait for itself
    WaitsForItself,
    /// the owner has the lock as often as an owner may have it
    TooOften,
    /// as many calls wait for the lock as may wait
    TooManyWaiting {
        /// how many that are
        limit: u64,
    },
    /// as many owners read as may read
    TooManyReaders {
        /// how many that are
        limit: u64,
    },
    /// a lock is held by a session, and this call has none
    NoSession,
    /// the call was cancelled
    Cancelled,
}

/// For what the lock is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Read,
    Write,
}

/// How long a call waits.
#[derive(Clone, Copy)]
enum Patience {
    None,
    Until(Time),
    Endless,
}

/// Holders that `holders` gives at once at most.
const PAGE: usize = 1_000;
/// Calls that may wait: all of them go on in one step when a writer leaves and all want to read.
const WAITING: u32 = 1_000;
/// Owners that may read.
const READERS: u64 = 50_000;
/// Holds of a session that is over that go in one step.
const PORTION: usize = 1_000;

#[methods]
impl RwLock {
    /// A fresh lock is free.
    #[init]
    fn init(&mut self) {
        self.turn.set(1_u32);
        self.room.set(1_u32);
        self.places.set(WAITING);
    }

    /// Takes the lock for an owner to read and returns a token; blocks while another writes or has
    /// waited longer.
    pub fn read_lock(&mut self, owner: u64) -> Result<u64, RwLockError> {
        self.take(owner, Purpose::Read, Patience::Endless)?.ok_or(RwLockError::Cancelled)
    }

    /// Takes the lock for an owner to read if that is possible at once, and returns a token; never
    /// blocks.
    pub fn try_read_lock(&mut self, owner: u64) -> Result<Option<u64>, RwLockError> {
        self.take(owner, Purpose::Read, Patience::None)
    }

    /// Takes the lock for an owner to read and returns a token; blocks at most that long, and returns
    /// nothing when the time was up.
    pub fn read_lock_for(
        &mut self,
        owner: u64,
        duration: Duration,
    ) -> Result<Option<u64>, RwLockError> {
        self.take(owner, Purpose::Read, Patience::Until(ctx::now() + duration))
    }

    /// Takes the lock for an owner to write and returns a token; blocks while another holds it or has
    /// waited longer.
    pub fn write_lock(&mut self, owner: u64) -> Result<u64, RwLockError> {
        self.take(owner, Purpose::Write, Patience::Endless)?.ok_or(RwLockError::Cancelled)
    }

    /// Takes the lock for an owner to write if that is possible at once, and returns a token; never
    /// blocks.
    pub fn try_write_lock(&mut self, owner: u64) -> Result<Option<u64>, RwLockError> {
        self.take(owner, Purpose::Write, Patience::None)
    }

    /// Takes the lock for an owner to write and returns a token; blocks at most that long, and returns
    /// nothing when the time was up.
    pub fn write_lock_for(
        &mut self,
        owner: u64,
        duration: Duration,
    ) -> Result<Option<u64>, RwLockError> {
        self.take(owner, Purpose::Write, Patience::Until(ctx::now() + duration))
    }

    /// Gives the lock back once; an owner that took it several times has it until it has given it back as
    /// often. A token that does not hold it (again, too late, or of another lock) changes nothing and is
    /// `NotHeld`; that of another session changes nothing and is `NotHolder`.
    pub fn unlock(&mut self, token: u64) -> Result<(), RwLockError> {
        let writer = self.writer.read().filter(|writer| writer.token == token);
        let reads = || self.readers.get(&token);
        let held = writer.as_ref().map(|writer| writer.held.clone()).or_else(reads);
        let mut held = held.ok_or(RwLockError::NotHeld)?;
        if ctx::session() != Some(held.session) {
            return Err(RwLockError::NotHolder);
        }
        if held.holds > 1 {
            held.holds -= 1;
            self.write_down(token, held);
            return Ok(());
        }
        self.forget((held.session, held.owner));
        match writer {
            None => self.end_reading(token),
            Some(writer) => {
                self.writer.take();
                self.room.release(writer.permit);
            }
        }
        Ok(())
    }

    /// The holds after this token, 0 for all, at most `limit` and at most 1,000.
    #[read]
    pub fn holders(&self, after: u64, limit: u32) -> Result<Holders> {
        let limit = PAGE.min(limit as usize);
        let writer = self.writer.read().filter(|writer| writer.token > after);
        let writer = writer.into_iter().map(|writer| writer.held.info(writer.token, true));
        let readers = self.readers.iter_after(&after).map(|(token, held)| held.info(token, false));
        let mut all = writer.chain(readers);
        let holders: Vec<_> = all.by_ref().take(limit).collect();
        let last = holders.last().map_or(after, |holder| holder.token);
        let next = all.next().map(|_| last);
        Ok(Holders { holders, next })
    }

    /// How many calls wait.
    #[read]
    pub fn waiting(&self) -> Result<u64> {
        Ok(u64::from(WAITING).saturating_sub(self.places.value()))
    }

    /// A session with holds is over. Of a writer the kernel has given the permit back, and where this is
    /// retried the next one may have written itself down already; readers have none.
    #[handler]
    fn session_over(&mut self, session: Session) {
        let before = (Session(session.0 - 1), u64::MAX);
        let its = self.owners.iter_after(&before).take_while(|((of, _), _)| *of == session);
        let its: Vec<_> = its.take(PORTION).collect();
        for (me, token) in &its {
            self.owners.remove(me);
            if self.readers.contains_key(token) {
                self.end_reading(*token);
            } else if self.writer.read().is_some_and(|writer| writer.token == *token) {
                self.writer.take();
            }
        }
        if its.len() == PORTION {
            ctx::after(Duration::ZERO, Self::SESSION_OVER, (session,));
        } else {
            self.watches.remove(&session);
        }
    }

    fn take(
        &mut self,
        owner: u64,
        purpose: Purpose,
        patience: Patience,
    ) -> Result<Option<u64>, RwLockError> {
        let me = (ctx::session().ok_or(RwLockError::NoSession)?, owner);
        if let Some(token) = self.again(me, purpose)? {
            return Ok(Some(token));
        }
        let turn = self.turn.try_acquire();
        if turn.is_some()
            && let Some(token) = self.enter(me, purpose, Patience::None)?
        {
            return Ok(Some(token));
        }
        if matches!(patience, Patience::None) {
            return Ok(None);
        }
        self.wait(me, purpose, patience, turn)
    }

    /// Waits in line behind other calls of the owner, then for the turn, then for room. A call that has its
    /// turn on arrival is the only one that waits, so that nobody is before it in line.
    fn wait(
        &mut self,
        me: Me,
        purpose: Purpose,
        patience: Patience,
        turn: Option<Permit>,
    ) -> Result<Option<u64>, RwLockError> {
        let limit = u64::from(WAITING);
        self.places.try_acquire().ok_or(RwLockError::TooManyWaiting { limit })?;
        let mut line = self.line.at(&me);
        let place = if line.owners().is_empty() {
            if line.value() == 0 {
                line.v();
            }
            line.try_acquire()
        } else {
            acquire(&mut line, patience)?
        };
        let Some(place) = place else { return Ok(None) };
        let outcome = match turn {
            Some(_) => self.enter(me, purpose, patience),
            None => self.wait_for_turn(me, purpose, patience),
        };
        // It goes to the next in line, and if there is none, the line goes.
        line.release(place);
        line.try_p();
        outcome
    }

    fn wait_for_turn(
        &mut self,
        me: Me,
        purpose: Purpose,
        patience: Patience,
    ) -> Result<Option<u64>, RwLockError> {
        if let Some(token) = self.again(me, purpose)? {
            return Ok(Some(token));
        }
        match acquire(&mut self.turn, patience)? {
            None => Ok(None),
            Some(_turn) => self.enter(me, purpose, patience),
        }
    }

    /// Takes the lock when it is this call's turn.
    fn enter(
        &mut self,
        me: Me,
        purpose: Purpose,
        patience: Patience,
    ) -> Result<Option<u64>, RwLockError> {
        if purpose == Purpose::Write {
            let permit = match patience {
                Patience::None => self.room.try_acquire_for_session()?,
                Patience::Until(time) => self.room.acquire_for_session_until(time)?,
                Patience::Endless => Some(self.room.acquire_for_session()?),
            };
            return Ok(permit.map(|permit| self.hold_to_write(me, permit)));
        }
        let readers = self.readers.len();
        if readers >= READERS {
            return Err(RwLockError::TooManyReaders { limit: READERS });
        }
        let free = readers > 0
            || match patience {
                Patience::None => self.room.try_p(),
                Patience::Until(time) => self.room.p_until(time)?,
                Patience::Endless => self.room.p().map(|()| true)?,
            };
        Ok(free.then(|| self.hold_to_read(me)))
    }

    /// Counts once more for an owner that has the lock.
    fn again(&mut self, me: Me, purpose: Purpose) -> Result<Option<u64>, RwLockError> {
        let Some(token) = self.owners.get(&me) else { return Ok(None) };
        let held = match self.readers.get(&token) {
            Some(_) if purpose == Purpose::Write => return Err(RwLockError::WaitsForItself),
            Some(held) => held,
            None => self.writer.read().expect("an owner reads or writes").held,
        };
        let holds = held.holds.checked_add(1).ok_or(RwLockError::TooOften)?;
        self.write_down(token, Held { holds, ..held });
        Ok(Some(token))
    }

    /// Writes down another count of a hold that is there.
    fn write_down(&mut self, token: u64, held: Held) {
        match self.writer.read().filter(|writer| writer.token == token) {
            Some(writer) => self.writer.set(Writer { held, ..writer }),
            None => drop(self.readers.insert(&token, held)),
        }
    }

    fn hold_to_read(&mut self, me: Me) -> u64 {
        let (token, held) = self.hold(me);
        self.readers.insert(&token, held);
        token
    }

    fn hold_to_write(&mut self, me: Me, permit: Permit) -> u64 {
        let (token, held) = self.hold(me);
        self.writer.set(Writer { token, held, permit });
        token
    }

    /// A token, and what is to be kept of its hold.
    fn hold(&mut self, me: Me) -> (u64, Held) {
        let ((session, owner), token) = (me, ctx::fencing_token());
        self.owners.insert(&me, token);
        let watch = self.watches.get(&session).unwrap_or_else(|| {
            let alarm = ctx::watch_session(session, Self::SESSION_OVER, (session,));
            Watch { alarm, holds: 0 }
        });
        self.watches.insert(&session, Watch { holds: watch.holds + 1, ..watch });
        (token, Held { session, owner, holds: 1, since: ctx::now() })
    }

    fn end_reading(&mut self, token: u64) {
        self.readers.remove(&token);
        if self.readers.is_empty() {
            self.room.v();
        }
    }

    /// Forgets an owner, and watches its session no longer if it was the last of it.
    fn forget(&mut self, me: Me) {
        self.owners.remove(&me);
        let (session, _) = me;
        let watch = self.watches.get(&session).expect("each hold is counted");
        if watch.holds > 1 {
            self.watches.insert(&session, Watch { holds: watch.holds - 1, ..watch });
        } else {
            self.watches.remove(&session);
            ctx::cancel(watch.alarm);
        }
    }
}

fn acquire(semaphore: &mut Semaphore, patience: Patience) -> Result<Option<Permit>> {
    match patience {
        Patience::None => Ok(semaphore.try_acquire()),
        Patience::Until(time) => semaphore.acquire_until(time),
        Patience::Endless => semaphore.acquire().map(Some),
    }
}
