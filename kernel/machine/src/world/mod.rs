//! What segments change, and how a segment is undone.
//!
//! The world is the state, the ready list and the effects of the current step. Every change that a
//! segment can make goes through a method here, which records its inverse; undoing applies the
//! inverses, newest first, down to a savepoint.
//! Invariants: after an undo the state, its sums, the ready list and the effects (log lines apart)
//! are exactly as they were at the savepoint; between steps the undo log and the ready list are
//! empty.
//! Not here: which body runs when (`execute/`).

mod alarm;
mod semaphore;
mod session;
pub(crate) mod store;
mod undo;

use std::{collections::VecDeque, sync::Arc};

use self::undo::Undo;
pub(crate) use self::{semaphore::wait_of, undo::Savepoint};
use crate::{
    class::MethodKind,
    effect::Effect,
    names::{InvocationId, ObjectName},
    outcome::{LimitExceeded, Trap},
    planted::Planted,
    state::{Invocation, RunningMethod, State, Status},
    sum::Sum,
};

/// State, ready list, effects, and the log to undo changes of all three.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) state: State,
    /// Invocations that may go on, in order.
    pub(crate) ready: VecDeque<InvocationId>,
    /// Effects of the current step.
    pub(crate) staged: Vec<Effect>,
    /// Objects that the current step touched and that may vanish at its end, some more than once.
    pub(crate) touched: Vec<ObjectName>,
    /// Nothing, except in tests of tests.
    pub(crate) planted: Planted,
    undo: Vec<Undo>,
}

impl World {
    /// A world without history.
    pub(crate) fn new(state: State) -> Self {
        Self {
            state,
            ready: VecDeque::new(),
            staged: Vec::new(),
            touched: Vec::new(),
            planted: Planted::default(),
            undo: Vec::new(),
        }
    }

    /// A copy between two steps, when nothing but the state is worth copying.
    pub(crate) fn copy(&self) -> Self {
        Self { planted: self.planted, ..Self::new(self.state.clone()) }
    }

    /// Puts a blocked or ready invocation where others can find it. One that is ready has no
    /// record: between steps nobody is.
    pub(crate) fn put_invocation(&mut self, mut invocation: Invocation) {
        assert_eq!(invocation.sum, Sum::default(), "an invocation that was taken has no record");
        if let Status::Blocked(_) = invocation.status {
            invocation.sum = invocation.record();
            self.state.adjust_object(&invocation.frame.object, Sum::default(), invocation.sum);
        }
        let twice = self.state.invocations.insert(invocation.id, Arc::new(invocation));
        assert!(twice.is_none(), "an invocation is in one place");
    }

    /// Takes an invocation out, to run it or to end it.
    pub(crate) fn take_invocation(&mut self, id: InvocationId) -> Option<Invocation> {
        let mut invocation = Arc::unwrap_or_clone(self.state.invocations.remove(&id)?);
        let old = std::mem::take(&mut invocation.sum);
        if old != Sum::default() {
            self.state.adjust_object(&invocation.frame.object, old, Sum::default());
        }
        Some(invocation)
    }

    /// Notes an object that may have to vanish at the end of the step.
    pub(crate) fn touch(&mut self, object: &ObjectName) {
        let class = self.state.classes.get(&object.class);
        if class.is_some_and(|class| class.interface.transient) {
            self.note_touched(object);
        }
    }

    /// The same for a body that runs on it; returns the kind of its method.
    pub(crate) fn touch_for(&mut self, invocation: &Invocation) -> MethodKind {
        let frame = &invocation.frame;
        let runs = invocation.running.method.unwrap_or_else(|| {
            let interface = self.state.interface_of(frame);
            RunningMethod::of(interface, &interface.methods[&frame.method])
        });
        if runs.transient {
            self.note_touched(&frame.object);
        }
        runs.kind
    }

    fn note_touched(&mut self, object: &ObjectName) {
        // Mostly it is the one before.
        if self.touched.last() != Some(object) {
            self.touched.push(object.clone());
        }
    }
}

impl From<LimitExceeded> for Trap {
    fn from(limit: LimitExceeded) -> Self {
        Self::Limit(limit)
    }
}
