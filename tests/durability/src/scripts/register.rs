//! `Register`: nothing waits. Its log is one between whose entries nobody is suspended.

use gesmas_abi::value::Bytes;
use gesmas_machine::Limits;
use gesmas_register::{Entry, Expected};

use super::{Script, Standard};
use crate::writer::Writer;

pub(super) const REGISTER: Standard = Standard {
    name: "Register",
    points: &[],
    scripts: &[Script { class: "Register", limits: Limits::default, write }],
};

fn write(w: &mut Writer<'_>) {
    let [ann, bob] = w.open();
    let config = "config";
    let (key, value) = (|| Bytes::from("colour"), |text: &str| Bytes::from(text));
    let first = w.call(ann, config, "set", &(key(), value("blue")));
    let (second, third) = w.together(|w| {
        let second = w.call(bob, config, "set", &(key(), value("red")));
        let late = (key(), Expected::Nothing, value("late"));
        (second, w.call(ann, config, "compare_and_set", &late))
    });
    let (blue, red) = (w.result::<u64>(first), w.result::<u64>(second));
    assert!(red > blue);
    assert_eq!(w.result::<Option<u64>>(third), None);
    w.again(second);
    w.elect();
    let removed = w.call(bob, config, "compare_and_remove", &(key(), Expected::Version(blue)));
    assert!(!w.result::<bool>(removed));
    // Without values it vanishes, and comes back in another life.
    let removed = w.call(ann, config, "remove", &(key(),));
    let last = Entry { value: value("red"), version: red };
    assert_eq!(w.result::<Option<Entry>>(removed), Some(last));
    w.expire(ann);
    let anew = (key(), Expected::Nothing, value("green"));
    let anew = w.call(bob, config, "compare_and_set", &anew);
    assert!(w.result::<Option<u64>>(anew) > Some(red));
    w.remove(bob, config);
}
