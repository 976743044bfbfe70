//! The machine's whole state, as plain data.
//!
//! Everything is ordered (`OrdMap`): iteration is the same on every replica. Whatever belongs to
//! an object is found from its name, whatever belongs to a session from its id.
//! The maps are persistent: a clone shares everything with its original, and whoever changes a
//! record copies the few nodes on the way to it, once. So a snapshot costs no pause, however large
//! the state is.
//! Invariant: `total` and the sums of objects and sessions are the sums of their records; `../check.rs`
//! recomputes them.
//! Not here: how the state changes (`world/`), and what lives only while a step runs.

mod alarm;
mod checkpoint;
mod class;
mod invocation;
mod object;
mod session;

use std::sync::Arc;

use imbl::{OrdMap, OrdSet};
use serde::{Deserialize, Serialize};

pub(crate) use self::{
    alarm::{Alarm, AlarmAction},
    checkpoint::{Checkpoint, Standing},
    class::{Class, ClassStatus, Replacement, Version},
    invocation::{
        Blocked, Frame, Invocation, Journal, Origin, Running, RunningMethod, Status, WakeUp,
        checksum,
    },
    object::{Entry, Fault, Object, Permit, Semaphore, permit_sum, waiter_sum},
    session::{Event, Open, Session, StoredReply},
};
use crate::{
    class::ClassInterface,
    command::{Ballot, Genesis, STATE_MACHINE_VERSION},
    effect::Position,
    engine::EngineIdentity,
    limits::Limits,
    names::{AlarmId, ClassName, InvocationId, ObjectName, PermitId, SessionId, Step, Time},
    sum::Sum,
};

/// The state.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct State {
    /// What the group is; none before the first entry of the log.
    pub(crate) genesis: Option<Genesis>,
    /// Raised when a cluster is restored.
    pub(crate) epoch: u32,
    /// Steps so far.
    pub(crate) step: Step,
    /// Stamp of the last batch.
    pub(crate) now: Time,
    /// Ballot of the leader whose batches count.
    pub(crate) ballot: Ballot,
    pub(crate) classes: OrdMap<ClassName, Class>,
    pub(crate) objects: OrdMap<ObjectName, Arc<Object>>,
    /// Objects that keep faults. It follows from them, and is no part of an image.
    #[serde(skip)]
    pub(crate) faulty: OrdSet<ObjectName>,
    pub(crate) sessions: OrdMap<SessionId, Arc<Session>>,
    /// Sessions by the nonces that opened them.
    pub(crate) nonces: OrdMap<u128, SessionId>,
    /// Blocked invocations; one that runs is with whoever runs it.
    pub(crate) invocations: OrdMap<InvocationId, Arc<Invocation>>,
    /// Permits that have owners.
    pub(crate) permits: OrdMap<PermitId, Permit>,
    pub(crate) alarms: OrdMap<AlarmId, Arc<Alarm>>,
    /// Alarms that have a time, in the order in which they go off.
    pub(crate) due: OrdSet<(Time, AlarmId)>,
    pub(crate) next: Next,
    /// Keys and values of all objects, bytes.
    pub(crate) state_bytes: u64,
    /// Sum of the records of all objects and sessions.
    pub(crate) total: Sum,
    /// Votes of the replicas on states of the past.
    pub(crate) checkpoints: OrdMap<Step, Checkpoint>,
    /// A step on which votes contradict each other without a majority, and until when that may be.
    pub(crate) dispute: Option<(Step, Time)>,
}

/// The next number of each sequence.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Next {
    pub(crate) session: u64,
    pub(crate) invocation: u64,
    pub(crate) permit: u64,
    pub(crate) alarm: u64,
    pub(crate) incarnation: u64,
    pub(crate) token: u64,
}

impl State {
    /// The state before the first entry of the log.
    pub(crate) fn new() -> Self {
        Self {
            genesis: None,
            epoch: 0,
            step: Step(0),
            now: Time(0),
            ballot: Ballot::default(),
            classes: OrdMap::new(),
            objects: OrdMap::new(),
            faulty: OrdSet::new(),
            sessions: OrdMap::new(),
            nonces: OrdMap::new(),
            invocations: OrdMap::new(),
            permits: OrdMap::new(),
            alarms: OrdMap::new(),
            due: OrdSet::new(),
            next: Next { session: 1, invocation: 1, permit: 1, alarm: 1, incarnation: 1, token: 1 },
            state_bytes: 0,
            total: Sum::default(),
            checkpoints: OrdMap::new(),
            dispute: None,
        }
    }

    /// What the group is.
    pub(crate) fn genesis(&self) -> &Genesis {
        self.genesis.as_ref().expect("no step runs before the first entry of the log")
    }

    /// The limits.
    pub(crate) fn limits(&self) -> &Limits {
        &self.genesis().limits
    }

    /// Position of what the current step puts out.
    pub(crate) fn position(&self) -> Position {
        Position { epoch: self.epoch, step: self.step }
    }

    /// Whether this code and this engine can run the state.
    pub(crate) fn runs_on(&self, engine: &EngineIdentity) -> bool {
        self.genesis.as_ref().is_none_or(|genesis| {
            genesis.engine == *engine && genesis.state_machine_version == STATE_MACHINE_VERSION
        })
    }

    /// The objects that keep faults, found by looking at all.
    pub(crate) fn find_faulty(&self) -> OrdSet<ObjectName> {
        let faulty = self.objects.iter().filter(|(_, object)| !object.faults.is_empty());
        faulty.map(|(name, _)| name.clone()).collect()
    }

    /// Lets blocked invocations share the names that they have in common with other records, as those
    /// do that were made here: decoding makes everything anew.
    pub(crate) fn share_names(&mut self) {
        let invocations = std::mem::take(&mut self.invocations);
        let shared = invocations.into_iter().map(|(id, mut invocation)| {
            self.share_names_of(Arc::make_mut(&mut invocation));
            (id, invocation)
        });
        self.invocations = shared.collect();
    }

    /// Gives each stored reply its sum.
    pub(crate) fn sum_replies(&mut self) {
        let sessions = std::mem::take(&mut self.sessions).into_iter().map(|(id, mut session)| {
            if !session.replies.is_empty() {
                Arc::make_mut(&mut session).sum_replies(id);
            }
            (id, session)
        });
        self.sessions = sessions.collect();
    }

    fn share_names_of(&self, invocation: &mut Invocation) {
        let frame = &mut invocation.frame;
        if let Some((name, object)) = self.objects.get_key_value(&frame.object) {
            frame.object = name.clone();
            if let Status::Blocked(blocked) = &mut invocation.status
                && let Some((semaphore, _)) = object.semaphores.get_key_value(&blocked.semaphore)
            {
                blocked.semaphore = Arc::clone(semaphore);
            }
        }
        let class = self.classes.get(&frame.object.class);
        let interface = class.and_then(|class| class.interface_of(frame.code));
        let method = interface.and_then(|interface| interface.methods.get_key_value(&frame.method));
        if let Some((method, _)) = method {
            frame.method = method.clone();
        }
        if let Origin::Request { session, .. } = invocation.origin
            && let Some(session) = self.sessions.get(&session)
            && session.principal == invocation.principal
        {
            invocation.principal = Arc::clone(&session.principal);
        }
    }

    /// The interface of the code that a frame runs.
    pub(crate) fn interface_of(&self, frame: &Frame) -> &ClassInterface {
        let interface = self.classes[&frame.object.class].interface_of(frame.code);
        interface.expect("a class keeps the code of its invocations")
    }

    /// An object, to change it. What a snapshot shares is copied first, here as everywhere.
    pub(crate) fn object_mut(&mut self, name: &ObjectName) -> Option<&mut Object> {
        self.objects.get_mut(name).map(Arc::make_mut)
    }

    /// A session, to change it.
    pub(crate) fn session_mut(&mut self, id: &SessionId) -> Option<&mut Session> {
        self.sessions.get_mut(id).map(Arc::make_mut)
    }

    /// Changes the sum of an object's records.
    pub(crate) fn adjust_object(&mut self, name: &ObjectName, minus: Sum, plus: Sum) {
        let object = self.object_mut(name).expect("records belong to living objects");
        object.sum -= minus;
        object.sum += plus;
        self.total -= minus;
        self.total += plus;
    }

    /// Changes a session's own record, and brings the sums up to date.
    pub(crate) fn change_session(&mut self, id: SessionId, change: impl FnOnce(&mut Session)) {
        self.with_session(id, |session| {
            change(session);
            let (minus, plus) = session.refresh(id);
            ((), minus, plus)
        })
        .expect("only a living session changes");
    }

    /// Changes records of a session, in one look at it; `change` returns which sums are taken away
    /// and added by that. None when the session is over.
    pub(crate) fn with_session<T>(
        &mut self,
        id: SessionId,
        change: impl FnOnce(&mut Session) -> (T, Sum, Sum),
    ) -> Option<T> {
        let session = self.sessions.get_mut(&id).map(Arc::make_mut)?;
        let (result, minus, plus) = change(session);
        session.sum -= minus;
        session.sum += plus;
        self.total -= minus;
        self.total += plus;
        Some(result)
    }
}

/// Numbers of one epoch; a history gives out far fewer before it is restored.
const NUMBERS_PER_EPOCH: u64 = 1 << 44;

macro_rules! take_next {
    ($($method:ident, $field:ident, $kind:ident;)*) => {
        impl Next {
            /// Goes on with numbers that only `epoch` has.
            pub(crate) fn leap(&mut self, epoch: u64) {
                let first = epoch * NUMBERS_PER_EPOCH;
                for field in [&mut self.token, $(&mut self.$field),*] {
                    assert!(*field < first, "numbers of an epoch are never used up");
                    *field = first;
                }
            }


            $(pub(crate) fn $method(&mut self) -> crate::names::$kind {
                let id = self.$field;
                self.$field += 1;
                crate::names::$kind(id)
            })*
        }
    };
}

take_next! {
    take_session, session, SessionId;
    take_invocation, invocation, InvocationId;
    take_permit, permit, PermitId;
    take_alarm, alarm, AlarmId;
    take_incarnation, incarnation, Incarnation;
}
