//! `Yard`: a class for the simulation, of what the standard classes do not do.
//!
//! Timers, deadlines, timed waits, detached calls, permits that an invocation owns, events, and segments that are
//! undone after they took and gave permits.
//! Invariant: nobody ever rings the bell, so that waiting for it is a pause of known length.

use gesmas_sdk::prelude::*;

/// Something of everything.
#[class]
pub struct Yard {
    tools: Semaphore,
    turn: Semaphore,
    bell: Semaphore,
    score: Value<u64>,
    left: Value<u64>,
    kept: Value<u64>,
}

/// The error of those who ask for one.
#[error]
pub enum YardError {
    /// it was asked to
    Asked,
}

/// How gambles end.
pub(crate) const WAYS: u64 = 4;
/// First numbers of events: of a gamble, of a reminder.
pub(crate) const GAMBLE: u64 = 0;
/// See [`GAMBLE`].
pub(crate) const REMINDER: u64 = 1;

#[methods]
impl Yard {
    /// Two tools, one turn.
    #[init]
    fn init(&mut self) {
        self.tools.set(2_u32);
        self.turn.set(1_u32);
    }

    /// Owns a tool for a while. Returns a token from before, since when and until when it owned the
    /// tool, and whether the bell rang.
    pub fn hold(&mut self, duration: Duration) -> Result<(u64, Time, Time, bool)> {
        let token = ctx::fencing_token();
        self.tools.acquire()?;
        let from = ctx::now();
        let rang = self.bell.p_for(duration)?;
        Ok((token, from, ctx::now(), rang))
    }

    /// Has the turn for a while.
    pub fn linger(&mut self, duration: Duration) -> Result<bool> {
        self.turn.p()?;
        let rang = self.bell.p_for(duration);
        self.turn.v();
        rang
    }

    /// Scores, and tells the caller's session; or is undone before it gives the turn back, after it,
    /// or by a trap. Returns the score, and what those who left have written.
    pub fn gamble(&mut self, key: u64, way: u64) -> Result<(u64, u64)> {
        self.turn.p()?;
        let score = self.score.get() + 1;
        self.score.set(score);
        if let Some(session) = ctx::session() {
            tell(session, (GAMBLE, key, 0, 0));
        }
        if way == 1 {
            ctx::abort(YardError::Asked);
        }
        self.turn.v();
        match way {
            2 => ctx::abort(YardError::Asked),
            3 => panic!("it was asked to"),
            _ => Ok((score, self.left.get())),
        }
    }

    /// Waits until its deadline or its caller ends it, and writes that it leaves.
    pub fn doze(&mut self, key: u64) -> Result<()> {
        let end = self.bell.p();
        self.left.set((self.left.get() % (1 << 32)) * 31 + key);
        end
    }

    /// Reminds the caller's session after a while, by an event. Returns when.
    pub fn remind(&mut self, key: u64, duration: Duration) -> Result<Time> {
        let due = Time(ctx::now().0 + u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
        if let Some(session) = ctx::session() {
            ctx::after(duration, Self::RING, (session.0, key, due.0));
        }
        Ok(due)
    }

    /// Counts itself after a while, whatever becomes of its caller. Returns the count.
    #[detached]
    pub fn keep(&mut self, duration: Duration) -> Result<u64> {
        self.bell.p_for(duration)?;
        let kept = self.kept.get() + 1;
        self.kept.set(kept);
        Ok(kept)
    }

    /// The time, and a token.
    pub fn stamp(&mut self) -> Result<(Time, u64)> {
        Ok((ctx::now(), ctx::fencing_token()))
    }

    /// The score.
    #[read]
    pub fn score(&self) -> Result<u64> {
        Ok(self.score.get())
    }

    /// How many were kept.
    #[read]
    pub fn kept(&self) -> Result<u64> {
        Ok(self.kept.get())
    }

    #[handler]
    fn ring(&mut self, session: u64, key: u64, due: u64) {
        tell(Session(session), (REMINDER, key, due, ctx::now().0));
    }
}

fn tell(session: Session, event: (u64, u64, u64, u64)) {
    ctx::notify(session, &gesmas_abi::value::to_bytes(&event));
}
