//! `Barrier`: a number of parties wait for each other, again and again.
//!
//! Cyclic: when the last party arrives, all go on, and the next generation begins. A party whose
//! call is cancelled while it waits is not counted any more: the others wait for a replacement. Its
//! clean-up does that; should it fail, which takes a limit on clean-ups that is far too low, the party
//! stays counted. Parties are calls: two calls of one session are two parties.
//! Every method costs the same however many wait, but for the `wait` that is the last: it wakes a
//! thousand, and a thousand more go on at each of the next stamps.
//! Invariants: outside of a segment fewer parties are counted than are needed, and as many calls wait at
//! the gate as are counted, behind those of generations that have passed, which are as many as
//! `leaving`. A party goes on only when its generation has passed; without cancellations each wakes
//! exactly once, and the last never sleeps.
//!
//! ```text
//! $ gesmas object create Barrier/epoch-7 3
//! $ gesmas call Barrier/epoch-7 wait        # in three terminals; all return at once
//! 0
//! ```
//!
//! From Rust:
//!
//! ```
//! use gesmas_barrier::BarrierStub;
//! use gesmas_sdk::stub::Invoke;
//!
//! async fn worker(client: impl Invoke) {
//!     let barrier = BarrierStub::new(client, "epoch-7");
//!     let _ = barrier.create(3).await;
//!     while let Ok(generation) = barrier.wait().await {
//!         println!("all three are here: generation {generation}");
//!     }
//! }
//! ```

use gesmas_sdk::prelude::*;

/// A cyclic barrier.
#[class]
pub struct Barrier {
    /// In one place: each party reads and writes all of it.
    round: Value<Round>,
    gate: Semaphore,
}

/// How far a generation is.
#[derive(Default, Value)]
struct Round {
    parties: u32,
    arrived: u32,
    generation: u64,
    /// Parties of generations that have passed that have not been woken; a timer wakes some as long as
    /// there are any.
    leaving: u64,
}

/// Why there is no barrier, or a party does not wait.
#[error]
pub enum BarrierError {
    /// a barrier has a party at least, and not more than it may
    BadParties {
        /// how many it may have
        limit: u32,
    },
    /// the call was cancelled
    Cancelled,
}

/// Parties that there may be: all of them can wait in one object.
const PARTIES: u32 = 1_000_000;
/// Parties that go on in one step.
const PORTION: u64 = 1_000;

#[methods]
impl Barrier {
    /// Creates a barrier for that many parties, 1 at least and 1,000,000 at most.
    #[init]
    fn init(&mut self, parties: u32) -> Result<(), BarrierError> {
        if parties == 0 || parties > PARTIES {
            return Err(BarrierError::BadParties { limit: PARTIES });
        }
        self.round.set(Round { parties, ..Round::default() });
        Ok(())
    }

    /// Blocks until all parties wait, and returns the number of their generation, from 0.
    pub fn wait(&mut self) -> Result<u64> {
        let (generation, is_last) = self.arrive();
        if is_last {
            return Ok(generation);
        }
        loop {
            if let Err(cancelled) = self.gate.p() {
                self.leave(generation);
                return Err(cancelled);
            }
            if self.has_passed(generation) {
                return Ok(generation);
            }
        }
    }

    /// Like `wait`, but blocks at most that long: when the time is up the party is not counted any more,
    /// the others wait for a replacement, and nothing is returned.
    pub fn wait_for(&mut self, duration: Duration) -> Result<Option<u64>> {
        let end = ctx::now() + duration;
        let (generation, is_last) = self.arrive();
        if is_last {
            return Ok(Some(generation));
        }
        loop {
            match self.gate.p_until(end) {
                Ok(true) if self.has_passed(generation) => return Ok(Some(generation)),
                Ok(true) => {}
                Ok(false) => {
                    // It may have passed, and this party not been woken yet.
                    let passed = self.leave(generation);
                    return Ok(passed.then_some(generation));
                }
                Err(cancelled) => {
                    self.leave(generation);
                    return Err(cancelled);
                }
            }
        }
    }

    /// How many parties wait.
    #[read]
    pub fn waiting(&self) -> Result<u32> {
        Ok(self.round.get().arrived)
    }

    /// How many generations have passed.
    #[read]
    pub fn generations(&self) -> Result<u64> {
        Ok(self.round.get().generation)
    }

    /// The next portion of parties goes on.
    #[handler]
    fn go_on(&mut self) {
        let round = self.round.get();
        self.wake(round);
    }

    /// Counts a party; tells its generation, and whether it is the last, which lets all others go on.
    fn arrive(&mut self) -> (u64, bool) {
        let mut round = self.round.get();
        let generation = round.generation;
        round.arrived += 1;
        if round.arrived < round.parties {
            self.round.set(round);
            return (generation, false);
        }
        let (others, waking) = (u64::from(round.arrived - 1), round.leaving > 0);
        (round.arrived, round.generation) = (0, generation + 1);
        round.leaving += others;
        if waking {
            self.round.set(round)
        } else {
            self.wake(round)
        }
        (generation, true)
    }

    /// Wakes a portion of those that leave; a timer wakes the others.
    fn wake(&mut self, mut round: Round) {
        let portion = round.leaving.min(PORTION);
        round.leaving -= portion;
        if round.leaving > 0 {
            ctx::after(Duration::ZERO, Self::GO_ON, ());
        }
        self.round.set(round);
        if portion > 0 {
            self.gate.v_n(portion);
        }
    }

    /// Whether the parties of a generation may go on. A permit alone does not say so: one that was on
    /// its way to a party that left has stayed behind.
    fn has_passed(&self, generation: u64) -> bool {
        self.round.get().generation != generation
    }

    /// A party leaves without having been woken: it is taken out of those that are counted, or of those
    /// that leave, if its generation has passed, which this tells.
    fn leave(&mut self, generation: u64) -> bool {
        let mut round = self.round.get();
        let passed = round.generation != generation;
        if passed {
            round.leaving = round.leaving.saturating_sub(1);
        } else {
            round.arrived -= 1;
        }
        self.round.set(round);
        passed
    }
}
