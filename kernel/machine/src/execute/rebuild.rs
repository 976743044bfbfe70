//! Rebuilding a blocked body from its journal, and dropping bodies that can be rebuilt.
//!
//! Invariant: a body that is run again with the answers of its journal makes the same calls and
//! reaches the same `P`. A replica on which it does not is broken and stops.

use crate::{
    engine::{ActivationId, Engine, Turn},
    machine::Machine,
    names::InvocationId,
    state::{Blocked, Invocation, WakeUp, checksum},
    world::wait_of,
};

/// Fuel of a replay: it was paid for when it ran first.
const REPLAY_FUEL: u64 = u64::MAX / 4;

impl<E: Engine> Machine<E> {
    /// The activation of a blocked invocation, rebuilt if it was dropped.
    pub(crate) fn activation_of(
        &mut self,
        invocation: &Invocation,
        wake_up: &WakeUp,
    ) -> ActivationId {
        match self.live.take(invocation.id) {
            Some(activation) => activation,
            None => self.rebuild(invocation, wait_of(wake_up)),
        }
    }

    fn rebuild(&mut self, invocation: &Invocation, blocked: &Blocked) -> ActivationId {
        let id = invocation.id;
        let activation = self.live.fresh();
        let mut journal = invocation.frame.journal.reader();
        let mut turn = self.start_body(invocation, activation, REPLAY_FUEL);
        self.statistics.rebuilt += 1;
        loop {
            let Turn::Call(call, left) = turn else {
                panic!(
                    "invocation {id} ended in its replay: {turn:?}; its code is not deterministic"
                );
            };
            self.spent += REPLAY_FUEL - left.min(REPLAY_FUEL);
            let Some((recorded, answer)) = journal.next() else {
                assert_eq!(
                    checksum(&call),
                    blocked.checksum,
                    "invocation {id} reached another wait in its replay: {call:?}"
                );
                return activation;
            };
            assert_eq!(
                checksum(&call),
                recorded,
                "invocation {id} made another call in its replay: {call:?}"
            );
            turn = self.engine.resume(activation, &answer, REPLAY_FUEL);
        }
    }

    /// Drops the instance of a blocked invocation, if there is one.
    pub(crate) fn drop_activation(&mut self, id: InvocationId) {
        if let Some(activation) = self.live.take(id) {
            self.engine.discard(activation);
        }
    }
}
