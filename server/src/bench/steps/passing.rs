//! Scenes of the classes that pass things on, keep values, or count.

use std::time::Duration;

use gesmas_abi::value::{Bytes, Time};
use gesmas_sdk::prelude::Value;

use super::{Scene, stage::Stage};

/// Longer than anything waits here.
const LONG: Duration = Duration::from_secs(3_600);
/// Items of an object.
const MANY: u64 = 50_000;
/// Bytes of a large item, which every class takes.
const LARGE: usize = 512 << 10;

/// The scenes.
pub(super) const SCENES: &[Scene] = &[
    ("Queue", queue),
    ("WorkQueue", work_queue),
    ("DelayQueue", delay_queue),
    ("PriorityQueue", priority_queue),
    ("TupleSpace", tuple_space),
    ("TupleSpace", tuple_space_with_waiters),
    ("Register", register),
    ("RateLimiter", rate_limiter),
    ("Counter", counter),
];

fn small() -> Bytes {
    Bytes::from("item")
}

fn large() -> Bytes {
    Bytes(vec![b'x'; LARGE])
}

fn queue(stage: &mut Stage) {
    stage.create(&(1_u32,));
    let (ann, bob) = (stage.open(), stage.open());
    stage.measure("produce of 512 KiB", |stage| stage.ok::<()>(ann, "produce", &(large(),)));
    stage.measure("consume of 512 KiB", |stage| stage.ok::<Bytes>(bob, "consume", &()));
    stage.crowd(MANY, "consume", |_| ());
    stage.measure("produce, 50,000 wait", |stage| stage.ok::<()>(ann, "produce", &(small(),)));
}

fn work_queue(stage: &mut Stage) {
    stage.create(&(1_u32,));
    let ann = stage.open();
    for _ in 0..MANY {
        stage.ok::<u64>(ann, "put", &(small(), None::<Duration>));
    }
    for _ in 0..MANY {
        let taken = stage.call(ann, "take", &(Duration::from_secs(5),));
        assert!(matches!(taken, Some(Ok(_))), "there are jobs");
    }
    stage.measure("50,000 leases run out", |stage| stage.pass(10_000_000_000));
    stage.measure("dead_letters, 1,000 of 50,000", |stage| {
        stage.read("dead_letters", &(0_u64, 1_000_u32));
    });
    stage.measure("put of 512 KiB", |stage| {
        stage.ok::<u64>(ann, "put", &(large(), None::<Duration>))
    });
}

fn delay_queue(stage: &mut Stage) {
    let ann = stage.open();
    for _ in 0..MANY {
        stage.ok::<Time>(ann, "put", &(small(), Duration::from_secs(5)));
    }
    stage.crowd(MANY, "take_for", |_| (LONG,));
    stage.measure("50,000 items are due, 50,000 wait", |stage| stage.pass(10_000_000_000));
}

fn priority_queue(stage: &mut Stage) {
    let ann = stage.open();
    for number in 0..MANY {
        stage.ok::<()>(ann, "put", &(small(), number as i64));
    }
    stage.measure("put before 50,000", |stage| stage.ok::<()>(ann, "put", &(large(), -1_i64)));
    stage.measure("peek and take of 50,001", |stage| {
        stage.read("peek", &());
        let taken = stage.call(ann, "take", &());
        assert!(matches!(taken, Some(Ok(_))), "there are items");
    });
}

/// As `TupleSpace` has it.
#[derive(Value)]
enum Field {
    Number(i64),
}

/// As `TupleSpace` has it.
#[derive(Value)]
enum Place {
    Any,
    Exactly(Field),
}

fn tuple_space(stage: &mut Stage) {
    let ann = stage.open();
    for number in 0..MANY as i64 {
        let tuple = vec![Field::Number(number), Field::Number(0)];
        stage.ok::<u64>(ann, "out", &(tuple, None::<Duration>));
    }
    let template = || vec![Place::Any, Place::Exactly(Field::Number(1))];
    stage.measure("inp that looks at 50,000 in vain", |stage| {
        // Looking at so many may be refused; what it costs until then counts.
        stage.call(ann, "inp", &(template(),));
    });
    stage.measure("rd_all of 1,000 of 50,000", |stage| {
        stage.read("rd_all", &(vec![Place::Any, Place::Any], Bytes::default(), 1_000_u32));
    });
}

fn tuple_space_with_waiters(stage: &mut Stage) {
    let ann = stage.open();
    for call in 0..5_000 {
        let template = vec![Place::Any, Place::Exactly(Field::Number(call % 2))];
        // So many may be refused.
        let by = if call % 1_000 == 0 { stage.open() } else { ann };
        stage.call(by, "rd", &(template,));
    }
    stage.measure("out, 5,000 wait and half of them want it", |stage| {
        let tuple = vec![Field::Number(0), Field::Number(0)];
        stage.call(ann, "out", &(tuple, None::<Duration>));
    });
}

fn register(stage: &mut Stage) {
    let ann = stage.open();
    for number in 0..MANY {
        let key = Bytes(number.to_be_bytes().to_vec());
        stage.ok::<u64>(ann, "set", &(key, small()));
    }
    stage.measure("set of 512 KiB, 50,000 keys", |stage| {
        stage.ok::<u64>(ann, "set", &(Bytes::from("large"), large()));
    });
    stage.measure("get of 512 KiB", |stage| stage.read("get", &(Bytes::from("large"),)));
    stage.measure("keys, 1,000 of 50,001", |stage| {
        stage.read("keys", &(Bytes::from("\0"), 1_000_u32));
    });
}

fn rate_limiter(stage: &mut Stage) {
    stage.create(&(1_000_000_u32, Duration::from_secs(100), 1_000_000_u32));
    let ann = stage.open();
    stage
        .measure("acquire of 1,000,000", |stage| stage.ok::<()>(ann, "acquire", &(1_000_000_u32,)));
    stage.crowd(1, "acquire", |_| (1_000_000_u32,));
    stage.crowd(10_000, "acquire", |_| (1_u32,));
    stage.measure("10,000 wait for one each", |stage| stage.pass(200_000_000_000));
}

fn counter(stage: &mut Stage) {
    let ann = stage.open();
    stage.measure("add", |stage| stage.ok::<i64>(ann, "add", &(1_i64,)));
}
