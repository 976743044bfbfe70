//! `Lock`.

use gesmas_lock::{LockError, LockStub};
use gesmas_testkit::{Client, World, call, on_both_engines};

use crate::{failed, seconds, standard};

fn of(client: &Client) -> LockStub<Client> {
    LockStub::new(client.clone(), "leader")
}

fn holders_follow_each_other_with_rising_tokens(world: &mut World) {
    let [ann, bob] = [world.client(), world.client()].map(|client| of(&client));
    let first = world.run(call!(ann.lock(1))).expect("it is free");
    let second = world.start(call!(bob.lock(1)));
    assert_eq!(world.run(call!(ann.waiting())), Ok(1));
    world.restart();
    world.run(call!(ann.unlock(first))).expect("it is held");
    let second = second.result().expect("it is free");
    assert!(second > first);
    assert_eq!(failed(world.run(call!(ann.unlock(first)))), LockError::NotHeld);
    world.run(call!(bob.unlock(second))).expect("it is held");
    assert!(world.object("leader").is_none(), "a free lock takes no room");
}

fn an_owner_enters_again_and_leaves_as_often(world: &mut World) {
    let ann = world.client();
    let (ann, bob) = (of(&ann), of(&world.client()));
    let token = world.run(call!(ann.lock(7))).expect("it is free");
    assert_eq!(world.run(call!(ann.lock(7))), Ok(token));
    assert_eq!(world.run(call!(ann.try_lock(7))), Ok(Some(token)));
    assert_eq!(world.run(call!(ann.lock_for(7, seconds(1)))), Ok(Some(token)));
    // Another owner of the session is another owner, and so is one of another session.
    assert_eq!(world.run(call!(ann.try_lock(8))), Ok(None));
    assert_eq!(world.run(call!(bob.try_lock(7))), Ok(None));
    let holder = world.run(call!(bob.holder())).expect("a read").expect("it is held");
    assert_eq!((holder.token, holder.owner, holder.holds), (token, 7, 4));
    let waits = world.start(call!(ann.lock(8)));
    for _ in 0..3 {
        world.run(call!(ann.unlock(token))).expect("it is held");
        assert_eq!(world.blocked(), ["lock at mutex"]);
    }
    world.run(call!(ann.unlock(token))).expect("it is held");
    assert!(waits.result().expect("it is free") > token);
}

fn a_dead_holder_s_lock_goes_to_the_next(world: &mut World) {
    let ann = world.client();
    let (of_ann, of_bob) = (of(&ann), of(&world.client()));
    world.run(call!(of_ann.lock(1))).expect("it is free");
    world.run(call!(of_ann.lock(1))).expect("it enters again");
    let own = world.start(call!(of_ann.lock(2)));
    let next = world.start(call!(of_bob.lock_for(1, seconds(5))));
    world.expire(&ann);
    assert!(!own.is_open());
    let token = next.result().expect("a call").expect("the holder is dead");
    let holder = world.run(call!(of_bob.holder())).expect("a read").expect("it is held");
    assert_eq!((holder.token, holder.holds), (token, 1));
}

/// Calls of one owner that wait together, as a retry and the call before it do, get the lock together.
fn a_retry_does_not_wait_behind_its_owner(world: &mut World) {
    let [ann, bob, cid] = [(); 3].map(|()| of(&world.client()));
    let held = world.run(call!(ann.lock(1))).expect("it is free");
    let first = world.start(call!(bob.lock(7)));
    let other = world.start(call!(cid.lock(7)));
    let again = world.start(call!(bob.lock(7)));
    let patient = world.start(call!(bob.lock_for(7, seconds(60))));
    let short = world.start(call!(bob.lock_for(7, seconds(1))));
    assert_eq!(world.blocked()[..3], ["lock at mutex", "lock at mutex", "lock at line"]);
    assert_eq!(world.run(call!(ann.waiting())), Ok(5));
    world.advance(seconds(1));
    assert_eq!(short.result(), Ok(None));
    world.restart();
    world.run(call!(ann.unlock(held))).expect("it is held");
    let token = first.result().expect("it is free");
    assert_eq!(again.result(), Ok(token));
    assert_eq!(patient.result(), Ok(Some(token)));
    assert_eq!(world.run(call!(bob.lock(7))), Ok(token));
    for _ in 0..4 {
        assert_eq!(world.blocked(), ["lock at mutex"]);
        world.run(call!(bob.unlock(token))).expect("it is held");
    }
    let token = other.result().expect("it is free");
    world.run(call!(cid.unlock(token))).expect("it is held");
    assert!(world.object("leader").is_none(), "a free lock takes no room");
}

/// Where the first of them gives up, the next goes on waiting in its stead.
fn a_retry_waits_on_when_the_call_before_it_gives_up(world: &mut World) {
    let [ann, bob] = [(); 2].map(|()| of(&world.client()));
    let held = world.run(call!(ann.lock(1))).expect("it is free");
    let first = world.start(call!(bob.lock(7)));
    let again = world.start(call!(bob.lock(7)));
    let given = world.start(call!(bob.lock(7)));
    world.cancel(&first);
    assert_eq!(failed(first.result()), LockError::Cancelled);
    assert_eq!(world.blocked(), ["lock at mutex", "lock at line"]);
    world.cancel(&given);
    world.run(call!(ann.unlock(held))).expect("it is held");
    let token = again.result().expect("it is free");
    world.run(call!(bob.unlock(token))).expect("it is held");
    assert!(world.object("leader").is_none(), "a free lock takes no room");
}

fn only_the_holder_s_session_unlocks(world: &mut World) {
    let [ann, bob] = [(); 2].map(|()| of(&world.client()));
    world.run(call!(ann.lock(1))).expect("it is free");
    let seen = world.run(call!(bob.holder())).expect("a read").expect("it is held").token;
    assert_eq!(failed(world.run(call!(bob.unlock(seen)))), LockError::NotHolder);
    assert_eq!(failed(world.run(call!(bob.unlock(seen + 1)))), LockError::NotHeld);
    assert_eq!(world.run(call!(bob.try_lock(1))), Ok(None));
    world.run(call!(ann.unlock(seen))).expect("it is held");
}

fn more_calls_of_an_owner_than_may_wait_are_refused(world: &mut World) {
    let [ann, bob] = [(); 2].map(|()| of(&world.client()));
    let held = world.run(call!(ann.lock(1))).expect("it is free");
    let waiting: Vec<_> = (0..1_001).map(|_| world.start(call!(bob.lock(0)))).collect();
    let refused = failed(world.run(call!(bob.lock(0))));
    assert_eq!(refused, LockError::TooManyWaiting { limit: 1_000 });
    world.run(call!(ann.unlock(held))).expect("it is held");
    assert!(waiting.iter().all(|call| call.result().is_ok()));
}

fn who_gives_up_does_not_get_it(world: &mut World) {
    let [ann, bob] = [world.client(), world.client()].map(|client| of(&client));
    let token = world.run(call!(ann.lock(1))).expect("it is free");
    let short = world.start(call!(bob.lock_for(1, seconds(1))));
    let given = world.start(call!(bob.lock(1)));
    world.advance(seconds(1));
    assert_eq!(short.result(), Ok(None));
    world.cancel(&given);
    assert_eq!(failed(given.result()), LockError::Cancelled);
    world.run(call!(ann.unlock(token))).expect("it is held");
    assert!(world.object("leader").is_none(), "a free lock takes no room");
}

/// However calls interleave, one has the lock at a time.
fn one_has_it_at_a_time(world: &mut World) {
    let clients = [(); 4].map(|()| world.client());
    for seed in 0..20 {
        world.shuffle(seed);
        // Two tasks share each of two sessions.
        let tasks = (0..6_u64).map(|task| {
            let stub = of(&clients[task as usize % 4]);
            world.spawn(async move {
                for _ in 0..3 {
                    let token = stub.lock(task).await.expect("nobody gives up");
                    let holder = stub.holder().await.expect("a read").expect("it is held");
                    assert_eq!((holder.token, holder.owner), (token, task));
                    stub.unlock(token).await.expect("it is held");
                }
            })
        });
        let tasks: Vec<_> = tasks.collect();
        world.settle();
        tasks.iter().for_each(|task| task.result());
    }
}

on_both_engines!(
    standard("Lock");
    holders_follow_each_other_with_rising_tokens,
    an_owner_enters_again_and_leaves_as_often,
    a_dead_holder_s_lock_goes_to_the_next,
    a_retry_does_not_wait_behind_its_owner,
    a_retry_waits_on_when_the_call_before_it_gives_up,
    only_the_holder_s_session_unlocks,
    more_calls_of_an_owner_than_may_wait_are_refused,
    who_gives_up_does_not_get_it,
    one_has_it_at_a_time,
);
