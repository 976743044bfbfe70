//! `Membership`: calls wait for a change.

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
    ],
    scripts: &[Script { class: "Membership", limits: Limits::default, write }],
};

/// The object; calls create it.
const WORKERS: &str = "workers";
/// A version that is never reached.
const NEVER: u64 = u64::MAX;

fn await_change(w: &mut Writer<'_>, by: SessionId, after: u64) -> Call {
    w.call(by, WORKERS, "await_change", &(after,))
}

fn join(w: &mut Writer<'_>, by: SessionId, name: &str) -> Call {
    w.call(by, WORKERS, "join", &(name.to_owned(), Bytes::from("metadata")))
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
    let left = w.call(ann, WORKERS, "leave", &("eve".to_owned(), token));
    w.result::<()>(left);
    let unsubscribed = w.call(ann, WORKERS, "unsubscribe", &());
    assert!(w.result::<bool>(unsubscribed));
    join(w, bob, "bob");
    let waiters = [await_change(w, ann, NEVER), await_change(w, cid, NEVER)];
    removal(w, bob, WORKERS, &waiters);
}
