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
    assert_eq!(world.blocked(), ["acquire at gate"]);
    world.restart();
    world.run(call!(ann.release(first))).expect("it is held");
    let second = second.result().expect("they are free again");
    assert!(second > first);
    let grants = world.run(call!(ann.grants(0, 10))).expect("a read").grants;
    assert!(matches!(grants[..], [Grant { grant, permits: 2, .. }] if grant == second));
}

fn a_grant_is_given_back_once(world: &mut World) {
    let [ann, bob] = begin(world, 2);
    let grant = world.run(call!(ann.acquire(1))).expect("two are free");
    // Everybody can read the grant, and only its session gives it back.
    let grants = world.run(call!(bob.grants(0, 1))).expect("a read").grants;
    assert_eq!(grants[0].grant, grant);
    assert_eq!(failed(world.run(call!(bob.release(grant)))), SemaphoreError::NotHolder);
    world.run(call!(ann.release(grant))).expect("it is held");
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
    assert_eq!(world.blocked(), ["acquire at gate", "acquire at turn"]);
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
    assert_eq!(world.run(call!(ann.available())), Ok(3));
}

fn no_permits_are_refused(world: &mut World) {
    let [ann, _] = begin(world, 3);
    assert_eq!(failed(world.run(call!(ann.acquire(0)))), SemaphoreError::NoPermits);
    assert_eq!(failed(world.run(call!(ann.try_acquire(0)))), SemaphoreError::NoPermits);
    let dead = SemaphoreStub::new(world.client(), "dead");
    assert_eq!(failed(world.run(call!(dead.create(0)))), SemaphoreError::NoPermits);
    assert!(world.object("dead").is_none(), "it would never serve anybody");
}

/// The greatest number of permits goes in one call, which does as much as one that takes a permit.
fn all_permits_at_once_cost_as_much_as_one(world: &mut World) {
    let [ann, bob] = begin(world, u32::MAX);
    let grant = world.run(call!(ann.acquire(u32::MAX))).expect("all are free");
    let waits = world.start(call!(bob.acquire(u32::MAX - 1)));
    world.run(call!(ann.release(grant))).expect("it is held");
    world.run(call!(ann.acquire(1))).expect("one is free");
    let grant = waits.result().expect("all were free");
    assert_eq!(world.run(call!(ann.available())), Ok(0));
    world.run(call!(bob.release(grant))).expect("it is held");
    assert_eq!(world.run(call!(ann.available())), Ok(u64::from(u32::MAX) - 1));
}

/// Of those that wait a portion goes on in a step, and the others after them, whichever way permits come
/// back.
fn many_that_wait_go_on_in_portions(world: &mut World) {
    let clients = [(); 3].map(|()| world.client());
    let [ann, bob, cid] = [0, 1, 2].map(|at: usize| of(&clients[at]));
    world.run(call!(ann.create(2_500))).expect("it is new");
    let all = world.run(call!(ann.acquire(2_500))).expect("all are free");
    let waiting: Vec<_> = (0..2_500).map(|_| world.start(call!(bob.acquire(1)))).collect();
    world.run(call!(ann.release(all))).expect("it is held");
    assert_eq!(world.run(call!(ann.waiting())), Ok(2_000));
    world.advance(seconds(1));
    assert!(waiting.iter().all(|call| call.result().is_ok()));
    // All come back with their session, a portion at a time, to one that waits for all.
    let gathers = world.start(call!(cid.acquire_for(2_500, seconds(9))));
    let behind: Vec<_> = (0..2_500).map(|_| world.start(call!(ann.acquire(1)))).collect();
    world.expire(&clients[1]);
    assert_eq!(world.run(call!(ann.available())), Ok(500));
    world.cancel(&gathers);
    world.advance(seconds(1));
    assert!(behind.iter().all(|call| call.result().is_ok()));
    let (mut after, mut listed) = (Some(0), 0);
    while let Some(from) = after {
        let page = world.run(call!(ann.grants(from, u32::MAX))).expect("a read");
        (after, listed) = (page.next, listed + page.grants.len());
    }
    assert_eq!(listed, 2_500);
    world.expire(&clients[0]);
    world.advance(seconds(1));
    assert_eq!(world.run(call!(cid.available())), Ok(2_500));
    assert_eq!(world.object("licences").expect("it is there").timers.len(), 0);
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
                    let grants = stub.grants(0, 10).await.expect("a read").grants;
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

on_both_engines!(
    standard("Semaphore");
    permits_go_round,
    a_grant_is_given_back_once,
    nobody_overtakes,
    what_a_dead_session_held_is_free,
    who_gives_up_has_taken_nothing,
    more_than_there_are_is_refused,
    no_permits_are_refused,
    all_permits_at_once_cost_as_much_as_one,
    many_that_wait_go_on_in_portions,
    permits_are_neither_made_nor_lost,
);
