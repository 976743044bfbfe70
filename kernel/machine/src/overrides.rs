//! Overrides: the operators of a group end an invocation that cannot be run.
//!
//! The case for it: a step that the replicas do not run alike, or that stops each of them whenever
//! it is run again. All replicas are given the same override, and start from before that step. Where
//! the invocation would go on in it, it ends instead, as if an operator had killed it, and nothing
//! of it runs.
//! Invariants: an override is named by step and invocation, so it happens at one place of the log
//! on all replicas; a replica that lacks it has diverged, and the votes say so.
//! Source: design of gesmas, section 4, point 13.

use crate::{
    engine::Engine,
    machine::Machine,
    names::{InvocationId, Step},
    outcome::{CallError, CancelReason, Outcome},
    state::{Invocation, Status, WakeUp},
};

/// An invocation that ends at a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Override {
    /// The step.
    pub step: Step,
    /// The invocation, which begins or goes on in that step.
    pub invocation: InvocationId,
}

impl<E: Engine> Machine<E> {
    /// Gives the machine its overrides, in place of those it had. Equal on all replicas of a group.
    pub fn set_overrides(&mut self, overrides: Vec<Override>) {
        self.overrides = overrides;
    }

    /// Whether an invocation ends in this step instead of going on.
    pub(crate) fn is_overridden(&self, invocation: InvocationId) -> bool {
        let step = self.world.state.step;
        self.overrides.contains(&Override { step, invocation })
    }

    /// The end of an invocation that is overridden.
    pub(crate) const fn overridden() -> Outcome {
        Err(CallError::Cancelled(CancelReason::Operator))
    }

    /// Ends an invocation whose turn it is. A permit that it was granted goes to the next.
    pub(crate) fn end_overridden(&mut self, mut invocation: Invocation) {
        self.drop_activation(invocation.id);
        self.world.touch(&invocation.frame.object);
        if let Status::Ready(WakeUp::Granted(blocked)) = &invocation.status {
            self.world.pass_on(&invocation.frame.object, &blocked.semaphore);
        }
        self.end_invocation(&mut invocation, Self::overridden());
    }
}
