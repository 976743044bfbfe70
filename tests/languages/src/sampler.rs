//! `Sampler`: a class that uses all that the libraries of other languages have, in Rust.
//!
//! `tests/languages/specimen` has the same class in each language. Its methods mean nothing together;
//! what a method reads it also returns or stores, so that a difference shows.
//! Invariant: each host call that a library makes is in one of them, each way to return and to end
//! early, and each kind of type.

use gesmas_sdk::prelude::*;

/// Something of everything.
#[class]
pub struct Sampler {
    number: Value<u64>,
    shelf: Map<String, Bytes>,
    depths: Map<i64, u16>,
    line: Deque<u64>,
    doors: SemaphoreMap<u32>,
    slot: Semaphore,
    rung: Deque<Bytes>,
}

/// Why a method of the sampler fails.
#[error]
pub enum SamplerError {
    /// it was asked to
    Asked {
        /// By this number.
        number: u64,
    },
    /// the call was cancelled
    Cancelled,
    /// there is no session
    NoSession,
}

/// What the map tells.
#[derive(Clone, Debug, PartialEq, Eq, Value)]
pub struct Browsed {
    /// The entry of a name.
    pub found: Option<Bytes>,
    /// All after it.
    pub after: Vec<(String, Bytes)>,
    /// How many there are.
    pub length: u64,
}

#[methods]
impl Sampler {
    #[init]
    fn init(&mut self) {
        self.slot.set(2_u32);
    }

    /// Sets the value and returns the former one.
    pub fn write(&mut self, number: u64) -> Result<Option<u64>> {
        let former = self.number.read();
        self.number.set(number);
        Ok(former)
    }

    /// Removes the value.
    pub fn forget(&mut self) -> Result<Option<u64>> {
        Ok(self.number.take())
    }

    /// Writes an entry of the map and returns the former one.
    pub fn shelve(&mut self, name: String, item: Bytes) -> Result<Option<Bytes>> {
        Ok(self.shelf.insert(&name, item))
    }

    /// Removes an entry of the map.
    pub fn unshelve(&mut self, name: String) -> Result<Option<Bytes>> {
        Ok(self.shelf.remove(&name))
    }

    /// The entry of a name, all after it, and how many there are.
    pub fn browse(&mut self, name: String) -> Result<Browsed> {
        let found = self.shelf.get(&name);
        let after = self.shelf.iter_after(&name).collect();
        Ok(Browsed { found, after, length: self.shelf.len() })
    }

    /// Marks a depth, and returns all that are marked, the greatest first.
    pub fn mark(&mut self, depth: i64, mark: u16) -> Result<Vec<(i64, u16)>> {
        self.depths.insert(&depth, mark);
        Ok(self.depths.iter_reverse().collect())
    }

    /// Lengthens the deque.
    pub fn join(&mut self, number: u64, front: bool) -> Result<u64> {
        if front {
            self.line.push_front(number);
        } else {
            self.line.push_back(number);
        }
        Ok(self.line.len())
    }

    /// Shortens the deque, after a look at a place of it.
    pub fn part(&mut self, place: u64, front: bool) -> Result<(Option<u64>, Option<u64>)> {
        let seen = self.line.get(place);
        let taken = if front { self.line.pop_front() } else { self.line.pop_back() };
        Ok((seen, taken))
    }

    /// All that the context tells.
    pub fn facts(&mut self) -> Result<(u64, u64, Option<Session>, String, String, Time)> {
        let numbers = (ctx::random(), ctx::fencing_token());
        ctx::log("the facts are asked for");
        let (session, principal) = (ctx::session(), ctx::principal());
        Ok((numbers.0, numbers.1, session, principal, ctx::object(), ctx::now()))
    }

    /// Waits at a door.
    pub fn pass(&mut self, door: u32) -> Result<u64> {
        let before = self.number.get();
        self.doors.at(&door).p()?;
        Ok(before ^ self.number.get())
    }

    /// Waits at a door for a while, and then not at all.
    pub fn hurry(&mut self, door: u32, duration: Duration) -> Result<(bool, bool)> {
        let mut door = self.doors.at(&door);
        Ok((door.p_for(duration)?, door.try_p()))
    }

    /// Lets that many pass.
    pub fn open(&mut self, door: u32, count: u64) -> Result<()> {
        self.doors.at(&door).v_n(count);
        Ok(())
    }

    /// Owns a permit of the slot while it waits at a door.
    pub fn own(&mut self, door: u32) -> Result<(bool, bool)> {
        let permit = self.slot.acquire()?;
        self.doors.at(&door).p()?;
        Ok((self.slot.release(permit), self.slot.release(permit)))
    }

    /// Takes a permit of the slot for the session.
    pub fn keep(&mut self, duration: Duration) -> Result<Option<Permit>, SamplerError> {
        Ok(self.slot.acquire_for_session_within(duration)?)
    }

    /// Gives a permit back.
    pub fn give(&mut self, permit: Permit) -> Result<bool> {
        Ok(self.slot.release(permit))
    }

    /// What the slot and a door tell.
    pub fn census(&mut self, door: u32) -> Result<(u64, u64, u64)> {
        let door = self.doors.at(&door);
        Ok((self.slot.value(), door.value(), door.waiters()))
    }

    /// Sets a timer.
    pub fn later(&mut self, duration: Duration, number: u64) -> Result<Alarm> {
        Ok(ctx::after(duration, Self::RING, (number,)))
    }

    /// Watches a session.
    pub fn mourn(&mut self, session: Session) -> Result<Alarm> {
        Ok(ctx::watch_session(session, Self::RING, (session.0,)))
    }

    /// Cancels a timer or a watch.
    pub fn unset(&mut self, alarm: Alarm) -> Result<bool> {
        Ok(ctx::cancel(alarm))
    }

    /// Sends an event.
    pub fn tell(&mut self, session: Session, payload: Bytes) -> Result<bool> {
        Ok(ctx::notify(session, &payload))
    }

    /// Fails; what it did stands.
    pub fn fail(&mut self, number: u64) -> Result<(), SamplerError> {
        self.number.set(number);
        Err(SamplerError::Asked { number })
    }

    /// Waits, writes and aborts, which undoes the writing.
    pub fn abort(&mut self, door: u32, number: u64) -> Result<(), SamplerError> {
        self.doors.at(&door).p()?;
        self.number.set(number);
        ctx::abort(SamplerError::Asked { number })
    }

    /// Writes and panics, which undoes the writing.
    pub fn fall(&mut self) -> Result<()> {
        self.number.set(0);
        panic!("it falls")
    }

    /// Waits again and again, each time with an empty journal.
    pub fn rounds(&mut self, door: u32, left: u64) -> Result<u64> {
        self.doors.at(&door).p()?;
        match left.checked_sub(1) {
            Some(left) => ctx::continue_with(Self::ROUNDS, (door, left)),
            None => Ok(self.number.get()),
        }
    }

    /// What a read can see.
    #[read]
    pub fn look(&self) -> Result<(Option<u64>, u64)> {
        Ok((self.number.read(), self.rung.len()))
    }

    /// Writes down what a handler sees: no session.
    #[handler]
    fn ring(&mut self, number: u64) {
        let kept = self.slot.acquire_for_session_within(Duration::from_secs(1));
        let no_session = ctx::session().is_none() && kept == Err(NotAcquired::NoSession);
        let mut line = number.to_le_bytes().to_vec();
        line.push(u8::from(no_session));
        self.rung.push_back(Bytes(line));
    }
}
