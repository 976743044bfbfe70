//! The undo log: inverses of the changes since a savepoint.
//!
//! Invariant: each inverse is exact, sums included, and needs nothing but itself and the state as
//! it was right after the change.

use std::sync::Arc;

use imbl::OrdMap;

use crate::{
    code::CodeHash,
    effect::Effect,
    names::{AlarmId, InvocationId, ObjectName, PermitId, SessionId},
    planted::PlantedBug,
    state::{Alarm, Blocked, Entry, Event, Object, Permit, Semaphore, Status},
    sum::Sum,
    world::World,
};

/// A point to return to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Savepoint {
    undo: usize,
    staged: usize,
}

/// The inverse of one change.
#[derive(Debug)]
pub(super) enum Undo {
    /// A key had this value.
    Entry { object: ObjectName, key: Vec<u8>, old: Option<Entry> },
    /// A semaphore had this count and next ticket, or was fresh.
    Semaphore { object: ObjectName, name: Vec<u8>, count: u64, next_ticket: u64 },
    /// A waiter was at its place in a queue.
    Waiter { object: ObjectName, blocked: Blocked, invocation: InvocationId },
    /// The last of the ready list was not there.
    Ready(InvocationId),
    /// A permit did not exist.
    PermitMade(PermitId),
    /// A permit existed.
    PermitGone(PermitId, Permit),
    /// An alarm did not exist.
    AlarmMade(AlarmId),
    /// An alarm existed.
    AlarmGone(AlarmId, Alarm),
    /// A session had one event less at the end, and these more at the front.
    Event { session: SessionId, dropped: Vec<Event> },
    /// The counts that `init` left were not recorded.
    InitialCounts(ObjectName),
    /// An object did not exist.
    ObjectMade(ObjectName),
    /// An object had the layout of this code.
    Code { object: ObjectName, old: CodeHash },
}

impl World {
    /// The current point.
    pub(crate) fn savepoint(&self) -> Savepoint {
        Savepoint { undo: self.undo.len(), staged: self.staged.len() }
    }

    /// Forgets how to return: what was done stands.
    pub(crate) fn commit(&mut self) {
        self.undo.clear();
    }

    /// Whether there is nothing to return from.
    pub(crate) fn is_committed(&self) -> bool {
        self.undo.is_empty()
    }

    /// Returns to a savepoint. Numbers that were drawn since stay drawn: an abort's error or a log
    /// line may have told them, and none is ever given twice.
    pub(crate) fn undo_to(&mut self, savepoint: Savepoint) {
        while self.undo.len() > savepoint.undo {
            let inverse = self.undo.pop().expect("the log is longer than the savepoint");
            self.apply(inverse);
        }
        if self.planted.has(PlantedBug::UndoKeepsEffects) {
            return;
        }
        let kept = self.staged.split_off(savepoint.staged);
        self.staged.extend(kept.into_iter().filter(|effect| matches!(effect, Effect::Log { .. })));
    }

    pub(super) fn record(&mut self, inverse: Undo) {
        self.undo.push(inverse);
    }

    fn apply(&mut self, inverse: Undo) {
        match inverse {
            Undo::Semaphore { .. } if self.planted.has(PlantedBug::UndoForgetsSemaphore) => {}
            Undo::Entry { .. } if self.planted.has(PlantedBug::UndoForgetsEntry) => {}
            Undo::Entry { object, key, old } => {
                self.replace_entry(&object, key, old);
            }
            Undo::Semaphore { object, name, count, next_ticket } => {
                self.change_semaphore(&object, &name, |semaphore| {
                    semaphore.count = count;
                    semaphore.next_ticket = next_ticket;
                });
            }
            Undo::Waiter { object, blocked, invocation } => {
                self.return_waiter(&object, blocked, invocation);
            }
            Undo::Ready(invocation) => {
                let last = self.ready.pop_back();
                assert_eq!(last, Some(invocation), "a segment appends to the ready list only");
            }
            Undo::PermitMade(permit) => {
                self.drop_permit(permit);
            }
            Undo::PermitGone(id, permit) => self.insert_permit(id, permit),
            Undo::AlarmMade(alarm) => {
                self.drop_alarm(alarm);
            }
            Undo::AlarmGone(id, alarm) => self.insert_alarm(id, alarm),
            Undo::Event { session, dropped } => self.take_back_event(session, dropped),
            Undo::InitialCounts(object) => self.set_initial_counts(&object, OrdMap::new()),
            Undo::Code { object, old } => {
                self.exchange_code(&object, old);
            }
            Undo::ObjectMade(name) => {
                let object = self.state.objects.remove(&name).expect("it was made");
                assert!(object.entries.is_empty(), "its entries were undone first");
                self.state.total -= object.sum;
            }
        }
    }

    /// Adds an object; the segment that made it can be undone.
    pub(crate) fn make_object(&mut self, name: &ObjectName, object: Object) {
        self.state.total += object.sum;
        let twice = self.state.objects.insert(name.clone(), Arc::new(object));
        assert!(twice.is_none(), "only an unknown object is made");
        self.record(Undo::ObjectMade(name.clone()));
    }

    /// An object has the layout of this code from now on.
    pub(crate) fn set_code(&mut self, name: &ObjectName, code: CodeHash) {
        let old = self.exchange_code(name, code);
        self.record(Undo::Code { object: name.clone(), old });
    }

    fn exchange_code(&mut self, name: &ObjectName, code: CodeHash) -> CodeHash {
        let object = self.state.object_mut(name).expect("an object that changes is there");
        let minus = object.head();
        let old = std::mem::replace(&mut object.code, code);
        let plus = object.head();
        self.state.adjust_object(name, minus, plus);
        old
    }

    /// Returns a waiter that a `V` had taken from its queue.
    fn return_waiter(&mut self, object: &ObjectName, blocked: Blocked, id: InvocationId) {
        let mut invocation = self.take_invocation(id).expect("a ready invocation is in the state");
        self.insert_waiter(object, &blocked.semaphore, blocked.ticket, id);
        invocation.status = Status::Blocked(blocked);
        self.put_invocation(invocation);
    }

    /// Changes a semaphore's own record, keeps its sum, and forgets the semaphore when it is fresh.
    pub(super) fn change_semaphore<T>(
        &mut self,
        object: &ObjectName,
        name: &[u8],
        change: impl FnOnce(&mut Semaphore) -> T,
    ) -> T {
        let owner = self.state.object_mut(object).expect("a semaphore belongs to an object");
        let incarnation = owner.incarnation;
        if !owner.semaphores.contains_key(name) {
            owner.semaphores.insert(Arc::from(name), Arc::default());
        }
        let semaphore = owner.semaphores.get_mut(name).expect("it was just made sure");
        let semaphore = Arc::make_mut(semaphore);
        let result = change(semaphore);
        let old = semaphore.sum;
        let fresh = semaphore.is_fresh();
        semaphore.sum = if fresh { Sum::default() } else { semaphore.record(incarnation, name) };
        let new = semaphore.sum;
        if fresh {
            owner.semaphores.remove(name);
        }
        self.state.adjust_object(object, old, new);
        result
    }
}
