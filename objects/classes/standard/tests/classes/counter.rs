//! `Counter`.

use gesmas_counter::{CounterError, CounterStub};
use gesmas_testkit::{World, call, on_both_engines};

use crate::{failed, standard};

fn changes_add_up(world: &mut World) {
    let visits = CounterStub::new(world.client(), "visits");
    assert_eq!(world.run(call!(visits.increment())), Ok(1));
    assert_eq!(world.run(call!(visits.add(-3))), Ok(-2));
    assert_eq!(world.run(call!(visits.decrement())), Ok(-3));
    assert_eq!(world.run(call!(visits.compare_and_set(0, 9))), Ok(false));
    assert_eq!(world.run(call!(visits.compare_and_set(-3, 9))), Ok(true));
    assert_eq!(world.run(call!(visits.get())), Ok(9));
    assert_eq!(world.run(call!(visits.reset())), Ok(9));
    assert!(world.object("visits").is_none(), "a counter at 0 takes no room");
}

fn what_does_not_fit_changes_nothing(world: &mut World) {
    let visits = CounterStub::new(world.client(), "visits");
    assert_eq!(world.run(call!(visits.add(i64::MAX))), Ok(i64::MAX));
    assert_eq!(failed(world.run(call!(visits.increment()))), CounterError::OutOfRange);
    assert_eq!(world.run(call!(visits.get())), Ok(i64::MAX));
}

on_both_engines!(standard("Counter"); changes_add_up, what_does_not_fit_changes_nothing);
