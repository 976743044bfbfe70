//! `Register`.

use gesmas_register::{Entry, Expected, Keys, RegisterStub};
use gesmas_testkit::{World, call, on_both_engines};

use crate::standard;

fn only_who_knows_the_version_writes(world: &mut World) {
    let config = RegisterStub::new(world.client(), "config");
    let first = world.run(call!(config.set("colour".into(), "blue".into()))).expect("a call");
    let nothing = call!(config.compare_and_set("colour".into(), Expected::Nothing, "red".into()));
    assert_eq!(world.run(nothing), Ok(None));
    let known = Expected::Version(first);
    let known = call!(config.compare_and_set("colour".into(), known, "red".into()));
    let second = world.run(known).expect("a call").expect("it is that version");
    assert!(second > first);
    let entry = Entry { value: "red".into(), version: second };
    assert_eq!(world.run(call!(config.get("colour".into()))), Ok(Some(entry.clone())));
    let old = call!(config.compare_and_remove("colour".into(), Expected::Version(first)));
    assert_eq!(world.run(old), Ok(false));
    assert_eq!(world.run(call!(config.remove("colour".into()))), Ok(Some(entry)));
    assert!(world.object("config").is_none(), "a register without values takes no room");
}

fn keys_are_listed_in_their_order(world: &mut World) {
    let config = RegisterStub::new(world.client(), "config");
    for key in ["b", "c", "a"] {
        world.run(call!(config.set(key.into(), key.into()))).expect("a call");
    }
    assert_eq!(world.run(call!(config.length())), Ok(3));
    let page = |keys: &[&str], next: Option<&str>| {
        let keys = keys.iter().map(|key| (*key).into()).collect();
        Ok(Keys { keys, next: next.map(Into::into) })
    };
    assert_eq!(world.run(call!(config.keys("".into(), 2))), page(&["a", "b"], Some("b")));
    assert_eq!(world.run(call!(config.keys("b".into(), 2))), page(&["c"], None));
    assert_eq!(world.run(call!(config.keys("".into(), 3))), page(&["a", "b", "c"], None));
}

on_both_engines!(
    standard("Register");
    only_who_knows_the_version_writes,
    keys_are_listed_in_their_order,
);
