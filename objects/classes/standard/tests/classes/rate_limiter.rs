//! `RateLimiter`.

use std::time::Duration;

use gesmas_rate_limiter::{RateLimiterError, RateLimiterStub};
use gesmas_testkit::{Client, World, call, on_both_engines};

use crate::{failed, seconds, standard};

/// Ten permits in ten seconds, three at once.
fn begin(world: &mut World) -> RateLimiterStub<Client> {
    let limiter = RateLimiterStub::new(world.client(), "mail");
    world.run(call!(limiter.create(10, seconds(10), 3))).expect("it is new");
    limiter
}

fn permits_come_at_their_rate(world: &mut World) {
    let limiter = begin(world);
    assert_eq!(world.run(call!(limiter.try_acquire(3))), Ok(true));
    assert_eq!(world.run(call!(limiter.try_acquire(1))), Ok(false));
    assert_eq!(world.run(call!(limiter.available())), Ok(0));
    let waits = world.start(call!(limiter.acquire(2)));
    assert_eq!(world.blocked(), ["acquire at never"]);
    world.restart();
    world.advance(Duration::from_millis(1_900));
    assert!(waits.is_open());
    world.advance(Duration::from_millis(100));
    assert_eq!(waits.result(), Ok(()));
    world.advance(seconds(60));
    assert_eq!(world.run(call!(limiter.available())), Ok(3));
    assert_eq!(world.run(call!(limiter.acquire(3))), Ok(()));
    assert_eq!(world.run(call!(limiter.try_acquire(1))), Ok(false));
}

fn nobody_overtakes(world: &mut World) {
    let limiter = begin(world);
    assert_eq!(world.run(call!(limiter.try_acquire(3))), Ok(true));
    let many = world.start(call!(limiter.acquire(3)));
    let few = world.start(call!(limiter.acquire(1)));
    assert_eq!(world.run(call!(limiter.waiting())), Ok(2));
    world.advance(seconds(2));
    assert_eq!(world.run(call!(limiter.try_acquire(1))), Ok(false));
    world.advance(seconds(1));
    assert_eq!(many.result(), Ok(()));
    assert_eq!(world.blocked(), ["acquire at never"]);
    world.advance(seconds(1));
    assert_eq!(few.result(), Ok(()));
}

fn who_gives_up_has_taken_nothing(world: &mut World) {
    let limiter = begin(world);
    assert_eq!(world.run(call!(limiter.try_acquire(3))), Ok(true));
    assert_eq!(world.run(call!(limiter.acquire_for(2, seconds(1)))), Ok(false), "known at once");
    let given = world.start(call!(limiter.acquire(3)));
    let short = world.start(call!(limiter.acquire_for(1, Duration::from_millis(500))));
    world.advance(seconds(1));
    assert_eq!(short.result(), Ok(false));
    world.cancel(&given);
    assert_eq!(failed(given.result()), RateLimiterError::Cancelled);
    assert_eq!(world.run(call!(limiter.available())), Ok(1));
    assert_eq!(world.run(call!(limiter.acquire_for(1, seconds(0)))), Ok(true));
}

fn more_than_there_are_ever_is_refused(world: &mut World) {
    let limiter = begin(world);
    let refused = world.run(call!(limiter.acquire(4)));
    assert_eq!(failed(refused), RateLimiterError::TooMany { burst: 3 });
}

/// However calls interleave, never more pass than the rate and the burst allow.
fn the_rate_is_kept(world: &mut World) {
    let limiter = begin(world);
    let callers = [(); 3].map(|()| RateLimiterStub::new(world.client(), "mail"));
    world.shuffle(7);
    let tasks = callers.map(|caller| {
        world.spawn(async move {
            for permits in [1, 2, 1, 3] {
                caller.acquire(permits).await.expect("nobody gives up");
            }
        })
    });
    world.settle();
    let mut waited = 0;
    while tasks.iter().any(gesmas_testkit::Pending::is_open) {
        world.advance(seconds(1));
        waited += 1;
    }
    // 21 permits, 3 of which were there.
    assert_eq!(waited, 18);
    assert_eq!(world.run(call!(limiter.waiting())), Ok(0));
}

on_both_engines!(
    standard("RateLimiter");
    permits_come_at_their_rate,
    nobody_overtakes,
    who_gives_up_has_taken_nothing,
    more_than_there_are_ever_is_refused,
    the_rate_is_kept,
);
