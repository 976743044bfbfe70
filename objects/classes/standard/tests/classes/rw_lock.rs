//! `RwLock`.

use gesmas_rw_lock::{RwLockError, RwLockStub};
use gesmas_sdk::stub::StubError;
use gesmas_testkit::{Client, Ended, World, call, on_both_engines};

use crate::{failed, seconds, standard};

fn of(client: &Client) -> RwLockStub<Client> {
    RwLockStub::new(client.clone(), "catalogue")
}

fn begin(world: &mut World) -> [RwLockStub<Client>; 3] {
    [(); 3].map(|()| of(&world.client()))
}

fn readers_share_and_writers_do_not(world: &mut World) {
    let [ann, bob, cid] = begin(world);
    let first = world.run(call!(ann.read_lock(1))).expect("it is free");
    let second = world.run(call!(bob.read_lock(1))).expect("readers share");
    assert_eq!(world.run(call!(cid.try_write_lock(1))), Ok(None));
    let writer = world.start(call!(cid.write_lock(1)));
    world.restart();
    world.run(call!(ann.unlock(first))).expect("it is held");
    assert_eq!(world.blocked(), ["write_lock at room"]);
    world.run(call!(bob.unlock(second))).expect("it is held");
    let token = writer.result().expect("nobody reads");
    assert!(token > second && second > first);
    assert_eq!(world.run(call!(ann.try_read_lock(1))), Ok(None));
    let holders = world.run(call!(ann.holders(0, 10))).expect("a read").holders;
    assert_eq!(
        holders.iter().map(|one| (one.token, one.writes)).collect::<Vec<_>>(),
        [(token, true)]
    );
    world.run(call!(cid.unlock(token))).expect("it is held");
    assert!(world.object("catalogue").is_none(), "a free lock takes no room");
}

fn a_reader_does_not_pass_a_writer(world: &mut World) {
    let [ann, bob, cid] = begin(world);
    let reads = world.run(call!(ann.read_lock(1))).expect("it is free");
    let writes = world.start(call!(bob.write_lock(1)));
    let late = world.start(call!(cid.read_lock(1)));
    assert_eq!(world.run(call!(cid.try_read_lock(1))), Ok(None));
    assert_eq!(world.blocked(), ["write_lock at room", "read_lock at turn"]);
    assert_eq!(world.run(call!(ann.waiting())), Ok(2));
    world.run(call!(ann.unlock(reads))).expect("it is held");
    let writes = writes.result().expect("nobody reads");
    world.run(call!(bob.unlock(writes))).expect("it is held");
    late.result().expect("nobody writes");
    assert_eq!(world.run(call!(bob.holders(0, 10))).expect("a read").holders.len(), 1);
}

fn readers_behind_a_writer_come_together(world: &mut World) {
    let [ann, bob, cid] = begin(world);
    let writes = world.run(call!(ann.write_lock(1))).expect("it is free");
    let readers = [world.start(call!(bob.read_lock(1))), world.start(call!(cid.read_lock(1)))];
    world.run(call!(ann.unlock(writes))).expect("it is held");
    readers.iter().for_each(|reader| assert!(reader.result().is_ok()));
}

fn what_a_dead_session_held_is_free(world: &mut World) {
    let (ann, bob) = (world.client(), world.client());
    let (of_ann, of_bob, of_cid) = (of(&ann), of(&bob), of(&world.client()));
    world.run(call!(of_ann.read_lock(1))).expect("it is free");
    world.run(call!(of_bob.read_lock(1))).expect("readers share");
    let writes = world.start(call!(of_bob.write_lock(2)));
    let reads = world.start(call!(of_cid.read_lock(1)));
    world.expire(&ann);
    assert_eq!(world.blocked(), ["write_lock at room", "read_lock at turn"]);
    world.expire(&bob);
    assert_eq!(writes.result(), Err(StubError::Other(Ended::SessionOver)));
    let reads = reads.result().expect("nobody else is left");
    world.run(call!(of_cid.unlock(reads))).expect("it is held");
    let dan = world.client();
    let of_dan = of(&dan);
    world.run(call!(of_dan.write_lock(1))).expect("it is free");
    let next = world.start(call!(of_cid.write_lock(1)));
    world.expire(&dan);
    let next = next.result().expect("the writer is dead");
    world.run(call!(of_cid.unlock(next))).expect("it is held");
    assert!(world.object("catalogue").is_none(), "a free lock takes no room");
}

fn who_gives_up_stands_in_nobody_s_way(world: &mut World) {
    let [ann, bob, cid] = begin(world);
    let reads = world.run(call!(ann.read_lock(1))).expect("it is free");
    let writes = world.start(call!(bob.write_lock(1)));
    let short = world.start(call!(bob.write_lock_for(2, seconds(1))));
    let late = world.start(call!(cid.read_lock_for(1, seconds(5))));
    world.advance(seconds(1));
    assert_eq!(short.result(), Ok(None));
    world.cancel(&writes);
    assert_eq!(failed(writes.result()), RwLockError::Cancelled);
    let late = late.result().expect("a call").expect("only readers are left");
    let writes = world.start(call!(bob.write_lock_for(1, seconds(1))));
    let turned_away = world.start(call!(ann.read_lock_for(2, seconds(0))));
    world.advance(seconds(2));
    assert_eq!(writes.result(), Ok(None));
    assert_eq!(turned_away.result(), Ok(None));
    for (stub, token) in [(&ann, reads), (&cid, late)] {
        world.run(call!(stub.unlock(token))).expect("it is held");
        assert_eq!(failed(world.run(call!(stub.unlock(token)))), RwLockError::NotHeld);
    }
    let reads = world.run(call!(ann.try_read_lock(1))).expect("a call").expect("it is free");
    world.run(call!(ann.unlock(reads))).expect("it is held");
    let writes = world.run(call!(ann.try_write_lock(1))).expect("a call").expect("it is free");
    world.run(call!(ann.unlock(writes))).expect("it is held");
    assert!(world.object("catalogue").is_none(), "a free lock takes no room");
}

fn an_owner_enters_again_and_leaves_as_often(world: &mut World) {
    let [ann, bob, _] = begin(world);
    let token = world.run(call!(ann.read_lock(1))).expect("it is free");
    let writer = world.start(call!(bob.write_lock(1)));
    // It has the lock, so it does not wait behind the writer that waits for it.
    assert_eq!(world.run(call!(ann.read_lock(1))), Ok(token));
    assert_eq!(world.run(call!(ann.try_read_lock(1))), Ok(Some(token)));
    assert_eq!(world.run(call!(ann.try_read_lock(2))), Ok(None));
    let holders = world.run(call!(bob.holders(0, 10))).expect("a read").holders;
    assert_eq!((holders[0].owner, holders[0].holds, holders[0].writes), (1, 3, false));
    for _ in 0..3 {
        assert_eq!(world.blocked(), ["write_lock at room"]);
        world.run(call!(ann.unlock(token))).expect("it is held");
    }
    let token = writer.result().expect("nobody reads");
    assert_eq!(world.run(call!(bob.write_lock_for(1, seconds(1)))), Ok(Some(token)));
    // An owner that writes may read.
    assert_eq!(world.run(call!(bob.read_lock(1))), Ok(token));
    for _ in 0..3 {
        assert_eq!(world.run(call!(ann.try_read_lock(1))), Ok(None));
        world.run(call!(bob.unlock(token))).expect("it is held");
    }
    assert!(world.object("catalogue").is_none(), "a free lock takes no room");
}

fn an_owner_that_would_wait_for_itself_is_told(world: &mut World) {
    let [ann, bob, _] = begin(world);
    let token = world.run(call!(ann.read_lock(1))).expect("it is free");
    let refused = [
        world.run(call!(ann.write_lock(1))).map(Some),
        world.run(call!(ann.try_write_lock(1))),
        world.run(call!(ann.write_lock_for(1, seconds(1)))),
    ];
    for refused in refused {
        assert_eq!(failed(refused), RwLockError::WaitsForItself);
    }
    // Another owner waits for this one, and so does one that is told when it has waited.
    let other = world.start(call!(ann.write_lock(2)));
    let reads = world.start(call!(bob.read_lock(1)));
    let writes = world.start(call!(bob.write_lock(1)));
    assert_eq!(world.blocked().len(), 3);
    world.run(call!(ann.unlock(token))).expect("it is held");
    let token = other.result().expect("nobody reads");
    world.run(call!(ann.unlock(token))).expect("it is held");
    let token = reads.result().expect("nobody writes");
    assert_eq!(failed(writes.result()), RwLockError::WaitsForItself);
    world.run(call!(bob.unlock(token))).expect("it is held");
    assert!(world.object("catalogue").is_none(), "a free lock takes no room");
}

/// Calls of one owner that wait together, as a retry and the call before it do, get the lock together.
fn a_retry_does_not_wait_behind_its_owner(world: &mut World) {
    let [ann, bob, cid] = begin(world);
    let held = world.run(call!(ann.write_lock(0))).expect("it is free");
    let given = world.start(call!(bob.write_lock(7)));
    let first = world.start(call!(bob.write_lock(7)));
    let again = world.start(call!(bob.write_lock_for(7, seconds(9))));
    let reads = [world.start(call!(cid.read_lock(7))), world.start(call!(cid.read_lock(7)))];
    assert_eq!(world.run(call!(cid.waiting())), Ok(5));
    world.cancel(&given);
    world.restart();
    world.run(call!(ann.unlock(held))).expect("it is held");
    // The reader came before the one that took the place of what was given up.
    let token = reads[0].result().expect("nobody writes");
    assert_eq!(reads[1].result(), Ok(token));
    for _ in 0..2 {
        world.run(call!(cid.unlock(token))).expect("it is held");
    }
    let token = first.result().expect("nobody reads");
    assert_eq!(again.result(), Ok(Some(token)));
    for _ in 0..2 {
        world.run(call!(bob.unlock(token))).expect("it is held");
    }
    assert!(world.object("catalogue").is_none(), "a free lock takes no room");
}

fn only_the_holder_s_session_unlocks(world: &mut World) {
    let [ann, bob, _] = begin(world);
    for writes in [false, true] {
        let lock = if writes {
            world.run(call!(ann.write_lock(1)))
        } else {
            world.run(call!(ann.read_lock(1)))
        };
        let token = lock.expect("it is free");
        let seen = world.run(call!(bob.holders(0, 1))).expect("a read").holders[0].token;
        assert_eq!(seen, token);
        assert_eq!(failed(world.run(call!(bob.unlock(token)))), RwLockError::NotHolder);
        world.run(call!(ann.unlock(token))).expect("it is held");
    }
}

/// As many as there may be go on in the step in which the writer leaves; one more is refused.
fn more_calls_than_may_wait_are_refused(world: &mut World) {
    let [ann, bob, _] = begin(world);
    let held = world.run(call!(ann.write_lock(0))).expect("it is free");
    let waiting: Vec<_> =
        (0..1_000).map(|owner| world.start(call!(bob.read_lock(owner)))).collect();
    let refused = failed(world.run(call!(bob.read_lock(1_000))));
    assert_eq!(refused, RwLockError::TooManyWaiting { limit: 1_000 });
    world.run(call!(ann.unlock(held))).expect("it is held");
    assert!(waiting.iter().all(|call| call.result().is_ok()));
    // They are listed in pages that say where they go on.
    let (mut after, mut listed) = (Some(0), 0);
    while let Some(from) = after {
        let page = world.run(call!(ann.holders(from, 300))).expect("a read");
        (after, listed) = (page.next, listed + page.holders.len());
    }
    assert_eq!(listed, 1_000);
}

/// What a session held goes in portions, and is gone in the end.
fn a_dead_session_s_many_holds_go(world: &mut World) {
    let ann = world.client();
    let (of_ann, of_bob) = (of(&ann), of(&world.client()));
    for owner in 0..2_500 {
        world.run(call!(of_ann.read_lock(owner))).expect("readers share");
    }
    let writes = world.start(call!(of_bob.write_lock(1)));
    world.expire(&ann);
    assert_eq!(world.run(call!(of_bob.holders(0, 1_000))).expect("a read").holders.len(), 1_000);
    assert_eq!(world.blocked(), ["write_lock at room"]);
    world.advance(seconds(1));
    let token = writes.result().expect("nobody reads");
    world.run(call!(of_bob.unlock(token))).expect("it is held");
    assert!(world.object("catalogue").is_none(), "a free lock takes no room");
}

/// However calls interleave, a writer is alone, and all get the lock in the end.
fn a_writer_is_always_alone(world: &mut World) {
    let clients = [(); 5].map(|()| world.client());
    for seed in 0..20 {
        world.shuffle(seed);
        let tasks = clients.iter().enumerate().map(|(index, client)| {
            let stub = of(client);
            world.spawn(async move {
                for round in 0..3 {
                    let writes = (index + round) % 2 == 0;
                    let token =
                        if writes { stub.write_lock(1).await } else { stub.read_lock(1).await };
                    let token = token.expect("nobody gives up");
                    let holders = stub.holders(0, 10).await.expect("a read").holders;
                    assert!(holders.iter().any(|holder| holder.token == token));
                    assert!(holders.len() == 1 || holders.iter().all(|holder| !holder.writes));
                    stub.unlock(token).await.expect("it is held");
                }
            })
        });
        let tasks: Vec<_> = tasks.collect();
        world.settle();
        tasks.iter().for_each(|task| task.result());
        assert!(world.object("catalogue").is_none(), "a free lock takes no room");
    }
}

on_both_engines!(
    standard("RwLock");
    readers_share_and_writers_do_not,
    a_reader_does_not_pass_a_writer,
    readers_behind_a_writer_come_together,
    what_a_dead_session_held_is_free,
    who_gives_up_stands_in_nobody_s_way,
    an_owner_enters_again_and_leaves_as_often,
    an_owner_that_would_wait_for_itself_is_told,
    a_retry_does_not_wait_behind_its_owner,
    only_the_holder_s_session_unlocks,
    more_calls_than_may_wait_are_refused,
    a_dead_session_s_many_holds_go,
    a_writer_is_always_alone,
);
