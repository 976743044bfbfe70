//! `Lease`: calls wait until the holder gives it back or is late.

use std::time::Duration;

use gesmas_abi::value::{Bytes, Time};
use gesmas_lease::Granted;
use gesmas_machine::{CallError, Limits, SessionId};

use super::{Script, Standard, leave, removal};
use crate::writer::{Call, Writer};

pub(super) const LEASE: Standard = Standard {
    name: "Lease",
    points: &[("acquire", 1, "free"), ("acquire_for", 1, "free")],
    scripts: &[Script { class: "Lease", limits: Limits::default, write }],
};

/// The object; calls create it.
const NIGHTLY: &str = "nightly";
/// How long leases last that do not run out here.
const LONG: Duration = Duration::from_nanos(100_000);

fn acquire(w: &mut Writer<'_>, by: SessionId, nanoseconds: u64) -> Call {
    w.call(by, NIGHTLY, "acquire", &(Bytes::from("host"), Duration::from_nanos(nanoseconds)))
}

fn write(w: &mut Writer<'_>) {
    let [ann, bob, cid] = w.open();
    let host = || Bytes::from("host");
    let held = w.call(ann, NIGHTLY, "try_acquire", &(host(), LONG));
    let held = w.result::<Option<Granted>>(held).expect("it is free");
    let none = w.call(bob, NIGHTLY, "try_acquire", &(host(), LONG));
    assert_eq!(w.result::<Option<Granted>>(none), None);
    leave(w, [ann, bob], (NIGHTLY, "acquire"), &(host(), LONG));
    leave(w, [ann, bob], (NIGHTLY, "acquire_for"), &(host(), LONG, LONG));
    let second = acquire(w, bob, 100);
    let impatient = w.call(cid, NIGHTLY, "acquire_for", &(host(), LONG, Duration::from_nanos(20)));
    let patient = w.call(cid, NIGHTLY, "acquire_for", &(host(), LONG, LONG));
    w.blocked(&[second, impatient, patient]);
    w.pass(20);
    assert_eq!(w.result::<Option<Granted>>(impatient), None);
    let renewed = w.call(bob, NIGHTLY, "renew", &(held.key, Duration::from_nanos(50)));
    assert!(w.result::<Time>(renewed) < held.ends);
    w.elect();
    w.blocked(&[second, patient]);
    // It runs out, then that of the next does.
    w.pass(50);
    let next = w.result::<Granted>(second);
    assert!(next.token > held.token);
    w.blocked(&[patient]);
    w.pass(100);
    let last = w.result::<Option<Granted>>(patient).expect("it has run out");
    let late = w.call(bob, NIGHTLY, "release", &(next.key,));
    assert!(matches!(w.error(late), CallError::Failed(_)));
    let released = w.call(bob, NIGHTLY, "release", &(last.key,));
    w.result::<()>(released);
    w.again(released);
    acquire(w, ann, 50_000);
    let waiters =
        [acquire(w, bob, 100), w.call(cid, NIGHTLY, "acquire_for", &(host(), LONG, LONG))];
    removal(w, ann, NIGHTLY, &waiters);
    w.pass(200_000);
}
