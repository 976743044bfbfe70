//! Scenes of the classes that hold something, and of those that let many go on at once.

use std::time::Duration;

use gesmas_abi::value::{Bytes, Time};
use gesmas_machine::SessionId;

use super::{Scene, stage::Stage};

/// Longer than anything waits here.
const LONG: Duration = Duration::from_secs(3_600);
/// What holders, candidates and members say of themselves at most.
const TEXT: usize = 64 << 10;

/// The scenes.
pub(super) const SCENES: &[Scene] = &[
    ("Lock", lock_with_waiters),
    ("Lock", lock_with_retries),
    ("RwLock", rw_lock_with_waiters),
    ("RwLock", rw_lock_with_readers),
    ("Semaphore", semaphore_with_waiters),
    ("Semaphore", semaphore_with_grants),
    ("Election", election),
    ("Membership", membership),
    ("Lease", lease),
    ("Barrier", barrier),
    ("Latch", latch),
];

fn text() -> Bytes {
    Bytes(vec![b'x'; TEXT])
}

fn lock_with_waiters(stage: &mut Stage) {
    let holder = stage.open();
    let token: u64 = stage.measure("lock", |stage| stage.ok(holder, "lock", &(0_u64,)));
    stage.crowd(49_999, "lock", |owner| (owner,));
    let last = stage.open();
    stage.measure("lock, 49,999 wait", |stage| stage.waits(last, "lock", &(0_u64,)));
    stage.measure("lock_for, 50,000 wait: refused", |stage| {
        let refused = stage.call(last, "lock_for", &(1_u64, LONG));
        assert!(matches!(refused, Some(Err(_))), "no more may wait");
    });
    stage.measure("try_lock, 50,000 wait", |stage| {
        stage.ok::<Option<u64>>(last, "try_lock", &(1_u64,))
    });
    stage.measure("holder and waiting, 50,000 wait", |stage| {
        stage.read("holder", &());
        stage.read("waiting", &());
    });
    stage.measure("unlock, 50,000 wait", |stage| stage.ok::<()>(holder, "unlock", &(token,)));
}

fn lock_with_retries(stage: &mut Stage) {
    let (holder, other) = (stage.open(), stage.open());
    stage.ok::<u64>(holder, "lock", &(0_u64,));
    for _ in 0..1_001 {
        stage.waits(other, "lock", &(7_u64,));
    }
    stage.measure("end of the holder's session, 1,001 calls of the next owner wait", |stage| {
        stage.expire(holder);
    });
    stage.measure("lock again", |stage| stage.ok::<u64>(other, "lock", &(7_u64,)));
}

fn rw_lock_with_waiters(stage: &mut Stage) {
    let writer = stage.open();
    let token: u64 = stage.measure("write_lock", |stage| stage.ok(writer, "write_lock", &(0_u64,)));
    stage.crowd(999, "read_lock", |owner| (owner,));
    let last = stage.open();
    stage.measure("read_lock, 999 wait", |stage| stage.waits(last, "read_lock", &(0_u64,)));
    stage.measure("try_read_lock and try_write_lock, 1,000 wait", |stage| {
        stage.ok::<Option<u64>>(last, "try_read_lock", &(1_u64,));
        stage.ok::<Option<u64>>(last, "try_write_lock", &(1_u64,));
    });
    stage.measure("unlock by the writer, 1,000 wait to read", |stage| {
        stage.ok::<()>(writer, "unlock", &(token,));
    });
}

fn rw_lock_with_readers(stage: &mut Stage) {
    let reader = stage.open();
    let mut last = 0;
    for owner in 0..49_999_u64 {
        last = stage.ok::<u64>(reader, "read_lock", &(owner,));
    }
    stage.measure("read_lock, 49,999 read", |stage| {
        stage.ok::<u64>(reader, "read_lock", &(49_999_u64,));
    });
    stage.measure("holders, 1,000 of 50,000", |stage| stage.read("holders", &(0_u64, 1_000_u32)));
    stage.measure("unlock, 50,000 read", |stage| stage.ok::<()>(reader, "unlock", &(last,)));
    stage.measure("end of a session with 49,999 holds", |stage| stage.expire(reader));
}

fn semaphore_with_waiters(stage: &mut Stage) {
    stage.create(&(u32::MAX,));
    let (holder, many) = (stage.open(), stage.open());
    let all = u32::MAX;
    let grant: u64 =
        stage.measure("acquire of 4,294,967,295", |stage| stage.ok(holder, "acquire", &(all,)));
    stage.crowd(50_000, "acquire", |_| (1_u32,));
    stage.measure("release of 4,294,967,295, 50,000 wait for one each", |stage| {
        stage.ok::<()>(holder, "release", &(grant,));
    });
    stage.waits(many, "acquire", &(all,));
    stage.crowd(20_000, "acquire", |_| (1_u32,));
    stage.measure("acquire of all is given up, 20,000 wait behind it for one each", |stage| {
        stage.cancel(many);
    });
}

fn semaphore_with_grants(stage: &mut Stage) {
    stage.create(&(100_000_u32,));
    let (holder, other) = (stage.open(), stage.open());
    let mut last = 0;
    for _ in 0..50_000 {
        last = stage.ok::<u64>(holder, "acquire", &(1_u32,));
        stage.ok::<u64>(other, "acquire", &(1_u32,));
    }
    stage.measure("grants, 1,000 of 100,000", |stage| stage.read("grants", &(0_u64, 1_000_u32)));
    stage.measure("release, 100,000 grants", |stage| stage.ok::<()>(holder, "release", &(last,)));
    stage.measure("try_acquire, 99,999 grants", |stage| {
        stage.ok::<Option<u64>>(holder, "try_acquire", &(1_u32,));
    });
    stage.crowd(50_000, "acquire_for", |_| (1_u32, LONG));
    stage.measure("end of a session with 50,000 grants, 50,000 wait for one each", |stage| {
        stage.expire(holder);
    });
}

fn election(stage: &mut Stage) {
    let (ann, bob) = (stage.open(), stage.open());
    stage.crowd(50_000, "observe", |_| (0_u64,));
    let token: u64 =
        stage.measure("campaign, 50,000 observe", |stage| stage.ok(ann, "campaign", &(text(),)));
    stage.measure("campaign again", |stage| stage.ok::<u64>(ann, "campaign", &(text(),)));
    stage.measure("try_campaign of another", |stage| {
        stage.ok::<Option<u64>>(bob, "try_campaign", &(text(),));
    });
    for _ in 0..501 {
        stage.waits(bob, "campaign", &(Bytes::from("bob"),));
    }
    stage.crowd(20_000, "campaign", |call| (Bytes(call.to_le_bytes().to_vec()),));
    stage.crowd(50_000, "observe", |_| (token,));
    stage.measure("resign, 50,000 observe, 501 calls of the next candidate wait", |stage| {
        stage.ok::<()>(ann, "resign", &(token,));
    });
    stage.measure("leader and candidates", |stage| {
        stage.read("leader", &());
        stage.read("candidates", &());
    });
    stage.measure("end of the leader's session, 20,000 run", |stage| stage.expire(bob));
}

fn membership(stage: &mut Stage) {
    let (many, one) = (stage.open(), stage.open());
    let name = |number: u64| format!("{number:0255}");
    let join = |stage: &mut Stage, by: SessionId, number| -> u64 {
        stage.ok(by, "join", &(name(number), Bytes::from("here")))
    };
    for number in 0..19_990 {
        join(stage, many, number);
    }
    for _ in 0..1_000 {
        let subscriber = stage.open();
        stage.ok::<u64>(subscriber, "subscribe", &());
    }
    stage.crowd(50_000, "await_change", |_| (u64::MAX,));
    let token = stage.measure("join, 1,000 are subscribed, 50,000 wait for changes", |stage| {
        join(stage, one, 19_990)
    });
    stage.measure("update", |stage| {
        stage.ok::<u64>(one, "update", &(name(19_990), token, text()));
    });
    stage.measure("join again", |stage| join(stage, one, 19_990));
    stage.measure("leave", |stage| stage.ok::<()>(one, "leave", &(name(19_990), token)));
    stage.measure("members, 1,000 of 19,990", |stage| {
        stage.read("members", &(String::new(), 1_000_u32));
    });
    stage.crowd(999, "join_for", |call| (name(call / 2), Bytes::from("there"), LONG));
    let last = stage.open();
    stage.measure("join_for, 999 wait for names", |stage| {
        stage.waits(last, "join_for", &(name(0), Bytes::from("there"), LONG));
    });
    stage.measure("end of a session with 19,990 members, 1,000 wait for names", |stage| {
        stage.expire(many);
    });
}

fn lease(stage: &mut Stage) {
    #[derive(gesmas_sdk::prelude::Value)]
    struct Granted {
        token: u64,
        key: u64,
        ends: Time,
    }
    let second = Duration::from_secs(1);
    let holder = stage.open();
    let granted: Option<Granted> =
        stage.measure("try_acquire", |stage| stage.ok(holder, "try_acquire", &(text(), LONG)));
    let Granted { token, key, ends } = granted.expect("it is free");
    assert!(token > 0 && ends > Time(0), "it has a token and an end");
    stage.crowd(50_000, "acquire", |_| (Bytes::from("host"), LONG));
    stage.measure("renew and holder, 50,000 wait", |stage| {
        stage.ok::<Time>(holder, "renew", &(key, second * 2));
        stage.read("holder", &());
    });
    stage.measure("a lease runs out, 50,000 wait", |stage| stage.pass(2_000_000_000));
}

fn barrier(stage: &mut Stage) {
    stage.create(&(100_000_u32,));
    stage.crowd(99_999, "wait", |_| ());
    let last = stage.open();
    stage
        .measure("wait of the last of 100,000 parties", |stage| stage.ok::<u64>(last, "wait", &()));
}

fn latch(stage: &mut Stage) {
    stage.create(&(1_u32,));
    stage.crowd(100_000, "wait", |_| ());
    let last = stage.open();
    stage.measure("count_down to 0, 100,000 wait", |stage| {
        stage.ok::<u32>(last, "count_down", &());
    });
}
