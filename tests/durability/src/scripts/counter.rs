//! `Counter`: nothing waits. Its log is one between whose entries nobody is suspended.

use gesmas_machine::Limits;

use super::{Script, Standard};
use crate::writer::Writer;

pub(super) const COUNTER: Standard = Standard {
    name: "Counter",
    points: &[],
    scripts: &[Script { class: "Counter", limits: Limits::default, write }],
};

fn write(w: &mut Writer<'_>) {
    let [ann, bob] = w.open();
    let visits = "visits";
    let first = w.call(ann, visits, "increment", &());
    let (second, third) = w.together(|w| {
        let second = w.call(bob, visits, "add", &(40_i64,));
        (second, w.call(ann, visits, "decrement", &()))
    });
    let counts = [first, second, third].map(|call| w.result::<i64>(call));
    assert_eq!(counts, [1, 41, 40]);
    w.again(second);
    w.elect();
    let set = w.call(bob, visits, "compare_and_set", &(40_i64, i64::MAX));
    assert!(w.result::<bool>(set));
    let too_much = w.call(ann, visits, "increment", &());
    w.error(too_much);
    w.expire(ann);
    // At 0 it vanishes, and comes back in another life.
    let reset = w.call(bob, visits, "reset", &());
    assert_eq!(w.result::<i64>(reset), i64::MAX);
    let next = w.call(bob, visits, "increment", &());
    assert_eq!(w.result::<i64>(next), 1);
    w.remove(bob, visits);
}
