//! The class natively and as the module that is shipped, in virtual time.

use gesmas_sdk::stub::StubError;
use gesmas_slot::{Slot, SlotStub};
use gesmas_testkit::{Class, Client, Ended, World, call, on_both_engines};

fn class() -> Class {
    Class::of_crate(Slot::native(), env!("CARGO_MANIFEST_DIR"))
}

/// Two clients of one object.
fn clients(world: &mut World) -> [SlotStub<Client>; 2] {
    [(); 2].map(|()| SlotStub::new(world.client(), "one"))
}

fn an_item_goes_from_one_to_the_other(world: &mut World) {
    let [ann, bob] = clients(world);
    let takes = world.start(call!(bob.take()));
    assert_eq!(world.blocked(), ["take at full"]);
    assert_eq!(world.run(call!(ann.put("a".into()))), Ok(()));
    assert_eq!(takes.result(), Ok("a".into()));
    assert_eq!(world.run(call!(ann.peek())), Ok(None));
}

fn what_waits_survives_a_restart(world: &mut World) {
    let [ann, bob] = clients(world);
    world.run(call!(ann.put("a".into()))).expect("the slot is empty");
    let puts = world.start(call!(ann.put("b".into())));
    world.restart();
    assert_eq!(world.blocked(), ["put at empty"]);
    assert_eq!(world.run(call!(bob.take())), Ok("a".into()));
    assert_eq!(puts.result(), Ok(()));
    assert_eq!(world.run(call!(bob.peek())), Ok(Some("b".into())));
}

fn a_client_that_dies_takes_nothing(world: &mut World) {
    let ann = world.client();
    let of_ann = SlotStub::new(ann.clone(), "one");
    let [bob, _] = clients(world);
    let dies = world.start(call!(of_ann.take()));
    let lives = world.start(call!(bob.take()));
    world.expire(&ann);
    assert_eq!(dies.result(), Err(StubError::Other(Ended::SessionOver)));
    world.run(call!(bob.put("a".into()))).expect("the slot is empty");
    assert_eq!(lives.result(), Ok("a".into()));
}

/// However calls interleave, every item arrives, and once.
fn nothing_is_lost(world: &mut World) {
    let [ann, bob] = clients(world);
    for seed in 0..20 {
        world.shuffle(seed);
        let mut puts = Vec::new();
        let mut takes = Vec::new();
        for number in 0..4_u8 {
            puts.push(world.spawn(call!(ann.put(vec![number].into()))));
            takes.push(world.spawn(call!(bob.take())));
        }
        world.settle();
        puts.iter().for_each(|put| assert_eq!(put.result(), Ok(())));
        let taken: Vec<_> = takes.iter().map(|take| take.result().expect("it is put")[0]).collect();
        assert_eq!(taken, [0, 1, 2, 3], "seed {seed}");
    }
}

on_both_engines!(
    class();
    an_item_goes_from_one_to_the_other,
    what_waits_survives_a_restart,
    a_client_that_dies_takes_nothing,
    nothing_is_lost,
);
