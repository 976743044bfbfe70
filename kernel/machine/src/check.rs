//! What makes a state sound: sums, counts and references agree with the records.
//!
//! Run when an image is loaded, by tests after every step, and by whoever doubts a replica.
//! Invariant: everything that the rest of the machine panics about if it is not so, and that a
//! state could say otherwise, is demanded here.
//! Not here: bytes of images (`image.rs`).

use imbl::OrdSet;

use crate::{
    host_call::Holder,
    image::ImageError,
    machine::Machine,
    names::{InvocationId, ObjectName, PermitId, SessionId},
    state::{
        AlarmAction, Invocation, Object, Open, Origin, Semaphore, Session, State, Status,
        permit_sum, waiter_sum,
    },
    sum::Sum,
};

type Checked<T = ()> = Result<T, ImageError>;

impl<E> Machine<E> {
    /// Recomputes every sum and count of the state, and follows every reference.
    ///
    /// # Errors
    /// Names the first that is wrong: this replica is broken and must stop.
    pub fn check_state(&self) -> Result<(), ImageError> {
        check(&self.world.state)
    }
}

/// Checks a whole state.
pub(crate) fn check(state: &State) -> Checked {
    let mut total = Sum::default();
    let (mut waiters, mut permits) = (0, 0);
    for (name, object) in &state.objects {
        total += object_sum(state, name, object)?;
        waiters += object.waiters;
        permits += object.permits;
    }
    for (id, session) in &state.sessions {
        total += session_sum(state, *id, session)?;
    }
    let bytes: u64 = state.objects.values().map(|object| object.bytes).sum();
    demand(bytes == state.state_bytes, || "the count of all bytes".into())?;
    demand(waiters == state.invocations.len() as u64, || {
        "an invocation that is in no queue".into()
    })?;
    demand(permits == state.permits.len() as u64, || "a permit of no semaphore".into())?;
    demand(state.find_faulty() == state.faulty, || "the list of faulty objects".into())?;
    check_alarms(state)?;
    check_nonces(state)?;
    for (name, class) in &state.classes {
        for (code, module) in class.modules() {
            let sound = crate::code::CodeHash::of(module) == code;
            demand(sound, || format!("a module of class {name}"))?;
        }
    }
    demand(total == state.total, || "the sum of the whole state".into())
}

/// Sum of an object's records.
fn object_sum(state: &State, name: &ObjectName, object: &Object) -> Checked<Sum> {
    let damaged = |what: &str| format!("{what} of object {name}");
    let mut sum = object.head();
    sum += object.initial_record();
    let mut bytes = 0;
    for (key, entry) in &object.entries {
        bytes += (key.len() + entry.value.len()) as u64;
        let entry_sum = Sum::of_entry(object.incarnation.0, key, &entry.value);
        demand(entry_sum == entry.sum, || damaged("an entry"))?;
        sum += entry_sum;
    }
    let (mut waiters, mut permits) = (0, 0);
    for (semaphore_name, semaphore) in &object.semaphores {
        waiters += semaphore.waiters.len() as u64;
        permits += semaphore.owners.len() as u64;
        sum += semaphore_sum(state, name, object, semaphore_name, semaphore)?;
    }
    for &id in &object.alarms {
        let alarm = state.alarms.get(&id).filter(|alarm| alarm.object == *name);
        sum += alarm.ok_or_else(|| damage(damaged("an alarm")))?.record(id);
    }
    for fault in &object.faults {
        sum += object.fault_record(fault);
    }
    let counted = (bytes, waiters, permits) == (object.bytes, object.waiters, object.permits);
    demand(counted, || damaged("a count"))?;
    demand(sum == object.sum, || damaged("the sum"))?;
    let class = state.classes.get(&name.class);
    let known = class.is_some_and(|class| class.interface_of(object.code).is_some());
    demand(known, || damaged("the class"))?;
    Ok(sum)
}

fn semaphore_sum(
    state: &State,
    name: &ObjectName,
    object: &Object,
    semaphore_name: &[u8],
    semaphore: &Semaphore,
) -> Checked<Sum> {
    let damaged = |what: &str| {
        let semaphore = String::from_utf8_lossy(semaphore_name);
        format!("{what} of semaphore {semaphore} of object {name}")
    };
    demand(!semaphore.is_fresh(), || damaged("the presence"))?;
    let barged = semaphore.count > 0 && !semaphore.waiters.is_empty();
    demand(!barged, || damaged("the queue, for there are free permits,"))?;
    let mut sum = semaphore.record(object.incarnation, semaphore_name);
    demand(sum == semaphore.sum, || damaged("the record"))?;
    for (&ticket, &id) in &semaphore.waiters {
        let waiter = state.invocations.get(&id).filter(|invocation| {
            invocation.frame.object == *name
                && invocation.frame.incarnation == object.incarnation
                && ticket < semaphore.next_ticket
                && matches!(&invocation.status, Status::Blocked(blocked)
                    if blocked.ticket == ticket && *blocked.semaphore == *semaphore_name)
        });
        let waiter = waiter.ok_or_else(|| damage(damaged("a waiter")))?;
        sum += waiter_sum(object.incarnation, semaphore_name, ticket, id);
        sum += invocation_sum(state, id, waiter)?;
    }
    for &id in &semaphore.owners {
        let permit = state.permits.get(&id).filter(|permit| {
            permit.object == *name
                && permit.semaphore == semaphore_name
                && holder_knows(state, id, permit.holder)
        });
        sum += permit_sum(id, permit.ok_or_else(|| damage(damaged("a permit")))?);
    }
    Ok(sum)
}

fn holder_knows(state: &State, id: PermitId, holder: Holder) -> bool {
    match holder {
        Holder::Invocation(invocation) => state
            .invocations
            .get(&invocation)
            .is_some_and(|invocation| invocation.permits.contains(&id)),
        Holder::Session(session) => {
            state.sessions.get(&session).is_some_and(|session| session.permits.contains(&id))
        }
    }
}

/// Sum of the records of a blocked invocation: its own, its deadline, the end of its wait.
fn invocation_sum(state: &State, id: InvocationId, invocation: &Invocation) -> Checked<Sum> {
    let damaged = |what: &str| format!("{what} of invocation {id}");
    demand(invocation.id == id, || damaged("the id"))?;
    demand(invocation.frame.journal.is_sound(), || damaged("the journal"))?;
    let frame = &invocation.frame;
    let class = state.classes.get(&frame.object.class);
    let known = class.is_some_and(|class| class.interface_of(frame.code).is_some());
    demand(known, || damaged("the code"))?;
    let mut sum = invocation.record();
    demand(sum == invocation.sum, || damaged("the record"))?;
    let known = match invocation.origin {
        Origin::Alarm(_) => true,
        Origin::Request { session, number } => {
            state.sessions.get(&session).map_or(invocation.detached, |session| {
                session.open.get(&number) == Some(&Open::Invocation(id))
            })
        }
    };
    demand(known, || damaged("the request"))?;
    let lent = invocation.lender().is_none_or(|lender| {
        let lender = state.sessions.get(&lender);
        lender.map_or(invocation.detached, |session| session.lent.contains(&id))
    });
    demand(lent, || damaged("the lent session"))?;
    let timeout = match &invocation.status {
        Status::Blocked(blocked) => blocked.timeout,
        Status::Running | Status::Ready(_) => None,
    };
    let deadline = invocation.deadline.map(|alarm| (alarm, AlarmAction::Deadline(id)));
    let timeout = timeout.map(|alarm| (alarm, AlarmAction::WaitTimeout(id)));
    for (alarm_id, action) in [deadline, timeout].into_iter().flatten() {
        let alarm = state.alarms.get(&alarm_id).filter(|alarm| {
            alarm.action == action && alarm.object == invocation.frame.object && alarm.due.is_some()
        });
        sum += alarm.ok_or_else(|| damage(damaged("an alarm")))?.record(alarm_id);
    }
    Ok(sum)
}

fn session_sum(state: &State, id: SessionId, session: &Session) -> Checked<Sum> {
    let damaged = |what: &str| format!("{what} of session {id}");
    let mut sum = session.record(id);
    demand(sum == session.head, || damaged("the record"))?;
    for (&number, reply) in &session.replies {
        demand(!session.open.contains_key(&number), || damaged("an open request"))?;
        let sound = number <= session.last_admitted && reply.sum == reply.record(id, number);
        demand(sound, || damaged("a reply"))?;
        sum += reply.sum;
    }
    for (&number, open) in &session.open {
        let known = match open {
            Open::Invocation(invocation) => state
                .invocations
                .get(invocation)
                .is_some_and(|found| found.origin == Origin::Request { session: id, number }),
            Open::PutClass => true,
        };
        demand(known && number <= session.last_admitted, || damaged("an open request"))?;
    }
    let first = session.next_event.saturating_sub(session.events.len() as u64);
    for (number, event) in (first..).zip(&session.events) {
        demand(event.number == number, || damaged("an event"))?;
        sum += event.record(id);
    }
    let permits = session.permits.iter().all(|permit| {
        state.permits.get(permit).is_some_and(|permit| permit.holder == Holder::Session(id))
    });
    demand(permits, || damaged("a permit"))?;
    demand(sum == session.sum, || damaged("the sum"))?;
    Ok(sum)
}

/// Alarms, what is due, and the watches of sessions.
fn check_alarms(state: &State) -> Checked {
    let mut due = OrdSet::new();
    let mut watches = 0;
    for (&id, alarm) in &state.alarms {
        let damaged = || format!("alarm {id}");
        if let Some(time) = alarm.due {
            due.insert((time, id));
        }
        let object = state.objects.get(&alarm.object);
        let object = object.ok_or_else(|| damage(damaged()))?;
        let sound = match &alarm.action {
            AlarmAction::Deadline(invocation) | AlarmAction::WaitTimeout(invocation) => {
                state.invocations.contains_key(invocation)
            }
            AlarmAction::Handler { incarnation, watched, .. } => {
                let watching = watched.filter(|_| alarm.due.is_none());
                watches += usize::from(watching.is_some());
                let session = watching.and_then(|session| state.sessions.get(&session));
                let known = session.is_some_and(|session| session.watches.contains(&id));
                *incarnation == object.incarnation
                    && object.alarms.contains(&id)
                    && (known || watching.is_none())
            }
        };
        demand(sound, damaged)?;
    }
    let watched: usize = state.sessions.values().map(|session| session.watches.len()).sum();
    demand(watches == watched, || "the watches of a session".into())?;
    demand(due == state.due, || "the list of what is due".into())
}

fn check_nonces(state: &State) -> Checked {
    let known = state
        .nonces
        .iter()
        .all(|(nonce, id)| state.sessions.get(id).is_some_and(|session| session.nonce == *nonce));
    let all = state.nonces.len() == state.sessions.len();
    demand(known && all, || "the nonce of a session".into())
}

fn demand(holds: bool, what: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(damage(what())) }
}

const fn damage(what: String) -> ImageError {
    ImageError::Damaged { what }
}
