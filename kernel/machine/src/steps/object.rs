//! Objects come and go: created explicitly or by a call, removed, vanished.
//!
//! Invariants: an object exists only if its `init` has returned; what belongs to an incarnation
//! goes with it.

use crate::{
    class::MethodKind,
    code::CodeHash,
    command::Place,
    engine::{End, Engine, Turn},
    execute::Segment,
    limits::within,
    machine::Machine,
    names::{InvocationId, MethodName, ObjectName},
    outcome::{CallError, Trap},
    state::{Invocation, Object, Status},
    steps::{Call, Caller, Task},
};

impl<E: Engine> Machine<E> {
    pub(super) fn create_object(
        &mut self,
        place: Place,
        object: ObjectName,
        signature: u64,
        arguments: Vec<u8>,
    ) {
        let savepoint = self.world.savepoint();
        let made = match self.world.state.objects.get(&object) {
            Some(existing) if existing.created_with == CodeHash::of(&arguments) => Ok(()),
            Some(_) => Err(CallError::ObjectExists),
            None => self.check_init(&object, signature).and_then(|init| {
                let caller = self.requester(place);
                self.make(&object, init, arguments, &caller)
            }),
        };
        if made.is_err() {
            self.world.undo_to(savepoint);
        }
        self.world.commit();
        self.world.touch(&object);
        self.world.reply(place.session, place.number, made.map(|()| Vec::new()));
    }

    /// The object of a call: there, or created because its `init` takes nothing. `code` is that of its
    /// class.
    pub(crate) fn find_or_create(
        &mut self,
        object: &ObjectName,
        caller: &Caller,
        code: CodeHash,
    ) -> Result<(), CallError> {
        match self.world.state.objects.get(object) {
            Some(found) if found.code == code => return Ok(()),
            Some(_) => return self.bring_up_to_date(object, caller),
            None => {}
        }
        let class = &self.world.state.classes[&object.class];
        let init = match class.interface.init() {
            None => None,
            Some((name, init)) if init.parameters == 0 => Some(name.clone()),
            Some(_) => return Err(CallError::ObjectUnknown),
        };
        self.make(object, init, Vec::new(), caller)
    }

    fn check_init(
        &self,
        object: &ObjectName,
        signature: u64,
    ) -> Result<Option<MethodName>, CallError> {
        let class = &self.world.state.classes[&object.class];
        let Some((name, init)) = class.interface.init() else {
            return Ok(None);
        };
        if init.signature == signature {
            return Ok(Some(name.clone()));
        }
        let method = name.clone();
        Err(CallError::ClassMismatch { method, have: init.signature, want: signature })
    }

    /// Makes an object and runs its `init`; the caller undoes it where that fails.
    fn make(
        &mut self,
        name: &ObjectName,
        init: Option<MethodName>,
        arguments: Vec<u8>,
        caller: &Caller,
    ) -> Result<(), CallError> {
        let state = &mut self.world.state;
        let objects = state.objects.len() as u64 + 1;
        within("objects", state.limits().objects, objects).map_err(CallError::Limit)?;
        let incarnation = state.next.take_incarnation();
        let code = state.classes[&name.class].code;
        let object = Object::new(incarnation, code, &arguments);
        self.world.make_object(name, object);
        if let Some(init) = init {
            self.run_init(name, init, arguments, caller)?;
            self.world.remember_initial_counts(name);
        }
        Ok(())
    }

    /// Runs `init` in the segment of whoever creates the object. It cannot block, so it needs no
    /// journal.
    fn run_init(
        &mut self,
        name: &ObjectName,
        init: MethodName,
        arguments: Vec<u8>,
        caller: &Caller,
    ) -> Result<(), CallError> {
        let call = Call { object: name.clone(), method: init, signature: 0, arguments };
        match self.run_within(MethodKind::Init, call, caller) {
            End::Returned(_) => Ok(()),
            End::Failed(error) | End::Aborted(error) => Err(CallError::InitRefused(error)),
            End::Cancelled => Err(CallError::InitRefused(Vec::new())),
            End::Continue { .. } => {
                Err(CallError::InitFailed(Trap::Forbidden(crate::Forbidden::ContinueHere)))
            }
            End::Trapped(trap) => Err(CallError::InitFailed(trap)),
        }
    }

    /// Runs `init` or `migrate` in the segment of whoever needs it; one that returns gives back what
    /// it owns. It is no invocation of its own: it has no id that anything could refer to.
    pub(super) fn run_within(&mut self, kind: MethodKind, call: Call, caller: &Caller) -> End {
        let mut invocation = self.frame_of(caller.clone(), call, None);
        let fuel = self.world.state.limits().fuel_per_segment;
        let segment = Segment {
            kind,
            savepoint: self.world.savepoint(),
            grant: None,
            activation: self.live.fresh(),
            fuel,
        };
        let turn = self.start_body(&invocation, segment.activation, fuel);
        let end = self.run_unblocking(&mut invocation, &segment, turn);
        if let End::Returned(_) = end {
            for permit in invocation.permits.into_iter().rev() {
                self.world.release(permit);
            }
        }
        end
    }

    /// Runs a body that may not block to its end.
    pub(crate) fn run_unblocking(
        &mut self,
        invocation: &mut Invocation,
        segment: &Segment,
        mut turn: Turn,
    ) -> End {
        loop {
            turn = match turn {
                Turn::End(end, left) => {
                    self.spent += segment.fuel - left.min(segment.fuel);
                    return end;
                }
                Turn::Call(call, left) => match self.answer_unblocking(invocation, segment, call) {
                    Ok(answer) => self.engine.resume(segment.activation, &answer, left),
                    Err(trap) => {
                        self.spent += segment.fuel - left.min(segment.fuel);
                        self.engine.discard(segment.activation);
                        return End::Trapped(trap);
                    }
                },
            };
        }
    }

    /// Removes an object: its callers end without clean-up, detached ones too.
    pub(super) fn remove_object(&mut self, place: Place, name: &ObjectName) {
        let Some(object) = self.world.state.objects.get(name) else {
            let outcome = Err(CallError::ObjectUnknown);
            return self.world.reply(place.session, place.number, outcome);
        };
        let semaphores = || object.semaphores.values();
        let mut waiters: Vec<_> =
            semaphores().flat_map(|one| one.waiters.values()).copied().collect();
        let permits: Vec<_> = semaphores().flat_map(|one| one.owners.iter()).copied().collect();
        let alarms: Vec<_> = object.alarms.iter().copied().collect();
        for permit in permits {
            self.world.drop_permit(permit);
        }
        for alarm in alarms {
            self.world.drop_alarm(alarm);
        }
        waiters.sort_unstable();
        self.agenda.extend(waiters.into_iter().map(Task::EndRemoved));
        self.agenda.push_back(Task::Forget(name.clone(), place));
    }

    /// Ends an invocation whose object is being removed.
    pub(super) fn end_removed(&mut self, id: InvocationId) {
        self.drop_activation(id);
        let mut invocation = self.world.take_invocation(id).expect("a waiter is there");
        let Status::Blocked(blocked) = &invocation.status else {
            panic!("nothing of a removed object runs, {id} does");
        };
        self.world.leave_queue(&invocation.frame.object, &blocked.semaphore, blocked.ticket);
        if let Some(timeout) = blocked.timeout {
            self.world.drop_alarm(timeout);
        }
        self.end_invocation(&mut invocation, Err(CallError::ObjectRemoved));
    }

    /// Forgets an object that nothing refers to any more.
    pub(super) fn forget_object(&mut self, name: &ObjectName) {
        let object = self.world.state.objects.remove(name).expect("it is there");
        assert!(object.waiters == 0 && object.permits == 0 && object.alarms.is_empty());
        self.world.state.faulty.remove(name);
        self.world.state.total -= object.sum;
        self.world.state.state_bytes -= object.bytes;
    }

    /// At the end of a step: transient objects that are as `init` left them vanish.
    pub(crate) fn let_transient_objects_vanish(&mut self) {
        let mut touched = std::mem::take(&mut self.world.touched);
        touched.sort_unstable();
        touched.dedup();
        for name in touched.drain(..) {
            let object = self.world.state.objects.get(&name);
            if object.is_some_and(|object| object.is_as_init_left_it()) {
                self.forget_object(&name);
            }
        }
        self.world.touched = touched;
    }
}
