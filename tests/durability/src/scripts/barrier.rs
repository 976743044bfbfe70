//! `Barrier`: parties wait for each other.
//!
//! A party that passes the gate and finds its generation unfinished waits once more. A permit too
//! many lies at the gate only after a clean-up that failed: the party it could not take out of the
//! count gets one, too. So a second script has no fuel for clean-ups.

use std::time::Duration;

use gesmas_machine::{CallError, CancelReason, LimitExceeded, Limits, SessionId, Trap};

use super::{Script, Standard};
use crate::writer::{Call, Writer};

pub(super) const BARRIER: Standard = Standard {
    name: "Barrier",
    points: &[("wait", 1, "gate"), ("wait", 2, "gate"), ("wait_for", 1, "gate")],
    scripts: &[
        Script { class: "Barrier", limits: Limits::default, write },
        Script { class: "Barrier", limits: no_cleanups, write: write_without_cleanups },
    ],
};

/// The object.
const EPOCH: &str = "epoch";

fn no_cleanups() -> Limits {
    Limits { fuel_per_cleanup: 1, ..Limits::default() }
}

fn wait(w: &mut Writer<'_>, by: SessionId) -> Call {
    w.call(by, EPOCH, "wait", &())
}

fn write(w: &mut Writer<'_>) {
    let clients = w.open();
    w.create(clients[0], EPOCH, &3_u32);
    replacements(w, clients);
    generations(w, clients);
    waits_for_a_while(w, clients);
    removal(w, clients);
}

/// Parties come and go in each of the ways there are, until three are there.
fn replacements(w: &mut Writer<'_>, [ann, bob, cid]: [SessionId; 3]) {
    let [dan] = w.open();
    let first = wait(w, ann);
    let unwanted = wait(w, bob);
    w.blocked(&[first, unwanted]);
    w.cancel(unwanted);
    assert_eq!(*w.error(unwanted), CallError::Cancelled(CancelReason::Caller));
    let late = w.call_within(20, cid, EPOCH, "wait", &());
    w.again(first);
    w.pass(20);
    assert_eq!(*w.error(late), CallError::Cancelled(CancelReason::Deadline));
    let orphan = wait(w, dan);
    w.expire(dan);
    assert!(w.is_untold(orphan));
    let killed = wait(w, cid);
    w.kill(bob, killed);
    assert_eq!(*w.error(killed), CallError::Cancelled(CancelReason::Operator));
    let second = wait(w, bob);
    w.blocked(&[first, second]);
    w.elect();
    let last = wait(w, cid);
    for party in [first, second, last] {
        assert_eq!(w.result::<u64>(party), 0);
    }
}

/// The barrier is used again: by one session alone, and in single entries.
fn generations(w: &mut Writer<'_>, [ann, bob, cid]: [SessionId; 3]) {
    let [eve] = w.open();
    let parties = w.together(|w| [wait(w, ann), wait(w, ann)]);
    w.blocked(&parties);
    let last = wait(w, ann);
    for party in [parties[0], parties[1], last] {
        assert_eq!(w.result::<u64>(party), 1);
    }
    w.acknowledge(last);
    // Two calls of a session that closes: both leave in one step, and then it takes all three.
    let orphans = [wait(w, eve), wait(w, eve)];
    w.blocked(&orphans);
    w.close(eve);
    assert!(orphans.iter().all(|orphan| w.is_untold(*orphan)));
    let first = w.call_within(1_000, bob, EPOCH, "wait", &());
    w.blocked(&[first]);
    let (second, last) = w.together(|w| (wait(w, cid), wait(w, ann)));
    for party in [first, second, last] {
        assert_eq!(w.result::<u64>(party), 2);
    }
    w.pass(2_000);
}

/// Parties that do not wait for ever.
fn waits_for_a_while(w: &mut Writer<'_>, [ann, bob, cid]: [SessionId; 3]) {
    let for_a_while = |w: &mut Writer<'_>, by, nanoseconds| {
        w.call(by, EPOCH, "wait_for", &(Duration::from_nanos(nanoseconds),))
    };
    let [eve, fay] = w.open();
    let impatient = for_a_while(w, ann, 20);
    let unwanted = for_a_while(w, bob, 10_000);
    w.blocked(&[impatient, unwanted]);
    w.again(impatient);
    w.pass(20);
    assert_eq!(w.result::<Option<u64>>(impatient), None);
    w.cancel(unwanted);
    assert_eq!(*w.error(unwanted), CallError::Cancelled(CancelReason::Caller));
    let orphans = [for_a_while(w, eve, 10_000), for_a_while(w, fay, 10_000)];
    w.blocked(&orphans);
    w.expire(eve);
    w.close(fay);
    assert!(orphans.iter().all(|orphan| w.is_untold(*orphan)));
    let killed = for_a_while(w, cid, 10_000);
    w.kill(ann, killed);
    assert_eq!(*w.error(killed), CallError::Cancelled(CancelReason::Operator));
    let parties = [for_a_while(w, bob, 10_000), for_a_while(w, cid, 10_000)];
    w.blocked(&parties);
    let last = for_a_while(w, ann, 10_000);
    for party in [parties[0], parties[1], last] {
        assert_eq!(w.result::<Option<u64>>(party), Some(3));
    }
    w.pass(20_000);
}

/// The object goes, and its waiters with it.
fn removal(w: &mut Writer<'_>, [ann, bob, cid]: [SessionId; 3]) {
    let waiters = [wait(w, ann), wait(w, bob)];
    w.blocked(&waiters);
    w.remove(cid, EPOCH);
    for waiter in waiters {
        assert_eq!(*w.error(waiter), CallError::ObjectRemoved);
    }
}

fn write_without_cleanups(w: &mut Writer<'_>) {
    let [ann, bob, cid] = w.open();
    let [dan] = w.open();
    w.create(ann, EPOCH, &3_u32);
    let ghost = wait(w, ann);
    w.cancel(ghost);
    stays_counted(w, ghost, CancelReason::Caller);
    passes(w, 0, None, [bob, cid]);
    // Each time a ghost was counted, its permit lets the next one in, which waits again.
    let again = wait(w, ann);
    w.blocked(&[again]);
    w.again(again);
    passes(w, 1, Some(again), [bob, cid]);
    let ghost = w.call_within(20, ann, EPOCH, "wait", &());
    w.pass(20);
    stays_counted(w, ghost, CancelReason::Deadline);
    passes(w, 2, None, [bob, cid]);
    let again = wait(w, ann);
    w.blocked(&[again]);
    w.cancel(again);
    stays_counted(w, again, CancelReason::Caller);
    passes(w, 3, None, [bob, cid]);
    let orphan = wait(w, dan);
    w.blocked(&[orphan]);
    w.expire(dan);
    assert!(w.is_untold(orphan));
    passes(w, 4, None, [bob, cid]);
    let removed = wait(w, ann);
    w.blocked(&[removed]);
    w.remove(bob, EPOCH);
    assert_eq!(*w.error(removed), CallError::ObjectRemoved);
}

/// A clean-up without fuel is undone: its party stays in the count.
fn stays_counted(w: &Writer<'_>, ghost: Call, reason: CancelReason) {
    let trap = Trap::StepBudget(LimitExceeded::new("fuel_per_cleanup", 1));
    assert_eq!(*w.error(ghost), CallError::CleanupFailed { reason, trap });
}

/// Two more arrive in a generation in which one waits already, or one that is gone is counted.
fn passes(w: &mut Writer<'_>, generation: u64, first: Option<Call>, more: [SessionId; 2]) {
    let second = wait(w, more[0]);
    let waiting: Vec<_> = first.into_iter().chain([second]).collect();
    w.blocked(&waiting);
    let last = wait(w, more[1]);
    for party in waiting.into_iter().chain([last]) {
        assert_eq!(w.result::<u64>(party), generation);
    }
}
