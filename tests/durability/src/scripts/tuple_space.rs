//! `TupleSpace`: calls wait for tuples, each at a gate of its own.

use std::time::Duration;

use gesmas_machine::{Limits, SessionId};
use gesmas_tuple_space::{Field, Place, Template, Tuple};

use super::{Script, Standard, leave, removal};
use crate::writer::{Call, Writer};

pub(super) const TUPLE_SPACE: Standard = Standard {
    name: "TupleSpace",
    points: &[
        ("in", 1, "gates"),
        ("in_for", 1, "gates"),
        ("rd", 1, "gates"),
        ("rd_for", 1, "gates"),
    ],
    scripts: &[Script { class: "TupleSpace", limits: Limits::default, write }],
};

/// The object; calls create it.
const JOBS: &str = "jobs";
/// Longer than anything waits here.
const LONG: Duration = Duration::from_nanos(10_000);

fn tuple(name: &str) -> Tuple {
    vec![Field::text(name), Field::Number(7)]
}

fn named(name: &str) -> Template {
    vec![Place::Exactly(Field::text(name)), Place::Any]
}

fn any() -> Template {
    vec![Place::Any; 2]
}

fn out(w: &mut Writer<'_>, by: SessionId, name: &str, lease: Option<Duration>) -> Call {
    w.call(by, JOBS, "out", &(tuple(name), lease))
}

fn write(w: &mut Writer<'_>) {
    let clients = w.open();
    waits(w, clients);
    leases(w, clients);
    let [ann, bob, cid] = clients;
    let waiters = [w.call(ann, JOBS, "rd", &any()), w.call(bob, JOBS, "in_for", &(any(), LONG))];
    removal(w, cid, JOBS, &waiters);
    w.pass(20_000);
}

fn waits(w: &mut Writer<'_>, [ann, bob, cid]: [SessionId; 3]) {
    for method in ["rd", "in"] {
        leave(w, [ann, bob], (JOBS, method), &any());
    }
    for method in ["rd_for", "in_for"] {
        leave(w, [ann, bob], (JOBS, method), &(any(), LONG));
    }
    let copies = w.call(ann, JOBS, "rd", &named("a"));
    let impatient = w.call(ann, JOBS, "rd_for", &(any(), Duration::from_nanos(20)));
    let late = w.call(bob, JOBS, "in_for", &(any(), Duration::from_nanos(20)));
    w.pass(20);
    for gone in [impatient, late] {
        assert_eq!(w.result::<Option<Tuple>>(gone), None);
    }
    let takes = w.call(bob, JOBS, "in", &any());
    let next = w.call(cid, JOBS, "in_for", &(any(), LONG));
    let last = w.call(ann, JOBS, "rd_for", &(named("c"), LONG));
    w.blocked(&[copies, takes, next, last]);
    let put = out(w, cid, "a", None);
    w.again(put);
    assert_eq!(w.result::<Tuple>(copies), tuple("a"));
    assert_eq!(w.result::<Tuple>(takes), tuple("a"));
    w.elect();
    let (put, not) = w.together(|w| {
        let put = w.call(ann, JOBS, "cas", &(named("b"), tuple("b"), None::<Duration>));
        (put, w.call(ann, JOBS, "replace", &(named("b"), tuple("c"))))
    });
    assert!(w.result::<bool>(put));
    assert_eq!(w.result::<Option<Tuple>>(next), Some(tuple("b")));
    assert_eq!(w.result::<Option<Tuple>>(not), None);
    w.blocked(&[last]);
    out(w, bob, "b", None);
    let replaced = w.call(ann, JOBS, "replace", &(named("b"), tuple("c")));
    assert_eq!(w.result::<Option<Tuple>>(replaced), Some(tuple("b")));
    assert_eq!(w.result::<Option<Tuple>>(last), Some(tuple("c")));
    let taken = w.call(ann, JOBS, "inp", &any());
    assert_eq!(w.result::<Option<Tuple>>(taken), Some(tuple("c")));
    w.pass(20_000);
}

fn leases(w: &mut Writer<'_>, [ann, bob, _]: [SessionId; 3]) {
    let put = out(w, ann, "d", Some(Duration::from_millis(100)));
    let id = w.result::<u64>(put);
    let renewed = w.call(bob, JOBS, "renew", &(id, Duration::from_millis(200)));
    assert!(w.result::<bool>(renewed));
    w.pass(150_000_000);
    let there = w.call(bob, JOBS, "rd", &any());
    assert_eq!(w.result::<Tuple>(there), tuple("d"));
    w.pass(50_000_000);
    let gone = w.call(bob, JOBS, "inp", &any());
    assert_eq!(w.result::<Option<Tuple>>(gone), None);
}
