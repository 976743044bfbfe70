//! One segment: from the start or a resumption of a body to its next suspension or its end.
//!
//! Invariant: a segment's changes stand as a whole or not at all. The permit in flight that resumed
//! it is part of it: where the segment is undone, the permit is passed on.

use std::sync::Arc;

use crate::{
    class::MethodKind,
    engine::{ActivationId, End, Engine, Entry, Turn},
    execute::perform::Performed,
    host_call::{Answer, HostCall, PAnswer, PermitOwner},
    limits::{Limits, within},
    machine::Machine,
    names::InvocationId,
    outcome::{LimitExceeded, Trap},
    planted::PlantedBug,
    state::{Alarm, AlarmAction, Blocked, Invocation, Open, Origin, Status, WakeUp, checksum},
    world::{Savepoint, World},
};

/// How a segment begins.
pub(crate) enum Begin {
    /// The body starts. Changes since the savepoint (a new object) are part of the segment.
    Fresh(Savepoint),
    /// The body goes on.
    Woken(WakeUp),
}

/// What holds for one segment.
pub(crate) struct Segment {
    pub(crate) kind: MethodKind,
    pub(crate) savepoint: Savepoint,
    /// Semaphore of the permit in flight that resumed it.
    pub(crate) grant: Option<Arc<[u8]>>,
    pub(crate) activation: ActivationId,
    /// Fuel that was granted for it.
    pub(crate) fuel: u64,
}

impl<E: Engine> Machine<E> {
    /// Gives the processor to the next of the ready list.
    pub(crate) fn go_on(&mut self, id: InvocationId) {
        let mut invocation = self.world.take_invocation(id).expect("who is ready has not ended");
        if self.is_overridden(id) {
            return self.end_overridden(invocation);
        }
        let status = std::mem::replace(&mut invocation.status, Status::Running);
        let Status::Ready(wake_up) = status else {
            panic!("invocation {id} is in the ready list and not ready");
        };
        self.run_segment(invocation, Begin::Woken(wake_up));
    }

    /// Runs a segment to its end, and the segments that it continues with.
    pub(crate) fn run_segment(&mut self, mut invocation: Invocation, begin: Begin) {
        let kind = self.world.touch_for(&invocation);
        let (savepoint, wake_up) = match begin {
            Begin::Fresh(savepoint) => (savepoint, None),
            Begin::Woken(wake_up) => (self.world.savepoint(), Some(wake_up)),
        };
        let grant = match &wake_up {
            Some(WakeUp::Granted(blocked)) => Some(blocked.semaphore.clone()),
            _ => None,
        };
        let activation = match &wake_up {
            Some(wake_up) => self.activation_of(&invocation, wake_up),
            None => self.live.fresh(),
        };
        let mut segment = Segment { kind, savepoint, grant, activation, fuel: 0 };
        let turn = match self.grant_fuel(&mut invocation) {
            Err(trap) => {
                if wake_up.is_some() {
                    self.engine.discard(activation);
                }
                Turn::End(End::Trapped(trap), 0)
            }
            Ok(fuel) => {
                segment.fuel = fuel;
                match wake_up {
                    None => self.start_body(&invocation, activation, fuel),
                    Some(wake_up) => self.resume_body(&mut invocation, &segment, wake_up),
                }
            }
        };
        self.follow(invocation, segment, turn);
    }

    /// Answers host calls until the body blocks or ends.
    fn follow(&mut self, mut invocation: Invocation, mut segment: Segment, mut turn: Turn) {
        loop {
            turn = match turn {
                Turn::Call(call, left) => match self.answer(&mut invocation, &segment, call) {
                    Ok(Performed::Answer(answer)) => {
                        self.engine.resume(segment.activation, &answer, left)
                    }
                    Ok(Performed::Block(blocked)) => {
                        self.charge(&mut invocation, &segment, left);
                        return self.suspend(invocation, &segment, blocked);
                    }
                    Err(trap) => {
                        self.engine.discard(segment.activation);
                        Turn::End(End::Trapped(trap), left)
                    }
                },
                Turn::End(end, left) => {
                    self.charge(&mut invocation, &segment, left);
                    match self.finish(&mut invocation, &segment, end) {
                        None => return,
                        Some((next, first)) => {
                            segment = next;
                            first
                        }
                    }
                }
            };
        }
    }

    /// Counts the fuel that a segment has used up.
    fn charge(&mut self, invocation: &mut Invocation, segment: &Segment, left: u64) {
        let used = segment.fuel - left.min(segment.fuel);
        invocation.running.fuel += used;
        self.spent += used;
        self.metered += used;
    }

    /// Performs a host call and records it.
    fn answer(
        &mut self,
        invocation: &mut Invocation,
        segment: &Segment,
        call: HostCall,
    ) -> Result<Performed, Trap> {
        let planted = self.world.planted;
        // A clean-up cannot block, so that nothing of it is ever replayed.
        let recorded = invocation.cancelled.is_none()
            && matches!(segment.kind, MethodKind::Update | MethodKind::Handler)
            && !(planted.has(PlantedBug::JournalSkipsCall) && matches!(call, HostCall::Token));
        let forgotten =
            planted.has(PlantedBug::JournalForgetsAnswer) && matches!(call, HostCall::Token);
        let checksum = if recorded { checksum(&call) } else { 0 };
        let performed = self.perform(invocation, segment, call, checksum)?;
        if let (true, Performed::Answer(answer)) = (recorded, &performed) {
            let answer = if forgotten { &Answer::Number(0) } else { answer };
            self.record_answer(invocation, checksum, answer)?;
        }
        Ok(performed)
    }

    fn record_answer(
        &self,
        invocation: &mut Invocation,
        checksum: u64,
        answer: &Answer,
    ) -> Result<(), Trap> {
        let journal = &mut invocation.frame.journal;
        journal.record(checksum, answer);
        let limit = self.world.state.limits().journal_bytes;
        Ok(within("journal_bytes", limit, journal.len())?)
    }

    /// Fuel for the next segment of an invocation in this step.
    pub(crate) fn grant_fuel(&self, invocation: &mut Invocation) -> Result<u64, Trap> {
        let limits = self.world.state.limits();
        let running = &mut invocation.running;
        if running.step != self.world.state.step {
            running.step = self.world.state.step;
            running.fuel = 0;
            running.segments = 0;
        }
        running.segments = running.segments.saturating_add(1);
        let exceeded = |name, limit| Trap::StepBudget(LimitExceeded::new(name, limit));
        if u64::from(running.segments) > limits.segments_per_step {
            return Err(exceeded("segments_per_step", limits.segments_per_step));
        }
        let (name, budget) = step_budget(limits, invocation.cancelled.is_some());
        match budget.saturating_sub(running.fuel) {
            0 => Err(exceeded(name, budget)),
            left => Ok(left.min(limits.fuel_per_segment)),
        }
    }

    /// Starts the body of a frame. The engine gets nothing that is not in the frame, so that the
    /// body runs alike whenever it is started again.
    pub(crate) fn start_body(
        &mut self,
        invocation: &Invocation,
        activation: ActivationId,
        fuel: u64,
    ) -> Turn {
        let frame = &invocation.frame;
        let entry = Entry {
            code: frame.code,
            method: &frame.method,
            arguments: &frame.arguments,
            memory: if self.world.planted.has(PlantedBug::MemoryOfTheMoment) {
                self.world.state.limits().memory_bytes
            } else {
                frame.memory
            },
        };
        self.engine.start(activation, entry, fuel)
    }

    /// Answers the `P` that a body waits in.
    fn resume_body(
        &mut self,
        invocation: &mut Invocation,
        segment: &Segment,
        wake_up: WakeUp,
    ) -> Turn {
        let (answer, blocked) = match wake_up {
            WakeUp::Granted(blocked) => (self.use_grant(invocation, &blocked), blocked),
            WakeUp::TimedOut(blocked) if self.world.planted.has(PlantedBug::TimeoutGrants) => {
                (Ok(PAnswer::Granted), blocked)
            }
            WakeUp::TimedOut(blocked) => (Ok(PAnswer::TimedOut), blocked),
            WakeUp::Cancelled(blocked) => (Ok(PAnswer::Cancelled), blocked),
        };
        if invocation.cancelled.is_some() {
            self.statistics.cancellations += 1;
        } else {
            self.statistics.resumptions += 1;
        }
        let got = matches!(answer, Ok(PAnswer::Granted | PAnswer::Owned(_)));
        invocation.running.woken_in_vain = (!got).then(|| blocked.semaphore.clone());
        let answer = answer.map(Answer::P).and_then(|answer| {
            if invocation.cancelled.is_none() {
                self.record_answer(invocation, blocked.checksum, &answer)?;
            }
            Ok(answer)
        });
        match answer {
            Ok(answer) => self.engine.resume(segment.activation, &answer, segment.fuel),
            Err(trap) => {
                self.engine.discard(segment.activation);
                Turn::End(End::Trapped(trap), segment.fuel)
            }
        }
    }

    /// Turns a permit in flight into the answer of the `P` that waited for it. A session that ended
    /// meanwhile owns nothing: its permit goes to the next.
    fn use_grant(
        &mut self,
        invocation: &mut Invocation,
        blocked: &Blocked,
    ) -> Result<PAnswer, Trap> {
        let object = invocation.frame.object.clone();
        let session = self.session_of(invocation);
        match World::holder(blocked.owner, invocation.id, session) {
            None if blocked.owner == PermitOwner::Nobody => Ok(PAnswer::Granted),
            None => {
                self.world.pass_on(&object, &blocked.semaphore);
                Ok(PAnswer::SessionOver)
            }
            Some(holder) => {
                self.world.check_permit(&object)?;
                let permit = self.world.own_permit(&object, &blocked.semaphore, holder);
                if blocked.owner == PermitOwner::Invocation {
                    invocation.permits.push(permit);
                }
                Ok(PAnswer::Owned(permit))
            }
        }
    }

    /// Ends a segment that blocks: what it did stands, others see it.
    fn suspend(&mut self, mut invocation: Invocation, segment: &Segment, blocked: Blocked) {
        let id = invocation.id;
        if std::mem::take(&mut invocation.running.never_blocked) {
            self.statistics.blocked_invocations += 1;
            self.enter_state(&mut invocation);
        }
        if invocation.running.woken_in_vain.take().is_some_and(|last| last == blocked.semaphore) {
            self.statistics.wakeups_in_vain += 1;
        }
        let permits = &self.world.state.permits;
        invocation.permits.retain(|permit| permits.contains_key(permit));
        invocation.frame.journal.seal();
        invocation.status = Status::Blocked(blocked);
        self.world.commit();
        self.world.put_invocation(invocation);
        self.live.insert(id, segment.activation);
        while self.live.len() > self.settings.live_activations {
            let oldest = self.live.oldest().expect("there are too many, so there is one");
            self.drop_activation(oldest);
            self.statistics.parked += 1;
        }
    }

    /// What the first block of an invocation adds to the state beside itself: its request is open,
    /// and its deadline can pass. One that ends in its first segment has neither.
    fn enter_state(&mut self, invocation: &mut Invocation) {
        let id = invocation.id;
        if let Some((alarm, due)) = invocation.running.deadline.take() {
            let (object, action) = (invocation.frame.object.clone(), AlarmAction::Deadline(id));
            self.world.insert_alarm(alarm, Alarm { due: Some(due), object, action });
            invocation.deadline = Some(alarm);
        }
        if let Origin::Request { session, number } = invocation.origin {
            let session = self.world.state.session_mut(&session);
            let session = session.expect("a session does not end while a request of it begins");
            session.open.insert(number, Open::Invocation(id));
        }
        if let Some(lender) = invocation.lender() {
            let session = self.world.state.session_mut(&lender);
            let session = session.expect("a session does not end while a call for it begins");
            session.lent.insert(id);
        }
    }

    /// The session that an invocation runs under, if it has one and that lives.
    pub(crate) fn session_of(&self, invocation: &Invocation) -> Option<crate::names::SessionId> {
        invocation.session.filter(|session| self.world.state.sessions.contains_key(session))
    }
}

/// Fuel that an invocation has in one step, and the name of that limit.
pub(super) const fn step_budget(limits: &Limits, cancelled: bool) -> (&'static str, u64) {
    if cancelled {
        ("fuel_per_cleanup", limits.fuel_per_cleanup)
    } else {
        ("fuel_per_step", limits.fuel_per_step)
    }
}
