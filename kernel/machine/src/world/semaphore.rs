//! Semaphores: P, V, owned permits.
//!
//! Invariants: nobody barges past a waiter: a permit given while somebody waits goes to the head of
//! the queue and into no count; a permit in flight (its receiver is in the ready list) is never
//! lost: `pass_on` gives it to the next waiter or back to the count.
//! Source: section 4.2 of the GESMAS paper; ownership and cancellation are additions.

use std::sync::Arc;

use imbl::OrdMap;

use crate::{
    host_call::{Holder, Owner, PermitOwner},
    limits::within,
    names::{InvocationId, ObjectName, PermitId},
    outcome::Trap,
    planted::PlantedBug,
    state::{Blocked, Permit, Status, WakeUp, permit_sum, waiter_sum},
    sum::Sum,
    world::{World, undo::Undo},
};

/// No count is set or given beyond this, whatever the limit, so that permits which come back never
/// overflow it.
const SEMAPHORE_COUNT_MAX: u64 = 1 << 62;

impl World {
    /// Takes a permit if one is free and nobody waits.
    pub(crate) fn try_take(&mut self, object: &ObjectName, name: &[u8]) -> bool {
        let free = self.state.objects[object]
            .semaphores
            .get(name)
            .is_some_and(|semaphore| semaphore.count > 0 && semaphore.waiters.is_empty());
        if free {
            self.remember_semaphore(object, name);
            self.change_semaphore(object, name, |semaphore| semaphore.count -= 1);
        }
        free
    }

    /// Whether one more may wait.
    pub(crate) fn check_waiter(&self, object: &ObjectName, name: &[u8]) -> Result<(), Trap> {
        let limits = self.state.limits();
        let waiters = self.state.objects[object].waiters + 1;
        within("waiters_per_object", limits.waiters_per_object, waiters)?;
        self.check_semaphore(object, name)
    }

    /// Joins the tail of the queue and returns the ticket. The segment ends here, so that there is
    /// nothing to undo.
    pub(crate) fn join_queue(&mut self, object: &ObjectName, name: &[u8], id: InvocationId) -> u64 {
        let ticket = self.change_semaphore(object, name, |semaphore| {
            semaphore.next_ticket += 1;
            // The waiter is inserted below; until then its place keeps the semaphore stored.
            semaphore.waiters.insert(semaphore.next_ticket - 1, id);
            semaphore.next_ticket - 1
        });
        self.count_waiter(object, name, ticket, id);
        ticket
    }

    /// Puts a waiter back to its place in the queue.
    pub(super) fn insert_waiter(
        &mut self,
        object: &ObjectName,
        name: &[u8],
        ticket: u64,
        id: InvocationId,
    ) {
        let twice =
            self.change_semaphore(object, name, |semaphore| semaphore.waiters.insert(ticket, id));
        assert!(twice.is_none(), "a ticket has one waiter");
        self.count_waiter(object, name, ticket, id);
    }

    fn count_waiter(&mut self, object: &ObjectName, name: &[u8], ticket: u64, id: InvocationId) {
        let owner = self.state.object_mut(object).expect("waiters belong to an object");
        owner.waiters += 1;
        let sum = waiter_sum(owner.incarnation, name, ticket, id);
        self.state.adjust_object(object, Sum::default(), sum);
    }

    /// Leaves a queue: cancelled, timed out, or at the head when a permit is there.
    pub(crate) fn leave_queue(&mut self, object: &ObjectName, name: &[u8], ticket: u64) {
        let id = self
            .change_semaphore(object, name, |semaphore| semaphore.waiters.remove(&ticket))
            .expect("a blocked invocation is in its queue");
        let owner = self.state.object_mut(object).expect("waiters belong to an object");
        owner.waiters -= 1;
        let sum = waiter_sum(owner.incarnation, name, ticket, id);
        self.state.adjust_object(object, sum, Sum::default());
    }

    /// Gives permits: to waiters in order of arrival, the rest to the count.
    pub(crate) fn give(
        &mut self,
        object: &ObjectName,
        name: &[u8],
        mut permits: u64,
    ) -> Result<(), Trap> {
        let loses =
            self.planted.has(PlantedBug::LostWakeUp) && self.state.step.0.is_multiple_of(16);
        while permits > 0 && !loses && self.hand_to_head(object, name) {
            permits -= 1;
        }
        if permits == 0 {
            return Ok(());
        }
        let semaphore = self.state.objects[object].semaphores.get(name);
        let count = semaphore.map_or(0, |semaphore| semaphore.count).saturating_add(permits);
        self.check_count(count)?;
        self.check_semaphore(object, name)?;
        self.remember_semaphore(object, name);
        self.change_semaphore(object, name, |semaphore| semaphore.count = count);
        Ok(())
    }

    fn check_count(&self, count: u64) -> Result<(), Trap> {
        let limit = self.state.limits().semaphore_count.min(SEMAPHORE_COUNT_MAX);
        Ok(within("semaphore_count", limit, count)?)
    }

    /// Gives one permit that was there before, so that no limit stands against it.
    pub(crate) fn pass_on(&mut self, object: &ObjectName, name: &[u8]) {
        if !self.hand_to_head(object, name) {
            self.remember_semaphore(object, name);
            self.change_semaphore(object, name, |semaphore| semaphore.count += 1);
        }
    }

    /// Hands a permit to the head of the queue: it goes to the tail of the ready list.
    fn hand_to_head(&mut self, object: &ObjectName, name: &[u8]) -> bool {
        let semaphore = self.state.objects[object].semaphores.get(name);
        let barging = self.planted.has(PlantedBug::Barging);
        let head = semaphore.and_then(|semaphore| match barging {
            false => semaphore.waiters.get_min(),
            true => semaphore.waiters.get_max(),
        });
        let Some(&(ticket, id)) = head else {
            return false;
        };
        let stayed = self.planted.has(PlantedBug::CancelledStaysQueued);
        if stayed && !self.state.invocations.contains_key(&id) {
            self.leave_queue(object, name, ticket);
            return true;
        }
        self.remember_semaphore(object, name);
        let mut invocation = self.take_invocation(id).expect("a waiter is an invocation");
        let Status::Blocked(blocked) = invocation.status else {
            panic!("a waiter is blocked, {id} is not");
        };
        assert_eq!(blocked.ticket, ticket, "a waiter knows its ticket");
        self.leave_queue(object, name, ticket);
        self.record(Undo::Waiter {
            object: object.clone(),
            blocked: blocked.clone(),
            invocation: id,
        });
        if let Some(timeout) = blocked.timeout {
            self.cancel_alarm(timeout);
        }
        invocation.status = Status::Ready(WakeUp::Granted(blocked));
        self.put_invocation(invocation);
        self.ready.push_back(id);
        self.record(Undo::Ready(id));
        true
    }

    /// Sets the count of a semaphore, in `init`.
    pub(crate) fn set_count(
        &mut self,
        object: &ObjectName,
        name: Vec<u8>,
        count: u64,
    ) -> Result<(), Trap> {
        self.check_count(count)?;
        self.check_semaphore(object, &name)?;
        self.remember_semaphore(object, &name);
        self.change_semaphore(object, &name, |semaphore| semaphore.count = count);
        Ok(())
    }

    /// Remembers the counts as `init` left them, for transient objects.
    pub(crate) fn remember_initial_counts(&mut self, object: &ObjectName) {
        let semaphores = &self.state.objects[object].semaphores;
        let counts = semaphores.iter().filter(|(_, semaphore)| semaphore.count > 0);
        let counts = counts.map(|(name, semaphore)| (Arc::clone(name), semaphore.count)).collect();
        self.set_initial_counts(object, counts);
        self.record(Undo::InitialCounts(object.clone()));
    }

    pub(super) fn set_initial_counts(
        &mut self,
        object: &ObjectName,
        counts: OrdMap<Arc<[u8]>, u64>,
    ) {
        let owner = self.state.object_mut(object).expect("only an object has counts");
        let minus = owner.initial_record();
        owner.initial_counts = counts;
        let plus = owner.initial_record();
        self.state.adjust_object(object, minus, plus);
    }

    /// Whether one more owned permit is within the limit.
    pub(crate) fn check_permit(&self, object: &ObjectName) -> Result<(), Trap> {
        let limits = self.state.limits();
        let permits = self.state.objects[object].permits + 1;
        Ok(within("permits_per_object", limits.permits_per_object, permits)?)
    }

    /// Makes a permit that has just been taken an owned one.
    pub(crate) fn own_permit(
        &mut self,
        object: &ObjectName,
        semaphore: &[u8],
        holder: Holder,
    ) -> PermitId {
        let id = self.state.next.take_permit();
        self.remember_semaphore(object, semaphore);
        let permit = Permit { object: object.clone(), semaphore: semaphore.to_vec(), holder };
        self.insert_permit(id, permit);
        self.record(Undo::PermitMade(id));
        id
    }

    /// Takes an owned permit from its owner and gives it to the next. False when nobody owned it.
    pub(crate) fn release(&mut self, id: PermitId) -> bool {
        let Some(permit) = self.state.permits.get(&id).cloned() else {
            return false;
        };
        self.touch(&permit.object);
        self.remember_semaphore(&permit.object, &permit.semaphore);
        self.drop_permit(id);
        self.record(Undo::PermitGone(id, permit.clone()));
        self.pass_on(&permit.object, &permit.semaphore);
        if self.planted.has(PlantedBug::ReleaseTwice) {
            self.pass_on(&permit.object, &permit.semaphore);
        }
        true
    }

    /// Owned permits of a semaphore, oldest first.
    pub(crate) fn owners(&self, object: &ObjectName, name: &[u8]) -> Vec<Owner> {
        let Some(semaphore) = self.state.objects[object].semaphores.get(name) else {
            return Vec::new();
        };
        let most = usize::try_from(self.state.limits().scan_entries).unwrap_or(usize::MAX);
        let owner = |id: &PermitId| Owner { permit: *id, holder: self.state.permits[id].holder };
        semaphore.owners.iter().take(most).map(owner).collect()
    }

    pub(super) fn insert_permit(&mut self, id: PermitId, permit: Permit) {
        self.change_semaphore(&permit.object, &permit.semaphore, |semaphore| {
            semaphore.owners.insert(id);
        });
        let sum = permit_sum(id, &permit);
        self.state.adjust_object(&permit.object, Sum::default(), sum);
        let owner = self.state.object_mut(&permit.object).expect("it was just found");
        owner.permits += 1;
        if let Holder::Session(session) = permit.holder {
            // Undoing the clean-up of a session that is over brings back a permit that its end
            // gives to the next right after.
            if let Some(session) = self.state.session_mut(&session) {
                session.permits.insert(id);
            }
        }
        self.state.permits.insert(id, permit);
    }

    /// Forgets a permit without giving it to anybody.
    pub(crate) fn drop_permit(&mut self, id: PermitId) -> Permit {
        let permit = self.state.permits.remove(&id).expect("only a known permit is dropped");
        self.change_semaphore(&permit.object, &permit.semaphore, |semaphore| {
            semaphore.owners.remove(&id);
        });
        let sum = permit_sum(id, &permit);
        self.state.adjust_object(&permit.object, sum, Sum::default());
        let owner = self.state.object_mut(&permit.object).expect("it was just found");
        owner.permits -= 1;
        if let Holder::Session(session) = permit.holder
            && let Some(session) = self.state.session_mut(&session)
        {
            session.permits.remove(&id);
        }
        permit
    }

    /// Holder of the permit that a body asks for.
    pub(crate) fn holder(
        owner: PermitOwner,
        id: InvocationId,
        session: Option<crate::names::SessionId>,
    ) -> Option<Holder> {
        match owner {
            PermitOwner::Nobody => None,
            PermitOwner::Invocation => Some(Holder::Invocation(id)),
            PermitOwner::Session => session.map(Holder::Session),
        }
    }

    /// The name of a semaphore that is stored, to share it.
    pub(crate) fn semaphore_name(&self, object: &ObjectName, name: &[u8]) -> Arc<[u8]> {
        let stored = self.state.objects[object].semaphores.get_key_value(name);
        stored.map_or_else(|| Arc::from(name), |(name, _)| Arc::clone(name))
    }

    /// Whether the semaphore may come to be stored.
    fn check_semaphore(&self, object: &ObjectName, name: &[u8]) -> Result<(), Trap> {
        let limits = self.state.limits();
        let semaphores = &self.state.objects[object].semaphores;
        if semaphores.contains_key(name) {
            return Ok(());
        }
        within("semaphore_name_bytes", limits.semaphore_name_bytes, name.len() as u64)?;
        let count = semaphores.len() as u64 + 1;
        Ok(within("semaphores_per_object", limits.semaphores_per_object, count)?)
    }

    /// Records the semaphore's own record before it changes. Recorded first, so undone last, when
    /// waiters and owners are back and the semaphore is stored again.
    fn remember_semaphore(&mut self, object: &ObjectName, name: &[u8]) {
        let semaphore = self.state.objects[object].semaphores.get(name);
        let (count, next_ticket) =
            semaphore.map_or((0, 0), |semaphore| (semaphore.count, semaphore.next_ticket));
        self.record(Undo::Semaphore {
            object: object.clone(),
            name: name.to_vec(),
            count,
            next_ticket,
        });
    }
}

/// The wait that a woken invocation was in.
pub(crate) fn wait_of(wake_up: &WakeUp) -> &Blocked {
    match wake_up {
        WakeUp::Granted(blocked) | WakeUp::TimedOut(blocked) | WakeUp::Cancelled(blocked) => {
            blocked
        }
    }
}
