//! `Election`: candidates of whom one leads at a time.
//!
//! A candidate's call blocks until it leads, and returns its *token*, greater than that of every
//! leader before it, with which resources fence off a leader that was deposed and does not know it.
//! The seat is owned by the candidate's session: when that is over, the next candidate leads, in the
//! order in which they came; exactly one wakes, and nobody asks who leads now. Observers wait for a
//! leader that they do not know yet.
//! Transient: an election without leader, candidates and observers takes no room, so names cost
//! nothing.
//! Invariants: `led` is what the owner of the one permit has written; `news` counts no permit while
//! nobody waits for one.
//! Not here: priorities among candidates. A session that campaigns twice waits for itself.
//!
//! ```text
//! $ gesmas call Election/scheduler leader
//! {"token": 17, "candidate": {"text": "host-3"}, "session": 4, "since": "2026-11-27T10:00:00Z"}
//! ```
//!
//! From Rust:
//!
//! ```
//! use gesmas_election::ElectionStub;
//! use gesmas_sdk::stub::Invoke;
//!
//! async fn serve(client: impl Invoke) {
//!     let election = ElectionStub::new(client, "scheduler");
//!     if let Ok(token) = election.campaign("host-3".into()).await {
//!         println!("host-3 leads, and writes with token {token}");
//!         let _ = election.resign(token).await;
//!     }
//! }
//! ```

use gesmas_sdk::prelude::*;

/// An election whose leader is a session.
#[class(transient)]
pub struct Election {
    seat: Semaphore,
    led: Value<Led>,
    news: Semaphore,
}

/// What is kept of the leader.
#[derive(Value)]
struct Led {
    leader: Leader,
    permit: Permit,
    watch: Alarm,
}

/// Who leads.
#[derive(Clone, Debug, PartialEq, Eq, Value)]
pub struct Leader {
    /// Its fencing token.
    pub token: u64,
    /// What it said of itself.
    pub candidate: Bytes,
    /// Its session.
    pub session: Session,
    /// Since when it leads.
    pub since: Time,
}

/// Why nobody leads, or not with this token.
#[error]
pub enum ElectionError {
    /// the token is not that of the leader (any more)
    NotLeader,
    /// a leader is a session, and this call has none
    NoSession,
    /// the call was cancelled
    Cancelled,
}

#[methods]
impl Election {
    /// A fresh election has no leader.
    #[init]
    fn init(&mut self) {
        self.seat.set(1_u32);
    }

    /// Runs for leader under this name; blocks until the caller's session leads, and returns its
    /// token.
    pub fn campaign(&mut self, candidate: Bytes) -> Result<u64, ElectionError> {
        let permit = self.seat.acquire_for_session()?;
        self.lead(candidate, permit)
    }

    /// Leads if nobody does, and returns the token; never blocks.
    pub fn try_campaign(&mut self, candidate: Bytes) -> Result<Option<u64>, ElectionError> {
        let permit = self.seat.try_acquire_for_session()?;
        permit.map(|permit| self.lead(candidate, permit)).transpose()
    }

    /// Leads no longer; the next candidate does. A token that does not lead (again, too late, or of
    /// another) changes nothing and is `NotLeader`.
    pub fn resign(&mut self, token: u64) -> Result<(), ElectionError> {
        let led = self.led.read().filter(|led| led.leader.token == token);
        let led = led.ok_or(ElectionError::NotLeader)?;
        self.led.take();
        ctx::cancel(led.watch);
        if self.seat.release(led.permit) { Ok(()) } else { Err(ElectionError::NotLeader) }
    }

    /// Who leads.
    #[read]
    pub fn leader(&self) -> Result<Option<Leader>> {
        Ok(self.led.read().map(|led| led.leader))
    }

    /// Who leads, as soon as that is somebody with a token greater than `after`; 0 for anybody.
    /// Leaders that come and go between two calls are missed: what counts is the newest.
    pub fn observe(&mut self, after: u64) -> Result<Leader> {
        loop {
            let led = self.led.read().filter(|led| led.leader.token > after);
            if let Some(led) = led {
                return Ok(led.leader);
            }
            if let Err(cancelled) = self.news.p() {
                // A permit that was on its way to this call is of no use to the next.
                while self.news.try_p() {}
                return Err(cancelled);
            }
        }
    }

    /// How many candidates wait.
    #[read]
    pub fn candidates(&self) -> Result<u64> {
        Ok(self.seat.waiters())
    }

    /// The kernel has given the seat of a session back because the session is over; the next leader
    /// may have written itself down already.
    #[handler]
    fn session_over(&mut self, token: u64) {
        if self.led.read().is_some_and(|led| led.leader.token == token) {
            self.led.take();
        }
    }

    fn lead(&mut self, candidate: Bytes, permit: Permit) -> Result<u64, ElectionError> {
        let session = ctx::session().ok_or(ElectionError::NoSession)?;
        let token = ctx::fencing_token();
        let watch = ctx::watch_session(session, Self::SESSION_OVER, (token,));
        let leader = Leader { token, candidate, session, since: ctx::now() };
        self.led.set(Led { leader, permit, watch });
        self.news.v_n(self.news.waiters());
        Ok(token)
    }
}
