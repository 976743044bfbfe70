//! How segments end other than by blocking, and what becomes of the invocation then.
//!
//! Invariant: an invocation ends once; then its owned permits are given back, newest first, its
//! deadline is gone, and its caller is told.

use crate::{
    class::MethodKind,
    engine::{End, Engine, Turn},
    execute::{Segment, segment::step_budget},
    host_call::Holder,
    limits::within,
    machine::Machine,
    names::MethodName,
    outcome::{CallError, Forbidden, LimitExceeded, Outcome, Trap},
    planted::PlantedBug,
    state::{Invocation, Journal, Origin},
};

impl<E: Engine> Machine<E> {
    /// Ends a segment. Some when the invocation continues with another method at once.
    pub(super) fn finish(
        &mut self,
        invocation: &mut Invocation,
        segment: &Segment,
        end: End,
    ) -> Option<(Segment, Turn)> {
        let outcome = match self.check_end(invocation, segment, end) {
            End::Continue { method, arguments } => {
                self.world.commit();
                return Some(self.continue_with(invocation, segment, method, arguments));
            }
            End::Returned(result) => Ok(result),
            End::Failed(error) => Err(CallError::Failed(error)),
            End::Cancelled => Err(match invocation.cancelled {
                Some(reason) => CallError::Cancelled(reason),
                None => CallError::Failed(Vec::new()),
            }),
            End::Aborted(error) => {
                self.undo(invocation, segment);
                Err(CallError::Aborted(error))
            }
            End::Trapped(trap) => {
                self.undo(invocation, segment);
                Err(match invocation.cancelled {
                    Some(reason) => CallError::CleanupFailed { reason, trap },
                    None => CallError::Trapped(trap),
                })
            }
        };
        self.world.commit();
        self.end_invocation(invocation, outcome);
        None
    }

    /// An end that breaks a rule is a trap.
    fn check_end(&self, invocation: &Invocation, segment: &Segment, end: End) -> End {
        let limit = self.world.state.limits().reply_bytes;
        let checked = match &end {
            End::Returned(bytes) | End::Failed(bytes) | End::Aborted(bytes) => {
                within("reply_bytes", limit, bytes.len() as u64).map_err(Trap::Limit)
            }
            End::Continue { method, arguments } => {
                self.check_continue(invocation, segment, method, arguments)
            }
            End::Trapped(Trap::OutOfFuel(_)) => Err(self.out_of_fuel(invocation, segment)),
            End::Cancelled | End::Trapped(_) => Ok(()),
        };
        match checked {
            Ok(()) => end,
            Err(trap) => End::Trapped(trap),
        }
    }

    /// Says which budget was used up: that of the segment, or what was left of a wider one.
    fn out_of_fuel(&self, invocation: &Invocation, segment: &Segment) -> Trap {
        let limits = self.world.state.limits();
        if segment.fuel == limits.fuel_per_segment {
            return Trap::OutOfFuel(segment.fuel);
        }
        let (name, limit) = step_budget(limits, invocation.cancelled.is_some());
        Trap::StepBudget(LimitExceeded::new(name, limit))
    }

    fn check_continue(
        &self,
        invocation: &Invocation,
        segment: &Segment,
        method: &MethodName,
        arguments: &[u8],
    ) -> Result<(), Trap> {
        if !matches!(segment.kind, MethodKind::Update | MethodKind::Handler) {
            return Err(Trap::Forbidden(Forbidden::ContinueHere));
        }
        let limit = self.world.state.limits().argument_bytes;
        within("argument_bytes", limit, arguments.len() as u64)?;
        match self.world.state.interface_of(&invocation.frame).methods.get(method) {
            Some(target) if target.kind.can_be_continued_with() => Ok(()),
            _ => Err(Trap::TargetUnknown(method.clone())),
        }
    }

    /// Starts another method in the same invocation with an empty journal: a new segment.
    fn continue_with(
        &mut self,
        invocation: &mut Invocation,
        segment: &Segment,
        method: MethodName,
        arguments: Vec<u8>,
    ) -> (Segment, Turn) {
        invocation.frame.method = method;
        invocation.frame.arguments = arguments;
        invocation.frame.memory = self.world.state.limits().memory_bytes;
        invocation.frame.journal = Journal::default();
        invocation.running.method = None;
        let mut next = Segment {
            kind: segment.kind,
            savepoint: self.world.savepoint(),
            grant: None,
            activation: self.live.fresh(),
            fuel: 0,
        };
        let turn = match self.grant_fuel(invocation) {
            Ok(fuel) => {
                next.fuel = fuel;
                self.start_body(invocation, next.activation, fuel)
            }
            Err(trap) => Turn::End(End::Trapped(trap), 0),
        };
        (next, turn)
    }

    /// Undoes a segment exactly, and passes on the permit in flight that resumed it.
    pub(crate) fn undo(&mut self, invocation: &Invocation, segment: &Segment) {
        self.statistics.undone_segments += 1;
        self.world.undo_to(segment.savepoint);
        let lost = self.world.planted.has(PlantedBug::PermitLostOnUndo);
        if let (Some(semaphore), false) = (&segment.grant, lost) {
            self.world.pass_on(&invocation.frame.object, semaphore);
        }
    }

    /// Gives back what an invocation owns and tells its caller.
    pub(crate) fn end_invocation(&mut self, invocation: &mut Invocation, outcome: Outcome) {
        let lost = self.world.planted.has(PlantedBug::PermitLostOnCancel);
        for permit in std::mem::take(&mut invocation.permits).into_iter().rev() {
            let owned = self.world.state.permits.get(&permit);
            if owned.is_some_and(|owned| owned.holder == Holder::Invocation(invocation.id)) {
                if lost && invocation.cancelled.is_some() {
                    self.world.drop_permit(permit);
                    continue;
                }
                self.world.release(permit);
            }
        }
        if let Some(deadline) = invocation.deadline.take() {
            self.world.cancel_alarm(deadline);
        }
        if let Some(lender) = invocation.lender()
            && let Some(session) = self.world.state.session_mut(&lender)
        {
            session.lent.remove(&invocation.id);
        }
        self.world.commit();
        self.journal_room = std::mem::take(&mut invocation.frame.journal).into_room();
        match invocation.origin {
            Origin::Request { session, number } => self.world.reply(session, number, outcome),
            Origin::Alarm(alarm) => {
                if let Err(
                    CallError::Trapped(trap)
                    | CallError::CleanupFailed { trap, .. }
                    | CallError::MigrateFailed(trap),
                ) = outcome
                {
                    self.keep_fault(alarm, &invocation.frame, trap);
                }
            }
        }
    }
}
