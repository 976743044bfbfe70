//! `Latch`.

use gesmas_latch::LatchStub;
use gesmas_testkit::{Client, World, call, on_both_engines};

use crate::{given_up, seconds, standard};

fn latch(world: &mut World) -> LatchStub<Client> {
    LatchStub::new(world.client(), "ready")
}

fn all_who_wait_go_on_with_the_last(world: &mut World) {
    let latch = latch(world);
    world.run(call!(latch.create(2))).expect("it is new");
    let first = world.start(call!(latch.wait()));
    let second = world.start(call!(latch.wait_for(seconds(9))));
    assert_eq!(world.run(call!(latch.count_down())), Ok(1));
    assert_eq!(world.blocked(), ["wait at gate", "wait_for at gate"]);
    assert_eq!(world.run(call!(latch.waiting())), Ok(2));
    world.restart();
    assert_eq!(world.run(call!(latch.count_down())), Ok(0));
    assert_eq!(first.result(), Ok(()));
    assert_eq!(second.result(), Ok(true));
}

fn it_stays_open(world: &mut World) {
    let latch = latch(world);
    world.run(call!(latch.create(1))).expect("it is new");
    assert_eq!(world.run(call!(latch.count_down())), Ok(0));
    assert_eq!(world.run(call!(latch.count_down())), Ok(0));
    assert_eq!(world.run(call!(latch.wait())), Ok(()));
    assert_eq!(world.run(call!(latch.wait_for(seconds(0)))), Ok(true));
    assert_eq!(world.run(call!(latch.count())), Ok(0));
}

fn who_has_waited_enough_goes(world: &mut World) {
    let latch = latch(world);
    world.run(call!(latch.create(1))).expect("it is new");
    let short = world.start(call!(latch.wait_for(seconds(1))));
    let long = world.start(call!(latch.wait_for(seconds(3))));
    let given = world.start(call!(latch.wait()));
    world.advance(seconds(1));
    assert_eq!(short.result(), Ok(false));
    world.cancel(&given);
    assert_eq!(given.result(), given_up());
    assert_eq!(world.blocked(), ["wait_for at gate"]);
    assert_eq!(world.run(call!(latch.count_down())), Ok(0));
    assert_eq!(long.result(), Ok(true));
}

fn many_go_on_in_portions(world: &mut World) {
    let latch = latch(world);
    world.run(call!(latch.create(1))).expect("it is new");
    let waiting: Vec<_> = (0..2_499).map(|_| world.start(call!(latch.wait()))).collect();
    let short = world.start(call!(latch.wait_for(seconds(1))));
    world.advance(std::time::Duration::from_nanos(1_000_000_000 - 3));
    assert_eq!(world.run(call!(latch.count_down())), Ok(0));
    assert_eq!(world.run(call!(latch.waiting())), Ok(1_500));
    assert_eq!(world.run(call!(latch.count_down())), Ok(0));
    assert_eq!(world.run(call!(latch.wait())), Ok(()));
    world.advance(seconds(1));
    waiting.iter().for_each(|call| assert_eq!(call.result(), Ok(())));
    assert_eq!(short.result(), Ok(true), "it was open when its time was up");
}

fn values_at_the_edge_are_taken(world: &mut World) {
    let latch = latch(world);
    world.run(call!(latch.create(0))).expect("it is new");
    assert_eq!(world.run(call!(latch.wait())), Ok(()));
    assert_eq!(world.run(call!(latch.count_down())), Ok(0));
    let most = LatchStub::new(world.client(), "most");
    world.run(call!(most.create(u32::MAX))).expect("it is new");
    assert_eq!(world.run(call!(most.count_down())), Ok(u32::MAX - 1));
}

on_both_engines!(
    standard("Latch");
    all_who_wait_go_on_with_the_last,
    it_stays_open,
    who_has_waited_enough_goes,
    many_go_on_in_portions,
    values_at_the_edge_are_taken,
);
