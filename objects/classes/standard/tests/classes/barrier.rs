//! `Barrier`.

use gesmas_barrier::{BarrierError, BarrierStub};
use gesmas_testkit::{Client, World, call, on_both_engines};

use crate::{failed, given_up, seconds, standard};

fn of(client: &Client) -> BarrierStub<Client> {
    BarrierStub::new(client.clone(), "epoch")
}

fn begin(world: &mut World, parties: u32) -> BarrierStub<Client> {
    begin_named(world, "epoch", parties)
}

fn begin_named(world: &mut World, name: &str, parties: u32) -> BarrierStub<Client> {
    let barrier = BarrierStub::new(world.client(), name);
    world.run(call!(barrier.create(parties))).expect("it is new");
    barrier
}

fn all_go_on_with_the_last(world: &mut World) {
    let barrier = begin(world, 3);
    for generation in 0..2 {
        let waiting = [world.start(call!(barrier.wait())), world.start(call!(barrier.wait()))];
        assert_eq!(world.blocked(), ["wait at gate"; 2]);
        assert_eq!(world.run(call!(barrier.waiting())), Ok(2));
        world.restart();
        assert_eq!(world.run(call!(barrier.wait())), Ok(generation));
        waiting.iter().for_each(|party| assert_eq!(party.result(), Ok(generation)));
        assert_eq!(world.run(call!(barrier.generations())), Ok(generation + 1));
    }
}

fn who_leaves_is_not_counted(world: &mut World) {
    let barrier = begin(world, 2);
    let given = world.start(call!(barrier.wait()));
    world.cancel(&given);
    assert_eq!(given.result(), given_up());
    let short = world.start(call!(barrier.wait_for(seconds(1))));
    world.advance(seconds(1));
    assert_eq!(short.result(), Ok(None));
    assert_eq!(world.run(call!(barrier.waiting())), Ok(0));
    let patient = world.start(call!(barrier.wait_for(seconds(3))));
    world.advance(seconds(1));
    assert_eq!(world.run(call!(barrier.wait_for(seconds(1)))), Ok(Some(0)));
    assert_eq!(patient.result(), Ok(Some(0)));
}

fn a_dead_party_is_not_counted(world: &mut World) {
    let barrier = begin(world, 2);
    let ann = world.client();
    let of_ann = of(&ann);
    let dies = world.start(call!(of_ann.wait()));
    world.expire(&ann);
    assert!(!dies.is_open());
    let lives = world.start(call!(barrier.wait()));
    assert_eq!(world.blocked(), ["wait at gate"]);
    assert_eq!(world.run(call!(barrier.wait())), Ok(0));
    assert_eq!(lives.result(), Ok(0));
}

fn a_barrier_that_nobody_could_pass_is_refused(world: &mut World) {
    for parties in [0, 1_000_001, u32::MAX] {
        let refused = of(&world.client());
        let refused = failed(world.run(call!(refused.create(parties))));
        assert_eq!(refused, BarrierError::BadParties { limit: 1_000_000 });
        assert!(world.object("epoch").is_none(), "it would never let anybody pass");
    }
    let barrier = begin(world, 1);
    assert_eq!(world.run(call!(barrier.wait())), Ok(0));
    begin_named(world, "most", 1_000_000);
}

/// Many parties go on in portions, and the next generation may come before the last of them has left.
fn many_parties_go_on_in_portions(world: &mut World) {
    let barrier = begin(world, 2_500);
    let start = |world: &mut World, parties: u32| -> Vec<_> {
        (0..parties).map(|_| world.start(call!(barrier.wait()))).collect()
    };
    let mut first = start(world, 2_497);
    first.push(world.start(call!(barrier.wait())));
    let given = first.pop().expect("it was just put there");
    let short = world.start(call!(barrier.wait_for(seconds(0))));
    assert_eq!(short.result(), Ok(None));
    first.push(world.start(call!(barrier.wait())));
    assert_eq!(world.run(call!(barrier.wait())), Ok(0));
    assert_eq!(world.blocked().len(), 1_499);
    // One that has not been woken gives up, and is missed by nobody.
    world.cancel(&given);
    assert_eq!(given.result(), given_up());
    let second = start(world, 2_499);
    world.advance(seconds(1));
    first.iter().for_each(|party| assert_eq!(party.result(), Ok(0)));
    assert_eq!(world.blocked().len(), 2_499);
    assert_eq!(world.run(call!(barrier.waiting())), Ok(2_499));
    assert_eq!(world.run(call!(barrier.wait())), Ok(1));
    world.advance(seconds(1));
    second.iter().for_each(|party| assert_eq!(party.result(), Ok(1)));
    assert_eq!(world.blocked(), [] as [&str; 0]);
}

/// Whose time is up before it is woken has passed all the same.
fn a_party_whose_time_is_up_has_passed_with_the_others(world: &mut World) {
    let barrier = begin(world, 1_500);
    let others: Vec<_> = (0..1_498).map(|_| world.start(call!(barrier.wait()))).collect();
    let short = world.start(call!(barrier.wait_for(seconds(1))));
    world.advance(std::time::Duration::from_nanos(1_000_000_000 - 3));
    assert_eq!(world.run(call!(barrier.wait())), Ok(0));
    world.advance(seconds(1));
    assert_eq!(short.result(), Ok(Some(0)));
    others.iter().for_each(|party| assert_eq!(party.result(), Ok(0)));
    assert_eq!(world.run(call!(barrier.waiting())), Ok(0));
}

/// However calls interleave, nobody is ahead of another by more than a generation.
fn nobody_runs_ahead(world: &mut World) {
    let clients = [(); 3].map(|()| world.client());
    let first = of(&clients[0]);
    world.run(call!(first.create(3))).expect("it is new");
    for seed in 0..20 {
        world.shuffle(seed);
        let tasks = clients.clone().map(|client| {
            let stub = of(&client);
            world.spawn(async move {
                let mut generations = Vec::new();
                for _ in 0..4 {
                    generations.push(stub.wait().await.expect("nobody gives up"));
                }
                generations
            })
        });
        world.settle();
        let expected: Vec<_> = (seed * 4..seed * 4 + 4).collect();
        tasks.iter().for_each(|task| assert_eq!(task.result(), expected));
    }
}

on_both_engines!(
    standard("Barrier");
    all_go_on_with_the_last,
    who_leaves_is_not_counted,
    a_dead_party_is_not_counted,
    a_barrier_that_nobody_could_pass_is_refused,
    many_parties_go_on_in_portions,
    a_party_whose_time_is_up_has_passed_with_the_others,
    nobody_runs_ahead,
);
