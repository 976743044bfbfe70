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
    let first = world.run(call!(ann.read_lock())).expect("it is free");
    let second = world.run(call!(bob.read_lock())).expect("readers share");
    assert_eq!(world.run(call!(cid.try_write_lock())), Ok(None));
    let writer = world.start(call!(cid.write_lock()));
    world.restart();
    world.run(call!(ann.unlock(first))).expect("it is held");
    assert_eq!(world.blocked(), ["write_lock at room"]);
    world.run(call!(bob.unlock(second))).expect("it is held");
    let token = writer.result().expect("nobody reads");
    assert!(token > second && second > first);
    assert_eq!(world.run(call!(ann.try_read_lock())), Ok(None));
    let holders = world.run(call!(ann.holders(0, 10))).expect("a read");
    assert_eq!(
        holders.iter().map(|one| (one.token, one.writes)).collect::<Vec<_>>(),
        [(token, true)]
    );
    world.run(call!(cid.unlock(token))).expect("it is held");
    assert!(world.object("catalogue").is_none(), "a free lock takes no room");
}

fn a_reader_does_not_pass_a_writer(world: &mut World) {
    let [ann, bob, cid] = begin(world);
    let reads = world.run(call!(ann.read_lock())).expect("it is free");
    let writes = world.start(call!(bob.write_lock()));
    let late = world.start(call!(cid.read_lock()));
    assert_eq!(world.run(call!(cid.try_read_lock())), Ok(None));
    assert_eq!(world.blocked(), ["write_lock at room", "read_lock at turn"]);
    assert_eq!(world.run(call!(ann.waiting())), Ok(2));
    world.run(call!(ann.unlock(reads))).expect("it is held");
    let writes = writes.result().expect("nobody reads");
    world.run(call!(bob.unlock(writes))).expect("it is held");
    late.result().expect("nobody writes");
    assert_eq!(world.run(call!(bob.holders(0, 10))).expect("a read").len(), 1);
}

fn readers_behind_a_writer_come_together(world: &mut World) {
    let [ann, bob, cid] = begin(world);
    let writes = world.run(call!(ann.write_lock())).expect("it is free");
    let readers = [world.start(call!(bob.read_lock())), world.start(call!(cid.read_lock()))];
    world.run(call!(ann.unlock(writes))).expect("it is held");
    readers.iter().for_each(|reader| assert!(reader.result().is_ok()));
}

fn what_a_dead_session_held_is_free(world: &mut World) {
    let (ann, bob) = (world.client(), world.client());
    let (of_ann, of_bob, of_cid) = (of(&ann), of(&bob), of(&world.client()));
    world.run(call!(of_ann.read_lock())).expect("it is free");
    world.run(call!(of_bob.read_lock())).expect("readers share");
    let writes = world.start(call!(of_bob.write_lock()));
    let reads = world.start(call!(of_cid.read_lock()));
    world.expire(&ann);
    assert_eq!(world.blocked(), ["write_lock at room", "read_lock at turn"]);
    world.expire(&bob);
    assert_eq!(writes.result(), Err(StubError::Other(Ended::SessionOver)));
    let reads = reads.result().expect("nobody else is left");
    world.run(call!(of_cid.unlock(reads))).expect("it is held");
    let dan = world.client();
    let of_dan = of(&dan);
    world.run(call!(of_dan.write_lock())).expect("it is free");
    let next = world.start(call!(of_cid.write_lock()));
    world.expire(&dan);
    let next = next.result().expect("the writer is dead");
    world.run(call!(of_cid.unlock(next))).expect("it is held");
    assert!(world.object("catalogue").is_none(), "a free lock takes no room");
}

fn who_gives_up_stands_in_nobody_s_way(world: &mut World) {
    let [ann, bob, cid] = begin(world);
    let reads = world.run(call!(ann.read_lock())).expect("it is free");
    let writes = world.start(call!(bob.write_lock()));
    let short = world.start(call!(bob.write_lock_for(seconds(1))));
    let late = world.start(call!(cid.read_lock_for(seconds(5))));
    world.advance(seconds(1));
    assert_eq!(short.result(), Ok(None));
    world.cancel(&writes);
    assert_eq!(failed(writes.result()), RwLockError::Cancelled);
    let late = late.result().expect("a call").expect("only readers are left");
    let writes = world.start(call!(bob.write_lock_for(seconds(1))));
    let turned_away = world.start(call!(cid.read_lock_for(seconds(0))));
    world.advance(seconds(2));
    assert_eq!(writes.result(), Ok(None));
    assert_eq!(turned_away.result(), Ok(None));
    for token in [reads, late] {
        world.run(call!(cid.unlock(token))).expect("whoever knows the token may");
        assert_eq!(failed(world.run(call!(cid.unlock(token)))), RwLockError::NotHeld);
    }
    let reads = world.run(call!(ann.try_read_lock())).expect("a call").expect("it is free");
    world.run(call!(ann.unlock(reads))).expect("it is held");
    let writes = world.run(call!(ann.try_write_lock())).expect("a call").expect("it is free");
    world.run(call!(ann.unlock(writes))).expect("it is held");
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
                        if writes { stub.write_lock().await } else { stub.read_lock().await };
                    let token = token.expect("nobody gives up");
                    let holders = stub.holders(0, 10).await.expect("a read");
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
    a_writer_is_always_alone,
);
