//! `Specimen`: a class that makes every host call and ends in every way, for the tests of engines.
//!
//! Its methods are pieces for random workloads; they mean nothing together.
//! Invariant: each kind of host call and of end that the ABI has is in one of them. What a method
//! reads it also returns or stores, so that a difference between two engines shows.

use gesmas_sdk::prelude::*;

/// Something of everything.
#[class]
pub struct Specimen {
    number: Value<u64>,
    shelf: Map<u64, Bytes>,
    names: Set<String>,
    line: Deque<Bytes>,
    doors: SemaphoreMap<u64>,
    slot: Semaphore,
    kept: Value<Permit>,
    alarm: Value<Alarm>,
    rung: Deque<Bytes>,
}

/// Why a method of the specimen fails.
#[error]
pub enum SpecimenError {
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
#[derive(Value)]
pub struct Browsed {
    after: Vec<(u64, Bytes)>,
    back: Vec<u64>,
    first: Option<u64>,
    length: u64,
}

/// What semaphores tell: the count of the slot, that of a door and its waiters, and the owners of
/// the slot, each with its permit.
#[derive(Value)]
pub struct Census {
    slot: u64,
    door: u64,
    waiters: u64,
    owners: Vec<(u64, u64)>,
}

#[methods]
impl Specimen {
    /// Two permits of the slot.
    #[init]
    fn init(&mut self) {
        self.slot.set(2_u32);
    }

    /// Writes an entry of the map and returns the former one.
    pub fn shelve(&mut self, key: u64, item: Bytes) -> Result<Option<Bytes>> {
        Ok(self.shelf.insert(&key, item))
    }

    /// Removes an entry of the map.
    pub fn unshelve(&mut self, key: u64) -> Result<Option<Bytes>> {
        Ok(self.shelf.remove(&key))
    }

    /// What the map tells in all ways.
    pub fn browse(&mut self, key: u64) -> Result<Browsed> {
        let after = self.shelf.iter_after(&key).collect();
        let back = self.shelf.iter_reverse().map(|(key, _)| key).collect();
        let first = self.shelf.first().map(|(key, _)| key);
        let last = self.shelf.last().map_or(0, |(key, _)| key);
        self.number.set(last + u64::from(self.shelf.contains_key(&key)));
        Ok(Browsed { after, back, first, length: self.shelf.len() })
    }

    /// Puts a name in, or takes it out when it is there.
    pub fn flip(&mut self, name: String) -> Result<Vec<String>> {
        if !self.names.insert(&name) {
            self.names.remove(&name);
        }
        let first = self.names.first().filter(|first| self.names.contains(first));
        let mut names: Vec<_> = self.names.iter().collect();
        names.extend(first.into_iter().chain(self.names.last()));
        Ok(names)
    }

    /// Lengthens the deque.
    pub fn join(&mut self, item: Bytes, front: bool) -> Result<u64> {
        if front {
            self.line.push_front(item);
        } else {
            self.line.push_back(item);
        }
        Ok(self.line.len())
    }

    /// Shortens the deque, after a look at a place of it.
    pub fn part(&mut self, place: u64, front: bool) -> Result<(Option<Bytes>, Option<Bytes>)> {
        let seen = self.line.get(place).or_else(|| self.line.back());
        let taken = if front { self.line.pop_front() } else { self.line.pop_back() };
        Ok((seen, taken))
    }

    /// Everything that the context tells.
    pub fn facts(&mut self) -> Result<(u64, u64, Option<Session>, String, String, Time)> {
        ctx::log("the facts are asked for");
        ctx::log_at(ctx::Level::Warning, &ctx::object());
        let numbers = (ctx::random(), ctx::fencing_token());
        self.number.set(numbers.0 ^ numbers.1);
        let (session, principal) = (ctx::session(), ctx::principal());
        Ok((numbers.0, numbers.1, session, principal, ctx::object(), ctx::now()))
    }

    /// Removes the value.
    pub fn forget(&mut self) -> Result<Option<u64>> {
        Ok(self.number.take())
    }

    /// Waits at a door.
    pub fn pass(&mut self, door: u64) -> Result<u64> {
        let before = self.number.get();
        self.doors.at(&door).p()?;
        Ok(before ^ self.number.get())
    }

    /// Lets that many pass.
    pub fn open(&mut self, door: u64, count: u32) -> Result<()> {
        self.doors.at(&door).v_n(count);
        Ok(())
    }

    /// Waits at a door for a while, then until a time, then not at all.
    pub fn hurry(&mut self, door: u64, duration: Duration) -> Result<(bool, bool, bool)> {
        let mut door = self.doors.at(&door);
        let first = door.p_for(duration)?;
        let second = door.p_until(Time(ctx::now().0 + 5))?;
        Ok((first, second, door.try_p()))
    }

    /// Owns two permits of the slot while it waits at a door; gives one back itself.
    pub fn own(&mut self, door: u64) -> Result<(bool, bool)> {
        let first = self.slot.acquire()?;
        let second = self.slot.try_acquire();
        self.doors.at(&door).p()?;
        let released = self.slot.release(first);
        Ok((released, second.is_some_and(|second| self.slot.release(second))))
    }

    /// Takes a permit of the slot for the session, in one of three ways.
    pub fn keep(&mut self, way: u64) -> Result<bool, SpecimenError> {
        let permit = match way {
            0 => self.slot.acquire_for_session().map(Some),
            1 => self.slot.try_acquire_for_session(),
            _ => self.slot.acquire_for_session_within(Duration::from_nanos(way)),
        };
        let permit = permit.map_err(|reason| match reason {
            NotAcquired::Cancelled => SpecimenError::Cancelled,
            NotAcquired::SessionOver | NotAcquired::NoSession => SpecimenError::NoSession,
        })?;
        permit.into_iter().for_each(|permit| self.kept.set(permit));
        Ok(permit.is_some())
    }

    /// Gives the last kept permit back.
    pub fn give(&mut self) -> Result<bool> {
        Ok(self.kept.read().is_some_and(|permit| self.slot.release(permit)))
    }

    /// What the slot and a door tell.
    pub fn census(&mut self, door: u64) -> Result<Census> {
        let owners = self.slot.owners().into_iter().map(|owner| match owner.holder {
            Holder::Invocation(number) => (owner.permit.0, number),
            Holder::Session(session) => (owner.permit.0, session.0),
        });
        let door = self.doors.at(&door);
        let (slot, owners) = (self.slot.value(), owners.collect());
        Ok(Census { slot, door: door.value(), waiters: door.waiters(), owners })
    }

    /// Sets a timer, which rings well or wrongly.
    pub fn later(&mut self, duration: Duration, well: bool) -> Result<Alarm> {
        let handler = if well { Self::RING } else { Self::BREAK_BELL };
        let alarm = ctx::after(duration, handler, (self.number.get(),));
        self.alarm.set(alarm);
        Ok(alarm)
    }

    /// Cancels the last timer or watch.
    pub fn unset(&mut self) -> Result<bool> {
        Ok(self.alarm.take().is_some_and(ctx::cancel))
    }

    /// Watches a session.
    pub fn mourn(&mut self, session: Session) -> Result<Alarm> {
        let alarm = ctx::watch_session(session, Self::RING, (session.0,));
        self.alarm.set(alarm);
        Ok(alarm)
    }

    /// Sends an event.
    pub fn tell(&mut self, session: Session, text: Bytes) -> Result<bool> {
        Ok(ctx::notify(session, &text.0))
    }

    /// Fails; what it did stands.
    pub fn fail(&mut self, number: u64) -> Result<(), SpecimenError> {
        self.number.set(number);
        Err(SpecimenError::Asked { number })
    }

    /// Waits, writes and aborts, which undoes the writing.
    pub fn abort(&mut self, door: u64, number: u64) -> Result<(), SpecimenError> {
        self.number.set(number);
        self.doors.at(&door).p()?;
        self.number.set(number + 1);
        ctx::abort(SpecimenError::Asked { number })
    }

    /// Waits, writes and fails in one of several ways.
    pub fn fall(&mut self, door: u64, way: u64) -> Result<u64> {
        self.doors.at(&door).p()?;
        self.number.set(way);
        match way {
            0 => panic!("it falls through door {door}"),
            1 => Ok(u64::MAX - ctx::now().0 + ctx::random().max(1 << 63) + ctx::now().0),
            2 => Ok(self.names.first().map_or(0, |_| 1) / (way - 2)),
            _ => Ok(self.alarm.read().expect("there is no alarm").0),
        }
    }

    /// Waits, takes memory, waits again and takes as much again. Returns the sum of what it wrote there.
    pub fn swell(&mut self, door: u64, bytes: u64) -> Result<u64> {
        let bytes = usize::try_from(bytes).expect("memory has this many addresses");
        let mut all = Vec::new();
        for _ in 0..2 {
            self.doors.at(&door).p()?;
            all.push(vec![1_u8; bytes]);
            self.number.set(self.number.get().wrapping_add(1));
        }
        Ok(all.iter().flatten().map(|byte| u64::from(*byte)).sum())
    }

    /// Waits, and then counts for as long as it is told to.
    pub fn burn(&mut self, door: u64, rounds: u64) -> Result<u64> {
        self.doors.at(&door).p()?;
        let mut number = self.number.get();
        for round in 0..rounds {
            number = number.rotate_left(7) ^ round;
        }
        self.number.set(number);
        self.doors.at(&door).p()?;
        Ok(number)
    }

    /// Waits, and then asks so often that its journal grows.
    pub fn fill(&mut self, door: u64, calls: u64) -> Result<u64> {
        self.doors.at(&door).p()?;
        let lengths = (0..calls).map(|_| self.line.len());
        let sum = lengths.sum();
        self.doors.at(&door).p()?;
        Ok(sum)
    }

    /// Waits again and again, each time with an empty journal.
    pub fn rounds(&mut self, door: u64, left: u64) -> Result<u64> {
        self.doors.at(&door).p()?;
        self.number.set(self.number.get().wrapping_add(left));
        match left.checked_sub(1) {
            Some(left) => ctx::continue_with(Self::ROUNDS, (door, left)),
            None => Ok(self.number.get()),
        }
    }

    /// Waits on when its caller is gone; then owns nothing.
    #[detached]
    pub fn stay(&mut self, door: u64) -> Result<bool, SpecimenError> {
        self.doors.at(&door).p()?;
        self.number.set(door);
        self.keep(1)
    }

    /// Waits; when it is cancelled, cleans up in one of several ways.
    pub fn leave(&mut self, door: u64, way: u64) -> Result<u64> {
        let mut door = self.doors.at(&door);
        let Err(cancelled) = door.p() else { return Ok(0) };
        self.line.push_back(Bytes(b"left".to_vec()));
        door.v();
        match way {
            0 => Err(cancelled),
            1 => panic!("it cannot leave"),
            2 => Err(door.p().err().unwrap_or(cancelled)),
            _ => Ok(way),
        }
    }

    /// What a read can see.
    #[read]
    pub fn look(&self, key: u64) -> Result<(u64, Option<Bytes>, u64, Vec<String>)> {
        Ok((self.number.get(), self.shelf.get(&key), self.rung.len(), self.names.iter().collect()))
    }

    #[handler]
    fn ring(&mut self, number: u64) {
        let session = ctx::session().map_or(0, |session| session.0 + 1);
        self.rung.push_back(Bytes(format!("{number} {session} {}", ctx::now().0).into_bytes()));
        self.doors.at(&0).v();
        if self.slot.acquire_for_session().is_ok() || self.slot.try_acquire().is_some() {
            self.number.set(number);
        }
    }

    #[handler]
    fn break_bell(&mut self, number: u64) {
        self.rung.push_back(Bytes(b"undone".to_vec()));
        panic!("the bell breaks at {number}");
    }
}
