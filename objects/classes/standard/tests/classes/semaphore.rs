//! `Semaphore`.

use gesmas_sdk::stub::StubError;
use gesmas_semaphore::{Grant, SemaphoreError, SemaphoreStub};
use gesmas_testkit::{Client, Ended, World, call, on_both_engines};

use crate::{failed, seconds, standard};

fn of(client: &Client) -> SemaphoreStub<Client> {
    SemaphoreStub::new(client.clone(), "licences")
}

/// Two clients and a semaphore.
fn begin(world: &mut World, permits: u32) -> [SemaphoreStub<Client>; 2] {
    let [ann, bob] = [world.client(), world.client()].map(|client| of(&client));
    world.run(call!(ann.create(permits))).expect("it is new");
    [ann, bob]
}

fn permits_go_round(world: &mut World) {
    let [ann, bob] = begin(world, 3);
    let first = world.run(call!(ann.acquire(2))).expect("three are free");
    assert_eq!(world.run(call!(bob.available())), Ok(1));
    let second = world.start(call!(bob.acquire(2)));
    assert_eq!(world.blocked(), ["acquire at permits"]);
    world.restart();
    world.run(call!(ann.release(first))).expect("it is held");
    let second = second.result().expect("they are free again");
    assert!(second > first);
    let grants = world.run(call!(ann.grants(0, 10))).expect("a read");
    assert!(matches!(grants[..], [Grant { grant, permits: 2, .. }] if grant == second));
}

fn a_grant_is_given_back_once(world: &mut World) {
    let [ann, bob] = begin(world, 2);
    let grant = world.run(call!(ann.acquire(1))).expect("two are free");
    // Whoever knows the grant may give it back.
    world.run(call!(bob.release(grant))).expect("it is held");
    for stub in [&ann, &bob] {
        assert_eq!(failed(world.run(call!(stub.release(grant)))), SemaphoreError::NotHeld);
    }
    assert_eq!(world.run(call!(ann.available())), Ok(2));
}

fn nobody_overtakes(world: &mut World) {
    let [ann, bob] = begin(world, 3);
    let held = world.run(call!(ann.acquire(2))).expect("three are free");
    let many = world.start(call!(bob.acquire(3)));
    let few = world.start(call!(ann.acquire(1)));
    assert_eq!(world.run(call!(ann.try_acquire(1))), Ok(None));
    assert_eq!(world.run(call!(ann.waiting())), Ok(2));
    assert_eq!(world.blocked(), ["acquire at permits", "acquire at turn"]);
    world.run(call!(ann.release(held))).expect("it is held");
    let many = many.result().expect("it was first");
    world.run(call!(bob.release(many))).expect("it is held");
    few.result().expect("it was second");
}

fn what_a_dead_session_held_is_free(world: &mut World) {
    let (ann, bob) = (world.client(), world.client());
    let (of_ann, of_bob) = (of(&ann), of(&bob));
    world.run(call!(of_ann.create(3))).expect("it is new");
    world.run(call!(of_ann.acquire(1))).expect("three are free");
    let gathers = world.start(call!(of_ann.acquire(3)));
    let waits = world.start(call!(of_bob.acquire(3)));
    world.expire(&ann);
    assert_eq!(gathers.result(), Err(StubError::Other(Ended::SessionOver)));
    waits.result().expect("all are free");
    assert_eq!(world.run(call!(of_bob.available())), Ok(0));
}

fn who_gives_up_has_taken_nothing(world: &mut World) {
    let [ann, bob] = begin(world, 3);
    let held = world.run(call!(ann.acquire(1))).expect("three are free");
    let gathers = world.start(call!(bob.acquire(3)));
    let waits = world.start(call!(bob.acquire_for(1, seconds(1))));
    world.advance(seconds(1));
    assert_eq!(waits.result(), Ok(None));
    world.cancel(&gathers);
    assert_eq!(failed(gathers.result()), SemaphoreError::Cancelled);
    let late = world.start(call!(bob.acquire_for(3, seconds(1))));
    world.advance(seconds(1));
    assert_eq!(late.result(), Ok(None));
    assert_eq!(world.run(call!(ann.available())), Ok(2));
    world.run(call!(ann.release(held))).expect("it is held");
    assert!(world.run(call!(bob.try_acquire(3))).expect("a call").is_some());
}

fn more_than_there_are_is_refused(world: &mut World) {
    let [ann, _] = begin(world, 3);
    let refused = world.run(call!(ann.acquire(4)));
    assert_eq!(failed(refused), SemaphoreError::TooMany { total: 3 });
    assert!(world.run(call!(ann.acquire(0))).is_ok());
    assert_eq!(world.run(call!(ann.available())), Ok(2));
}

/// However calls interleave, never more permits are held than there are, and all come back.
fn permits_are_neither_made_nor_lost(world: &mut World) {
    let clients = [(); 4].map(|()| world.client());
    let first = of(&clients[0]);
    world.run(call!(first.create(5))).expect("it is new");
    for seed in 0..20 {
        world.shuffle(seed);
        let tasks = [1_u32, 2, 3, 5].into_iter().zip(&clients).map(|(permits, client)| {
            let stub = of(client);
            world.spawn(async move {
                for _ in 0..3 {
                    let grant = stub.acquire(permits).await.expect("there are so many");
                    let grants = stub.grants(0, 10).await.expect("a read");
                    let held: u32 = grants.iter().map(|grant| grant.permits).sum();
                    assert!(held <= 5, "{grants:?}");
                    stub.release(grant).await.expect("it is held");
                }
            })
        });
        let tasks: Vec<_> = tasks.collect();
        world.settle();
        tasks.iter().for_each(|task| task.result());
        assert_eq!(world.run(call!(first.available())), Ok(5));
        assert_eq!(world.object("licences").expect("it is there").timers.len(), 0);
    }
}

fn operators_see_who_holds(world: &mut World) {
    let [ann, _] = begin(world, 1);
    world.run(call!(ann.acquire(1))).expect("one is free");
    let view = world.object("licences").expect("it is there");
    let permits = view.semaphores.iter().find(|semaphore| semaphore.name == b"permits");
    assert_eq!(permits.expect("it is listed").owners.len(), 1);
}

on_both_engines!(
    standard("Semaphore");
    permits_go_round,
    a_grant_is_given_back_once,
    nobody_overtakes,
    what_a_dead_session_held_is_free,
    who_gives_up_has_taken_nothing,
    more_than_there_are_is_refused,
    permits_are_neither_made_nor_lost,
    operators_see_who_holds,
);
