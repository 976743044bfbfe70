//! `Election`.

use gesmas_election::{ElectionError, ElectionStub};
use gesmas_testkit::{Client, World, call, on_both_engines};

use crate::{failed, standard};

fn of(client: &Client) -> ElectionStub<Client> {
    ElectionStub::new(client.clone(), "scheduler")
}

fn candidates_lead_in_their_order(world: &mut World) {
    let ann = world.client();
    let (of_ann, of_bob) = (of(&ann), of(&world.client()));
    let first = world.run(call!(of_ann.campaign("ann".into()))).expect("nobody leads");
    let waits = world.start(call!(of_bob.campaign("bob".into())));
    let watches = world.start(call!(of_bob.observe(first)));
    assert_eq!(world.run(call!(of_bob.try_campaign("bob".into()))), Ok(None));
    assert_eq!(world.run(call!(of_bob.candidates())), Ok(1));
    assert_eq!(world.blocked(), ["campaign at seat", "observe at news"]);
    world.restart();
    world.expire(&ann);
    let second = waits.result().expect("the leader is dead");
    assert!(second > first);
    let leader = watches.result().expect("there is news");
    assert_eq!((leader.token, leader.candidate), (second, "bob".into()));
    assert_eq!(failed(world.run(call!(of_bob.resign(first)))), ElectionError::NotLeader);
    world.run(call!(of_bob.resign(second))).expect("it leads");
    assert_eq!(world.run(call!(of_bob.leader())), Ok(None));
    assert!(world.object("scheduler").is_none(), "an election without anybody takes no room");
}

fn who_gives_up_does_not_lead(world: &mut World) {
    let [ann, bob] = [world.client(), world.client()].map(|client| of(&client));
    let token = world.run(call!(ann.campaign("ann".into()))).expect("nobody leads");
    let waits = world.start(call!(bob.campaign("bob".into())));
    let watches = world.start(call!(bob.observe(token)));
    world.cancel(&waits);
    world.cancel(&watches);
    assert_eq!(failed(waits.result()), ElectionError::Cancelled);
    assert!(watches.result().is_err());
    world.run(call!(ann.resign(token))).expect("it leads");
    assert!(world.object("scheduler").is_none(), "an election without anybody takes no room");
}

on_both_engines!(
    standard("Election");
    candidates_lead_in_their_order,
    who_gives_up_does_not_lead,
);
