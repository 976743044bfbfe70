//! `Semaphore`: one call waits at the gate until enough is free, the others wait for their turn.

use std::time::Duration;

use gesmas_machine::{CallError, Limits, SessionId};

use super::{Script, Standard, leave, removal};
use crate::writer::{Call, Writer};

pub(super) const SEMAPHORE: Standard = Standard {
    name: "Semaphore",
    points: &[
        ("acquire", 1, "turn"),
        ("acquire", 2, "gate"),
        ("acquire_for", 1, "turn"),
        ("acquire_for", 2, "gate"),
    ],
    scripts: &[Script { class: "Semaphore", limits: Limits::default, write }],
};

/// The object.
const LICENCES: &str = "licences";
/// Longer than anything waits here.
const LONG: Duration = Duration::from_nanos(10_000);

fn write(w: &mut Writer<'_>) {
    let clients = w.open();
    w.create(clients[0], LICENCES, &3_u32);
    gathering(w, clients);
    waits_for_a_while(w, clients);
    holders_die(w, clients);
    let [ann, bob, cid] = clients;
    acquire(w, ann, 2);
    let waiters = [acquire(w, bob, 2), w.call(cid, LICENCES, "acquire_for", &(2_u32, LONG))];
    removal(w, ann, LICENCES, &waiters);
    w.pass(20_000);
}

fn acquire(w: &mut Writer<'_>, by: SessionId, permits: u32) -> Call {
    w.call(by, LICENCES, "acquire", &(permits,))
}

fn release(w: &mut Writer<'_>, by: SessionId, grant: u64) {
    let released = w.call(by, LICENCES, "release", &(grant,));
    w.result::<()>(released);
}

fn gathering(w: &mut Writer<'_>, [ann, bob, cid]: [SessionId; 3]) {
    let [first, second] = [acquire(w, ann, 2), acquire(w, ann, 1)];
    let (first, second) = (w.result::<u64>(first), w.result::<u64>(second));
    leave(w, [ann, bob], (LICENCES, "acquire"), &(2_u32,));
    leave(w, [ann, bob], (LICENCES, "acquire_for"), &(2_u32, LONG));
    let gathers = acquire(w, bob, 2);
    let waits = acquire(w, cid, 1);
    let none = w.call(cid, LICENCES, "try_acquire", &(1_u32,));
    assert_eq!(w.result::<Option<u64>>(none), None);
    w.blocked(&[gathers, waits]);
    release(w, ann, second);
    w.again(gathers);
    w.elect();
    // One of two is free, and it may still give up.
    w.blocked(&[gathers, waits]);
    w.cancel(gathers);
    assert!(matches!(w.error(gathers), CallError::Failed(_)));
    let third = w.result::<u64>(waits);
    let gathers = acquire(w, bob, 2);
    release(w, cid, third);
    w.blocked(&[gathers]);
    release(w, ann, first);
    let third = w.result::<u64>(gathers);
    release(w, bob, third);
    let again = w.call(bob, LICENCES, "release", &(third,));
    assert!(matches!(w.error(again), CallError::Failed(_)));
}

fn waits_for_a_while(w: &mut Writer<'_>, [ann, bob, cid]: [SessionId; 3]) {
    let acquire_for = |w: &mut Writer<'_>, by, permits: u32, nanoseconds| {
        let duration = Duration::from_nanos(nanoseconds);
        w.call(by, LICENCES, "acquire_for", &(permits, duration))
    };
    let all = w.call(ann, LICENCES, "try_acquire", &(3_u32,));
    let all = w.result::<Option<u64>>(all).expect("all are free");
    let short = acquire_for(w, bob, 1, 20);
    let behind = acquire_for(w, cid, 1, 20);
    w.blocked(&[short, behind]);
    w.pass(20);
    for late in [short, behind] {
        assert_eq!(w.result::<Option<u64>>(late), None);
    }
    release(w, ann, all);
    let two = acquire(w, ann, 2);
    let two = w.result::<u64>(two);
    let short = acquire_for(w, bob, 2, 20);
    w.blocked(&[short]);
    w.pass(20);
    assert_eq!(w.result::<Option<u64>>(short), None);
    let long = acquire_for(w, bob, 2, 10_000);
    release(w, ann, two);
    let long = w.result::<Option<u64>>(long).expect("all are free");
    release(w, bob, long);
    w.pass(20_000);
}

fn holders_die(w: &mut Writer<'_>, [_, bob, _]: [SessionId; 3]) {
    let [fay, gus] = w.open();
    acquire(w, fay, 2);
    let gathers = acquire(w, gus, 2);
    let waits = acquire(w, bob, 2);
    w.blocked(&[gathers, waits]);
    w.expire(gus);
    assert!(w.is_untold(gathers));
    w.blocked(&[waits]);
    w.close(fay);
    let grant = w.result::<u64>(waits);
    release(w, bob, grant);
}
