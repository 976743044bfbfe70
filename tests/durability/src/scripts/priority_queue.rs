//! `PriorityQueue`: takers wait for items.

use std::time::Duration;

use gesmas_abi::value::Bytes;
use gesmas_machine::{Limits, SessionId};
use gesmas_priority_queue::Prioritized;

use super::{Script, Standard, leave, removal};
use crate::writer::{Call, Writer};

pub(super) const PRIORITY_QUEUE: Standard = Standard {
    name: "PriorityQueue",
    points: &[("take", 1, "filled"), ("take_for", 1, "filled")],
    scripts: &[Script { class: "PriorityQueue", limits: Limits::default, write }],
};

/// The object; calls create it.
const TICKETS: &str = "tickets";

fn put(w: &mut Writer<'_>, by: SessionId, item: &str, priority: i64) -> Call {
    w.call(by, TICKETS, "put", &(Bytes::from(item), priority))
}

fn write(w: &mut Writer<'_>) {
    let [ann, bob, cid] = w.open();
    let (short, long) = (Duration::from_nanos(20), Duration::from_nanos(10_000));
    let of = |item: &str, priority| Prioritized { item: item.into(), priority };
    leave(w, [ann, bob], (TICKETS, "take"), &());
    leave(w, [ann, bob], (TICKETS, "take_for"), &(long,));
    let first = w.call(ann, TICKETS, "take", &());
    let impatient = w.call(bob, TICKETS, "take_for", &(short,));
    let patient = w.call(cid, TICKETS, "take_for", &(long,));
    w.blocked(&[first, impatient, patient]);
    put(w, ann, "a", 9);
    assert_eq!(w.result::<Prioritized>(first), of("a", 9));
    w.pass(20);
    assert_eq!(w.result::<Option<Prioritized>>(impatient), None);
    w.together(|w| (put(w, ann, "b", 7), put(w, bob, "c", -7), put(w, ann, "d", -7)));
    assert_eq!(w.result::<Option<Prioritized>>(patient), Some(of("b", 7)));
    w.elect();
    let next = w.call(ann, TICKETS, "try_take", &());
    assert_eq!(w.result::<Option<Prioritized>>(next), Some(of("c", -7)));
    w.again(next);
    let next = w.call(ann, TICKETS, "take", &());
    assert_eq!(w.result::<Prioritized>(next), of("d", -7));
    let none = w.call(ann, TICKETS, "try_take", &());
    assert_eq!(w.result::<Option<Prioritized>>(none), None);
    let waiters = [w.call(ann, TICKETS, "take", &()), w.call(bob, TICKETS, "take_for", &(long,))];
    removal(w, cid, TICKETS, &waiters);
    w.pass(20_000);
}
