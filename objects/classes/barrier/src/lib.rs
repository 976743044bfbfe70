//! `Barrier`: a number of parties wait for each other, again and again.
//!
//! Cyclic: when the last party arrives, all go on, and the next generation begins. A party whose
//! call is cancelled while it waits is not counted any more: the others wait for a replacement. Its
//! clean-up does that; should it fail, which takes a limit on clean-ups that is far too low, the party
//! stays counted.
//! Invariants: outside of a segment fewer parties are counted than are needed, and as many calls
//! wait at the gate as are counted. A party goes on only when its generation has passed; without
//! cancellations each wakes exactly once, and the last never sleeps.
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
}

#[methods]
impl Barrier {
    /// Creates a barrier for that many parties; 0 is taken for 1.
    #[init]
    fn init(&mut self, parties: u32) {
        self.round.set(Round { parties: parties.max(1), ..Round::default() });
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
                    self.leave(generation);
                    return Ok(None);
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

    /// Counts a party; tells its generation, and whether it is the last, which lets all others go on.
    fn arrive(&mut self) -> (u64, bool) {
        let mut round = self.round.get();
        let generation = round.generation;
        round.arrived += 1;
        let others = round.arrived - 1;
        let is_last = round.arrived == round.parties;
        if is_last {
            (round.arrived, round.generation) = (0, generation + 1);
        }
        self.round.set(round);
        if is_last {
            self.gate.v_n(others);
        }
        (generation, is_last)
    }

    /// Whether the parties of a generation may go on. A permit alone does not say so: one that was on
    /// its way to a party that left has stayed behind.
    fn has_passed(&self, generation: u64) -> bool {
        self.round.get().generation != generation
    }

    /// Takes a cancelled party out of the count, unless its generation has passed meanwhile. The
    /// permit that was on its way to it then stays behind, for one of a later generation, which
    /// looks at the generation and waits on.
    fn leave(&mut self, generation: u64) {
        let mut round = self.round.get();
        if round.generation == generation {
            round.arrived -= 1;
            self.round.set(round);
        }
    }
}
