//! A call: checks against the interface, the object, the invocation, its first segment.

use std::sync::Arc;

use crate::{
    class::MethodKind,
    code::CodeHash,
    command::{OnBehalf, Place},
    engine::Engine,
    execute::Begin,
    machine::Machine,
    names::{AlarmId, InvocationId, MethodName, ObjectName, SessionId},
    outcome::CallError,
    planted::PlantedBug,
    state::{Frame, Invocation, Journal, Origin, Running, RunningMethod, Status},
    sum::Sum,
};

/// What a call asks for.
pub(crate) struct Call {
    pub(crate) object: ObjectName,
    pub(crate) method: MethodName,
    pub(crate) signature: u64,
    pub(crate) arguments: Vec<u8>,
}

/// What a call that may be made comes to.
#[derive(Clone, Copy)]
pub(crate) struct Callable {
    detached: bool,
    /// Code of the class now, whose method was found.
    pub(crate) code: CodeHash,
    method: RunningMethod,
}

/// Who makes it.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) origin: Origin,
    /// The session it runs under.
    pub(crate) session: Option<SessionId>,
    pub(crate) principal: Arc<str>,
}

impl Caller {
    /// Nobody: what the machine does by itself.
    pub(crate) fn scheduler() -> Self {
        Self { origin: Origin::Alarm(AlarmId(0)), session: None, principal: SCHEDULER.into() }
    }
}

impl<E: Engine> Machine<E> {
    pub(super) fn call(
        &mut self,
        place: Place,
        time_left: Option<u64>,
        on_behalf: OnBehalf,
        call: Call,
    ) {
        let id = self.world.state.next.take_invocation();
        if self.is_overridden(id) {
            return self.world.reply(place.session, place.number, Self::overridden());
        }
        let savepoint = self.world.savepoint();
        let made = self.check_call(&call, MethodKind::Update).and_then(|callable| {
            let caller = self.caller(place, on_behalf)?;
            self.find_or_create(&call.object, &caller, callable.code)?;
            Ok((callable, caller))
        });
        let (callable, caller) = match made {
            Ok(made) => made,
            Err(error) => {
                self.world.undo_to(savepoint);
                return self.world.reply(place.session, place.number, Err(error));
            }
        };
        let mut invocation = self.new_invocation(id, caller, call, Some(callable));
        let detached = callable.detached;
        invocation.detached = detached;
        let forgotten = self.world.planted.has(PlantedBug::DeadlineForgotten);
        if let (Some(time_left), false) = (time_left, detached || forgotten) {
            // Numbered now: of two alarms that are due at once the older goes off first.
            let alarm = self.world.state.next.take_alarm();
            invocation.running.deadline = Some((alarm, self.world.due_after(time_left)));
        }
        self.run_segment(invocation, Begin::Fresh(savepoint));
    }

    /// Who makes a call: the session that asked, or another one on whose behalf it did.
    fn caller(&self, place: Place, on_behalf: OnBehalf) -> Result<Caller, CallError> {
        let requester = self.requester(place);
        match on_behalf {
            OnBehalf::Requester => Ok(requester),
            OnBehalf::Nobody => Ok(Caller { session: None, ..requester }),
            OnBehalf::Session(session) => {
                let found = self.world.state.sessions.get(&session);
                let principal = &found.ok_or(CallError::SessionUnknown)?.principal;
                let principal = Arc::clone(principal);
                Ok(Caller { session: Some(session), principal, ..requester })
            }
        }
    }

    /// The session that asked.
    pub(super) fn requester(&self, place: Place) -> Caller {
        Caller {
            origin: Origin::Request { session: place.session, number: place.number },
            session: Some(place.session),
            principal: Arc::clone(&self.known_session(place).principal),
        }
    }

    /// Whether clients may make the call.
    pub(crate) fn check_call(&self, call: &Call, kind: MethodKind) -> Result<Callable, CallError> {
        let Call { object, method, signature, .. } = call;
        let class = &self.world.state.classes[&object.class];
        let Some(found) = class.interface.methods.get(method) else {
            let class = object.class.clone();
            return Err(CallError::MethodUnknown { class, method: method.clone() });
        };
        match found.kind {
            MethodKind::Handler | MethodKind::Init | MethodKind::Migrate => {
                return Err(CallError::NotCallable { method: method.clone() });
            }
            MethodKind::Read if kind != MethodKind::Read => {
                return Err(CallError::NotAnUpdate { method: method.clone() });
            }
            MethodKind::Update if kind != MethodKind::Update => {
                return Err(CallError::NotARead { method: method.clone() });
            }
            MethodKind::Update | MethodKind::Read => {}
        }
        if found.signature == *signature {
            let method = RunningMethod::of(&class.interface, found);
            Ok(Callable { detached: found.detached, code: class.code, method })
        } else {
            let (have, want) = (found.signature, *signature);
            Err(CallError::ClassMismatch { method: method.clone(), have, want })
        }
    }

    /// An invocation that has not begun, on an object that exists.
    pub(super) fn new_invocation(
        &mut self,
        id: InvocationId,
        caller: Caller,
        call: Call,
        callable: Option<Callable>,
    ) -> Invocation {
        self.statistics.invocations += 1;
        let mut invocation = self.frame_of(caller, call, callable);
        invocation.id = id;
        invocation.frame.journal = Journal::in_room(std::mem::take(&mut self.journal_room));
        invocation
    }

    /// A body's frame on an object that exists, in an invocation that nothing can refer to: as it
    /// is, it serves `init` and reads. What was found when the call was checked is not looked up again,
    /// if the object is of that code.
    pub(crate) fn frame_of(
        &self,
        caller: Caller,
        call: Call,
        callable: Option<Callable>,
    ) -> Invocation {
        let Caller { origin, session, principal } = caller;
        let state = &self.world.state;
        let found = state.objects.get_key_value(&call.object);
        let (name, object) = found.expect("only on an object that is there");
        let callable = callable.filter(|callable| callable.code == object.code);
        let known = callable.map(|callable| callable.method);
        let (method, known) = match known {
            Some(known) if !call.method.is_allocated() => (call.method, Some(known)),
            _ => self.find_method(name, object.code, call.method),
        };
        // What a million callers have in common is there once: long names are those of the state.
        let frame = Frame {
            incarnation: object.incarnation,
            code: object.code,
            object: name.clone(),
            method,
            arguments: call.arguments,
            memory: state.limits().memory_bytes,
            journal: Journal::default(),
        };
        Invocation {
            id: InvocationId(0),
            origin,
            session,
            principal,
            frame,
            detached: false,
            deadline: None,
            permits: Vec::new(),
            status: Status::Running,
            cancelled: None,
            started: self.world.state.now,
            sum: Sum::default(),
            running: Running { never_blocked: true, method: known, ..Running::default() },
        }
    }

    /// The name of a method as the state has it, and what it is, if the code of an object has it.
    fn find_method(
        &self,
        object: &ObjectName,
        code: CodeHash,
        method: MethodName,
    ) -> (MethodName, Option<RunningMethod>) {
        let interface = self.world.state.classes[&object.class].interface_of(code);
        let found = interface.and_then(|interface| {
            let (name, method) = interface.methods.get_key_value(&method)?;
            Some((name.clone(), Some(RunningMethod::of(interface, method))))
        });
        found.unwrap_or((method, None))
    }

    /// Runs a handler, for a timer or watch whose object is there.
    pub(super) fn run_handler(&mut self, alarm: AlarmId, call: Call) {
        let id = self.world.state.next.take_invocation();
        if self.is_overridden(id) {
            return;
        }
        let savepoint = self.world.savepoint();
        let caller = Caller { origin: Origin::Alarm(alarm), ..Caller::scheduler() };
        if let Err(error) = self.bring_up_to_date(&call.object, &caller) {
            self.world.undo_to(savepoint);
            let mut invocation = self.new_invocation(id, caller, call, None);
            return self.end_invocation(&mut invocation, Err(error));
        }
        let invocation = self.new_invocation(id, caller, call, None);
        self.run_segment(invocation, Begin::Fresh(savepoint));
    }
}

/// The principal of handlers. No client may have it: whoever opens sessions for clients refuses
/// names that begin with `:`.
const SCHEDULER: &str = ":scheduler";
