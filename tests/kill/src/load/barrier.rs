//! Parties that pass one barrier again and again, together.
//!
//! Invariant: all parties end after the same generation, so that nobody is left waiting.

use std::sync::{Arc, Mutex, PoisonError};

use gesmas_barrier::BarrierStub;

use super::Worker;
use crate::{
    checkers::barrier::Party,
    history::{Book, Outcome},
};

/// The object.
pub(crate) const NAME: &str = "kill";
/// Parties.
pub(crate) const PARTIES: usize = 4;

/// What the parties share.
#[derive(Debug, Default)]
pub(crate) struct BarrierBook {
    /// The calls.
    pub(crate) calls: Book<Party, u64>,
    gate: Mutex<Gate>,
}

/// Which generations are still entered.
#[derive(Debug, Default)]
struct Gate {
    entered: u64,
    closed: bool,
}

impl BarrierBook {
    /// From now on nobody enters a generation that nobody has entered before.
    pub(crate) fn close(&self) {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
    }

    /// Whether a party may wait in a generation.
    fn enter(&self, generation: u64) -> bool {
        let mut gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        if generation > gate.entered && gate.closed {
            return false;
        }
        gate.entered = gate.entered.max(generation);
        true
    }
}

/// Passes the barrier until the gate is closed.
pub(crate) async fn work(mut worker: Worker, book: Arc<BarrierBook>, party: Party) {
    let mut next = 0;
    while book.enter(next) {
        let barrier = BarrierStub::new(worker.session(), NAME);
        let outcome = worker.ask_in_turn(&book.calls, party, barrier.wait()).await;
        if let Outcome::Done(generation) = outcome {
            next = generation + 1;
        } else {
            // Its party may have been counted or not: the barrier says which generation is next.
            worker.renew().await;
            let barrier = BarrierStub::new(worker.session(), NAME);
            next = barrier.generations().await.unwrap_or(next);
        }
        worker.think().await;
    }
    worker.finish().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_gate_lets_the_others_catch_up_and_nobody_go_on() {
        let book = BarrierBook::default();
        assert!(book.enter(0) && book.enter(1));
        book.close();
        assert!(book.enter(1) && book.enter(0));
        assert!(!book.enter(2));
    }
}
