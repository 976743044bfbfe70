//! `Lease`.

use gesmas_lease::{LeaseError, LeaseStub};
use gesmas_testkit::{Client, World, call, on_both_engines};

use crate::{failed, seconds, standard};

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
    let ends = world.run(call!(ann.renew(first.key, seconds(10)))).expect("it is held");
    assert!(ends > first.ends);
    world.restart();
    world.advance(seconds(8));
    assert_eq!(world.blocked(), ["acquire at free"]);
    let holder = world.run(call!(bob.holder())).expect("a read").expect("it is held");
    assert_eq!((holder.token, holder.holder, holder.ends), (first.token, "ann".into(), ends));
    world.advance(seconds(2));
    let second = waits.result().expect("it has run out");
    assert!(second.token > first.token);
    let late = world.run(call!(ann.renew(first.key, seconds(1))));
    assert_eq!(failed(late), LeaseError::NotHeld);
    assert_eq!(failed(world.run(call!(ann.release(first.key)))), LeaseError::NotHeld);
    world.run(call!(bob.release(second.key))).expect("it is held");
    assert!(world.object("nightly").is_none(), "a free lease takes no room");
}

fn it_outlives_the_session_of_its_holder(world: &mut World) {
    let ann = world.client();
    let (of_ann, of_bob) = (of(&ann), of(&world.client()));
    let granted = world.run(call!(of_ann.acquire("ann".into(), seconds(10)))).expect("it is free");
    world.expire(&ann);
    assert_eq!(world.run(call!(of_bob.try_acquire("bob".into(), seconds(1)))), Ok(None));
    // Everybody can read the token, and the key is what counts.
    let holder = world.run(call!(of_bob.holder())).expect("a read").expect("it is held");
    assert_eq!(holder.token, granted.token);
    assert_eq!(failed(world.run(call!(of_bob.release(holder.token)))), LeaseError::NotHeld);
    let renewed = world.run(call!(of_bob.renew(holder.token, seconds(5))));
    assert_eq!(failed(renewed), LeaseError::NotHeld);
    world.run(call!(of_bob.renew(granted.key, seconds(5)))).expect("it is held");
    world.run(call!(of_bob.release(granted.key))).expect("it is held");
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
    assert_eq!(failed(given.result()), LeaseError::Cancelled);
    world.advance(seconds(1));
    assert_eq!(short.result(), Ok(None));
    world.advance(seconds(9));
    assert!(patient.result().expect("a call").is_some());
}

fn values_at_the_edge_are_taken_or_refused(world: &mut World) {
    let ann = of(&world.client());
    let (longest, limit) = (std::time::Duration::MAX, 64 << 10);
    let granted =
        world.run(call!(ann.acquire(vec![7; limit].into(), longest))).expect("it is free");
    let holder = world.run(call!(ann.holder())).expect("a read").expect("it is held");
    assert_eq!((holder.holder.len(), holder.ends.0), (limit, u64::MAX));
    let none = world.run(call!(ann.renew(granted.key, seconds(0))));
    assert_eq!(failed(none), LeaseError::NoDuration);
    world.run(call!(ann.release(granted.key))).expect("it is held");
    let none = world.run(call!(ann.try_acquire("".into(), seconds(0))));
    assert_eq!(failed(none), LeaseError::NoDuration);
    let long = world.run(call!(ann.acquire_for(vec![7; limit + 1].into(), seconds(1), seconds(0))));
    assert_eq!(failed(long), LeaseError::HolderTooLong { limit: limit as u64 });
    assert!(world.run(call!(ann.try_acquire("".into(), seconds(1)))).is_ok());
}

on_both_engines!(
    standard("Lease");
    it_runs_out_unless_it_is_renewed,
    it_outlives_the_session_of_its_holder,
    who_gives_up_does_not_get_it,
    values_at_the_edge_are_taken_or_refused,
);
