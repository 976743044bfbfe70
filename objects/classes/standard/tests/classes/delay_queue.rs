//! `DelayQueue`.

use std::time::Duration;

use gesmas_delay_queue::DelayQueueStub;
use gesmas_testkit::{Client, World, call, on_both_engines};

use crate::{given_up, seconds, standard};

fn begin(world: &mut World) -> DelayQueueStub<Client> {
    DelayQueueStub::new(world.client(), "reminders")
}

fn items_come_when_they_are_due(world: &mut World) {
    let queue = begin(world);
    for (item, delay) in [("third", 3), ("first", 1), ("second", 2), ("with the third", 3)] {
        let due = world.now() + seconds(delay);
        assert!(world.run(call!(queue.put(item.into(), seconds(delay)))).expect("a call") > due);
    }
    let waits = world.start(call!(queue.take()));
    assert_eq!(world.blocked(), ["take at filled"]);
    assert_eq!(world.run(call!(queue.try_take())), Ok(None));
    assert!(world.run(call!(queue.next_due())).expect("a read").is_some());
    world.restart();
    world.advance(seconds(1));
    assert_eq!(waits.result(), Ok("first".into()));
    assert_eq!(world.run(call!(queue.put("now".into(), seconds(0)))).expect("a call"), world.now());
    assert_eq!(world.run(call!(queue.take())), Ok("now".into()));
    let patient = world.start(call!(queue.take_for(seconds(5))));
    world.advance(seconds(1));
    assert_eq!(patient.result(), Ok(Some("second".into())));
    // What comes due a moment after an item has a timer of its own, a least delay later.
    world.advance(seconds(1) + Duration::from_millis(1));
    assert_eq!(world.run(call!(queue.due())), Ok(2));
    assert_eq!(world.run(call!(queue.take())), Ok("third".into()));
    assert_eq!(world.run(call!(queue.try_take())), Ok(Some("with the third".into())));
    assert!(world.object("reminders").is_none(), "an empty queue takes no room");
}

fn who_gives_up_takes_nothing(world: &mut World) {
    let queue = begin(world);
    let given = world.start(call!(queue.take()));
    let short = world.start(call!(queue.take_for(seconds(1))));
    world.run(call!(queue.put("a".into(), seconds(2)))).expect("a call");
    world.cancel(&given);
    assert_eq!(given.result(), given_up());
    world.advance(seconds(1));
    assert_eq!(short.result(), Ok(None));
    world.advance(seconds(1));
    assert_eq!(world.run(call!(queue.length())), Ok(1));
    assert_eq!(world.run(call!(queue.take())), Ok("a".into()));
}

/// More items than one run of the handler takes are due at once.
fn any_number_may_be_due_at_once(world: &mut World) {
    let queue = begin(world);
    let count = 1_200_u32;
    for number in 0..count {
        let item = number.to_be_bytes().to_vec();
        world.spawn(call!(queue.put(item.into(), seconds(5))));
    }
    world.settle();
    world.advance(seconds(6));
    assert_eq!(world.run(call!(queue.due())), Ok(u64::from(count)));
    for number in 0..count {
        let item = world.run(call!(queue.try_take())).expect("a call").expect("it is due");
        assert_eq!(*item, number.to_be_bytes());
    }
}

on_both_engines!(
    standard("DelayQueue");
    items_come_when_they_are_due,
    who_gives_up_takes_nothing,
    any_number_may_be_due_at_once,
);
