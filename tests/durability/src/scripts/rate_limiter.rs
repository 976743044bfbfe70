//! `RateLimiter`: one call waits for time to pass, the others for their turn.

use std::time::Duration;

use gesmas_machine::{CallError, Limits};

use super::{Script, Standard, leave, removal};
use crate::writer::Writer;

pub(super) const RATE_LIMITER: Standard = Standard {
    name: "RateLimiter",
    points: &[
        ("acquire", 1, "turn"),
        ("acquire", 2, "never"),
        ("acquire_for", 1, "turn"),
        ("acquire_for", 2, "never"),
    ],
    scripts: &[Script { class: "RateLimiter", limits: Limits::default, write }],
};

/// The object.
const MAIL: &str = "mail";

fn write(w: &mut Writer<'_>) {
    let [ann, bob, cid] = w.open();
    let long = Duration::from_nanos(100_000);
    // One in a thousand nanoseconds, three at once.
    w.create(ann, MAIL, &(10_u32, Duration::from_nanos(10_000), 3_u32));
    let all = w.call(ann, MAIL, "try_acquire", &(3_u32,));
    assert!(w.result::<bool>(all));
    let none = w.call(ann, MAIL, "try_acquire", &(1_u32,));
    assert!(!w.result::<bool>(none));
    leave(w, [ann, bob], (MAIL, "acquire"), &(3_u32,));
    leave(w, [ann, bob], (MAIL, "acquire_for"), &(3_u32, long));
    let first = w.call(ann, MAIL, "acquire", &(3_u32,));
    let second = w.call(bob, MAIL, "acquire", &(1_u32,));
    let impatient = w.call(cid, MAIL, "acquire_for", &(1_u32, Duration::from_nanos(20)));
    let patient = w.call(cid, MAIL, "acquire_for", &(2_u32, long));
    w.blocked(&[first, second, impatient, patient]);
    w.again(first);
    w.pass(20);
    assert!(!w.result::<bool>(impatient));
    w.pass(3_000);
    w.result::<()>(first);
    w.elect();
    w.blocked(&[second, patient]);
    w.pass(1_000);
    w.result::<()>(second);
    w.blocked(&[patient]);
    w.pass(2_000);
    assert!(w.result::<bool>(patient));
    let too_many = w.call(ann, MAIL, "acquire", &(4_u32,));
    assert!(matches!(w.error(too_many), CallError::Failed(_)));
    let waiters =
        [w.call(ann, MAIL, "acquire", &(3_u32,)), w.call(bob, MAIL, "acquire_for", &(1_u32, long))];
    removal(w, cid, MAIL, &waiters);
    w.pass(200_000);
}
