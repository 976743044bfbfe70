//! How long a session is believed, against a model of who counts its lease in the cluster.
//!
//! The model hears a session when it is opened for the first time and with each keep-alive, and ends it
//! when it has heard nothing for its timeout. Drawn: openings and keep-alives that are lost or late,
//! connections that break, attachments in between, sessions that somebody has opened before, machines
//! that sleep, and clocks that are set forward and back.
//! Checked at every moment: what the client holds for safe has not ended, whatever it has seen of the
//! time that passed; and that it trusts its session when all goes well.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use gesmas_protocol::{Alive, ClientMessage};

use super::{Bench, SESSION};
use crate::{
    clock::{Clock, Moment},
    session::{
        core::{Output, SessionCore, SessionState},
        settings::SessionSettings,
    },
};

const TIMEOUT: Duration = Duration::from_secs(9);

#[test]
fn a_lease_counts_from_the_first_attempt_to_open() {
    let mut bench = Bench::new();
    let start = bench.now;
    for _ in 0..3 {
        bench.core.handle_connected(1_000);
        assert!(matches!(bench.sent()[..], [ClientMessage::OpenSession(_)]));
        bench.pass(Duration::from_secs(2));
        bench.core.handle_disconnected();
    }
    bench.core.handle_connected(1_000);
    bench.sent();
    bench.core.handle_opened(bench.now, SESSION, TIMEOUT);
    assert_eq!(bench.core.safe_until(), Some(start + TIMEOUT), "the first copy may have opened it");
}

#[test]
fn an_attachment_between_a_keep_alive_and_its_answer_proves_nothing() {
    let mut bench = Bench::open();
    let start = bench.now;
    bench.pass(Duration::from_secs(1));
    bench.core.replay(bench.now, 0);
    assert!(matches!(bench.sent()[..], [ClientMessage::AttachSession(_)]));
    let alive = Alive { session: SESSION, correlation: 1, last_admitted: 0 };
    bench.core.handle_alive(bench.now, &alive);
    assert_eq!(bench.core.safe_until(), Some(start + TIMEOUT));
}

#[test]
fn a_session_that_others_may_have_opened_is_believed_after_a_keep_alive() {
    let settings = SessionSettings { fresh: false, ..SessionSettings::default() };
    let mut bench = Bench { core: SessionCore::new(settings, 1, 42), ..Bench::new() };
    bench.core.handle_connected(1_000);
    bench.sent();
    bench.core.handle_opened(bench.now, SESSION, TIMEOUT);
    let connected = Output::State(SessionState::Connected);
    assert_eq!(bench.outputs(), [Output::Doubtful(true), connected]);
    assert_eq!(bench.core.safe_until(), Some(Moment::default()));
    let start = bench.now;
    bench.sent();
    bench.pass(Duration::from_secs(1));
    let alive = Alive { session: SESSION, correlation: 1, last_admitted: 0 };
    bench.core.handle_alive(bench.now, &alive);
    assert_eq!(bench.outputs(), [Output::Doubtful(false)]);
    assert_eq!(bench.core.safe_until(), Some(start + TIMEOUT));
}

struct Noise(u64);

impl Noise {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }

    fn milliseconds(&mut self, bound: u64) -> Duration {
        Duration::from_millis(self.below(bound))
    }
}

/// Time as it is, and the clock that the client reads.
struct Time {
    now: Duration,
    dial: Arc<Mutex<Duration>>,
    clock: Clock,
}

impl Time {
    fn new() -> Self {
        let dial = Arc::new(Mutex::new(Duration::from_secs(1_000_000)));
        let clock = Clock::new({
            let dial = dial.clone();
            move || *dial.lock().expect("nobody panics with it")
        });
        Self { now: Duration::ZERO, dial, clock }
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        *self.dial.lock().expect("nobody panics with it") += time;
    }

    /// Somebody sets the clock.
    fn set(&self, noise: &mut Noise) {
        // It was read just before, as it is at least every quarter of a second.
        self.clock.now();
        let mut dial = self.dial.lock().expect("nobody panics with it");
        let leap = noise.milliseconds(3_600_000);
        *dial = if noise.one_in(2) { *dial + leap } else { dial.saturating_sub(leap) };
    }
}

struct World {
    noise: Noise,
    time: Time,
    core: SessionCore<u64>,
    connected: bool,
    up: VecDeque<ClientMessage>,
    down: VecDeque<Option<Alive>>,
    /// When the cluster heard of the session last.
    heard: Option<Duration>,
    over: bool,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut noise = Noise(seed);
        let fresh = !noise.one_in(4);
        let settings = SessionSettings { fresh, timeout: TIMEOUT, ..SessionSettings::default() };
        let mut time = Time::new();
        time.pass(TIMEOUT);
        // Somebody else has opened it, not long ago.
        let heard = (!fresh).then(|| time.now - noise.milliseconds(8_000));
        Self {
            core: SessionCore::new(settings, 1, u128::from(seed)),
            noise,
            time,
            connected: false,
            up: VecDeque::new(),
            down: VecDeque::new(),
            heard,
            over: false,
        }
    }

    /// Whatever passes, nothing that has ended is held for safe.
    fn pass(&mut self, time: Duration) {
        self.time.pass(time);
        if self.heard.is_some_and(|heard| self.time.now >= heard + TIMEOUT) {
            self.over = true;
        }
        self.check();
    }

    fn check(&self) {
        let safe = self.core.safe_until().is_some_and(|until| self.time.clock.now() < until);
        assert!(!(safe && self.over), "a session is believed that is over");
    }

    fn turn(&mut self, rough: bool) {
        let usual = self.noise.milliseconds(if rough { 1_500 } else { 100 });
        self.pass(usual);
        if rough && self.noise.one_in(30) {
            let sleep = self.noise.milliseconds(60_000);
            self.pass(sleep);
        }
        if rough && self.noise.one_in(40) {
            self.time.set(&mut self.noise);
            self.check();
        }
        let now = self.time.clock.now();
        if self.connected && rough && self.noise.one_in(12) {
            self.disconnect();
        } else if !self.connected {
            self.connected = true;
            self.core.handle_connected(20);
        }
        if rough && self.noise.one_in(6) {
            self.core.replay(now, 0);
        }
        self.core.handle_timeout(now);
        let up = &mut self.up;
        self.core.poll_transmit(now, &mut |message| up.push_back(message.clone()));
        self.exchange(rough);
        self.check();
        while let Some(output) = self.core.poll_output() {
            // One that is not heard of leaves the connection, as the driver does.
            if matches!(output, Output::Unresponsive) {
                self.disconnect();
            }
        }
    }

    fn disconnect(&mut self) {
        self.connected = false;
        self.up.clear();
        self.down.clear();
        self.core.handle_disconnected();
    }

    fn exchange(&mut self, rough: bool) {
        while !(rough && self.noise.one_in(2)) {
            let (up, down) = (self.up.pop_front(), self.down.pop_front());
            if up.is_none() && down.is_none() {
                return;
            }
            if let Some(message) = up
                && !(rough && self.noise.one_in(6))
            {
                self.serve(message);
            }
            let now = self.time.clock.now();
            match down {
                Some(Some(alive)) => self.core.handle_alive(now, &alive),
                Some(None) => self.core.handle_opened(now, SESSION, TIMEOUT),
                None => {}
            }
        }
    }

    fn serve(&mut self, message: ClientMessage) {
        match message {
            // A copy is answered, and is no sign of life.
            ClientMessage::OpenSession(_) => {
                self.heard.get_or_insert(self.time.now);
                if !self.over {
                    self.down.push_back(None);
                }
            }
            ClientMessage::AttachSession(_) if !self.over => {
                self.core.handle_attached(self.time.clock.now(), 0);
            }
            ClientMessage::KeepAlive(keep) if !self.over => {
                self.heard = Some(self.time.now);
                let (correlation, last_admitted) = (keep.correlation, 0);
                self.down.push_back(Some(Alive { session: SESSION, correlation, last_admitted }));
            }
            _ => {}
        }
    }
}

#[test]
fn no_session_is_believed_that_is_over_whatever_clocks_and_networks_do() {
    let mut trusted = 0;
    for seed in 1..=3_000 {
        let mut world = World::new(seed * 0x9e37_79b9);
        for _ in 0..60 {
            world.turn(true);
        }
        world.disconnect();
        for _ in 0..200 {
            world.turn(false);
        }
        if !world.over {
            let safe = world.core.safe_until().is_some_and(|until| world.time.clock.now() < until);
            assert!(safe, "seed {seed}: all goes well, and the session is doubted");
            trusted += 1;
        }
    }
    assert!(trusted > 100, "{trusted} sessions lived to the end");
}
