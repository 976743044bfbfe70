//! `PriorityQueue`.

use gesmas_priority_queue::{Prioritized, PriorityQueueStub};
use gesmas_testkit::{Client, World, call, on_both_engines};

use crate::{given_up, seconds, standard};

fn begin(world: &mut World) -> PriorityQueueStub<Client> {
    PriorityQueueStub::new(world.client(), "tickets")
}

fn put(world: &mut World, queue: &PriorityQueueStub<Client>, item: &'static str, priority: i64) {
    world.run(call!(queue.put(item.into(), priority))).expect("a call");
}

fn of(item: &str, priority: i64) -> Prioritized {
    Prioritized { item: item.into(), priority }
}

fn the_least_goes_first(world: &mut World) {
    let queue = begin(world);
    for (item, priority) in [("b", 5), ("c", 5), ("a", -1), ("e", i64::MAX), ("d", 6)] {
        put(world, &queue, item, priority);
    }
    assert_eq!(world.run(call!(queue.length())), Ok(5));
    assert_eq!(world.run(call!(queue.peek())), Ok(Some(of("a", -1))));
    for (item, priority) in [("a", -1), ("b", 5), ("c", 5), ("d", 6), ("e", i64::MAX)] {
        assert_eq!(world.run(call!(queue.take())), Ok(of(item, priority)));
    }
    assert_eq!(world.run(call!(queue.try_take())), Ok(None));
    assert!(world.object("tickets").is_none(), "an empty queue takes no room");
}

fn takers_wait_in_their_order(world: &mut World) {
    let queue = begin(world);
    let first = world.start(call!(queue.take()));
    let given = world.start(call!(queue.take()));
    let short = world.start(call!(queue.take_for(seconds(1))));
    let patient = world.start(call!(queue.take_for(seconds(5))));
    assert_eq!(world.blocked().len(), 4);
    world.restart();
    world.cancel(&given);
    assert_eq!(given.result(), given_up());
    world.advance(seconds(1));
    assert_eq!(short.result(), Ok(None));
    put(world, &queue, "a", 9);
    put(world, &queue, "b", 1);
    assert_eq!(first.result(), Ok(of("a", 9)));
    assert_eq!(patient.result(), Ok(Some(of("b", 1))));
}

on_both_engines!(
    standard("PriorityQueue");
    the_least_goes_first,
    takers_wait_in_their_order,
);
