//! Values at the edge, in every class that keeps what its callers give it: the greatest that pass, keys
//! of every form, what is refused and by which rule, and pages.
//!
//! A class that takes a value is a row of a table here: how it is put, and every way in which it comes
//! out again. What is true of one is asked of all, so that a new class or method is a new row.

use std::fmt::Debug;

use gesmas_delay_queue::DelayQueueStub;
use gesmas_machine::{CallError, LimitExceeded, Limits};
use gesmas_priority_queue::PriorityQueueStub;
use gesmas_queue::{QueueError, QueueStub};
use gesmas_rate_limiter::{RateLimiterError, RateLimiterStub};
use gesmas_register::{Expected, RegisterError, RegisterStub};
use gesmas_sdk::{
    abi::value::{Bytes, to_bytes},
    stub::StubError,
};
use gesmas_testkit::{Ended, World, call};
use gesmas_tuple_space::{Field, Place, TupleSpaceError, TupleSpaceStub};
use gesmas_work_queue::{WorkQueueError, WorkQueueStub};

use crate::{failed, seconds, standard};

/// A row: a class, how many bytes its arguments have around the value in the widest of its calls, and what
/// is done with a value. It gives back the value as it came out, in each way in which it does.
type Row = (&'static str, usize, fn(&mut World, &'static Bytes) -> Vec<Bytes>);

const KEEPERS: [Row; 6] = [
    ("Queue", 4 + 8, queue),
    ("WorkQueue", 4 + 9, work_queue),
    ("DelayQueue", 4 + 8, delay_queue),
    ("PriorityQueue", 4 + 8, priority_queue),
    // The key, the value, what is expected.
    ("Register", 4 + 3 + 4 + 9, register),
    // Templates and what replaces have the limit of `long_templates_pass_beside_the_greatest_tuple`.
    ("TupleSpace", (1 << 20) - (BESIDE - TEMPLATE_AROUND), tuple_space),
];

/// Bytes that a template of a `TupleSpace` may have, and a tuple that replaces another.
const BESIDE: usize = 800_000;
/// Bytes of the template of `tuple_space` and `beside` around its value.
const TEMPLATE_AROUND: usize = 4 + (1 + 1 + 4 + 1) + (1 + 1 + 4);

/// Each row on each engine.
fn on_each(test: impl Fn(&mut World, &Row)) {
    for row in &KEEPERS {
        let class = standard(row.0);
        for (engine, mut world) in
            [("native", World::native(&class)), ("wasm", World::wasm(&class))]
        {
            eprintln!("{} on {engine}", row.0);
            test(&mut world, row);
        }
    }
}

fn done<T: Debug, E: Debug>(ended: Result<T, E>) -> T {
    ended.expect("nothing stands against it")
}

fn some<T: Debug, E: Debug>(ended: Result<Option<T>, E>) -> T {
    done(ended).expect("something is there")
}

fn queue(world: &mut World, item: &'static Bytes) -> Vec<Bytes> {
    let queue = QueueStub::new(world.client(), "jobs");
    done(world.run(call!(queue.create(1))));
    let mut out = Vec::new();
    done(world.run(call!(queue.produce(item.clone()))));
    // One waits until there is room for it.
    let waits = world.start(call!(queue.produce(item.clone())));
    out.push(done(world.run(call!(queue.consume()))));
    done(waits.result());
    out.push(some(world.run(call!(queue.try_consume()))));
    assert!(done(world.run(call!(queue.try_produce(item.clone())))));
    out.push(some(world.run(call!(queue.consume_for(seconds(1))))));
    let waits = world.start(call!(queue.consume()));
    assert!(done(world.run(call!(queue.produce_for(item.clone(), seconds(1))))));
    out.push(done(waits.result()));
    out
}

fn work_queue(world: &mut World, item: &'static Bytes) -> Vec<Bytes> {
    let queue = WorkQueueStub::new(world.client(), "mail");
    done(world.run(call!(queue.create(5))));
    let mut out = Vec::new();
    let waits = world.start(call!(queue.take(seconds(30))));
    let id = done(world.run(call!(queue.put(item.clone(), None))));
    let job = done(waits.result());
    out.push(job.item);
    done(world.run(call!(queue.extend(job.lease, seconds(60)))));
    done(world.run(call!(queue.nack(job.lease, Some(seconds(0))))));
    let job = some(world.run(call!(queue.try_take(seconds(30)))));
    out.push(job.item);
    done(world.run(call!(queue.nack(job.lease, None))));
    world.advance(seconds(2));
    let job = some(world.run(call!(queue.take_for(seconds(1), seconds(1)))));
    out.push(job.item);
    // The lease runs out, and then the delay.
    world.advance(seconds(5));
    for _ in 0..2 {
        let job = done(world.run(call!(queue.take(seconds(30)))));
        out.push(job.item);
        done(world.run(call!(queue.nack(job.lease, Some(seconds(0))))));
    }
    let dead = done(world.run(call!(queue.dead_letters(0, 10))));
    out.extend(dead.letters.into_iter().map(|letter| letter.item));
    done(world.run(call!(queue.revive(id))));
    for _ in 0..5 {
        let job = done(world.run(call!(queue.take(seconds(30)))));
        done(world.run(call!(queue.nack(job.lease, Some(seconds(0))))));
    }
    out.push(done(world.run(call!(queue.discard(id)))));
    done(world.run(call!(queue.put(item.clone(), Some(seconds(1))))));
    world.advance(seconds(1));
    let job = done(world.run(call!(queue.take(seconds(30)))));
    out.push(job.item);
    done(world.run(call!(queue.ack(job.lease))));
    out
}

fn delay_queue(world: &mut World, item: &'static Bytes) -> Vec<Bytes> {
    let queue = DelayQueueStub::new(world.client(), "reminders");
    let mut out = Vec::new();
    done(world.run(call!(queue.put(item.clone(), seconds(0)))));
    out.push(done(world.run(call!(queue.take()))));
    done(world.run(call!(queue.put(item.clone(), seconds(1)))));
    let waits = world.start(call!(queue.take()));
    world.advance(seconds(1));
    out.push(done(waits.result()));
    for _ in 0..2 {
        done(world.run(call!(queue.put(item.clone(), seconds(1)))));
    }
    world.advance(seconds(2));
    out.push(some(world.run(call!(queue.try_take()))));
    out.push(some(world.run(call!(queue.take_for(seconds(1))))));
    out
}

fn priority_queue(world: &mut World, item: &'static Bytes) -> Vec<Bytes> {
    let queue = PriorityQueueStub::new(world.client(), "tickets");
    let mut out = Vec::new();
    let waits = world.start(call!(queue.take()));
    for priority in [i64::MIN, i64::MAX, 0] {
        done(world.run(call!(queue.put(item.clone(), priority))));
    }
    let (first, next) = (done(waits.result()), some(world.run(call!(queue.peek()))));
    let same = some(world.run(call!(queue.try_take())));
    let last = some(world.run(call!(queue.take_for(seconds(1)))));
    let all = [first, next, same, last];
    assert_eq!(all.each_ref().map(|found| found.priority), [i64::MIN, 0, 0, i64::MAX]);
    out.extend(all.map(|found| found.item));
    out
}

fn register(world: &mut World, value: &'static Bytes) -> Vec<Bytes> {
    let config = RegisterStub::new(world.client(), "config");
    let key = || Bytes::from("key");
    let mut out = Vec::new();
    done(world.run(call!(config.set(key(), value.clone()))));
    let version = done(world.run(call!(config.set(key(), value.clone()))));
    out.push(some(world.run(call!(config.get(key())))).value);
    let expected = Expected::Version(version);
    let version = some(world.run(call!(config.compare_and_set(key(), expected, value.clone()))));
    let keys = done(world.run(call!(config.keys("".into(), 10))));
    assert_eq!((keys.keys, keys.next), (vec![key()], None));
    out.push(some(world.run(call!(config.remove(key())))).value);
    done(world.run(call!(config.set(key(), value.clone()))));
    let not = call!(config.compare_and_remove(key(), Expected::Version(version)));
    assert!(!done(world.run(not)));
    out.push(some(world.run(call!(config.get(key())))).value);
    out
}

fn tuple_space(world: &mut World, value: &'static Bytes) -> Vec<Bytes> {
    let space = TupleSpaceStub::new(world.client(), "jobs");
    let tuple = move || vec![Field::text("a"), Field::Bytes(value.clone())];
    let named = || vec![Place::Exactly(Field::text("a")), Place::Any];
    let exactly = move || tuple().into_iter().map(Place::Exactly).collect::<Vec<_>>();
    let mut found = Vec::new();
    let waits = world.start(call!(space.r#in(exactly())));
    let copies = world.start(call!(space.rd_for(named(), seconds(1))));
    done(world.run(call!(space.out(tuple(), None))));
    found.push(done(waits.result()));
    world.advance(seconds(1));
    assert_eq!(done(copies.result()), None, "the taker came first");
    let id = done(world.run(call!(space.out(tuple(), Some(seconds(60))))));
    assert!(done(world.run(call!(space.renew(id, seconds(90))))));
    found.push(some(world.run(call!(space.rdp(exactly())))));
    found.push(done(world.run(call!(space.rd(named())))));
    found.extend(done(world.run(call!(space.rd_all(named(), "".into(), 10)))).tuples);
    assert!(!done(world.run(call!(space.cas(named(), tuple(), None)))));
    found.push(some(world.run(call!(space.replace(named(), tuple())))));
    found.push(some(world.run(call!(space.in_for(named(), seconds(1))))));
    assert!(done(world.run(call!(space.cas(named(), tuple(), Some(seconds(1)))))));
    world.advance(seconds(2));
    assert_eq!(done(world.run(call!(space.inp(named())))), None, "the lease is over");
    assert!(world.object("jobs").is_none(), "nothing stays behind");
    let bytes = found.into_iter().map(|tuple| match &tuple[1] {
        Field::Bytes(bytes) => bytes.clone(),
        other => panic!("it was put as bytes, and is {other:?}"),
    });
    bytes.collect()
}

/// Bytes of every value, zeros among them.
fn bytes(length: usize) -> Bytes {
    let pattern = (0..length).map(|at| (at % 251 + at / 1_024) % 256);
    Bytes(pattern.map(|byte| u8::try_from(byte).expect("it is small")).collect())
}

/// A value passes through every method of every class, whatever its size up to that of the greatest argument.
#[test]
fn values_of_every_size_pass() {
    let greatest = usize::try_from(Limits::default().argument_bytes).expect("it is small");
    on_each(|world, (_, around, keep)| {
        // Where buffers double, where blocks of memory change their kind, and the greatest.
        let sizes = [0, 1, 255, 1_000, 16_384, 262_144, 524_000, 524_288, 528_000, 800_000];
        let sizes = sizes.into_iter().chain([greatest - around]);
        for size in sizes.filter(|size| *size <= greatest - around) {
            let value: &'static Bytes = Box::leak(bytes(size).into());
            for (way, out) in keep(world, value).into_iter().enumerate() {
                assert!(out == *value, "{size} bytes came out otherwise in way {way}");
            }
            for name in ["jobs", "mail"] {
                world.remove(name);
            }
        }
    });
}

/// One byte more than an argument may have is refused by the name of the limit.
#[test]
fn one_byte_more_is_refused_by_the_name_of_the_limit() {
    let limit = Limits::default().argument_bytes;
    let most = usize::try_from(limit).expect("it is small");
    let refused = |ended: Ended| {
        let exceeded = LimitExceeded::new("argument_bytes", limit);
        assert_eq!(ended, Ended::Failed(CallError::Limit(exceeded)));
    };
    macro_rules! edge {
        ($class:literal, $stub:ident $create:tt, $around:expr, |$object:ident, $value:ident| $call:expr) => {
            let class = standard($class);
            for mut world in [World::native(&class), World::wasm(&class)] {
                let $object = $stub::new(world.client(), "edge");
                edge!(@create world, $object, $create);
                let $value = bytes(most - $around);
                world.run($call).expect("the greatest passes");
                let $value = bytes(most - $around + 1);
                match world.run($call) {
                    Err(StubError::Other(ended)) => refused(ended),
                    other => panic!("{} took more than the greatest: {other:?}", $class),
                }
            }
        };
        (@create $world:ident, $object:ident, ()) => {};
        (@create $world:ident, $object:ident, ($($argument:expr),+)) => {
            $world.run(call!($object.create($($argument),+))).expect("it is new");
        };
    }
    edge!("Queue", QueueStub(2), 4, |q, v| call!(q.produce(v.clone())));
    edge!("WorkQueue", WorkQueueStub(2), 5, |q, v| call!(q.put(v.clone(), None)));
    edge!("DelayQueue", DelayQueueStub(), 12, |q, v| call!(q.put(v.clone(), seconds(1))));
    edge!("PriorityQueue", PriorityQueueStub(), 12, |q, v| call!(q.put(v.clone(), 1)));
    edge!("Register", RegisterStub(), 9, |r, v| call!(r.set("k".into(), v.clone())));
    edge!("TupleSpace", TupleSpaceStub(), 10, |t, v| {
        call!(t.out(vec![Field::Bytes(v.clone())], None))
    });
}

/// A template of its greatest length finds a tuple of the greatest length, in each method; a byte more is
/// refused by the name of the limit.
#[test]
fn long_templates_pass_beside_the_greatest_tuple() {
    let class = standard("TupleSpace");
    let most = usize::try_from(Limits::default().argument_bytes).expect("it is small");
    let long: &'static Bytes = Box::leak(bytes(BESIDE - TEMPLATE_AROUND - 1).into());
    let (name, rest) = (|| Field::text("a"), bytes(most - BESIDE - 20));
    let rest: &'static Bytes = Box::leak(rest.into());
    let tuple = move || vec![name(), Field::Bytes(long.clone()), Field::Bytes(rest.clone())];
    let template = move |more: &[u8]| {
        let value = Bytes([long.as_ref(), more].concat());
        vec![Place::Exactly(name()), Place::Exactly(Field::Bytes(value)), Place::Any]
    };
    for mut world in [World::native(&class), World::wasm(&class)] {
        let space = TupleSpaceStub::new(world.client(), "jobs");
        let template = move || template(&[]);
        let copies = world.start(call!(space.rd(template())));
        let waits = world.start(call!(space.r#in(template())));
        done(world.run(call!(space.out(tuple(), None))));
        world.advance(seconds(1));
        assert!(done(copies.result()) == tuple() && done(waits.result()) == tuple());
        assert!(done(world.run(call!(space.cas(template(), vec![name()], None)))));

        done(world.run(call!(space.out(tuple(), Some(seconds(9))))));

        assert!(some(world.run(call!(space.rdp(template())))) == tuple());

        let page = done(world.run(call!(space.rd_all(template(), "".into(), 9))));
        assert!(page.tuples == [tuple()]);

        assert!(some(world.run(call!(space.replace(template(), vec![name()])))) == tuple());
    }
    for mut world in [World::native(&class), World::wasm(&class)] {
        let space = TupleSpaceStub::new(world.client(), "jobs");
        let template = move || template(b"!");
        let beside = move || {
            template().into_iter().map(|place| match place {
                Place::Exactly(field) => field,
                Place::Any => Field::Number(0),
            })
        };
        let errors = [
            failed(world.run(call!(space.rd(template())))),
            failed(world.run(call!(space.in_for(template(), seconds(1))))),
            failed(world.run(call!(space.rdp(template())))),
            failed(world.run(call!(space.rd_all(template(), "".into(), 9)))),
            failed(world.run(call!(space.cas(template(), vec![name()], None)))),
            failed(world.run(call!(space.replace(vec![], beside().collect())))),
        ];
        let limit = BESIDE as u64;
        assert_eq!(errors, [(); 6].map(|()| TupleSpaceError::TooManyBytes { limit }));
        assert!(world.object("jobs").is_none(), "nothing stays behind");
    }
}

/// A value that fits and finds no room is refused by the name of the limit that stands against it.
#[test]
fn what_finds_no_room_is_refused_by_the_name_of_the_limit() {
    let class = standard("Register");
    for mut world in [World::native(&class), World::wasm(&class)] {
        let config = RegisterStub::new(world.client(), "config");
        world.set_limit("value_bytes", 100);
        for (size, fits) in [(88, true), (89, false)] {
            let ended = world.run(call!(config.set("k".into(), bytes(size))));
            let exceeded = LimitExceeded::new("value_bytes", 100);
            let error = Ended::Failed(CallError::Trapped(gesmas_machine::Trap::Limit(exceeded)));
            assert_eq!(ended.map(drop), if fits { Ok(()) } else { Err(StubError::Other(error)) });
        }
    }
}

/// Keys of every form are taken and listed, or refused by a rule; what is said of one method is said of all.
#[test]
fn keys_are_taken_and_listed_or_refused() {
    let class = standard("Register");
    for mut world in [World::native(&class), World::wasm(&class)] {
        let config = RegisterStub::new(world.client(), "config");
        let mut keys = vec![b"\0".to_vec(), b"\0\0".to_vec(), vec![0; 1_024], vec![0xff; 1_024]];
        keys.extend((1..=255_u8).map(|byte| vec![byte]));
        keys.extend([1, 2, 254, 255, 256, 1_000, 1_023].map(|length| bytes(length + 1).0));
        keys.sort();
        keys.dedup();
        let keys: &'static [Vec<u8>] = keys.leak();
        for key in keys {
            world.run(call!(config.set(Bytes(key.clone()), "v".into()))).expect("a key");
            let found = world.run(call!(config.get(Bytes(key.clone())))).expect("a key");
            assert_eq!(found.expect("it was set").value, "v".into());
        }
        let (mut listed, mut next) = (Vec::new(), Some(Bytes::default()));
        while let Some(after) = next {
            let page = world.run(call!(config.keys(after, 7))).expect("a page");
            listed.extend(page.keys.into_iter().map(|key| key.0));
            next = page.next;
        }
        assert_eq!(listed, keys);
        for (wrong, error) in [
            (Bytes::default(), RegisterError::EmptyKey),
            (bytes(1_025), RegisterError::KeyTooLong { most: 1_024 }),
        ] {
            let wrong: &'static Bytes = Box::leak(wrong.into());
            let key = move || wrong.clone();
            let (nothing, value) = (|| Expected::Nothing, || Bytes::from("v"));
            let errors = [
                failed(world.run(call!(config.set(key(), value())))),
                failed(world.run(call!(config.get(key())))),
                failed(world.run(call!(config.remove(key())))),
                failed(world.run(call!(config.compare_and_set(key(), nothing(), value())))),
                failed(world.run(call!(config.compare_and_remove(key(), nothing())))),
            ];
            assert_eq!(errors, [(); 5].map(|()| error.clone()));
        }
    }
}

/// An object that could never serve anybody is not created, and says why.
#[test]
fn what_could_never_serve_is_not_created() {
    let (queue, limiter, jobs) =
        (standard("Queue"), standard("RateLimiter"), standard("WorkQueue"));
    for mut world in [World::native(&queue), World::wasm(&queue)] {
        let never = QueueStub::new(world.client(), "never");
        assert_eq!(failed(world.run(call!(never.create(0)))), QueueError::ZeroCapacity);
        assert!(world.object("never").is_none());
        for least in [1, u32::MAX] {
            world.remove("never");
            world.run(call!(never.create(least))).expect("it serves");
            assert_eq!(world.run(call!(never.try_produce("a".into()))), Ok(true));
        }
    }
    for mut world in [World::native(&jobs), World::wasm(&jobs)] {
        let never = WorkQueueStub::new(world.client(), "never");
        assert_eq!(failed(world.run(call!(never.create(0)))), WorkQueueError::ZeroDeliveries);
        assert!(world.object("never").is_none());
        world.run(call!(never.create(1))).expect("it serves");
    }
    let (year, forever) = (seconds(365 * 24 * 3_600), std::time::Duration::from_nanos(u64::MAX));
    for mut world in [World::native(&limiter), World::wasm(&limiter)] {
        let never = RateLimiterStub::new(world.client(), "never");
        for (permits, period, burst, error) in [
            (0, seconds(1), 1, RateLimiterError::ZeroPermits),
            (1, seconds(1), 0, RateLimiterError::ZeroPermits),
            (1, seconds(0), 1, RateLimiterError::ZeroPeriod),
            (1, year, 101, RateLimiterError::TooSlow),
            (1, forever, 1, RateLimiterError::TooSlow),
            (u32::MAX, forever, u32::MAX, RateLimiterError::TooSlow),
        ] {
            let created = world.run(call!(never.create(permits, period, burst)));
            assert_eq!(failed(created), error, "{permits} in {period:?}, {burst} at once");
            assert!(world.object("never").is_none());
        }
        for (permits, period, burst) in
            [(1, year, 100), (u32::MAX, std::time::Duration::from_nanos(1), u32::MAX), (1, year, 1)]
        {
            world.remove("never");
            world.run(call!(never.create(permits, period, burst))).expect("it serves");
            assert_eq!(failed(world.run(call!(never.acquire(0)))), RateLimiterError::ZeroPermits);
            assert_eq!(
                failed(world.run(call!(never.acquire_for(0, forever)))),
                RateLimiterError::ZeroPermits
            );
            assert_eq!(world.run(call!(never.try_acquire(burst))), Ok(true), "all are there");
            let rest = world.run(call!(never.try_acquire(burst)));
            assert_eq!(rest, Ok(false), "{permits} in {period:?}, {burst}");
        }
    }
}

/// The end of a call that waits for no time.
fn soon<T: 'static>(world: &mut World, task: impl Future<Output = T> + 'static) -> T {
    let pending = world.start(task);
    world.advance(std::time::Duration::from_millis(1));
    pending.result()
}

/// The longest durations are as good as for ever, and the shortest is no time.
#[test]
fn durations_at_both_ends() {
    let forever = std::time::Duration::from_nanos(u64::MAX);
    let classes = [standard("DelayQueue"), standard("WorkQueue"), standard("TupleSpace")];
    for world in &mut [World::native(&classes[0]), World::wasm(&classes[0])] {
        let queue = DelayQueueStub::new(world.client(), "reminders");
        let never = world.run(call!(queue.put("never".into(), forever))).expect("a call");
        assert_eq!(never.0, u64::MAX);
        assert_eq!(world.run(call!(queue.next_due())), Ok(Some(never)));
        assert_eq!(soon(world, call!(queue.take_for(seconds(0)))), Ok(None));
        world.run(call!(queue.put("now".into(), seconds(0)))).expect("a call");
        assert_eq!(world.run(call!(queue.take_for(forever))), Ok(Some("now".into())));
        assert_eq!(world.run(call!(queue.length())), Ok(1));
    }
    for world in &mut [World::native(&classes[1]), World::wasm(&classes[1])] {
        let queue = WorkQueueStub::new(world.client(), "mail");
        world.run(call!(queue.create(u32::MAX))).expect("it is new");
        world.run(call!(queue.put("never".into(), Some(forever)))).expect("a call");
        world.run(call!(queue.put("now".into(), Some(seconds(0))))).expect("a call");
        let job = world.run(call!(queue.take(forever))).expect("a job is ready");
        assert_eq!(job.ends.0, u64::MAX);
        world.run(call!(queue.extend(job.lease, seconds(0)))).expect("it is leased");
        world.advance(seconds(2));
        let job = world.run(call!(queue.take(seconds(0)))).expect("a job is ready");
        world.advance(seconds(1));
        let late = world.run(call!(queue.ack(job.lease)));
        assert_eq!(failed(late), WorkQueueError::NotLeased, "a lease of no time is over");
        assert_eq!(soon(world, call!(queue.take_for(forever, seconds(0)))), Ok(None));
        assert_eq!(world.run(call!(queue.delayed())), Ok(2));
    }
    for world in &mut [World::native(&classes[2]), World::wasm(&classes[2])] {
        let space = TupleSpaceStub::new(world.client(), "jobs");
        let (empty, any) = (Vec::new, Vec::new);
        let id = world.run(call!(space.out(empty(), Some(forever)))).expect("it is short");
        assert_eq!(world.run(call!(space.rd(any()))), Ok(empty()));
        assert_eq!(world.run(call!(space.renew(id, seconds(0)))), Ok(true));
        world.advance(seconds(1));
        assert_eq!(soon(world, call!(space.rd_for(any(), seconds(0)))), Ok(None));
        assert!(world.object("jobs").is_none());
    }
}

/// Pages are bounded in number and in bytes, and one after the other they have everything once.
#[test]
fn pages_are_bounded_and_say_where_they_go_on() {
    let greatest = |bytes: usize| bytes <= 256 << 10;
    let (jobs, registers, tuples) =
        (standard("WorkQueue"), standard("Register"), standard("TupleSpace"));
    for mut world in [World::native(&registers), World::wasm(&registers)] {
        let config = RegisterStub::new(world.client(), "config");
        for number in 0..600_u32 {
            let key = Bytes([&number.to_be_bytes()[..], &[0; 1_020]].concat());
            world.run(call!(config.set(key, bytes(20_000)))).expect("a call");
        }
        let (mut count, mut next) = (0, Some(Bytes::default()));
        while let Some(after) = next {
            let page = world.run(call!(config.keys(after, u32::MAX))).expect("a page");
            assert!(greatest(page.keys.iter().map(|key| key.len()).sum()));
            count += page.keys.len();
            next = page.next;
        }
        assert_eq!(count, 600);
        assert_eq!(failed(world.run(call!(config.keys("".into(), 0)))), RegisterError::ZeroLimit);
    }
    for mut world in [World::native(&jobs), World::wasm(&jobs)] {
        let queue = WorkQueueStub::new(world.client(), "mail");
        world.run(call!(queue.create(1))).expect("it is new");
        let sizes = [100_000, 100_000, 100_000, 1_000_000, 1, 200_000];
        for size in sizes {
            world.run(call!(queue.put(bytes(size), None))).expect("a call");
            let job = world.run(call!(queue.take(seconds(9)))).expect("a job is ready");
            world.run(call!(queue.nack(job.lease, None))).expect("it is leased");
        }
        let (mut pages, mut next) = (Vec::new(), Some(0));
        while let Some(after) = next {
            let page = world.run(call!(queue.dead_letters(after, u32::MAX))).expect("a page");
            pages.push(page.letters.iter().map(|letter| letter.item.len()).collect::<Vec<_>>());
            next = page.next;
        }
        assert_eq!(pages, [vec![100_000; 2], vec![100_000], vec![1_000_000], vec![1, 200_000]]);
        let none = world.run(call!(queue.dead_letters(0, 0)));
        assert_eq!(failed(none), WorkQueueError::ZeroLimit);
    }
    for mut world in [World::native(&tuples), World::wasm(&tuples)] {
        let space = TupleSpaceStub::new(world.client(), "jobs");
        let sizes = [900, 100_000, 200_000, 1_000_000, 1_000, 300_000];
        for (number, size) in (0..).zip(sizes) {
            let tuple = move |flag| {
                vec![Field::Number(number), Field::Flag(flag), Field::Bytes(bytes(size))]
            };
            for flag in [true, false] {
                world.run(call!(space.out(tuple(flag), None))).expect("it is short");
            }
        }
        let template = || vec![Place::Any, Place::Exactly(Field::Flag(true)), Place::Any];
        let (mut found, mut next) = (Vec::new(), Some(Bytes::default()));
        while let Some(after) = next {
            let page = world.run(call!(space.rd_all(template(), after, u32::MAX)));
            let page = page.expect("a page");
            assert!(page.tuples.len() < 2 || greatest(to_bytes(&page.tuples).len() + 1_000));
            found.extend(page.tuples.into_iter().map(|tuple| tuple[0].clone()));
            next = page.next;
        }
        assert_eq!(found, (0..6).map(Field::Number).collect::<Vec<_>>());
        let none = world.run(call!(space.rd_all(template(), "".into(), 0)));
        assert_eq!(failed(none), TupleSpaceError::ZeroLimit);
    }
}
