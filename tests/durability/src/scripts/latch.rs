//! `Latch`: calls wait until nothing remains.

use std::time::Duration;

use gesmas_machine::Limits;

use super::{Script, Standard, leave, removal};
use crate::writer::Writer;

pub(super) const LATCH: Standard = Standard {
    name: "Latch",
    points: &[("wait", 1, "gate"), ("wait_for", 1, "gate")],
    scripts: &[Script { class: "Latch", limits: Limits::default, write }],
};

/// The object that opens.
const READY: &str = "ready";
/// The object that does not.
const NEVER: &str = "never";

fn write(w: &mut Writer<'_>) {
    let [ann, bob, cid] = w.open();
    let (short, long) = (Duration::from_nanos(20), Duration::from_nanos(10_000));
    w.create(ann, READY, &2_u32);
    leave(w, [ann, bob], (READY, "wait"), &());
    leave(w, [ann, bob], (READY, "wait_for"), &(long,));
    let first = w.call(ann, READY, "wait", &());
    let impatient = w.call(bob, READY, "wait_for", &(short,));
    let patient = w.call(cid, READY, "wait_for", &(long,));
    w.blocked(&[first, impatient, patient]);
    let counted = w.call(bob, READY, "count_down", &());
    assert_eq!(w.result::<u32>(counted), 1);
    w.again(counted);
    w.pass(20);
    assert!(!w.result::<bool>(impatient));
    let counted = w.call(bob, READY, "count_down", &());
    assert_eq!(w.result::<u32>(counted), 0);
    w.result::<()>(first);
    assert!(w.result::<bool>(patient));
    let late = w.call(bob, READY, "wait", &());
    w.result::<()>(late);
    w.create(ann, NEVER, &1_u32);
    let waiters = [w.call(ann, NEVER, "wait", &()), w.call(bob, NEVER, "wait_for", &(long,))];
    removal(w, cid, NEVER, &waiters);
    w.pass(20_000);
}
