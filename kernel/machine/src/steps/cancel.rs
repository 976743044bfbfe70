//! Cancelling: a blocked invocation leaves its queue and cleans up in one last segment.
//!
//! Cancellations are steps or begin one, and between steps no permit is in flight. So cancelling
//! beats every grant that was not resumed, and a permit never has to be taken back.

use crate::{
    command::Place,
    engine::Engine,
    machine::Machine,
    names::InvocationId,
    outcome::{CallError, CancelReason},
    planted::PlantedBug,
    state::{Blocked, Open, Status, WakeUp},
    steps::admission::Standing,
};

impl<E: Engine> Machine<E> {
    /// A client gives up a request. One that was not admitted is now, with this outcome, so that
    /// it can never run later.
    pub(super) fn cancel_request(&mut self, place: Place) {
        match self.standing(place) {
            Standing::Next => {
                if let Err(refusal) = self.check_replies(place) {
                    return self.refuse(place.session, place.number, refusal);
                }
                self.admit(place);
                let outcome = Err(CallError::Cancelled(CancelReason::Caller));
                self.world.reply(place.session, place.number, outcome);
            }
            Standing::Open => match self.session(place).open[&place.number] {
                Open::Invocation(id) => self.cancel_by_caller(id),
                Open::PutClass => {
                    self.forget_put(place);
                    let outcome = Err(CallError::Cancelled(CancelReason::Caller));
                    self.world.reply(place.session, place.number, outcome);
                }
            },
            Standing::Answered => self.send_again(place),
            Standing::Refused(refusal) => self.refuse(place.session, place.number, refusal),
        }
    }

    fn cancel_by_caller(&mut self, id: InvocationId) {
        if !self.world.state.invocations[&id].detached {
            self.leave_for_cleanup(id, CancelReason::Caller);
            self.go_on(id);
        }
    }

    /// An operator ends an invocation, detached or not.
    pub(super) fn kill(&mut self, place: Place, id: InvocationId) {
        let outcome = if self.world.state.invocations.contains_key(&id) {
            self.leave_for_cleanup(id, CancelReason::Operator);
            self.go_on(id);
            Ok(Vec::new())
        } else {
            Err(CallError::InvocationUnknown)
        };
        self.world.reply(place.session, place.number, outcome);
    }

    /// The step of a deadline.
    pub(super) fn deadline(&mut self, id: InvocationId) {
        let invocation = self.world.state.invocations.get_mut(&id);
        let invocation = invocation.expect("an invocation that ends cancels its deadline");
        std::sync::Arc::make_mut(invocation).deadline = None;
        self.leave_for_cleanup(id, CancelReason::Deadline);
        self.go_on(id);
    }

    /// The step of the end of a timed wait.
    pub(super) fn wait_timeout(&mut self, id: InvocationId) {
        self.leave(id, |mut blocked| {
            blocked.timeout = None;
            WakeUp::TimedOut(blocked)
        });
        self.go_on(id);
    }

    /// Takes a blocked invocation from its queue, to clean up next.
    pub(crate) fn leave_for_cleanup(&mut self, id: InvocationId, reason: CancelReason) {
        self.leave(id, WakeUp::Cancelled);
        let mut invocation = self.world.take_invocation(id).expect("it was just put there");
        invocation.cancelled = Some(reason);
        self.world.put_invocation(invocation);
    }

    fn leave(&mut self, id: InvocationId, wake_up: impl FnOnce(Blocked) -> WakeUp) {
        let mut invocation = self.world.take_invocation(id).expect("only what waits leaves");
        let object = invocation.frame.object.clone();
        let blocked = match std::mem::replace(&mut invocation.status, Status::Running) {
            Status::Blocked(blocked) => {
                if !self.world.planted.has(PlantedBug::CancelledStaysQueued) {
                    self.world.leave_queue(&object, &blocked.semaphore, blocked.ticket);
                }
                if let Some(timeout) = blocked.timeout {
                    self.world.drop_alarm(timeout);
                }
                blocked
            }
            status => panic!("invocation {id} does not wait: {status:?}"),
        };
        invocation.status = Status::Ready(wake_up(blocked));
        self.world.put_invocation(invocation);
    }
}
