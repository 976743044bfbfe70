//! `Queue`: consumers wait for items, producers for room.

use std::time::Duration;

use gesmas_abi::value::Bytes;
use gesmas_machine::{CallError, CancelReason, Limits, SessionId};

use super::{Script, Standard, leave};
use crate::writer::{Call, Writer};

pub(super) const QUEUE: Standard = Standard {
    name: "Queue",
    points: &[
        ("consume", 1, "filled"),
        ("consume_for", 1, "filled"),
        ("produce", 1, "free"),
        ("produce_for", 1, "free"),
    ],
    scripts: &[Script { class: "Queue", limits: Limits::default, write }],
};

/// The object.
const JOBS: &str = "jobs";

fn write(w: &mut Writer<'_>) {
    let clients = w.open();
    w.create(clients[0], JOBS, &2_u32);
    consumers(w, clients);
    producers(w, clients);
    turns(w, clients);
    waits_for_a_while(w, clients);
    removal(w, clients);
}

fn consume(w: &mut Writer<'_>, by: SessionId) -> Call {
    w.call(by, JOBS, "consume", &())
}

fn produce(w: &mut Writer<'_>, by: SessionId, item: &str) -> Call {
    w.call(by, JOBS, "produce", &(Bytes::from(item),))
}

fn item(w: &Writer<'_>, call: Call) -> String {
    String::from_utf8(w.result::<Bytes>(call).0).expect("the script's items are texts")
}

/// Consumers wait in their order; some leave it in each of the ways there are.
fn consumers(w: &mut Writer<'_>, [ann, bob, cid]: [SessionId; 3]) {
    let [dan] = w.open();
    let first = consume(w, ann);
    let late = w.call_within(30, bob, JOBS, "consume", &());
    let unwanted = consume(w, cid);
    let (orphan, other_orphan) = w.together(|w| (consume(w, dan), consume(w, dan)));
    let second = consume(w, ann);
    let killed = consume(w, cid);
    w.blocked(&[first, late, unwanted, orphan, other_orphan, second, killed]);
    w.again(first);
    w.cancel(unwanted);
    assert_eq!(*w.error(unwanted), CallError::Cancelled(CancelReason::Caller));
    produce(w, bob, "apple");
    assert_eq!(item(w, first), "apple");
    w.again(first);
    w.acknowledge(first);
    w.pass(30);
    assert_eq!(*w.error(late), CallError::Cancelled(CancelReason::Deadline));
    w.expire(dan);
    assert!(w.is_untold(orphan) && w.is_untold(other_orphan));
    w.kill(bob, killed);
    assert_eq!(*w.error(killed), CallError::Cancelled(CancelReason::Operator));
    let third = consume(w, bob);
    w.blocked(&[second, third]);
    w.elect();
    w.together(|w| {
        produce(w, cid, "pear");
        produce(w, ann, "plum");
    });
    assert_eq!((item(w, second), item(w, third)), ("pear".into(), "plum".into()));
    w.blocked(&[]);
}

/// The queue is full, and producers wait.
fn producers(w: &mut Writer<'_>, [ann, bob, cid]: [SessionId; 3]) {
    let [eve] = w.open();
    w.together(|w| {
        produce(w, ann, "1");
        produce(w, ann, "2");
    });
    let third = produce(w, bob, "3");
    let late = w.call_within(40, cid, JOBS, "produce", &(Bytes::from("late"),));
    let unwanted = produce(w, bob, "unwanted");
    let orphan = produce(w, eve, "orphan");
    let (fourth, killed) = w.together(|w| (produce(w, ann, "4"), produce(w, cid, "killed")));
    let fifth = produce(w, bob, "5");
    w.blocked(&[third, late, unwanted, orphan, fourth, killed, fifth]);
    let taken = consume(w, ann);
    assert_eq!(item(w, taken), "1");
    w.result::<()>(third);
    w.cancel(unwanted);
    assert_eq!(*w.error(unwanted), CallError::Cancelled(CancelReason::Caller));
    w.kill(ann, killed);
    assert_eq!(*w.error(killed), CallError::Cancelled(CancelReason::Operator));
    w.again(fourth);
    w.pass(40);
    assert_eq!(*w.error(late), CallError::Cancelled(CancelReason::Deadline));
    w.close(eve);
    assert!(w.is_untold(orphan));
    w.blocked(&[fourth, fifth]);
    let (second, last) = w.together(|w| (consume(w, cid), consume(w, cid)));
    assert_eq!((item(w, second), item(w, last)), ("2".into(), "3".into()));
    w.blocked(&[]);
    let rest = w.together(|w| (consume(w, ann), consume(w, ann)));
    assert_eq!((item(w, rest.0), item(w, rest.1)), ("4".into(), "5".into()));
}

/// One entry ends a wait in each way: a deadline, an expiry, a cancellation, an item.
fn turns(w: &mut Writer<'_>, [ann, bob, cid]: [SessionId; 3]) {
    let [fay] = w.open();
    let late = w.call_within(3, ann, JOBS, "consume", &());
    let orphan = consume(w, fay);
    let unwanted = consume(w, bob);
    w.blocked(&[late, orphan, unwanted]);
    let served = w.together(|w| {
        w.expire(fay);
        w.cancel(unwanted);
        let served = consume(w, cid);
        produce(w, bob, "served");
        served
    });
    assert_eq!(*w.error(late), CallError::Cancelled(CancelReason::Deadline));
    assert_eq!(item(w, served), "served");
    w.blocked(&[]);
}

/// Producers and consumers wait for a while, or not at all.
fn waits_for_a_while(w: &mut Writer<'_>, [ann, bob, _]: [SessionId; 3]) {
    let (short, long) = (Duration::from_nanos(20), Duration::from_nanos(10_000));
    leave(w, [ann, bob], (JOBS, "consume_for"), &(long,));
    let impatient = w.call(ann, JOBS, "consume_for", &(short,));
    let patient = w.call(bob, JOBS, "consume_for", &(long,));
    w.blocked(&[impatient, patient]);
    w.pass(20);
    assert_eq!(w.result::<Option<Bytes>>(impatient), None);
    let given = w.call(ann, JOBS, "try_produce", &(Bytes::from("1"),));
    assert!(w.result::<bool>(given));
    assert_eq!(w.result::<Option<Bytes>>(patient), Some("1".into()));
    let none = w.call(ann, JOBS, "try_consume", &());
    assert_eq!(w.result::<Option<Bytes>>(none), None);
    produce(w, ann, "2");
    produce(w, ann, "3");
    let full = w.call(ann, JOBS, "try_produce", &(Bytes::from("full"),));
    assert!(!w.result::<bool>(full));
    leave(w, [ann, bob], (JOBS, "produce_for"), &(Bytes::from("unwanted"), long));
    let impatient = w.call(ann, JOBS, "produce_for", &(Bytes::from("late"), short));
    let patient = w.call(bob, JOBS, "produce_for", &(Bytes::from("4"), long));
    w.blocked(&[impatient, patient]);
    w.pass(20);
    assert!(!w.result::<bool>(impatient));
    for expected in ["2", "3", "4"] {
        let taken = consume(w, bob);
        assert_eq!(item(w, taken), expected);
    }
    assert!(w.result::<bool>(patient));
    w.pass(20_000);
}

/// The object goes, and its waiters with it.
fn removal(w: &mut Writer<'_>, [ann, bob, cid]: [SessionId; 3]) {
    let waiters = [consume(w, ann), w.call_within(1_000, bob, JOBS, "consume", &())];
    w.blocked(&waiters);
    w.remove(cid, JOBS);
    for waiter in waiters {
        assert_eq!(*w.error(waiter), CallError::ObjectRemoved);
    }
    w.pass(2_000);
}
