//! `Membership`: calls wait for a change, or for a name.

use std::time::Duration;

use gesmas_abi::value::Bytes;
use gesmas_machine::{CallError, Limits, SessionId};

use super::{Script, Standard, leave, removal};
use crate::writer::{Call, Writer};

pub(super) const MEMBERSHIP: Standard = Standard {
    name: "Membership",
    // A call whom a change does not interest waits once more; here two changes come.
    points: &[
        ("await_change", 1, "news"),
        ("await_change", 2, "news"),
        ("await_change", 3, "news"),
        // One whose name another gets first waits once more.
        ("join_for", 2, "free"),
        ("join_for", 3, "free"),
    ],
    scripts: &[Script { class: "Membership", limits: Limits::default, write }],
};

/// The object; calls create it.
const WORKERS: &str = "workers";
/// Longer than anything waits here.
const LONG: Duration = Duration::from_nanos(10_000);
/// A version that is never reached.
const NEVER: u64 = u64::MAX;

fn await_change(w: &mut Writer<'_>, by: SessionId, after: u64) -> Call {
    w.call(by, WORKERS, "await_change", &(after,))
}

fn join(w: &mut Writer<'_>, by: SessionId, name: &str) -> Call {
    w.call(by, WORKERS, "join", &(name.to_owned(), Bytes::from("metadata")))
}

fn join_for(w: &mut Writer<'_>, by: SessionId, name: &str, duration: Duration) -> Call {
    w.call(by, WORKERS, "join_for", &(name.to_owned(), Bytes::from("metadata"), duration))
}

fn write(w: &mut Writer<'_>) {
    let [ann, bob, cid] = w.open();
    let [dan, eve] = w.open();
    leave(w, [ann, bob], (WORKERS, "await_change"), &(NEVER,));
    for subscriber in [ann, dan] {
        let subscribed = w.call(subscriber, WORKERS, "subscribe", &());
        assert_eq!(w.result::<u64>(subscribed), 0);
        w.again(subscribed);
    }
    let anything = await_change(w, bob, 0);
    let nothing = await_change(w, cid, NEVER);
    let joined = join(w, eve, "eve");
    let token = w.result::<u64>(joined);
    w.again(joined);
    assert_eq!(w.result::<u64>(anything), token);
    let taken = join(w, ann, "eve");
    assert!(matches!(w.error(taken), CallError::Failed(_)));
    w.blocked(&[nothing]);
    w.elect();
    let update = ("eve".to_owned(), token, Bytes::from("more"));
    let updated = w.call(eve, WORKERS, "update", &update);
    let version = w.result::<u64>(updated);
    assert!(version > token);
    w.cancel(nothing);
    w.error(nothing);
    // A member and a subscriber die; the change of one is told to who lives.
    let next = await_change(w, bob, version);
    w.expire(dan);
    w.blocked(&[next]);
    w.close(eve);
    assert!(w.result::<u64>(next) > version);
    let joined = join(w, bob, "eve");
    let token = w.result::<u64>(joined);
    let refused = w.call(ann, WORKERS, "leave", &("eve".to_owned(), token));
    assert!(matches!(w.error(refused), CallError::Failed(_)));
    let left = w.call(bob, WORKERS, "leave", &("eve".to_owned(), token));
    w.result::<()>(left);
    names(w, [ann, bob, cid]);
    let unsubscribed = w.call(ann, WORKERS, "unsubscribe", &());
    assert!(w.result::<bool>(unsubscribed));
    join(w, bob, "bob");
    let waiters = [await_change(w, ann, NEVER), await_change(w, cid, NEVER)];
    removal(w, bob, WORKERS, &waiters);
}

/// Calls wait for a name: until the time is up, until its session is over, until it leaves.
fn names(w: &mut Writer<'_>, [ann, bob, cid]: [SessionId; 3]) {
    let [fay] = w.open();
    let joined = join(w, fay, "name");
    let first = w.result::<u64>(joined);
    let again = join(w, fay, "name");
    assert_eq!(w.result::<u64>(again), first);
    leave(
        w,
        [ann, bob],
        (WORKERS, "join_for"),
        &("name".to_owned(), Bytes::from("metadata"), LONG),
    );
    let short = join_for(w, ann, "name", Duration::from_nanos(20));
    let next = join_for(w, bob, "name", LONG);
    let retry = join_for(w, bob, "name", LONG);
    let last = join_for(w, cid, "name", LONG);
    w.blocked(&[short, next, retry, last]);
    w.again(next);
    w.pass(20);
    assert_eq!(w.result::<Option<u64>>(short), None);
    w.elect();
    w.expire(fay);
    let token = w.result::<Option<u64>>(next).expect("it is free");
    assert!(token > first);
    assert_eq!(w.result::<Option<u64>>(retry), Some(token));
    w.blocked(&[last]);
    let left = w.call(bob, WORKERS, "leave", &("name".to_owned(), token));
    w.result::<()>(left);
    let token = w.result::<Option<u64>>(last).expect("it is free");
    let left = w.call(cid, WORKERS, "leave", &("name".to_owned(), token));
    w.result::<()>(left);
    w.pass(20_000);
}
