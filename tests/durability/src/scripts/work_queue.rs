//! `WorkQueue`: takers wait for jobs, and jobs for what becomes of their leases.

use std::time::Duration;

use gesmas_abi::value::{Bytes, Time};
use gesmas_machine::{CallError, Limits, SessionId};
use gesmas_work_queue::Delivery;

use super::{Script, Standard, leave, removal};
use crate::writer::{Call, Writer};

pub(super) const WORK_QUEUE: Standard = Standard {
    name: "WorkQueue",
    points: &[("take", 1, "filled"), ("take_for", 1, "filled")],
    scripts: &[Script { class: "WorkQueue", limits: Limits::default, write }],
};

/// The object.
const MAIL: &str = "mail";
/// How long leases last that do not run out here.
const LONG: Duration = Duration::from_secs(100);
/// How long those do that run out.
const SHORT: Duration = Duration::from_millis(10);
/// The same in nanoseconds.
const OVER: u64 = 10_000_000;
/// How long a job waits that comes back after its first delivery, nanoseconds.
const PAUSE: u64 = 1_000_000_000;

fn write(w: &mut Writer<'_>) {
    let clients = w.open();
    w.create(clients[0], MAIL, &2_u32);
    takers(w, clients);
    leases(w, clients);
    dead_letters(w, clients);
    let [ann, bob, cid] = clients;
    let waiters =
        [w.call(ann, MAIL, "take", &(LONG,)), w.call(bob, MAIL, "take_for", &(LONG, LONG))];
    removal(w, cid, MAIL, &waiters);
    w.pass(200_000_000_000);
}

fn put(w: &mut Writer<'_>, by: SessionId, item: &str) -> u64 {
    let put = w.call(by, MAIL, "put", &(Bytes::from(item), None::<Duration>));
    w.result::<u64>(put)
}

fn take(w: &mut Writer<'_>, by: SessionId, lease: Duration) -> Delivery {
    let taken = w.call(by, MAIL, "take", &(lease,));
    w.result::<Delivery>(taken)
}

fn finish(w: &mut Writer<'_>, by: SessionId, method: &str, lease: u64) -> Call {
    w.call(by, MAIL, method, &(lease,))
}

fn give_back(w: &mut Writer<'_>, by: SessionId, lease: u64, delay: Option<Duration>) {
    let given = w.call(by, MAIL, "nack", &(lease, delay));
    w.result::<()>(given);
}

fn takers(w: &mut Writer<'_>, [ann, bob, cid]: [SessionId; 3]) {
    leave(w, [ann, bob], (MAIL, "take"), &(LONG,));
    leave(w, [ann, bob], (MAIL, "take_for"), &(LONG, LONG));
    let first = w.call(ann, MAIL, "take", &(LONG,));
    let impatient = w.call(bob, MAIL, "take_for", &(LONG, Duration::from_nanos(20)));
    let patient = w.call(cid, MAIL, "take_for", &(LONG, LONG));
    w.blocked(&[first, impatient, patient]);
    let id = put(w, bob, "a");
    let taken = w.result::<Delivery>(first);
    assert_eq!((taken.id, taken.deliveries), (id, 1));
    w.pass(20);
    assert_eq!(w.result::<Option<Delivery>>(impatient), None);
    w.elect();
    let id = put(w, bob, "b");
    let other = w.result::<Option<Delivery>>(patient).expect("a job is ready");
    assert_eq!(other.id, id);
    for lease in [taken.lease, other.lease] {
        let done = finish(w, ann, "ack", lease);
        w.result::<()>(done);
        w.again(done);
        let late = finish(w, ann, "ack", lease);
        assert!(matches!(w.error(late), CallError::Failed(_)));
    }
}

fn leases(w: &mut Writer<'_>, [ann, bob, _]: [SessionId; 3]) {
    let [gus] = w.open();
    let id = put(w, ann, "c");
    let taken = take(w, gus, SHORT);
    let extended = w.call(gus, MAIL, "extend", &(taken.lease, SHORT * 2));
    assert!(w.result::<Time>(extended) > taken.ends);
    w.expire(gus);
    let next = w.call(bob, MAIL, "take", &(LONG,));
    w.pass(2 * OVER);
    w.blocked(&[next]);
    // The lease is over, and the job waits.
    let delayed = w.call(ann, MAIL, "put", &(Bytes::from("later"), Some(SHORT)));
    let delayed = w.result::<u64>(delayed);
    w.pass(OVER);
    let first = w.result::<Delivery>(next);
    assert_eq!(first.id, delayed);
    let done = finish(w, bob, "ack", first.lease);
    w.result::<()>(done);
    let next = w.call(bob, MAIL, "take", &(LONG,));
    w.pass(PAUSE - 2 * OVER);
    w.blocked(&[next]);
    w.pass(2 * OVER);
    let next = w.result::<Delivery>(next);
    assert_eq!((next.id, next.deliveries), (id, 2));
    let done = finish(w, bob, "ack", next.lease);
    w.result::<()>(done);
}

fn dead_letters(w: &mut Writer<'_>, [ann, bob, _]: [SessionId; 3]) {
    let id = put(w, ann, "poison");
    for delay in [Some(Duration::ZERO), None] {
        let taken = take(w, bob, LONG);
        assert_eq!(taken.id, id);
        give_back(w, bob, taken.lease, delay);
    }
    let none = w.call(bob, MAIL, "try_take", &(LONG,));
    assert_eq!(w.result::<Option<Delivery>>(none), None);
    let revived = w.call(ann, MAIL, "revive", &(id,));
    w.result::<()>(revived);
    for _ in 0..2 {
        let again = w.call(bob, MAIL, "try_take", &(SHORT,));
        assert_eq!(w.result::<Option<Delivery>>(again).map(|job| job.id), Some(id));
        // The lease is over, and then the pause.
        w.pass(2 * OVER);
        w.pass(PAUSE + OVER);
    }
    let discarded = w.call(ann, MAIL, "discard", &(id,));
    assert_eq!(w.result::<Bytes>(discarded), "poison".into());
}
