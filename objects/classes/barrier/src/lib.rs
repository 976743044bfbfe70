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
    parties: Value<u32>,
    arrived: Value<u32>,
    generation: Value<u64>,
    gate: Semaphore,
}

#[methods]
impl Barrier {
    /// Creates a barrier for that many parties; 0 is taken for 1.
    #[init]
    fn init(&mut self, parties: u32) {
        self.parties.set(parties.max(1));
    }

    /// Blocks until all parties wait, and returns the number of their generation, from 0.
    pub fn wait(&mut self) -> Result<u64> {
        let (generation, is_last) = self.arrive();
        while !is_last && self.generation.get() == generation {
            if let Err(cancelled) = self.gate.p() {
                self.leave(generation);
                return Err(cancelled);
            }
        }
        Ok(generation)
    }

    /// Like `wait`, but blocks at most that long: when the time is up the party is not counted any more,
    /// the others wait for a replacement, and nothing is returned.
    pub fn wait_for(&mut self, duration: Duration) -> Result<Option<u64>> {
        let end = ctx::now() + duration;
        let (generation, is_last) = self.arrive();
        while !is_last && self.generation.get() == generation {
            match self.gate.p_until(end) {
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
        Ok(Some(generation))
    }

    /// How many parties wait.
    #[read]
    pub fn waiting(&self) -> Result<u32> {
        Ok(self.arrived.get())
    }

    /// How many generations have passed.
    #[read]
    pub fn generations(&self) -> Result<u64> {
        Ok(self.generation.get())
    }

    /// Counts a party; tells its generation, and whether it is the last, which lets all others go on.
    fn arrive(&mut self) -> (u64, bool) {
        let generation = self.generation.get();
        let arrived = self.arrived.get() + 1;
        let is_last = arrived == self.parties.get();
        if is_last {
            self.arrived.set(0);
            self.generation.set(generation + 1);
            self.gate.v_n(arrived - 1);
        } else {
            self.arrived.set(arrived);
        }
        (generation, is_last)
    }

    /// Takes a cancelled party out of the count, unless its generation has passed meanwhile. The
    /// permit that was on its way to it then stays behind, for one of a later generation, which
    /// looks at the generation and waits on.
    fn leave(&mut self, generation: u64) {
        if self.generation.get() == generation {
            self.arrived.set(self.arrived.get() - 1);
        }
    }
}
