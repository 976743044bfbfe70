//! Handlers that fail are not the end of their objects: what was to happen happens once nothing stands
//! against it any more, without anybody's doing, and an operator who calls them once more does no harm.
//!
//! Each class with handlers is a row: how it is brought to the brink, the limit that makes its handler
//! fail, and what must be true after all.

use gesmas_delay_queue::DelayQueueStub;
use gesmas_machine::Limits;
use gesmas_testkit::{World, call};
use gesmas_tuple_space::{Field, TupleSpaceStub};
use gesmas_work_queue::WorkQueueStub;

use crate::{seconds, standard};

/// A class with handlers.
struct Row {
    class: &'static str,
    object: &'static str,
    /// The limit that makes the handler fail, and its value then.
    limit: (&'static str, u64),
    /// Something is going to happen after a second.
    prepare: fn(&mut World),
    /// It has happened, and once.
    check: fn(&mut World),
}

const ROWS: [Row; 4] = [
    Row {
        class: "DelayQueue",
        object: "reminders",
        limit: ("semaphore_count", 1),
        prepare: |world| {
            let queue = DelayQueueStub::new(world.client(), "reminders");
            for item in ["a", "b", "c"] {
                world.run(call!(queue.put(item.into(), seconds(1)))).expect("a call");
            }
        },
        check: |world| {
            let queue = DelayQueueStub::new(world.client(), "reminders");
            assert_eq!(world.run(call!(queue.due())), Ok(3));
            for item in ["a", "b", "c"] {
                assert_eq!(world.run(call!(queue.try_take())), Ok(Some(item.into())));
            }
            assert_eq!(world.run(call!(queue.try_take())), Ok(None));
            assert!(world.object("reminders").is_none_or(|object| object.timers.is_empty()));
        },
    },
    Row {
        class: "WorkQueue",
        object: "mail",
        limit: ("object_bytes", 1_024),
        prepare: |world| {
            let queue = WorkQueueStub::new(world.client(), "mail");
            world.run(call!(queue.create(9))).expect("it is new");
            world.run(call!(queue.put(vec![7; 2_000].into(), None))).expect("a call");
            world.run(call!(queue.take(seconds(1)))).expect("a job is ready");
        },
        check: |world| {
            let queue = WorkQueueStub::new(world.client(), "mail");
            world.advance(seconds(2));
            assert_eq!(world.run(call!(queue.length())), Ok(1));
            let job = world.run(call!(queue.take(seconds(1)))).expect("a job is ready");
            assert_eq!(job.deliveries, 2);
            world.run(call!(queue.ack(job.lease))).expect("it is leased");
            assert!(world.object("mail").is_some_and(|object| object.timers.is_empty()));
        },
    },
    Row {
        class: "WorkQueue",
        object: "mail",
        limit: ("object_bytes", 1_024),
        prepare: |world| {
            let queue = WorkQueueStub::new(world.client(), "mail");
            world.run(call!(queue.create(9))).expect("it is new");
            world.run(call!(queue.put(vec![7; 2_000].into(), Some(seconds(1))))).expect("a call");
        },
        check: |world| {
            let queue = WorkQueueStub::new(world.client(), "mail");
            assert_eq!(world.run(call!(queue.length())), Ok(1));
            assert_eq!(world.run(call!(queue.delayed())), Ok(0));
            assert!(world.object("mail").is_some_and(|object| object.timers.is_empty()));
        },
    },
    Row {
        class: "TupleSpace",
        object: "jobs",
        limit: ("journal_bytes", 4_096),
        prepare: |world| {
            let space = TupleSpaceStub::new(world.client(), "jobs");
            let tuple = vec![Field::text("x".repeat(9_000))];
            world.run(call!(space.out(tuple, Some(seconds(1))))).expect("it is short");
        },
        check: |world| assert!(world.object("jobs").is_none_or(|object| object.timers.is_empty())),
    },
];

/// Each row on each engine, up to where its handler has failed.
fn on_each(test: impl Fn(&mut World, &Row)) {
    for row in &ROWS {
        let class = standard(row.class);
        for mut world in [World::native(&class), World::wasm(&class)] {
            (row.prepare)(&mut world);
            world.set_limit(row.limit.0, row.limit.1);
            world.advance(seconds(2));
            let faults = world.faults();
            assert_eq!(faults.len(), 1, "the handler of {} fails: {faults:?}", row.class);
            test(&mut world, row);
        }
    }
}

/// The limit is as it was.
fn mend(world: &mut World, row: &Row) {
    let limits = Limits::default().list();
    let (_, limit) = limits.iter().find(|(name, _)| *name == row.limit.0).expect("it is one");
    world.set_limit(row.limit.0, limit.value);
}

#[test]
fn what_failed_happens_by_itself_once_it_can() {
    on_each(|world, row| {
        // It is tried, and fails, again and again.
        world.advance(seconds(70));
        assert_eq!(world.faults().len(), 2, "{}", row.class);
        mend(world, row);
        world.advance(seconds(40));
        assert_eq!(world.faults(), [""; 0], "{}", row.class);
        (row.check)(world);
    });
}

#[test]
fn a_retry_helps_once_it_can() {
    on_each(|world, row| {
        assert_eq!(world.retry_faults(row.object), 1);
        assert_eq!(world.faults().len(), 1, "it fails again");
        mend(world, row);
        assert_eq!(world.retry_faults(row.object), 1);
        (row.check)(world);
        world.advance(seconds(40));
        assert_eq!(world.faults(), [""; 0], "{}", row.class);
    });
}

/// A fault that was overtaken by the next attempt is retried in vain, and does no harm.
#[test]
fn a_retry_that_comes_late_does_nothing() {
    on_each(|world, row| {
        mend(world, row);
        world.advance(seconds(40));
        world.retry_faults(row.object);
        assert_eq!(world.faults(), [""; 0], "{}", row.class);
        (row.check)(world);
    });
}

/// What falls due at one time is handed out whatever its size, and in its order.
#[test]
fn any_number_of_bytes_may_fall_due_at_once() {
    let class = standard("DelayQueue");
    for mut world in [World::native(&class), World::wasm(&class)] {
        let queue = DelayQueueStub::new(world.client(), "reminders");
        for (count, size) in [(500_u64, 9_000), (100, 60_000), (12, 300_000), (20, 1_000_000)] {
            let waits = world.start(call!(queue.take()));
            for number in 0..count {
                let item = [&number.to_le_bytes()[..], &vec![7; size][..]].concat();
                world.spawn(call!(queue.put(item.into(), seconds(5))));
            }
            world.settle();
            world.advance(seconds(6));
            assert_eq!(world.run(call!(queue.due())), Ok(count - 1));
            assert_eq!(waits.result().expect("it is due").len(), size + 8);
            for number in 1..count {
                let item = world.run(call!(queue.try_take())).expect("a call").expect("it is due");
                assert_eq!((&item[..8], item.len()), (&number.to_le_bytes()[..], size + 8));
            }
        }
    }
}
