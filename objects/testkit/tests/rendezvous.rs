//! The kit's own tests, on the class of the README.

use std::time::Duration;

use gesmas_sdk::{prelude::*, stub::StubError};
use gesmas_testkit::{Class, Client, Ended, World, call};

/// A rendezvous: two parties meet and swap values.
#[class(transient)]
pub struct Rendezvous {
    place: Semaphore,
    offers: Deque<Bytes>,
    answers: Deque<Bytes>,
}

#[methods]
impl Rendezvous {
    /// Offers a value; blocks until the other party comes, and returns its value.
    pub fn swap(&mut self, value: Bytes) -> Result<Bytes> {
        if let Some(other) = self.offers.pop_front() {
            self.answers.push_back(value);
            self.place.v();
            return Ok(other);
        }
        self.offers.push_back(value);
        if let Err(cancelled) = self.place.p() {
            self.offers.pop_front();
            return Err(cancelled);
        }
        Ok(self.answers.pop_front().expect("who woke us has left an answer"))
    }

    /// Calls a handler after a while.
    pub fn ring_after(&mut self, duration: Duration, fails: bool) -> Result<Time> {
        let session = ctx::session().expect("clients have one");
        ctx::after(duration, Self::RING, (session, fails));
        Ok(ctx::now())
    }

    /// How many wait.
    #[read]
    pub fn waiting(&self) -> Result<u64> {
        Ok(self.place.waiters())
    }

    #[handler]
    fn ring(&mut self, session: Session, fails: bool) {
        assert!(!fails, "the bell is broken");
        ctx::notify(session, &ctx::now().0.to_le_bytes());
    }
}

fn world() -> World {
    World::native(&Class::new(Rendezvous::native(), &[]))
}

fn of(client: &Client) -> RendezvousStub<Client> {
    RendezvousStub::new(client.clone(), "place")
}

#[test]
fn two_parties_swap() {
    let mut world = world();
    let [ann, bob] = [(); 2].map(|()| of(&world.client()));
    let first = world.start(call!(ann.swap("a".into())));
    assert_eq!(world.blocked(), ["swap at place"]);
    assert_eq!(world.run(call!(bob.waiting())), Ok(1));
    assert_eq!(world.run(call!(bob.swap("b".into()))), Ok("a".into()));
    assert_eq!(first.result(), Ok("b".into()));
}

#[test]
fn blocked_calls_survive_restarts() {
    let mut world = world();
    let stub = of(&world.client());
    let first = world.start(call!(stub.swap("a".into())));
    world.restart();
    assert_eq!(world.blocked(), ["swap at place"]);
    assert_eq!(world.run(call!(stub.swap("b".into()))), Ok("a".into()));
    assert_eq!(first.result(), Ok("b".into()));
}

#[test]
fn time_passes_when_the_test_says_so_and_timers_go_off_on_time() {
    let mut world = world();
    let ann = world.client();
    let stub = of(&ann);
    let second = Duration::from_secs(1);
    let late = world.run(call!(stub.ring_after(second * 2, false))).expect("a call");
    let early = world.run(call!(stub.ring_after(second, false))).expect("a call");
    world.advance(Duration::from_millis(999));
    assert_eq!(world.events(&ann).len(), 0);
    world.advance(second * 60);
    let due = [early + second, late + second * 2].map(|time| time.0.to_le_bytes().to_vec());
    assert_eq!(world.events(&ann), due);
    assert_eq!(world.events(&ann).len(), 0, "each is told of once");
}

#[test]
fn handlers_that_fail_are_told_of() {
    let mut world = world();
    let stub = of(&world.client());
    world.run(call!(stub.ring_after(Duration::ZERO, true))).expect("a call");
    world.advance(Duration::from_secs(1));
    let faults = world.faults();
    assert!(faults.len() == 1 && faults[0].contains("the bell is broken"), "{faults:?}");
}

#[test]
#[should_panic(expected = "handlers failed")]
fn a_fault_that_nobody_asked_for_fails_the_test() {
    let mut world = world();
    let stub = of(&world.client());
    world.run(call!(stub.ring_after(Duration::ZERO, true))).expect("a call");
    world.advance(Duration::from_secs(1));
}

#[test]
fn calls_of_a_session_that_is_over_end() {
    let mut world = world();
    let ann = world.client();
    let stub = of(&ann);
    let waits = world.start(call!(stub.swap("a".into())));
    world.expire(&ann);
    assert_eq!(waits.result(), Err(StubError::Other(Ended::SessionOver)));
    assert_eq!(world.run(call!(stub.waiting())), Err(StubError::Other(Ended::SessionOver)));
    assert!(world.object("place").is_none(), "nobody is left there");
}

#[test]
#[should_panic(expected = "the task is blocked")]
fn a_call_that_must_not_block_is_told_of() {
    let mut world = world();
    let stub = of(&world.client());
    let _ = world.run(call!(stub.swap("a".into())));
}

/// Who swaps with whom, in an order that a seed draws.
fn pairs(seed: u64) -> Vec<Bytes> {
    let mut world = world();
    world.shuffle(seed);
    let parties = [b"a", b"b", b"c", b"d", b"e", b"f"].map(|value| {
        let stub = of(&world.client());
        world.spawn(call!(stub.swap(value.into())))
    });
    world.settle();
    parties.map(|party| party.result().expect("they are even")).into()
}

#[test]
fn a_seed_draws_the_order_of_calls_and_draws_it_again() {
    let drawn: Vec<_> = (0..10).map(pairs).collect();
    assert_eq!(drawn, (0..10).map(pairs).collect::<Vec<_>>());
    assert!(drawn.iter().any(|pairs| *pairs != drawn[0]), "seeds differ");
    let as_made = [b"b", b"a", b"d", b"c", b"f", b"e"].map(Bytes::from);
    assert!(drawn.iter().any(|pairs| pairs[..] != as_made), "the order is drawn");
}
