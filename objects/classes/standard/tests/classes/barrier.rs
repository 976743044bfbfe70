//! `Barrier`.

use gesmas_barrier::BarrierStub;
use gesmas_testkit::{Client, World, call, on_both_engines};

use crate::{given_up, seconds, standard};

fn of(client: &Client) -> BarrierStub<Client> {
    BarrierStub::new(client.clone(), "epoch")
}

fn begin(world: &mut World, parties: u32) -> BarrierStub<Client> {
    let barrier = of(&world.client());
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
    nobody_runs_ahead,
);
