//! `Lease`.

use gesmas_lease::{LeaseError, LeaseStub};
use gesmas_testkit::{Client, World, call, on_both_engines};

use crate::{failed, given_up, seconds, standard};

fn of(client: &Client) -> LeaseStub<Client> {
    LeaseStub::new(client.clone(), "nightly")
}

fn it_runs_out_unless_it_is_renewed(world: &mut World) {
    let [ann, bob] = [world.client(), world.client()].map(|client| of(&client));
    let first = world.run(call!(ann.acquire("ann".into(), seconds(10)))).expect("it is free");
    let waits = world.start(call!(bob.acquire("bob".into(), seconds(10))));
    assert_eq!(world.run(call!(bob.try_acquire("bob".into(), seconds(1)))), Ok(None));
    assert_eq!(world.run(call!(bob.waiting())), Ok(1));
    world.advance(seconds(8));
    let ends = world.run(call!(ann.renew(first.token, seconds(10)))).expect("it is held");
    assert!(ends > first.ends);
    world.restart();
    world.advance(seconds(8));
    assert_eq!(world.blocked(), ["acquire at free"]);
    let holder = world.run(call!(bob.holder())).expect("a read").expect("it is held");
    assert_eq!((holder.token, holder.holder, holder.ends), (first.token, "ann".into(), ends));
    world.advance(seconds(2));
    let second = waits.result().expect("it has run out");
    assert!(second.token > first.token);
    let late = world.run(call!(ann.renew(first.token, seconds(1))));
    assert_eq!(failed(late), LeaseError::NotHeld);
    assert_eq!(failed(world.run(call!(ann.release(first.token)))), LeaseError::NotHeld);
    world.run(call!(bob.release(second.token))).expect("it is held");
    assert!(world.object("nightly").is_none(), "a free lease takes no room");
}

fn it_outlives_the_session_of_its_holder(world: &mut World) {
    let ann = world.client();
    let (of_ann, of_bob) = (of(&ann), of(&world.client()));
    let granted = world.run(call!(of_ann.acquire("ann".into(), seconds(10)))).expect("it is free");
    world.expire(&ann);
    assert_eq!(world.run(call!(of_bob.try_acquire("bob".into(), seconds(1)))), Ok(None));
    // Whoever knows the token holds it.
    world.run(call!(of_bob.renew(granted.token, seconds(5)))).expect("it is held");
    world.run(call!(of_bob.release(granted.token))).expect("it is held");
    assert!(
        world.run(call!(of_bob.try_acquire("bob".into(), seconds(1)))).expect("a call").is_some()
    );
    world.advance(seconds(1));
    assert!(world.object("nightly").is_none(), "a free lease takes no room");
}

fn who_gives_up_does_not_get_it(world: &mut World) {
    let [ann, bob] = [world.client(), world.client()].map(|client| of(&client));
    world.run(call!(ann.acquire("ann".into(), seconds(10)))).expect("it is free");
    let given = world.start(call!(bob.acquire("bob".into(), seconds(10))));
    let short = world.start(call!(bob.acquire_for("bob".into(), seconds(10), seconds(1))));
    let patient = world.start(call!(bob.acquire_for("bob".into(), seconds(10), seconds(20))));
    world.cancel(&given);
    assert_eq!(given.result(), given_up());
    world.advance(seconds(1));
    assert_eq!(short.result(), Ok(None));
    world.advance(seconds(9));
    assert!(patient.result().expect("a call").is_some());
}

on_both_engines!(
    standard("Lease");
    it_runs_out_unless_it_is_renewed,
    it_outlives_the_session_of_its_holder,
    who_gives_up_does_not_get_it,
);
