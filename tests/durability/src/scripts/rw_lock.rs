//! `RwLock`: one call waits for room, the others for their turn.

use std::time::Duration;

use gesmas_machine::{Limits, SessionId};

use super::{Script, Standard, leave, removal};
use crate::writer::{Call, Writer};

pub(super) const RW_LOCK: Standard = Standard {
    name: "RwLock",
    points: &[
        // Before it waits a call tries its turn, and room or a place.
        ("read_lock", 3, "line"),
        ("read_lock", 4, "turn"),
        ("read_lock", 5, "room"),
        ("read_lock_for", 3, "line"),
        ("read_lock_for", 4, "turn"),
        ("read_lock_for", 5, "room"),
        ("write_lock", 3, "line"),
        ("write_lock", 4, "turn"),
        ("write_lock", 5, "room"),
        ("write_lock_for", 3, "line"),
        ("write_lock_for", 4, "turn"),
        ("write_lock_for", 5, "room"),
    ],
    scripts: &[Script { class: "RwLock", limits: Limits::default, write }],
};

/// The object; calls create it.
const CATALOGUE: &str = "catalogue";
/// The owner of most calls, of whatever session.
const OWNER: u64 = 1;
/// Another owner of the same session.
const OTHER: u64 = 2;
/// Longer than anything waits here.
const LONG: Duration = Duration::from_nanos(10_000);

fn write(w: &mut Writer<'_>) {
    let clients = w.open();
    queues(w, clients);
    waits_for_a_while(w, clients);
    holders_die(w, clients);
    let [ann, bob, cid] = clients;
    call(w, ann, "write_lock");
    let waiters =
        [call(w, bob, "read_lock"), w.call(cid, CATALOGUE, "write_lock_for", &(OWNER, LONG))];
    removal(w, ann, CATALOGUE, &waiters);
    w.pass(20_000);
}

fn call(w: &mut Writer<'_>, by: SessionId, method: &str) -> Call {
    w.call(by, CATALOGUE, method, &(OWNER,))
}

fn unlock(w: &mut Writer<'_>, by: SessionId, token: u64) {
    let unlocked = w.call(by, CATALOGUE, "unlock", &(token,));
    w.result::<()>(unlocked);
}

fn queues(w: &mut Writer<'_>, [ann, bob, cid]: [SessionId; 3]) {
    let held = w.call(ann, CATALOGUE, "try_write_lock", &(OTHER,));
    let held = w.result::<Option<u64>>(held).expect("it is free");
    for method in ["try_write_lock", "try_read_lock"] {
        let none = call(w, bob, method);
        assert_eq!(w.result::<Option<u64>>(none), None);
    }
    for method in ["read_lock", "write_lock"] {
        leave(w, [ann, bob], (CATALOGUE, method), &(OWNER,));
    }
    for method in ["read_lock_for", "write_lock_for"] {
        leave(w, [ann, bob], (CATALOGUE, method), &(OWNER, LONG));
    }
    let readers = [call(w, ann, "read_lock"), call(w, bob, "read_lock")];
    let writer = call(w, cid, "write_lock");
    let late = w.call(bob, CATALOGUE, "read_lock", &(OTHER,));
    w.blocked(&[readers[0], readers[1], writer, late]);
    w.again(writer);
    unlock(w, ann, held);
    w.blocked(&[writer, late]);
    w.elect();
    for (by, reader) in [ann, bob].into_iter().zip(readers) {
        w.blocked(&[writer, late]);
        let token = w.result::<u64>(reader);
        unlock(w, by, token);
    }
    let token = w.result::<u64>(writer);
    unlock(w, cid, token);
    let token = w.result::<u64>(late);
    let shared = call(w, ann, "try_read_lock");
    let shared = w.result::<Option<u64>>(shared).expect("readers share");
    unlock(w, bob, token);
    unlock(w, ann, shared);
}

fn waits_for_a_while(w: &mut Writer<'_>, [ann, bob, cid]: [SessionId; 3]) {
    let for_a_while = |w: &mut Writer<'_>, by, method: &str, nanoseconds| {
        w.call(by, CATALOGUE, method, &(OWNER, Duration::from_nanos(nanoseconds)))
    };
    let held = call(w, ann, "write_lock");
    let held = w.result::<u64>(held);
    let short = for_a_while(w, bob, "read_lock_for", 20);
    let behind = for_a_while(w, cid, "write_lock_for", 20);
    let long = for_a_while(w, bob, "read_lock_for", 10_000);
    let last = for_a_while(w, cid, "write_lock_for", 10_000);
    w.blocked(&[short, behind, long, last]);
    w.pass(20);
    for late in [short, behind] {
        assert_eq!(w.result::<Option<u64>>(late), None);
    }
    w.blocked(&[long, last]);
    unlock(w, ann, held);
    let token = w.result::<Option<u64>>(long).expect("nobody writes");
    w.blocked(&[last]);
    unlock(w, bob, token);
    let token = w.result::<Option<u64>>(last).expect("nobody reads");
    unlock(w, cid, token);
    w.pass(20_000);
}

fn holders_die(w: &mut Writer<'_>, [_, bob, cid]: [SessionId; 3]) {
    let [fay, gus, hal] = w.open();
    call(w, fay, "read_lock");
    call(w, gus, "read_lock");
    let writer = call(w, hal, "write_lock");
    let reader = call(w, bob, "read_lock");
    w.expire(fay);
    w.blocked(&[writer, reader]);
    w.close(gus);
    w.result::<u64>(writer);
    let last = call(w, cid, "write_lock");
    w.blocked(&[reader, last]);
    w.expire(hal);
    let token = w.result::<u64>(reader);
    w.blocked(&[last]);
    unlock(w, bob, token);
    let token = w.result::<u64>(last);
    unlock(w, cid, token);
}
