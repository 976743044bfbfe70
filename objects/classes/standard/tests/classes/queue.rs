//! `Queue`.

use std::{cell::RefCell, rc::Rc};

use gesmas_queue::QueueStub;
use gesmas_sdk::stub::StubError;
use gesmas_testkit::{Client, Ended, World, call, on_both_engines};

use crate::{given_up, seconds, standard};

fn of(client: &Client) -> QueueStub<Client> {
    QueueStub::new(client.clone(), "jobs")
}

fn begin(world: &mut World, capacity: u32) -> [QueueStub<Client>; 2] {
    let [ann, bob] = [world.client(), world.client()].map(|client| of(&client));
    world.run(call!(ann.create(capacity))).expect("it is new");
    [ann, bob]
}

fn items_come_in_their_order_and_waiters_in_theirs(world: &mut World) {
    let [ann, bob] = begin(world, 2);
    let first = world.start(call!(bob.consume()));
    let second = world.start(call!(bob.consume()));
    assert_eq!(world.blocked(), ["consume at filled"; 2]);
    world.restart();
    for item in ["a", "b", "c", "d"] {
        world.run(call!(ann.produce(item.into()))).expect("there is room");
    }
    assert_eq!(first.result(), Ok("a".into()));
    assert_eq!(second.result(), Ok("b".into()));
    let full = world.start(call!(ann.produce("e".into())));
    assert_eq!(world.blocked(), ["produce at free"]);
    assert_eq!(world.run(call!(bob.consume())), Ok("c".into()));
    assert_eq!(full.result(), Ok(()));
    assert_eq!(world.run(call!(bob.length())), Ok(2));
}

fn who_does_not_want_to_wait_need_not(world: &mut World) {
    let [ann, bob] = begin(world, 1);
    assert_eq!(world.run(call!(bob.try_consume())), Ok(None));
    assert_eq!(world.run(call!(ann.try_produce("a".into()))), Ok(true));
    assert_eq!(world.run(call!(ann.try_produce("b".into()))), Ok(false));
    let full = world.start(call!(ann.produce_for("c".into(), seconds(1))));
    world.advance(seconds(1));
    assert_eq!(full.result(), Ok(false));
    assert_eq!(world.run(call!(bob.try_consume())), Ok(Some("a".into())));
    let empty = world.start(call!(bob.consume_for(seconds(1))));
    world.advance(seconds(1));
    assert_eq!(empty.result(), Ok(None));
    let patient = world.start(call!(bob.consume_for(seconds(3))));
    world.advance(seconds(1));
    assert_eq!(world.run(call!(ann.produce_for("d".into(), seconds(1)))), Ok(true));
    assert_eq!(patient.result(), Ok(Some("d".into())));
}

fn a_consumer_that_dies_or_gives_up_takes_nothing(world: &mut World) {
    let ann = world.client();
    let (of_ann, of_bob) = (of(&ann), of(&world.client()));
    world.run(call!(of_bob.create(2))).expect("it is new");
    let dies = world.start(call!(of_ann.consume()));
    let given = world.start(call!(of_bob.consume()));
    let lives = world.start(call!(of_bob.consume()));
    world.expire(&ann);
    world.cancel(&given);
    world.run(call!(of_bob.produce("a".into()))).expect("there is room");
    assert_eq!(dies.result(), Err(StubError::Other(Ended::SessionOver)));
    assert_eq!(given.result(), given_up());
    assert_eq!(lives.result(), Ok("a".into()));
}

/// However calls interleave, each item is consumed once, and those of a producer in its order.
fn nothing_is_lost_or_doubled(world: &mut World) {
    let clients = [(); 4].map(|()| world.client());
    let first = of(&clients[0]);
    world.run(call!(first.create(2))).expect("it is new");
    for seed in 0..20 {
        world.shuffle(seed);
        let consumed = Rc::new(RefCell::new(Vec::new()));
        let mut tasks = Vec::new();
        for (index, client) in clients.iter().enumerate() {
            let (stub, consumed) = (of(client), Rc::clone(&consumed));
            tasks.push(world.spawn(async move {
                for round in 0..5_u8 {
                    if index < 2 {
                        let item = vec![index as u8, round].into();
                        stub.produce(item).await.expect("nobody gives up");
                    } else {
                        let item = stub.consume().await.expect("nobody gives up");
                        consumed.borrow_mut().push((item[0], item[1]));
                    }
                }
            }));
        }
        world.settle();
        tasks.iter().for_each(|task| task.result());
        let of_producer = |producer| {
            let consumed = consumed.borrow();
            let own = consumed.iter().filter(|(by, _)| *by == producer).map(|(_, round)| *round);
            own.collect::<Vec<_>>()
        };
        for producer in [0, 1] {
            assert_eq!(of_producer(producer), [0, 1, 2, 3, 4], "seed {seed}");
        }
    }
}

on_both_engines!(
    standard("Queue");
    items_come_in_their_order_and_waiters_in_theirs,
    who_does_not_want_to_wait_need_not,
    a_consumer_that_dies_or_gives_up_takes_nothing,
    nothing_is_lost_or_doubled,
);
