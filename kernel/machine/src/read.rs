//! Reads: methods that change nothing run against the state as it is, without an entry in the log.
//!
//! Invariants: a read sees the state between entries; it leaves no trace in it; one that writes,
//! blocks or draws is a trap. Which states are recent enough is for the server to decide.

use crate::{
    aside::Aside,
    class::MethodKind,
    command::Read,
    engine::{End, Engine},
    execute::{Performed, Segment},
    host_call::{Answer, HostCall},
    limits::within,
    machine::Machine,
    names::{AlarmId, SessionId},
    outcome::{CallError, Forbidden, Outcome, Refusal, Trap},
    state::{ClassStatus, Invocation, Origin},
    steps::{Call, Caller},
};

impl<E: Engine> Machine<E> {
    /// Runs a read.
    ///
    /// # Errors
    /// A [`Refusal`] when it cannot be served yet: the update it follows is not admitted here, or
    /// its class cannot be called.
    ///
    /// # Panics
    /// When the machine is not idle: the caller runs it first.
    pub fn read(&mut self, read: Read) -> Result<Outcome, Refusal> {
        assert!(self.is_idle(), "reads see whole entries");
        if self.world.state.genesis.is_none() {
            return Err(Refusal::ClassUnknown { class: read.object.class });
        }
        if let Some((session, number)) = read.after {
            self.check_follows(session, number)?;
        }
        let class = read.object.class.clone();
        match self.world.state.classes.get(&class).map(|class| &class.status) {
            None => return Err(Refusal::ClassUnknown { class }),
            Some(ClassStatus::Pending { .. }) => return Err(Refusal::ClassPending { class }),
            Some(ClassStatus::Ready) => {}
        }
        if self.is_out_of_date(&read.object) {
            return match self.try_migration(&read.object) {
                Ok(()) => Err(Refusal::MigrationPending { object: read.object }),
                Err(error) => Ok(Err(error)),
            };
        }
        self.statistics.reads += 1;
        Ok(self.run_read(read))
    }

    fn check_follows(&self, session: SessionId, number: u64) -> Result<(), Refusal> {
        let session = self.world.state.sessions.get(&session).ok_or(Refusal::SessionUnknown)?;
        let last = session.last_admitted;
        if last >= number { Ok(()) } else { Err(Refusal::OutOfOrder { last }) }
    }

    fn run_read(&mut self, read: Read) -> Outcome {
        let caller = Caller {
            origin: match read.after {
                Some((session, number)) => Origin::Request { session, number },
                None => Origin::Alarm(AlarmId(0)),
            },
            session: read.after.map(|(session, _)| session),
            principal: read.principal.into(),
        };
        let limits = self.world.state.limits();
        within("argument_bytes", limits.argument_bytes, read.arguments.len() as u64)
            .map_err(CallError::Limit)?;
        let (fuel, reply_bytes) = (limits.fuel_per_segment, limits.reply_bytes);
        let call = Call {
            object: read.object,
            method: read.method,
            signature: read.signature,
            arguments: read.arguments,
        };
        let callable = self.check_call(&call, MethodKind::Read)?;
        if self.world.state.objects.contains_key(&call.object) {
            return self.read_object(caller, call, fuel, reply_bytes);
        }
        if !self.world.state.classes[&call.object.class].interface.transient {
            return Err(CallError::ObjectUnknown);
        }
        // A transient object that is not there is as `init` leaves it: it is read as that, on a copy.
        let mut copy = Aside::of(self);
        self.aside(&mut copy, |machine| {
            machine.find_or_create(&call.object, &caller, callable.code)?;
            machine.read_object(caller, call, fuel, reply_bytes)
        })
    }

    fn read_object(&mut self, caller: Caller, call: Call, fuel: u64, reply_bytes: u64) -> Outcome {
        let mut invocation = self.frame_of(caller, call, None);
        let segment = Segment {
            kind: MethodKind::Read,
            savepoint: self.world.savepoint(),
            grant: None,
            activation: self.live.fresh(),
            fuel,
        };
        let turn = self.start_body(&invocation, segment.activation, fuel);
        let end = self.run_unblocking(&mut invocation, &segment, turn);
        // A read's log lines are of interest to nobody else than who reads them in a test.
        self.world.staged.clear();
        self.world.commit();
        match end {
            End::Returned(result) => {
                match within("reply_bytes", reply_bytes, result.len() as u64) {
                    Ok(()) => Ok(result),
                    Err(limit) => Err(CallError::Trapped(Trap::Limit(limit))),
                }
            }
            End::Failed(error) => Err(CallError::Failed(error)),
            End::Cancelled => Err(CallError::Failed(Vec::new())),
            End::Aborted(error) => Err(CallError::Aborted(error)),
            End::Continue { .. } => {
                Err(CallError::Trapped(Trap::Forbidden(Forbidden::ContinueHere)))
            }
            End::Trapped(trap) => Err(CallError::Trapped(trap)),
        }
    }

    /// Performs a host call of a body that may not block.
    pub(crate) fn answer_unblocking(
        &mut self,
        invocation: &mut Invocation,
        segment: &Segment,
        call: HostCall,
    ) -> Result<Answer, Trap> {
        match self.perform(invocation, segment, call, 0)? {
            Performed::Answer(answer) => Ok(answer),
            Performed::Block(_) => panic!("init and reads are trapped before they block"),
        }
    }
}
