//! `Semaphore`: a number of permits, which sessions hold.
//!
//! A call takes one or several permits at once and gets a *grant*, with which it gives them back: all
//! of them, and once. So a release that is sent twice, or too late, adds no permit that was not there.
//! When a session is over its permits are given back by themselves.
//! Fair, as `java.util.concurrent.Semaphore` in its fair mode: calls are served in the order in which
//! they came, and one that wants many is not passed by others that want few.
//! A method costs as much as it takes or gives permits, and the same however many calls wait.
//! Invariants: permits that are free, owned by sessions, or gathered by the one call whose turn it is
//! are as many as `init` said; only that call waits for `permits`, all others for their `turn`.
//! Not here: permits that nobody owns. `Queue` and `Latch` pass on what somebody else will take.
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

use gesmas_sdk::{prelude::*, state::Semaphore as Permits};

/// Permits that sessions hold.
#[class]
pub struct Semaphore {
    total: Value<u32>,
    permits: Permits,
    turn: Permits,
    grants: Map<u64, Held>,
}

/// What is kept of a grant.
#[derive(Value)]
struct Held {
    session: Session,
    since: Time,
    permits: Vec<Permit>,
    watch: Alarm,
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

/// Why permits were not taken or given back.
#[error]
pub enum SemaphoreError {
    /// no permits are held with this grant (any more)
    NotHeld,
    /// there are not that many permits, even if nobody holds any
    TooMany {
        /// how many there are
        total: u32,
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

#[methods]
impl Semaphore {
    /// Creates a semaphore with that many permits.
    #[init]
    fn init(&mut self, permits: u32) {
        self.total.set(permits);
        self.permits.set(permits);
        self.turn.set(1_u32);
    }

    /// Takes that many permits (0 is taken for 1) and returns their grant; blocks until they are
    /// there.
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
    /// and is `NotHeld`.
    pub fn release(&mut self, grant: u64) -> Result<(), SemaphoreError> {
        let held = self.grants.remove(&grant).ok_or(SemaphoreError::NotHeld)?;
        ctx::cancel(held.watch);
        for permit in held.permits {
            self.permits.release(permit);
        }
        Ok(())
    }

    /// How many permits are free.
    #[read]
    pub fn available(&self) -> Result<u64> {
        Ok(self.permits.value())
    }

    /// How many calls wait.
    #[read]
    pub fn waiting(&self) -> Result<u64> {
        Ok(self.permits.waiters() + self.turn.waiters())
    }

    /// Who holds permits: grants after this one, 0 for all, at most `limit` and at most 1,000.
    #[read]
    pub fn grants(&self, after: u64, limit: u32) -> Result<Vec<Grant>> {
        let limit = PAGE.min(limit as usize);
        let grants = self.grants.iter_after(&after).take(limit).map(|(grant, held)| Grant {
            grant,
            permits: held.permits.len() as u32,
            session: held.session,
            since: held.since,
        });
        Ok(grants.collect())
    }

    /// The kernel has given the permits of a session back because the session is over.
    #[handler]
    fn session_over(&mut self, grant: u64) {
        self.grants.remove(&grant);
    }

    /// All permits but the last belong to the call until it has that too, so that they go back
    /// whatever becomes of it; then they change hands within a segment, in which nobody can take them.
    fn take(&mut self, permits: u32, patience: Patience) -> Result<Option<u64>, SemaphoreError> {
        let (permits, total) = (u64::from(permits.max(1)), self.total.get());
        if permits > u64::from(total) {
            return Err(SemaphoreError::TooMany { total });
        }
        let session = ctx::session().ok_or(SemaphoreError::NoSession)?;
        if acquire(&mut self.turn, patience)?.is_none() {
            return Ok(None);
        }
        if matches!(patience, Patience::None) && self.permits.value() < permits {
            return Ok(None);
        }
        let mut gathered = Vec::new();
        for _ in 1..permits {
            match acquire(&mut self.permits, patience)? {
                Some(permit) => gathered.push(permit),
                None => return Ok(None),
            }
        }
        let Some(last) = acquire_for_session(&mut self.permits, patience)? else {
            return Ok(None);
        };
        let mut owned = vec![last];
        for permit in gathered {
            self.permits.release(permit);
            let permit = self.permits.try_acquire_for_session()?;
            owned.push(permit.expect("nobody else waits for it"));
        }
        Ok(Some(self.grant(session, owned)))
    }

    fn grant(&mut self, session: Session, permits: Vec<Permit>) -> u64 {
        let grant = ctx::fencing_token();
        let watch = ctx::watch_session(session, Self::SESSION_OVER, (grant,));
        self.grants.insert(&grant, Held { session, since: ctx::now(), permits, watch });
        grant
    }
}

fn acquire(permits: &mut Permits, patience: Patience) -> Result<Option<Permit>> {
    match patience {
        Patience::None => Ok(permits.try_acquire()),
        Patience::Until(time) => permits.acquire_until(time),
        Patience::Endless => permits.acquire().map(Some),
    }
}

fn acquire_for_session(
    permits: &mut Permits,
    patience: Patience,
) -> Result<Option<Permit>, NotAcquired> {
    match patience {
        Patience::None => permits.try_acquire_for_session(),
        Patience::Until(time) => permits.acquire_for_session_until(time),
        Patience::Endless => permits.acquire_for_session().map(Some),
    }
}
