//! `Election`: candidates of which one leads at a time.
//!
//! A candidate's call blocks until it leads, and returns its *token*, greater than that of every
//! leader before it, with which resources fence off a leader that was deposed and does not know it.
//! The seat is owned by the candidate's session: when that is over, the next candidate leads, in the
//! order in which they came; exactly one wakes, and nobody asks who leads now. Only the leader's session
//! resigns: everybody can read the token. Observers wait until the leader is another than the one they
//! know, or nobody leads.
//! A candidate is a session and what it says of itself. One that leads and runs again gets its token
//! again, and so do several calls of one candidate that wait, a retry and the call before it: one of them
//! has a place in the queue; if it gives up, the next of them takes a place at the end. Candidates of one
//! session that say different things of themselves exclude each other.
//! Transient: an election without leader, candidates and observers takes no room, so names cost
//! nothing.
//! Every method costs the same however many wait; observers are told a thousand at a time.
//! Invariants: `led` is what the owner of the one permit has written; `news` counts no permit while
//! nobody waits for one; as many observers as `untold` says, from the head of the queue on, have not
//! heard of the last change. Of the calls of a candidate that wait, the one that owns the permit of its
//! `line` waits for the seat, the others, with a permit of `followers` each, for that permit.
//! Not here: priorities among candidates.
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

/// Bytes that a candidate may say of itself.
const CANDIDATE: usize = 64 << 10;
/// Calls that may wait for the seat itself, since each needs a semaphore for its candidate.
const WAITING: u64 = 50_000;
/// Calls that may wait for another call of their candidate: they go on in one step.
const FOLLOWERS: u32 = 500;
/// Observers that are told in one step at most, and bytes of what they are told.
const PORTION: u64 = 250;
const TOLD: u64 = 2 << 20;

/// An election whose leader is a session.
#[class(transient)]
pub struct Election {
    seat: Semaphore,
    line: SemaphoreMap<(Session, u64)>,
    followers: Semaphore,
    led: Value<Led>,
    news: Semaphore,
    untold: Value<u64>,
}

/// What is kept of the leader.
#[derive(Value)]
struct Led {
    leader: Leader,
    permit: Permit,
    watch: Alarm,
}

/// The leader.
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
    /// another session leads with this token, and only that session resigns
    NotHolder,
    /// the candidate says more of itself than it may
    CandidateTooLong {
        /// how many bytes it may
        limit: u64,
    },
    /// as many calls wait as may wait
    TooManyWaiting {
        /// how many that are
        limit: u64,
    },
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
        self.followers.set(FOLLOWERS);
    }

    /// Runs for leader as this candidate; blocks until it leads, and returns its token.
    pub fn campaign(&mut self, candidate: Bytes) -> Result<u64, ElectionError> {
        if let Some(token) = self.try_campaign(candidate.clone())? {
            return Ok(token);
        }
        let session = ctx::session().ok_or(ElectionError::NoSession)?;
        let mut line = self.line.at(&(session, hash(&candidate)));
        let place = if line.owners().is_empty() {
            if self.seat.waiters() >= WAITING {
                return Err(ElectionError::TooManyWaiting { limit: WAITING });
            }
            if line.value() == 0 {
                line.v();
            }
            line.try_acquire().ok_or(ElectionError::Cancelled)?
        } else {
            let limit = u64::from(FOLLOWERS);
            self.followers.try_acquire().ok_or(ElectionError::TooManyWaiting { limit })?;
            line.acquire()?
        };
        let outcome = self.wait_in_place(session, candidate);
        // It goes to the next in line, and if there is none, the line goes.
        line.release(place);
        line.try_p();
        outcome
    }

    /// Leads if nobody else does, and returns the token; never blocks.
    pub fn try_campaign(&mut self, candidate: Bytes) -> Result<Option<u64>, ElectionError> {
        let session = ctx::session().ok_or(ElectionError::NoSession)?;
        if candidate.len() > CANDIDATE {
            return Err(ElectionError::CandidateTooLong { limit: CANDIDATE as u64 });
        }
        if let Some(token) = self.again(session, &candidate) {
            return Ok(Some(token));
        }
        let permit = self.seat.try_acquire_for_session()?;
        Ok(permit.map(|permit| self.lead(session, candidate, permit)))
    }

    /// Leads no longer; the next candidate does. A token that does not lead (again, too late, or of
    /// another election) changes nothing and is `NotLeader`; that of another session changes nothing and
    /// is `NotHolder`.
    pub fn resign(&mut self, token: u64) -> Result<(), ElectionError> {
        let led = self.led.read().filter(|led| led.leader.token == token);
        let led = led.ok_or(ElectionError::NotLeader)?;
        if ctx::session() != Some(led.leader.session) {
            return Err(ElectionError::NotHolder);
        }
        self.led.take();
        ctx::cancel(led.watch);
        let had = self.seat.release(led.permit);
        // The next leader, if there is one, is ahead of those who are told.
        self.tell();
        if had { Ok(()) } else { Err(ElectionError::NotLeader) }
    }

    /// The leader.
    #[read]
    pub fn leader(&self) -> Result<Option<Leader>> {
        Ok(self.led.read().map(|led| led.leader))
    }

    /// The leader, none if nobody leads, as soon as that is another than the one with the token `known`;
    /// 0 for a caller that knows of none. Leaders that come and go between two calls are missed: what
    /// counts is the newest.
    pub fn observe(&mut self, known: u64) -> Result<Option<Leader>> {
        loop {
            let leader = self.led.read().map(|led| led.leader);
            if leader.as_ref().map_or(0, |leader| leader.token) != known {
                return Ok(leader);
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
        Ok(self.seat.waiters() + u64::from(FOLLOWERS).saturating_sub(self.followers.value()))
    }

    /// The kernel has given the seat of a session back because the session is over; the next leader
    /// may have written itself down already.
    #[handler]
    fn session_over(&mut self, token: u64) {
        if self.led.read().is_some_and(|led| led.leader.token == token) {
            self.led.take();
            self.tell();
        }
    }

    /// The next portion of observers is told.
    #[handler]
    fn tell_more(&mut self) {
        let untold = self.untold.take().unwrap_or(0).min(self.news.waiters());
        self.wake(untold);
    }

    fn wait_in_place(&mut self, session: Session, candidate: Bytes) -> Result<u64, ElectionError> {
        if let Some(token) = self.again(session, &candidate) {
            return Ok(token);
        }
        let permit = self.seat.acquire_for_session()?;
        Ok(self.lead(session, candidate, permit))
    }

    /// The token of a candidate that leads.
    fn again(&self, session: Session, candidate: &Bytes) -> Option<u64> {
        let leader = self.led.read()?.leader;
        (leader.session == session && leader.candidate == *candidate).then_some(leader.token)
    }

    fn lead(&mut self, session: Session, candidate: Bytes, permit: Permit) -> u64 {
        let token = ctx::fencing_token();
        let watch = ctx::watch_session(session, Self::SESSION_OVER, (token,));
        let leader = Leader { token, candidate, session, since: ctx::now() };
        self.led.set(Led { leader, permit, watch });
        self.tell();
        token
    }

    /// All that observe now look at the leader once more: the first at once, the others after them.
    fn tell(&mut self) {
        match self.news.waiters() {
            0 => {}
            waiting if self.untold.read().is_some() => self.untold.set(waiting),
            waiting => self.wake(waiting),
        }
    }

    /// Wakes a portion of so many observers; a timer, one at a time, wakes the others.
    fn wake(&mut self, observers: u64) {
        let each = self.led.read().map_or(0, |led| led.leader.candidate.len() as u64);
        let portion = PORTION.min(TOLD / each.max(1));
        self.news.v_n(observers.min(portion));
        if observers > portion {
            self.untold.set(observers - portion);
            ctx::after(Duration::ZERO, Self::TELL_MORE, ());
        }
    }
}

/// Of what a candidate says of itself. Where two of a session have the same, they wait for each other
/// longer than they need to.
fn hash(candidate: &[u8]) -> u64 {
    // FNV-1a.
    candidate.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
