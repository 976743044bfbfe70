//! `Lock`: callers wait for the holder, as long as it takes or for a while.

use std::time::Duration;

use gesmas_abi::value::to_bytes;
use gesmas_lock::LockError;
use gesmas_machine::{CallError, Limits, SessionId};

use super::{Script, Standard};
use crate::writer::{Call, Writer};

pub(super) const LOCK: Standard = Standard {
    name: "Lock",
    // Before it waits a call tries the lock, then its owner's line, or a place among those that wait for
    // another call of their owner.
    points: &[
        ("lock", 3, "mutex"),
        ("lock", 3, "line"),
        ("lock", 4, "mutex"),
        ("lock_for", 3, "mutex"),
        ("lock_for", 3, "line"),
        ("lock_for", 4, "mutex"),
    ],
    scripts: &[Script { class: "Lock", limits: Limits::default, write }],
};

/// The object; calls create it.
const LEADER: &str = "leader";
/// The owner of most calls, of whatever session.
const OWNER: u64 = 1;
/// Another owner of the same session.
const OTHER: u64 = 2;

fn write(w: &mut Writer<'_>) {
    let clients = w.open();
    waits_without_end(w, clients);
    waits_for_a_while(w, clients);
    holders_die(w, clients);
    removal(w, clients);
}

fn lock(w: &mut Writer<'_>, by: SessionId) -> Call {
    w.call(by, LEADER, "lock", &(OWNER,))
}

fn lock_for(w: &mut Writer<'_>, by: SessionId, nanoseconds: u64) -> Call {
    w.call(by, LEADER, "lock_for", &(OWNER, Duration::from_nanos(nanoseconds)))
}

fn try_lock(w: &mut Writer<'_>, by: SessionId) -> Call {
    w.call(by, LEADER, "try_lock", &(OWNER,))
}

fn unlock(w: &mut Writer<'_>, by: SessionId, token: u64) {
    let unlocked = w.call(by, LEADER, "unlock", &(token,));
    w.result::<()>(unlocked);
}

/// The token of a call that waited for a while and got the lock.
fn token_in_time(w: &Writer<'_>, call: Call) -> u64 {
    w.result::<Option<u64>>(call).expect("it got the lock in time")
}

/// A call was cancelled, which this class says in an error of its own.
fn assert_cancelled(w: &Writer<'_>, call: Call) {
    assert_eq!(*w.error(call), CallError::Failed(to_bytes(&LockError::Cancelled)));
}

/// Callers wait in their order; some leave it in each of the ways there are.
fn waits_without_end(w: &mut Writer<'_>, [ann, bob, cid]: [SessionId; 3]) {
    let [dan] = w.open();
    let held = lock(w, ann);
    let second = lock(w, bob);
    let late = w.call_within(30, cid, LEADER, "lock", &(OWNER,));
    let unwanted = lock(w, cid);
    let orphan = lock(w, dan);
    let killed = lock(w, cid);
    let own = w.call(ann, LEADER, "lock", &(OTHER,));
    let again = lock(w, ann);
    let (none, third) = w.together(|w| (try_lock(w, bob), lock(w, cid)));
    assert_eq!(w.result::<Option<u64>>(none), None);
    w.blocked(&[second, late, unwanted, orphan, killed, own, third]);
    w.again(second);
    w.cancel(unwanted);
    assert_cancelled(w, unwanted);
    w.kill(bob, killed);
    assert_cancelled(w, killed);
    w.pass(30);
    assert_cancelled(w, late);
    let first = w.result::<u64>(held);
    assert_eq!(w.result::<u64>(again), first);
    unlock(w, ann, first);
    w.blocked(&[second, orphan, own, third]);
    unlock(w, ann, first);
    let next = w.result::<u64>(second);
    assert!(next > first);
    w.close(dan);
    assert!(w.is_untold(orphan));
    w.elect();
    w.blocked(&[own, third]);
    unlock(w, bob, next);
    let next = w.result::<u64>(own);
    unlock(w, ann, next);
    let next = w.result::<u64>(third);
    unlock(w, cid, next);
    w.blocked(&[]);
}

/// Callers wait for a while: until the time is up, until they get the lock, or until they are
/// cancelled.
fn waits_for_a_while(w: &mut Writer<'_>, [ann, bob, cid]: [SessionId; 3]) {
    let [eve] = w.open();
    let held = try_lock(w, ann);
    let impatient = lock_for(w, bob, 20);
    let patient = lock_for(w, cid, 10_000);
    let unwanted = lock_for(w, bob, 10_000);
    let orphan = lock_for(w, eve, 10_000);
    let killed = lock_for(w, cid, 10_000);
    let arguments = (OWNER, Duration::from_nanos(10_000));
    let late = w.call_within(40, bob, LEADER, "lock_for", &arguments);
    let last = lock_for(w, bob, 10_000);
    w.blocked(&[impatient, patient, unwanted, orphan, killed, late, last]);
    w.again(patient);
    w.pass(20);
    assert_eq!(w.result::<Option<u64>>(impatient), None);
    w.cancel(unwanted);
    assert_cancelled(w, unwanted);
    w.kill(ann, killed);
    assert_cancelled(w, killed);
    w.expire(eve);
    assert!(w.is_untold(orphan));
    w.pass(40);
    assert_cancelled(w, late);
    w.blocked(&[patient, last]);
    let token = token_in_time(w, held);
    unlock(w, ann, token);
    let token = token_in_time(w, patient);
    unlock(w, cid, token);
    let token = token_in_time(w, last);
    unlock(w, bob, token);
    w.pass(20_000);
}

/// Sessions that hold the lock end, and the next in the queue has it.
fn holders_die(w: &mut Writer<'_>, [ann, bob, cid]: [SessionId; 3]) {
    let [fay, gus] = w.open();
    let held = lock(w, fay);
    let own = w.call(fay, LEADER, "lock_for", &(OTHER, Duration::from_nanos(10_000)));
    let second = lock(w, gus);
    let third = lock_for(w, ann, 10_000);
    w.blocked(&[own, second, third]);
    w.expire(fay);
    assert!(w.is_untold(own));
    assert!(w.result::<u64>(second) > w.result::<u64>(held));
    w.blocked(&[third]);
    let fourth = w.together(|w| {
        let fourth = lock(w, bob);
        w.close(gus);
        fourth
    });
    let token = token_in_time(w, third);
    w.blocked(&[fourth]);
    w.acknowledge(third);
    let last = lock_for(w, cid, 10_000);
    unlock(w, ann, token);
    let token = w.result::<u64>(fourth);
    unlock(w, bob, token);
    let token = token_in_time(w, last);
    unlock(w, cid, token);
}

/// The object goes, and its waiters with it.
fn removal(w: &mut Writer<'_>, [ann, bob, cid]: [SessionId; 3]) {
    lock(w, ann);
    let waiters = [lock(w, bob), lock_for(w, cid, 10_000)];
    w.blocked(&waiters);
    w.remove(ann, LEADER);
    for waiter in waiters {
        assert_eq!(*w.error(waiter), CallError::ObjectRemoved);
    }
    w.pass(20_000);
}
