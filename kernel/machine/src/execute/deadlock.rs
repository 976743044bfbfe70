//! Whether a `P` that would block could ever be granted.
//!
//! Who waits for a semaphore whose permits invocations own waits for one of them to give a permit
//! back; an owner that is blocked itself waits for others in turn. When that leads to nobody but
//! blocked owners, and back to the one who asks, nobody of them ever goes on. Then the newest, the
//! one who asks, is cancelled: it may clean up, and gives back what it owns.
//! Invariant: no call is cancelled that could be granted by what owners may still do. A wait that
//! ends by a time of its own is no part of a deadlock; neither is a semaphore of which a session
//! owns a permit, since the session may give it back by any call to come; those are for operators
//! to see. A deadline of a call ends a deadlock only by failing the call, so it does not count.
//! Deliberately absent: permits that nobody owns. Who waits for a semaphore of which nobody owns a
//! permit may be granted one by anybody. Where a class lets calls own permits and also gives bare
//! ones to the same semaphore, a call can be cancelled here that a later `V` would have granted.

use std::collections::{BTreeSet, VecDeque};

use crate::{
    host_call::Holder,
    machine::Machine,
    names::{InvocationId, ObjectName},
    state::{Blocked, Invocation, Status},
};

/// Owners that are looked at. A longer chain is left to deadlines.
const OWNERS_MAX: usize = 1_000;

impl<E> Machine<E> {
    /// Whether an invocation that waits for a semaphore of its object would wait for ever.
    pub(crate) fn would_deadlock(&self, asking: &Invocation, semaphore: &[u8]) -> bool {
        let mut reached = BTreeSet::new();
        let mut open = VecDeque::new();
        let mut cycle = false;
        let Some(first) = self.owners_of(&asking.frame.object, semaphore) else { return false };
        open.extend(first);
        while let Some(owner) = open.pop_front() {
            if owner == asking.id {
                cycle = true;
                continue;
            }
            if !reached.insert(owner) {
                continue;
            }
            let waits = (reached.len() <= OWNERS_MAX).then(|| self.waits_for(owner)).flatten();
            match waits {
                Some(next) => open.extend(next),
                // It may go on by itself.
                None => return false,
            }
        }
        cycle
    }

    /// The invocations that own permits of a semaphore; none when somebody else might give one.
    fn owners_of(&self, object: &ObjectName, semaphore: &[u8]) -> Option<Vec<InvocationId>> {
        let state = &self.world.state;
        let owners = &state.objects.get(object)?.semaphores.get(semaphore)?.owners;
        let owners = owners.iter().map(|permit| match state.permits[permit].holder {
            Holder::Invocation(invocation) => Some(invocation),
            Holder::Session(_) => None,
        });
        let owners: Vec<_> = owners.collect::<Option<_>>()?;
        (!owners.is_empty()).then_some(owners)
    }

    /// Whom a blocked invocation waits for; none when it may go on without them.
    fn waits_for(&self, id: InvocationId) -> Option<Vec<InvocationId>> {
        let invocation = self.world.state.invocations.get(&id)?;
        match &invocation.status {
            Status::Blocked(Blocked { semaphore, timeout: None, .. }) => {
                self.owners_of(&invocation.frame.object, semaphore)
            }
            Status::Blocked(_) | Status::Running | Status::Ready(_) => None,
        }
    }
}
