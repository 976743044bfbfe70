//! `Semaphore`: a number of permits, which sessions hold.
//!
//! A call takes one or several permits at once and gets a *grant*, with which its session gives them
//! back: all of them, and once. So a release that is sent twice, or too late, adds no permit that was not
//! there. When a session is over its permits come back by themselves, those of a thousand grants at a
//! time.
//! Fair, as `java.util.concurrent.Semaphore` in its fair mode: calls are served in the order in which
//! they came, and one that wants many is not passed by others that want few.
//! Every method but `grants` costs the same however many permits it takes or gives and however many calls
//! wait. Permits that come back while calls wait do so a thousand at a time, since each may let a call go
//! on: the rest follows at the next stamps.
//! Invariants: permits that are free, on their way back, and of grants are as many as `init` said; only
//! the call whose turn it is waits at the gate, until as many are free as it has written down in
//! `wanted`, all others for their `turn`. Each session in `watches` has a watch and as many grants as are
//! counted there.
//! Not here: permits that nobody owns (`Queue` and `Latch` pass on what somebody else will take), and
//! re-entrance: each call gets permits of its own, so that a session which waits for more than others
//! give back waits for itself.
//!
//! ```text
//! $ gesmas object create Semaphore/licences 5
//! $ gesmas call Semaphore/licences acquire 2 --hold
//! 17
//! $ gesmas call Semaphore/licences available
//! 3
//! ```
//!
//! From Rust:
//!
//! ```
//! use gesmas_sdk::stub::Invoke;
//! use gesmas_semaphore::SemaphoreStub;
//!
//! async fn licensed(client: impl Invoke) {
//!     let licences = SemaphoreStub::new(client, "licences");
//!     let _ = licences.create(5).await;
//!     if let Ok(grant) = licences.acquire(2).await {
//!         println!("two licences are ours");
//!         let _ = licences.release(grant).await;
//!     }
//! }
//! ```

use gesmas_sdk::{prelude::*, state::Semaphore as Waiters};

/// Permits that sessions hold.
#[class]
pub struct Semaphore {
    stock: Value<Stock>,
    wanted: Value<u32>,
    turn: Waiters,
    gate: Waiters,
    grants: Map<u64, Held>,
    of_session: Map<(Session, u64), ()>,
    watches: Map<Session, Watch>,
}

/// The permits. In one place: each call reads and writes all of it.
#[derive(Clone, Copy, Value)]
struct Stock {
    total: u32,
    free: u32,
    /// Given back, and not free yet.
    returning: u32,
    /// Whether a timer will free more of them.
    timer: bool,
}

/// What is kept of a grant.
#[derive(Value)]
struct Held {
    session: Session,
    since: Time,
    permits: u32,
}

/// What is kept of a session with grants.
#[derive(Value)]
struct Watch {
    alarm: Alarm,
    grants: u32,
}

/// A grant, as others see it.
#[derive(Clone, Debug, PartialEq, Eq, Value)]
pub struct Grant {
    /// What it is given back with.
    pub grant: u64,
    /// How many permits it is for.
    pub permits: u32,
    /// The session that holds them.
    pub session: Session,
    /// Since when.
    pub since: Time,
}

/// Some grants, in their order.
#[derive(Clone, Debug, PartialEq, Eq, Value)]
pub struct Grants {
    /// The grants.
    pub grants: Vec<Grant>,
    /// The grant after which the list goes on; none at its end.
    pub next: Option<u64>,
}

/// Why there is no semaphore, or permits were not taken or given back.
#[error]
pub enum SemaphoreError {
    /// a semaphore has a permit at least, and one permit at least is taken
    NoPermits,
    /// no permits are held with this grant (any more)
    NotHeld,
    /// another session holds the permits of this grant, and only that session gives them back
    NotHolder,
    /// there are not that many permits, even if nobody holds any
    TooMany {
        /// how many there are
        total: u32,
    },
    /// there are as many grants as there may be
    TooManyGrants {
        /// how many that are
        limit: u64,
    },
    /// permits are held by a session, and this call has none
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

/// Grants that `grants` gives at once at most.
const PAGE: usize = 1_000;
/// Grants that there may be.
const GRANTS: u64 = 100_000;
/// Permits that become free in one step while calls wait; grants of a session that is over that go in one.
const PORTION: u32 = 500;

#[methods]
impl Semaphore {
    /// Creates a semaphore with that many permits, 1 at least.
    #[init]
    fn init(&mut self, permits: u32) -> Result<(), SemaphoreError> {
        if permits == 0 {
            return Err(SemaphoreError::NoPermits);
        }
        self.stock.set(Stock { total: permits, free: permits, returning: 0, timer: false });
        self.turn.set(1_u32);
        Ok(())
    }

    /// Takes that many permits, 1 at least, and returns their grant; blocks until they are there.
    pub fn acquire(&mut self, permits: u32) -> Result<u64, SemaphoreError> {
        let grant = self.take(permits, Patience::Endless)?;
        grant.ok_or(SemaphoreError::Cancelled)
    }

    /// Takes that many permits if they are there and nobody waits, and returns their grant; never
    /// blocks.
    pub fn try_acquire(&mut self, permits: u32) -> Result<Option<u64>, SemaphoreError> {
        self.take(permits, Patience::None)
    }

    /// Takes that many permits and returns their grant; blocks at most that long, and takes and
    /// returns nothing when the time was up.
    pub fn acquire_for(
        &mut self,
        permits: u32,
        duration: Duration,
    ) -> Result<Option<u64>, SemaphoreError> {
        self.take(permits, Patience::Until(ctx::now() + duration))
    }

    /// Gives the permits of a grant back. A grant that holds none (again, or too late) changes nothing
    /// and is `NotHeld`; that of another session changes nothing and is `NotHolder`.
    pub fn release(&mut self, grant: u64) -> Result<(), SemaphoreError> {
        let held = self.grants.get(&grant).ok_or(SemaphoreError::NotHeld)?;
        if ctx::session() != Some(held.session) {
            return Err(SemaphoreError::NotHolder);
        }
        self.grants.remove(&grant);
        self.of_session.remove(&(held.session, grant));
        let watch = self.watches.get(&held.session).expect("each grant is counted");
        if watch.grants > 1 {
            self.watches.insert(&held.session, Watch { grants: watch.grants - 1, ..watch });
        } else {
            self.watches.remove(&held.session);
            ctx::cancel(watch.alarm);
        }
        self.give_back(held.permits);
        Ok(())
    }

    /// How many permits are free.
    #[read]
    pub fn available(&self) -> Result<u64> {
        Ok(u64::from(self.stock().free))
    }

    /// How many calls wait.
    #[read]
    pub fn waiting(&self) -> Result<u64> {
        Ok(self.gate.waiters() + self.turn.waiters())
    }

    /// The grants after this one, 0 for all, at most `limit` and at most 1,000.
    #[read]
    pub fn grants(&self, after: u64, limit: u32) -> Result<Grants> {
        let mut all = self.grants.iter_after(&after).map(|(grant, held)| {
            let Held { session, since, permits } = held;
            Grant { grant, permits, session, since }
        });
        let grants: Vec<_> = all.by_ref().take(PAGE.min(limit as usize)).collect();
        let last = grants.last().map_or(after, |grant| grant.grant);
        let next = all.next().map(|_| last);
        Ok(Grants { grants, next })
    }

    /// A session with grants is over.
    #[handler]
    fn session_over(&mut self, session: Session) {
        let its = self.of_session.iter_after(&(session, 0)).map(|(key, ())| key);
        let its = its.take_while(|(of, _)| *of == session).take(PORTION as usize);
        let its: Vec<_> = its.collect();
        let mut permits = 0;
        for key in &its {
            self.of_session.remove(key);
            permits += self.grants.remove(&key.1).map_or(0, |held| held.permits);
        }
        if its.len() == PORTION as usize {
            ctx::after(Duration::ZERO, Self::SESSION_OVER, (session,));
        } else {
            self.watches.remove(&session);
        }
        self.give_back(permits);
    }

    /// More of the permits that came back become free.
    #[handler]
    fn free_more(&mut self) {
        let stock = self.stock();
        self.free(Stock { timer: false, ..stock });
    }

    fn take(&mut self, permits: u32, patience: Patience) -> Result<Option<u64>, SemaphoreError> {
        let total = self.stock().total;
        if permits == 0 {
            return Err(SemaphoreError::NoPermits);
        }
        if permits > total {
            return Err(SemaphoreError::TooMany { total });
        }
        let session = ctx::session().ok_or(SemaphoreError::NoSession)?;
        let turn = match patience {
            Patience::None => self.turn.try_acquire(),
            Patience::Until(time) => self.turn.acquire_until(time)?,
            Patience::Endless => Some(self.turn.acquire()?),
        };
        if turn.is_none() || !self.wait_at_gate(permits, patience)? {
            return Ok(None);
        }
        if self.grants.len() >= GRANTS {
            return Err(SemaphoreError::TooManyGrants { limit: GRANTS });
        }
        let stock = self.stock();
        self.stock.set(Stock { free: stock.free - permits, ..stock });
        Ok(Some(self.grant(session, permits)))
    }

    /// Waits until that many permits are free; tells whether they are.
    fn wait_at_gate(&mut self, permits: u32, patience: Patience) -> Result<bool> {
        let stock = self.stock();
        if stock.free < permits && stock.returning > 0 {
            self.free(stock);
        }
        while self.stock().free < permits {
            self.wanted.set(permits);
            let opened = match patience {
                Patience::None => return Ok(false),
                Patience::Until(time) => self.gate.p_until(time),
                Patience::Endless => self.gate.p().map(|()| true),
            };
            if !matches!(opened, Ok(true)) {
                // The calls behind it may go on with what was not enough, a portion at a time.
                let stock = self.stock();
                let returning = stock.returning + stock.free;
                self.free(Stock { free: 0, returning, ..stock });
                return opened;
            }
        }
        Ok(true)
    }

    fn give_back(&mut self, permits: u32) {
        let stock = self.stock();
        self.free(Stock { returning: stock.returning + permits, ..stock });
    }

    /// Frees permits that came back: all of them if nobody waits, otherwise a portion, or none as long as a
    /// timer is going to.
    fn free(&mut self, mut stock: Stock) {
        let at_gate = self.gate.waiters() > 0;
        let portion = match at_gate || self.turn.waiters() > 0 {
            false => stock.returning,
            true if stock.timer => 0,
            // The one at the gate takes what it lacks, and leaves a portion at most.
            true if at_gate => {
                let lacks = self.wanted.get().saturating_sub(stock.free);
                stock.returning.min(lacks.max(PORTION))
            }
            true => stock.returning.min(PORTION),
        };
        stock.free += portion;
        stock.returning -= portion;
        if stock.returning > 0 && !stock.timer {
            ctx::after(Duration::ZERO, Self::FREE_MORE, ());
            stock.timer = true;
        }
        self.stock.set(stock);
        if at_gate && stock.free >= self.wanted.get() {
            self.gate.v();
        }
    }

    fn stock(&self) -> Stock {
        self.stock.read().expect("init sets it")
    }

    fn grant(&mut self, session: Session, permits: u32) -> u64 {
        let grant = ctx::fencing_token();
        let watch = self.watches.get(&session).unwrap_or_else(|| {
            let alarm = ctx::watch_session(session, Self::SESSION_OVER, (session,));
            Watch { alarm, grants: 0 }
        });
        self.watches.insert(&session, Watch { grants: watch.grants + 1, ..watch });
        self.of_session.insert(&(session, grant), ());
        self.grants.insert(&grant, Held { session, since: ctx::now(), permits });
        grant
    }
}
