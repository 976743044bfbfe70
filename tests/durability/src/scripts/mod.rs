//! The scripts: for each standard class, logs in which its methods wait wherever they can.
//!
//! Invariant: what a script says about a class (its points, that its other methods never wait) is
//! what the test demands, so that a class which learns to wait elsewhere needs a longer script.
//! Not here: whether the class is right in every respect; its own crate tests that.

mod barrier;
mod counter;
mod delay_queue;
mod election;
mod latch;
mod lease;
mod lock;
mod membership;
mod priority_queue;
mod queue;
mod rate_limiter;
mod register;
mod rw_lock;
mod semaphore;
mod tuple_space;
mod work_queue;

use gesmas_abi::value::Value;
use gesmas_machine::{CallError, CancelReason, Limits, SessionId};

use crate::writer::{Call, Writer};

/// A log of one class.
#[derive(Clone, Copy, Debug)]
pub struct Script {
    /// The class.
    pub class: &'static str,
    /// Limits of the group.
    pub limits: fn() -> Limits,
    /// Writes it.
    pub write: fn(&mut Writer<'_>),
}

/// A standard class.
#[derive(Clone, Copy, Debug)]
pub struct Standard {
    /// Its name.
    pub name: &'static str,
    /// Its suspension points: method, which `P` of the call, semaphore.
    pub points: &'static [(&'static str, u32, &'static str)],
    /// The logs that reach them.
    pub scripts: &'static [Script],
}

/// All of them, by name.
pub const ALL: [Standard; 16] = [
    barrier::BARRIER,
    counter::COUNTER,
    delay_queue::DELAY_QUEUE,
    election::ELECTION,
    latch::LATCH,
    lease::LEASE,
    lock::LOCK,
    membership::MEMBERSHIP,
    priority_queue::PRIORITY_QUEUE,
    queue::QUEUE,
    rate_limiter::RATE_LIMITER,
    register::REGISTER,
    rw_lock::RW_LOCK,
    semaphore::SEMAPHORE,
    tuple_space::TUPLE_SPACE,
    work_queue::WORK_QUEUE,
];

/// Calls of a method that wait leave in each of the ways there are but one, which is to get what they
/// wait for: given up, too late, killed, without a session. Then nobody else may wait.
fn leave(
    w: &mut Writer<'_>,
    [ann, bob]: [SessionId; 2],
    (object, method): (&str, &str),
    arguments: &impl Value,
) {
    let [dan, eve] = w.open();
    let unwanted = w.call(ann, object, method, arguments);
    let late = w.call_within(30, bob, object, method, arguments);
    let (orphan, other) = w.together(|w| {
        (w.call(dan, object, method, arguments), w.call(eve, object, method, arguments))
    });
    let killed = w.call(bob, object, method, arguments);
    w.blocked(&[unwanted, late, orphan, other, killed]);
    w.cancel(unwanted);
    w.again(late);
    w.expire(dan);
    w.kill(ann, killed);
    w.elect();
    w.pass(30);
    w.close(eve);
    assert!(w.is_untold(orphan) && w.is_untold(other));
    for (call, reason) in [
        (unwanted, CancelReason::Caller),
        (late, CancelReason::Deadline),
        (killed, CancelReason::Operator),
    ] {
        cancelled(w, call, reason);
    }
    w.blocked(&[]);
}

/// A call was cancelled, which its class may say in an error of its own.
fn cancelled(w: &Writer<'_>, call: Call, reason: CancelReason) {
    let error = w.error(call);
    let own = matches!(error, CallError::Failed(_));
    assert!(own || *error == CallError::Cancelled(reason), "{error}");
}

/// The object goes, and these waiters with it, and nobody else waits.
fn removal(w: &mut Writer<'_>, by: SessionId, object: &str, waiters: &[Call]) {
    w.blocked(waiters);
    w.remove(by, object);
    for waiter in waiters {
        assert_eq!(*w.error(*waiter), CallError::ObjectRemoved);
    }
    w.blocked(&[]);
}
