//! Views of the state, for operators and for clients that come back.
//!
//! Nothing here changes anything; a view may be of a state in the middle of a batch.

use std::ops::Bound;

use crate::{
    class::ClassInterface,
    code::CodeHash,
    effect::Position,
    host_call::Owner,
    machine::Machine,
    names::{
        AlarmId, ClassName, Incarnation, InvocationId, MethodName, ObjectName, SessionId, Step,
        Time,
    },
    outcome::Trap,
    state::{AlarmAction, ClassStatus, Fault, Origin, Status, WakeUp},
};

/// A class.
#[derive(Clone, Debug)]
pub struct ClassView {
    /// Its name.
    pub name: ClassName,
    /// Hash of its module.
    pub code: CodeHash,
    /// Whether it can be called.
    pub ready: bool,
    /// Its interface.
    pub interface: ClassInterface,
    /// Size of its module, bytes.
    pub module_bytes: u64,
    /// How many objects it has.
    pub objects: u64,
    /// Its code, last, and before it code that was replaced and is still kept; with what needs it.
    pub versions: Vec<VersionView>,
    /// Code that is to take its code's place, while it is compiled.
    pub replacing: Option<CodeHash>,
}

/// An object in a list.
#[derive(Clone, Debug)]
pub struct ObjectSummary {
    /// Its name.
    pub name: ObjectName,
    /// Its life.
    pub incarnation: Incarnation,
    /// Keys in its store.
    pub entries: u64,
    /// Keys and values, bytes.
    pub bytes: u64,
    /// Invocations that wait.
    pub waiters: u64,
}

/// An object in full.
#[derive(Clone, Debug)]
pub struct ObjectView {
    /// As in a list.
    pub summary: ObjectSummary,
    /// Code whose layout it has.
    pub code: CodeHash,
    /// Keys and values, at most as many as asked for.
    pub entries: Vec<(Vec<u8>, Vec<u8>)>,
    /// Semaphores that are not as a fresh one is.
    pub semaphores: Vec<SemaphoreView>,
    /// Timers and watches.
    pub timers: Vec<TimerView>,
    /// Failed handlers, oldest first.
    pub faults: Vec<FaultView>,
}

/// A handler that failed and was undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultView {
    /// The alarm that had called it, which names the fault.
    pub alarm: AlarmId,
    /// The handler.
    pub handler: MethodName,
    /// Its encoded arguments.
    pub arguments: Vec<u8>,
    /// Why it failed.
    pub trap: Trap,
    /// When.
    pub at: Time,
}

impl FaultView {
    fn of(fault: &Fault) -> Self {
        let Fault { alarm, handler, signature: _, arguments, trap, at } = fault;
        Self {
            alarm: *alarm,
            handler: handler.clone(),
            arguments: arguments.clone(),
            trap: trap.clone(),
            at: *at,
        }
    }
}

/// A semaphore.
#[derive(Clone, Debug)]
pub struct SemaphoreView {
    /// Its name.
    pub name: Vec<u8>,
    /// Its count.
    pub count: u64,
    /// Who waits, in order.
    pub waiters: Vec<InvocationId>,
    /// Who owns permits, oldest first.
    pub owners: Vec<Owner>,
}

/// A timer or a watch.
#[derive(Clone, Debug)]
pub struct TimerView {
    /// Its id.
    pub id: AlarmId,
    /// When it goes off; none for a watch.
    pub due: Option<Time>,
    /// The watched session.
    pub watched: Option<SessionId>,
    /// What it runs.
    pub handler: MethodName,
}

/// Code of a class, and what needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionView {
    /// The code.
    pub code: CodeHash,
    /// Objects that have its layout, or another of the same.
    pub objects: u64,
    /// Blocked invocations that run it.
    pub blocked: u64,
}

/// A blocked invocation.
#[derive(Clone, Debug)]
pub struct InvocationView {
    /// Its id.
    pub id: InvocationId,
    /// Session and number of its request; none for a handler.
    pub request: Option<(SessionId, u64)>,
    /// The session it runs under; none for a handler, or a call on behalf of nobody.
    pub session: Option<SessionId>,
    /// Who called.
    pub principal: String,
    /// Its object.
    pub object: ObjectName,
    /// Its method.
    pub method: MethodName,
    /// Semaphore it waits for.
    pub semaphore: Vec<u8>,
    /// Since when.
    pub since: Time,
    /// When it began.
    pub started: Time,
    /// When it is cancelled; none without a deadline.
    pub deadline: Option<Time>,
    /// Size of its journal, bytes.
    pub journal_bytes: u64,
    /// Whether it ignores its caller's fate.
    pub detached: bool,
}

/// A session.
#[derive(Clone, Debug)]
pub struct SessionView {
    /// Its id.
    pub id: SessionId,
    /// Who opened it.
    pub principal: String,
    /// Its timeout, nanoseconds.
    pub timeout: u64,
    /// Number of the last request admitted.
    pub last_admitted: u64,
    /// Requests that have not ended.
    pub open: u64,
    /// Replies that are not acknowledged.
    pub replies: u64,
    /// Events that are not acknowledged.
    pub events: u64,
    /// Permits it owns.
    pub permits: u64,
}

/// What a client that comes back has missed.
#[derive(Clone, Debug, Default)]
pub struct PendingEvents {
    /// First and last number of events that made way.
    pub gap: Option<(u64, u64)>,
    /// The events, oldest first.
    pub events: Vec<(u64, Position, Vec<u8>)>,
}

impl<E> Machine<E> {
    /// The classes, by name.
    #[must_use]
    pub fn classes(&self) -> Vec<ClassView> {
        self.world.state.classes.keys().filter_map(|name| self.class(name)).collect()
    }

    /// One class.
    #[must_use]
    pub fn class(&self, name: &ClassName) -> Option<ClassView> {
        let state = &self.world.state;
        let class = state.classes.get(name)?;
        let objects = state.objects.keys().filter(|object| object.class == *name).count();
        let older = class.older.iter().map(|version| version.code);
        let pinned = older.filter(|code| *code != class.code).chain([class.code]);
        Some(ClassView {
            name: name.clone(),
            code: class.code,
            ready: class.status == ClassStatus::Ready,
            interface: class.interface.clone(),
            module_bytes: class.module.len() as u64,
            objects: objects as u64,
            versions: pinned.map(|code| self.version(name, code)).collect(),
            replacing: class.next.as_ref().map(|next| next.version.code),
        })
    }

    fn version(&self, name: &ClassName, code: CodeHash) -> VersionView {
        let state = &self.world.state;
        let of_code = |object: &crate::state::Object| object.code == code;
        let objects = state.objects.iter();
        let objects = objects.filter(|(object, state)| object.class == *name && of_code(state));
        let blocked = state.invocations.values().filter(|invocation| invocation.frame.code == code);
        VersionView { code, objects: objects.count() as u64, blocked: blocked.count() as u64 }
    }

    /// Code that this replica may have to compile: all of every class.
    pub fn modules(&self) -> impl Iterator<Item = (CodeHash, std::sync::Arc<[u8]>)> + '_ {
        let classes = self.world.state.classes.values();
        classes.flat_map(|class| class.modules().map(|(code, module)| (code, module.clone())))
    }

    /// Module of a class.
    #[must_use]
    pub fn module(&self, name: &ClassName) -> Option<std::sync::Arc<[u8]>> {
        self.world.state.classes.get(name).map(|class| class.module.clone())
    }

    /// Module of this code, whichever class has it, had it, or is to have it.
    #[must_use]
    pub fn module_of(&self, code: CodeHash) -> Option<std::sync::Arc<[u8]>> {
        self.modules().find(|(known, _)| *known == code).map(|(_, module)| module)
    }

    /// Code that `replica` has to compile: what may run and its engine does not have, and what waits
    /// for its report.
    #[must_use]
    pub fn code_to_compile(&self, replica: u64) -> Vec<(ClassName, CodeHash)>
    where
        E: crate::engine::Engine,
    {
        let missing = |class: &crate::state::Class| {
            let lacks = |code: &CodeHash| !self.engine.is_compiled(*code);
            let runnable: Vec<_> = class.runnable().filter(lacks).collect();
            let reported = class.reports().is_some_and(|reports| reports.contains_key(&replica));
            let compiling = class.compiling().filter(|code| !reported || lacks(code));
            runnable.into_iter().chain(compiling)
        };
        let classes = self.world.state.classes.iter();
        classes.flat_map(|(name, class)| missing(class).map(|code| (name.clone(), code))).collect()
    }

    /// Code that replicas still compile, with the replicas that have reported.
    #[must_use]
    pub fn pending_code(&self) -> Vec<(CodeHash, Vec<u64>)> {
        let pending = |class: &crate::state::Class| {
            Some((class.compiling()?, class.reports()?.keys().copied().collect()))
        };
        self.world.state.classes.values().filter_map(pending).collect()
    }

    /// Objects after a name, at most `limit`, of one class or of all.
    #[must_use]
    pub fn objects(
        &self,
        class: Option<&ClassName>,
        after: Option<&ObjectName>,
        limit: usize,
    ) -> Vec<ObjectSummary> {
        use std::ops::Bound::{Excluded, Unbounded};
        let range = (after.map_or(Unbounded, Excluded), Unbounded);
        self.world
            .state
            .objects
            .range::<_, ObjectName>(range)
            .filter(|(name, _)| class.is_none_or(|class| name.class == *class))
            .take(limit)
            .filter_map(|(name, _)| self.summary(name))
            .collect()
    }

    fn summary(&self, name: &ObjectName) -> Option<ObjectSummary> {
        let object = self.world.state.objects.get(name)?;
        Some(ObjectSummary {
            name: name.clone(),
            incarnation: object.incarnation,
            entries: object.entries.len() as u64,
            bytes: object.bytes,
            waiters: object.waiters,
        })
    }

    /// One object, with at most `limit` of its keys and of its waiters.
    #[must_use]
    pub fn object(&self, name: &ObjectName, limit: usize) -> Option<ObjectView> {
        let object = self.world.state.objects.get(name)?;
        let entries = object.entries.iter().take(limit);
        let semaphores = object.semaphores.iter().map(|(semaphore, content)| SemaphoreView {
            name: semaphore.to_vec(),
            count: content.count,
            waiters: content.waiters.values().copied().take(limit).collect(),
            owners: self.world.owners(name, semaphore),
        });
        let timers = object.alarms.iter().filter_map(|id| {
            let alarm = &self.world.state.alarms[id];
            match &alarm.action {
                AlarmAction::Handler { handler, watched, .. } => Some(TimerView {
                    id: *id,
                    due: alarm.due,
                    watched: *watched,
                    handler: handler.clone(),
                }),
                AlarmAction::Deadline(_) | AlarmAction::WaitTimeout(_) => None,
            }
        });
        Some(ObjectView {
            summary: self.summary(name)?,
            code: object.code,
            entries: entries.map(|(key, entry)| (key.clone(), entry.value.clone())).collect(),
            semaphores: semaphores.collect(),
            timers: timers.collect(),
            faults: object.faults.iter().map(FaultView::of).collect(),
        })
    }

    /// Faults by object, of a class or of all, of the objects after a name: all faults of each, and no
    /// more objects once there are `limit` faults. True when there are more.
    #[must_use]
    pub fn faults(
        &self,
        class: Option<&ClassName>,
        after: Option<&ObjectName>,
        limit: usize,
    ) -> (Vec<(ObjectName, FaultView)>, bool) {
        let state = &self.world.state;
        let from = after.map_or(Bound::Unbounded, |name| Bound::Excluded(name.clone()));
        let names = state.faulty.range((from, Bound::Unbounded));
        let mut found = Vec::new();
        for name in names.filter(|name| class.is_none_or(|class| name.class == *class)) {
            if found.len() >= limit {
                return (found, true);
            }
            let faults = state.objects[name].faults.iter();
            found.extend(faults.map(|fault| (name.clone(), FaultView::of(fault))));
        }
        (found, false)
    }

    /// How many objects keep faults.
    #[must_use]
    pub fn faulty_objects(&self) -> u64 {
        self.world.state.faulty.len() as u64
    }

    /// Blocked invocations, oldest first, at most `limit`.
    #[must_use]
    pub fn invocations(&self, limit: usize) -> Vec<InvocationView> {
        let view = |invocation: &std::sync::Arc<crate::state::Invocation>| {
            let Status::Blocked(blocked) = &invocation.status else {
                return None;
            };
            Some(InvocationView {
                id: invocation.id,
                request: match invocation.origin {
                    Origin::Request { session, number } => Some((session, number)),
                    Origin::Alarm(_) => None,
                },
                session: invocation.session,
                principal: invocation.principal.as_ref().into(),
                object: invocation.frame.object.clone(),
                method: invocation.frame.method.clone(),
                semaphore: blocked.semaphore.to_vec(),
                since: blocked.since,
                started: invocation.started,
                deadline: invocation.deadline.and_then(|id| self.world.state.alarms.get(&id)?.due),
                journal_bytes: invocation.frame.journal.len(),
                detached: invocation.detached,
            })
        };
        self.world.state.invocations.values().filter_map(view).take(limit).collect()
    }

    /// Invocations that first blocked after another one, oldest first: each with session and number of
    /// its request (none for a handler) and the semaphore that it waits for, or has just waited for.
    pub fn blocked_since(
        &self,
        after: InvocationId,
    ) -> impl DoubleEndedIterator<Item = (InvocationId, Option<(SessionId, u64)>, &[u8])> + '_ {
        use std::ops::Bound::{Excluded, Unbounded};
        let later = self.world.state.invocations.range((Excluded(after), Unbounded));
        later.filter_map(|(id, invocation)| {
            let (Status::Blocked(blocked)
            | Status::Ready(
                WakeUp::Granted(blocked) | WakeUp::TimedOut(blocked) | WakeUp::Cancelled(blocked),
            )) = &invocation.status
            else {
                return None;
            };
            let request = match invocation.origin {
                Origin::Request { session, number } => Some((session, number)),
                Origin::Alarm(_) => None,
            };
            Some((*id, request, blocked.semaphore.as_ref()))
        })
    }

    /// Sessions by id, at most `limit`.
    #[must_use]
    pub fn session_views(&self, limit: usize) -> Vec<SessionView> {
        let view =
            |(id, session): (&SessionId, &std::sync::Arc<crate::state::Session>)| SessionView {
                id: *id,
                principal: session.principal.as_ref().into(),
                timeout: session.timeout,
                last_admitted: session.last_admitted,
                open: session.open.len() as u64,
                replies: session.replies.len() as u64,
                events: session.events.len() as u64,
                permits: session.permits.len() as u64,
            };
        self.world.state.sessions.iter().take(limit).map(view).collect()
    }

    /// Number of the last request of a session that was admitted; none when it is over.
    #[must_use]
    pub fn last_admitted(&self, session: SessionId) -> Option<u64> {
        self.world.state.sessions.get(&session).map(|session| session.last_admitted)
    }

    /// Replies of a session that are not acknowledged, by number.
    pub fn stored_replies(
        &self,
        session: SessionId,
    ) -> impl Iterator<Item = (u64, Position, &crate::outcome::Outcome)> + '_ {
        let replies = self.world.state.sessions.get(&session).map(|session| &session.replies);
        let replies = replies.into_iter().flat_map(|replies| replies.iter());
        replies.map(|(number, reply)| (*number, reply.position(), &reply.outcome))
    }

    /// Timeout of a session, nanoseconds; none when it is over.
    #[must_use]
    pub fn session_timeout(&self, session: SessionId) -> Option<u64> {
        self.world.state.sessions.get(&session).map(|session| session.timeout)
    }

    /// Events of a session after a number.
    #[must_use]
    pub fn pending_events(&self, session: SessionId, after: u64) -> PendingEvents {
        let Some(session) = self.world.state.sessions.get(&session) else {
            return PendingEvents::default();
        };
        let last = session.next_event - 1;
        let wanted = after.min(last).max(session.events_acknowledged) + 1;
        let first = session.events.front().map_or(session.next_event, |event| event.number);
        let events = session.events.iter().filter(|event| event.number >= wanted).map(|event| {
            let position = Position { epoch: event.epoch, step: Step(event.step) };
            (event.number, position, event.payload.clone())
        });
        PendingEvents {
            gap: (first > wanted).then(|| (wanted, first - 1)),
            events: events.collect(),
        }
    }
}
