//! `DelayQueue`: takers wait for items that are due.

use std::time::Duration;

use gesmas_abi::value::Bytes;
use gesmas_machine::{Limits, SessionId};

use super::{Script, Standard, leave, removal};
use crate::writer::{Call, Writer};

pub(super) const DELAY_QUEUE: Standard = Standard {
    name: "DelayQueue",
    points: &[("take", 1, "filled"), ("take_for", 1, "filled")],
    scripts: &[Script { class: "DelayQueue", limits: Limits::default, write }],
};

/// The object; calls create it.
const REMINDERS: &str = "reminders";

/// One millisecond in nanoseconds.
const MILLISECOND: u64 = 1_000_000;

fn put(w: &mut Writer<'_>, by: SessionId, item: &str, milliseconds: u64) -> Call {
    w.call(by, REMINDERS, "put", &(Bytes::from(item), Duration::from_millis(milliseconds)))
}

fn write(w: &mut Writer<'_>) {
    let [ann, bob, cid] = w.open();
    let long = Duration::from_millis(10_000);
    put(w, cid, "last", 5_000);
    leave(w, [ann, bob], (REMINDERS, "take"), &());
    leave(w, [ann, bob], (REMINDERS, "take_for"), &(long,));
    let first = w.call(ann, REMINDERS, "take", &());
    let impatient = w.call(bob, REMINDERS, "take_for", &(Duration::from_nanos(20),));
    let patient = w.call(cid, REMINDERS, "take_for", &(long,));
    w.blocked(&[first, impatient, patient]);
    // The timer of the first item is for one that comes before it.
    put(w, ann, "second", 400);
    put(w, ann, "first", 200);
    w.pass(20);
    assert_eq!(w.result::<Option<Bytes>>(impatient), None);
    w.blocked(&[first, patient]);
    w.pass(200 * MILLISECOND);
    assert_eq!(w.result::<Bytes>(first), "first".into());
    w.elect();
    w.pass(200 * MILLISECOND);
    assert_eq!(w.result::<Option<Bytes>>(patient), Some("second".into()));
    put(w, ann, "at once", 0);
    let next = w.call(bob, REMINDERS, "try_take", &());
    assert_eq!(w.result::<Option<Bytes>>(next), Some("at once".into()));
    w.again(next);
    let last = w.call(bob, REMINDERS, "take", &());
    w.pass(6_000 * MILLISECOND);
    assert_eq!(w.result::<Bytes>(last), "last".into());
    let none = w.call(bob, REMINDERS, "try_take", &());
    assert_eq!(w.result::<Option<Bytes>>(none), None);
    put(w, ann, "never", 5_000);
    let waiters =
        [w.call(ann, REMINDERS, "take", &()), w.call(bob, REMINDERS, "take_for", &(long,))];
    removal(w, cid, REMINDERS, &waiters);
    w.pass(20_000 * MILLISECOND);
}
