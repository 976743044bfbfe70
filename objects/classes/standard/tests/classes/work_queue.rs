//! `WorkQueue`.

use std::time::Duration;

use gesmas_testkit::{Client, World, call, on_both_engines};
use gesmas_work_queue::{Delivery, WorkQueueError, WorkQueueStub};

use crate::{failed, given_up, seconds, standard};

/// Longer than some calls take, which are a nanosecond each.
const MOMENT: Duration = Duration::from_millis(1);

fn begin(world: &mut World, most_deliveries: u32) -> WorkQueueStub<Client> {
    let queue = WorkQueueStub::new(world.client(), "mail");
    world.run(call!(queue.create(most_deliveries))).expect("it is new");
    queue
}

fn put(world: &mut World, queue: &WorkQueueStub<Client>, item: &'static str) -> u64 {
    world.run(call!(queue.put(item.into(), None))).expect("a call")
}

fn take(world: &mut World, queue: &WorkQueueStub<Client>) -> Delivery {
    world.run(call!(queue.take(seconds(30)))).expect("a job is ready")
}

fn what_is_acknowledged_is_done(world: &mut World) {
    let queue = begin(world, u32::MAX);
    let waits = world.start(call!(queue.take(seconds(30))));
    assert_eq!(world.blocked(), ["take at filled"]);
    world.restart();
    let id = put(world, &queue, "to ann");
    let delivery = waits.result().expect("a job is ready");
    assert_eq!((delivery.id, delivery.deliveries), (id, 1));
    assert_eq!(delivery.item, "to ann".into());
    world.run(call!(queue.ack(delivery.lease))).expect("it is leased");
    let lease = delivery.lease;
    assert_eq!(failed(world.run(call!(queue.ack(lease)))), WorkQueueError::NotLeased);
    assert_eq!(failed(world.run(call!(queue.nack(lease, None)))), WorkQueueError::NotLeased);
    world.advance(seconds(60));
    assert_eq!(world.run(call!(queue.try_take(seconds(1)))), Ok(None));
    assert_eq!(world.run(call!(queue.length())), Ok(0));
}

fn what_is_not_comes_again_at_the_end(world: &mut World) {
    let queue = begin(world, u32::MAX);
    let ids = ["a", "b", "c"].map(|item| put(world, &queue, item));
    let (first, second) = (take(world, &queue), take(world, &queue));
    world.run(call!(queue.nack(second.lease, Some(seconds(0))))).expect("it is leased");
    assert_eq!(world.run(call!(queue.leased())), Ok(1));
    let order = [take(world, &queue), take(world, &queue)].map(|job| (job.id, job.deliveries));
    assert_eq!(order, [(ids[2], 1), (ids[1], 2)]);
    // All leases run out at one time; each job comes back, in the order of their leases.
    world.advance(seconds(30));
    assert_eq!(world.run(call!(queue.delayed())), Ok(3));
    world.advance(seconds(2));
    let order = [take(world, &queue), take(world, &queue), take(world, &queue)].map(|job| job.id);
    assert_eq!(order, [ids[0], ids[2], ids[1]]);
    assert_eq!(failed(world.run(call!(queue.ack(first.lease)))), WorkQueueError::NotLeased);
}

/// A job that fails again and again waits longer each time, and meanwhile delays nobody.
fn a_bad_job_waits_the_longer_the_more_often_it_fails(world: &mut World) {
    let queue = begin(world, 4);
    let bad = put(world, &queue, "bad");
    for pause in [1, 2, 4] {
        let job = take(world, &queue);
        assert_eq!(job.id, bad);
        let good = put(world, &queue, "good");
        world.run(call!(queue.nack(job.lease, None))).expect("it is leased");
        let next = take(world, &queue);
        assert_eq!(next.id, good);
        world.run(call!(queue.ack(next.lease))).expect("it is leased");
        world.advance(seconds(pause) - MOMENT);
        assert_eq!(world.run(call!(queue.try_take(seconds(30)))), Ok(None));
        world.advance(MOMENT);
    }
    let job = take(world, &queue);
    assert_eq!((job.id, job.deliveries), (bad, 4));
    world.run(call!(queue.nack(job.lease, None))).expect("it is leased");
    let counts = [world.run(call!(queue.dead())), world.run(call!(queue.delayed()))];
    assert_eq!(counts, [Ok(1), Ok(0)]);
}

fn delays_are_kept(world: &mut World) {
    let queue = begin(world, u32::MAX);
    let later = world.run(call!(queue.put("later".into(), Some(seconds(5))))).expect("a call");
    let sooner = world.run(call!(queue.put("sooner".into(), Some(seconds(3))))).expect("a call");
    let at_once = put(world, &queue, "at once");
    assert_eq!(take(world, &queue).id, at_once);
    assert_eq!(world.run(call!(queue.length())), Ok(0));
    let waits = world.start(call!(queue.take(seconds(30))));
    world.restart();
    world.advance(seconds(3));
    let job = waits.result().expect("a job is ready");
    assert_eq!((job.id, job.deliveries), (sooner, 1));
    world.run(call!(queue.nack(job.lease, Some(seconds(1))))).expect("it is leased");
    world.advance(seconds(1));
    assert_eq!(take(world, &queue).id, sooner);
    world.advance(seconds(1));
    assert_eq!(take(world, &queue).id, later);
    assert_eq!(world.run(call!(queue.delayed())), Ok(0));
}

fn a_lease_outlives_its_session_and_ends_in_time(world: &mut World) {
    let queue = begin(world, u32::MAX);
    let id = put(world, &queue, "a");
    let ann = world.client();
    let of_ann = WorkQueueStub::new(ann.clone(), "mail");
    let lease = world.run(call!(of_ann.take(seconds(10)))).expect("a job is ready").lease;
    world.expire(&ann);
    assert_eq!(world.run(call!(queue.try_take(seconds(1)))), Ok(None));
    let ends = world.now() + seconds(20);
    assert!(world.run(call!(queue.extend(lease, seconds(20)))).expect("it is leased") >= ends);
    world.advance(seconds(15));
    assert_eq!(world.run(call!(queue.try_take(seconds(1)))), Ok(None));
    let next = world.start(call!(queue.take_for(seconds(1), seconds(10))));
    world.advance(seconds(6));
    let next = next.result().expect("a call").expect("the lease is over");
    assert_eq!((next.id, next.deliveries), (id, 2));
    let late = world.run(call!(queue.extend(lease, seconds(20))));
    assert_eq!(failed(late), WorkQueueError::NotLeased);
}

fn a_job_that_fails_too_often_is_put_aside(world: &mut World) {
    let queue = begin(world, 2);
    let id = put(world, &queue, "poison");
    let first = take(world, &queue);
    world.run(call!(queue.nack(first.lease, Some(seconds(0))))).expect("it is leased");
    take(world, &queue);
    world.advance(seconds(30));
    assert_eq!(world.run(call!(queue.try_take(seconds(1)))), Ok(None));
    assert_eq!(world.run(call!(queue.dead())), Ok(1));
    let page = world.run(call!(queue.dead_letters(0, 10))).expect("a read");
    assert_eq!((page.letters[0].id, page.letters[0].deliveries), (id, 2));
    assert_eq!(page.next, None);
    world.run(call!(queue.revive(id))).expect("it is dead");
    assert_eq!(failed(world.run(call!(queue.revive(id)))), WorkQueueError::NoDeadLetter);
    for _ in 0..2 {
        let job = take(world, &queue);
        world.run(call!(queue.nack(job.lease, Some(seconds(0))))).expect("it is leased");
    }
    assert_eq!(world.run(call!(queue.discard(id))), Ok("poison".into()));
    assert_eq!(failed(world.run(call!(queue.discard(id)))), WorkQueueError::NoDeadLetter);
    let view = world.object("mail").expect("it is there");
    assert_eq!(view.timers.len(), 0);
}

fn who_gives_up_takes_nothing(world: &mut World) {
    let queue = begin(world, u32::MAX);
    let given = world.start(call!(queue.take(seconds(30))));
    let short = world.start(call!(queue.take_for(seconds(30), seconds(1))));
    let patient = world.start(call!(queue.take(seconds(30))));
    world.cancel(&given);
    assert_eq!(given.result(), given_up());
    world.advance(seconds(1));
    assert_eq!(short.result(), Ok(None));
    put(world, &queue, "a");
    patient.result().expect("a job is ready");
}

/// However calls interleave and workers fail, each job is done once.
fn every_job_is_done_once(world: &mut World) {
    let queue = begin(world, u32::MAX);
    let workers = [(); 3].map(|()| WorkQueueStub::new(world.client(), "mail"));
    for seed in 0..10 {
        world.shuffle(seed);
        let tasks = workers.clone().map(|worker| {
            world.spawn(async move {
                let mut done = Vec::new();
                for round in 0.. {
                    worker.put(vec![round].into(), None).await.expect("a call");
                    let job = worker.take(seconds(1)).await.expect("nobody gives up");
                    // Each third worker fails, in one of two ways.
                    if job.deliveries == 1 && job.id % 3 == 0 {
                        worker.nack(job.lease, None).await.expect("it is leased");
                    } else if job.deliveries > 1 || job.id % 3 == 1 {
                        worker.ack(job.lease).await.expect("it is leased");
                        done.push(job.id);
                    }
                    if round == 5 {
                        return done;
                    }
                }
                done
            })
        });
        world.settle();
        while tasks.iter().any(gesmas_testkit::Pending::is_open) {
            world.advance(seconds(1));
        }
        let mut done: Vec<_> = tasks.iter().flat_map(|task| task.result()).collect();
        world.advance(seconds(9));
        while let Some(job) = world.run(call!(queue.try_take(seconds(9)))).expect("a call") {
            world.run(call!(queue.ack(job.lease))).expect("it is leased");
            done.push(job.id);
        }
        let count = done.len();
        done.sort_unstable();
        done.dedup();
        assert_eq!((done.len(), count), (18, 18), "seed {seed}");
    }
}

on_both_engines!(
    standard("WorkQueue");
    what_is_acknowledged_is_done,
    what_is_not_comes_again_at_the_end,
    a_bad_job_waits_the_longer_the_more_often_it_fails,
    delays_are_kept,
    a_lease_outlives_its_session_and_ends_in_time,
    a_job_that_fails_too_often_is_put_aside,
    who_gives_up_takes_nothing,
    every_job_is_done_once,
);
