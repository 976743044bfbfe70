//! A session against a model of the cluster, over a network that loses and breaks.
//!
//! The model admits, runs, stores and forgets as section "exactly once, in order" of the
//! architecture says; some of what it runs is granted to the session, and held until it is given back.
//! Callers give up, drop what they were given, have deadlines, and give back what they hold.
//! Checked for many seeds: no admitted request runs twice or out of order, every caller is told exactly
//! once and the truth, what the session holds in the end is exactly what callers have taken and not given
//! back, and all comes to an end once the network behaves.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use gesmas_protocol::{
    Acknowledged, Alive, Bytes, CallError, CancelReason, ClientMessage, Outcome, Position, Refusal,
    Refused, Reply, RequestBody, ServerMessage,
};

use crate::{
    clock::Moment,
    failure::{CallFailure, Fate},
    session::{
        core::{Output, SessionCore},
        settings::SessionSettings,
        undo::Undo,
    },
};

const SESSION: u64 = 5;
const CALLS: u64 = 60;
/// The object of which a call is granted something.
const LOCK: &str = "lock";

struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn one_in(&mut self, chances: u64) -> bool {
        self.next().is_multiple_of(chances)
    }
}

/// The cluster, as one client sees it.
#[derive(Debug, Default)]
struct Cluster {
    last: u64,
    open: BTreeSet<u64>,
    stored: BTreeMap<u64, Outcome>,
    /// Numbers of the requests that ran, in the order in which they started.
    ran: Vec<u64>,
    class_loaded: bool,
    /// Open requests that will be granted something.
    granting: BTreeSet<u64>,
    /// Numbers of the requests whose grants the session holds.
    held: BTreeSet<u64>,
}

impl Cluster {
    fn acknowledge(&mut self, acknowledged: &Acknowledged) {
        for &(first, last) in &acknowledged.replies {
            self.stored.retain(|number, _| !(first..=last).contains(number));
        }
    }

    /// The refusal of a request or cancel, or what it is answered at once.
    fn admit(
        &mut self,
        noise: &mut Noise,
        (number, previous): (u64, u64),
        body: Option<&RequestBody>,
        acknowledged: &Acknowledged,
    ) -> Result<Option<Outcome>, Refusal> {
        if number <= self.last {
            self.acknowledge(acknowledged);
            return match self.stored.get(&number) {
                Some(outcome) => Ok(Some(outcome.clone())),
                None if self.open.contains(&number) => Ok(body
                    .is_none()
                    .then(|| self.finish(number, Err(CallError::Cancelled(CancelReason::Caller))))),
                None => Err(Refusal::Forgotten),
            };
        }
        if previous != self.last {
            return Err(Refusal::OutOfOrder { last: self.last });
        }
        if noise.one_in(10) {
            return Err(Refusal::Busy);
        }
        if matches!(body, Some(RequestBody::RemoveObject { .. })) && !self.class_loaded {
            return Err(Refusal::ClassUnknown { class: "Queue".into() });
        }
        self.last = number;
        self.acknowledge(acknowledged);
        if body.is_none() {
            return Ok(Some(self.finish(number, Err(CallError::Cancelled(CancelReason::Caller)))));
        }
        self.ran.push(number);
        self.open.insert(number);
        match body {
            Some(RequestBody::RemoveObject { object, .. }) if object == LOCK => {
                self.granting.insert(number);
            }
            // What is given back twice, or by the wrong one, would be another's.
            Some(RequestBody::Kill { invocation }) => {
                assert!(self.held.remove(invocation), "{invocation} is given back and not held");
            }
            _ => {}
        }
        Ok((!noise.one_in(3)).then(|| self.finish(number, Ok(result(number)))))
    }

    fn finish(&mut self, number: u64, outcome: Outcome) -> Outcome {
        self.open.remove(&number);
        if self.granting.remove(&number) && outcome.is_ok() {
            self.held.insert(number);
        }
        self.stored.insert(number, outcome.clone());
        outcome
    }
}

fn result(number: u64) -> Bytes {
    Bytes::from(number.to_le_bytes().to_vec())
}

/// Takes back what a request was granted: the result is its number.
fn undo() -> Undo {
    Undo::new(|result| {
        let number = <[u8; 8]>::try_from(&result[..]).expect("a result is a number");
        Some(RequestBody::Kill { invocation: u64::from_le_bytes(number) })
    })
}

struct World {
    noise: Noise,
    now: Moment,
    core: SessionCore<u64>,
    cluster: Cluster,
    connected: bool,
    up: VecDeque<ClientMessage>,
    down: VecDeque<ServerMessage>,
    made: u64,
    given_up: BTreeSet<u64>,
    told: BTreeMap<u64, Result<Bytes, CallFailure>>,
    /// Numbers of the requests whose grants callers have taken and not given back.
    taken: BTreeSet<u64>,
    /// Numbers of the requests that give back, which nobody gives up.
    own: BTreeSet<u64>,
}

impl World {
    fn new(seed: u64) -> Self {
        let grace = Duration::from_millis(20);
        let settings = SessionSettings { grace, ..SessionSettings::default() };
        Self {
            noise: Noise(seed),
            now: Moment::at(1 << 50),
            core: SessionCore::new(settings, 1, seed.into()),
            cluster: Cluster::default(),
            connected: false,
            up: VecDeque::new(),
            down: VecDeque::new(),
            made: 0,
            given_up: BTreeSet::new(),
            told: BTreeMap::new(),
            taken: BTreeSet::new(),
            own: BTreeSet::new(),
        }
    }

    fn reply(&mut self, number: u64, outcome: Outcome) {
        let position = Position { epoch: 0, step: self.cluster.ran.len() as u64 };
        self.down.push_back(Reply { session: SESSION, number, position, outcome }.into());
    }

    fn answer(&mut self, numbers: (u64, u64), body: Option<&RequestBody>, have: &Acknowledged) {
        match self.cluster.admit(&mut self.noise, numbers, body, have) {
            Ok(Some(outcome)) => self.reply(numbers.0, outcome),
            Ok(None) => {}
            Err(refusal) => {
                let refused = Refused { session: SESSION, number: numbers.0, refusal, id: None };
                self.down.push_back(refused.into());
            }
        }
    }

    fn serve(&mut self, message: ClientMessage) {
        match message {
            ClientMessage::OpenSession(_) => {
                self.core.handle_opened(self.now, SESSION, Duration::from_secs(9));
            }
            ClientMessage::AttachSession(attach) => {
                self.cluster.acknowledge(&attach.acknowledged);
                self.core.handle_attached(self.now, self.cluster.last);
                for (number, outcome) in self.cluster.stored.clone() {
                    self.reply(number, outcome);
                }
            }
            ClientMessage::KeepAlive(keep_alive) => {
                let last_admitted = self.cluster.last;
                let correlation = keep_alive.correlation;
                self.down.push_back(Alive { session: SESSION, correlation, last_admitted }.into());
            }
            ClientMessage::Acknowledge(message) => self.cluster.acknowledge(&message.acknowledged),
            ClientMessage::Request(request) => {
                let numbers = (request.number, request.previous);
                self.answer(numbers, Some(&request.body), &request.acknowledged);
            }
            ClientMessage::Cancel(cancel) => {
                self.answer((cancel.number, cancel.previous), None, &cancel.acknowledged);
            }
            other => panic!("a session alone does not send {other:?}"),
        }
    }

    fn hear(&mut self, message: ServerMessage) {
        match message {
            ServerMessage::Reply(reply) => self.core.handle_reply(self.now, reply),
            ServerMessage::Refused(refused) => self.core.handle_refused(self.now, refused),
            ServerMessage::Alive(alive) => self.core.handle_alive(self.now, &alive),
            other => panic!("the model does not say {other:?}"),
        }
    }

    /// One turn of everything. `rough`: with losses, breaks and new calls.
    fn turn(&mut self, rough: bool) {
        self.now += Duration::from_micros(self.noise.next() % 4_000);
        self.ask(rough);
        if self.connected && rough && self.noise.one_in(40) {
            self.connected = false;
            self.up.clear();
            self.down.clear();
            self.core.handle_disconnected();
        } else if !self.connected {
            self.connected = true;
            self.core.handle_connected(20);
        }
        self.core.handle_timeout(self.now);
        self.exchange(rough);
        if self.noise.one_in(3)
            && let Some(&number) = self.cluster.open.first()
        {
            let outcome = self.cluster.finish(number, Ok(result(number)));
            if self.connected {
                self.reply(number, outcome);
            }
        }
        self.listen();
    }

    /// What callers do. A session that is used no more is settled by what they gave up before.
    fn ask(&mut self, rough: bool) {
        if rough && self.made < CALLS && self.noise.one_in(2) {
            let (object, undo) =
                if self.noise.one_in(2) { (LOCK, Some(undo())) } else { ("a", None) };
            let body = RequestBody::RemoveObject { class: "Queue".into(), object: object.into() };
            let patience = Duration::from_micros(self.noise.next() % 60_000);
            let deadline = self.noise.one_in(4).then(|| self.now + patience);
            self.make(body, deadline, undo);
        }
        if rough && self.made > 0 && self.noise.one_in(12) {
            let number = self.noise.next() % self.made + 1;
            if !self.told.contains_key(&number) && !self.own.contains(&number) {
                self.given_up.insert(number);
                self.core.cancel(number);
            }
        }
        if self.noise.one_in(20)
            && let Some(number) = self.taken.pop_first()
        {
            self.make(RequestBody::Kill { invocation: number }, None, None);
        }
    }

    fn make(&mut self, body: RequestBody, deadline: Option<Moment>, undo: Option<Undo>) {
        self.made += 1;
        if matches!(body, RequestBody::Kill { .. }) {
            self.own.insert(self.made);
        }
        assert_eq!(self.core.call(body, deadline, self.made, undo), self.made);
    }

    /// The caller of a request takes what it is granted, or has just gone.
    fn grant(&mut self, number: u64, result: Bytes, undo: &Undo) {
        if self.noise.one_in(3) {
            let body = undo.of(&result).expect("something was granted");
            self.make(body, None, None);
        } else {
            self.taken.insert(number);
        }
        self.tell(number, Ok(result));
    }

    fn tell(&mut self, number: u64, result: Result<Bytes, CallFailure>) {
        let before = self.told.insert(number, result);
        assert_eq!(before, None, "{number} was told twice");
    }

    fn exchange(&mut self, rough: bool) {
        let up = &mut self.up;
        self.core.poll_transmit(self.now, &mut |message| up.push_back(message.clone()));
        for _ in 0..self.noise.next() % 8 {
            if let Some(message) = self.up.pop_front() {
                // Forwarding to the leader may lose a request; a connection loses nothing else.
                let forwarded =
                    matches!(message, ClientMessage::Request(_) | ClientMessage::Cancel(_));
                if !(rough && forwarded && self.noise.one_in(8)) {
                    self.serve(message);
                }
            }
            if let Some(message) = self.down.pop_front() {
                self.hear(message);
            }
        }
    }

    fn listen(&mut self) {
        while let Some(output) = self.core.poll_output() {
            match output {
                Output::Resolved(number, result) => self.tell(number, result),
                Output::Granted(number, result, undo) => self.grant(number, result, &undo),
                Output::Undo(body) => self.make(body, None, None),
                Output::ClassNeeded(class, _) => {
                    self.cluster.class_loaded = true;
                    self.core.class_settled(self.now, &class, None);
                }
                _ => {}
            }
        }
    }

    fn check(&self) {
        let ran = &self.cluster.ran;
        assert!(ran.is_sorted_by(|one, next| one < next), "each once and in order: {ran:?}");
        for number in 1..=self.made {
            let has_run = ran.contains(&number);
            match self.told.get(&number) {
                Some(Ok(told)) => {
                    assert_eq!(told, &result(number));
                    assert!(has_run, "{number} was told an end without a run");
                }
                Some(Err(failure)) => match failure.fate() {
                    Fate::NeverRan => assert!(!has_run, "{number} has run"),
                    Fate::Withdrawn(_) | Fate::Unknown(_) => {}
                    Fate::Ended => panic!("{number} was told a failure that nobody made"),
                },
                None => assert!(self.given_up.contains(&number), "{number} was told nothing"),
            }
        }
        assert_eq!(self.cluster.held, self.taken, "what is held is what was taken");
        assert!(self.cluster.open.is_empty(), "all has ended: {:?}", self.cluster.open);
        assert!(self.cluster.stored.is_empty(), "all is acknowledged: {:?}", self.cluster.stored);
    }
}

#[test]
fn whatever_the_network_does_each_call_runs_once_and_nobody_holds_what_nobody_took() {
    for seed in 1..=1_500 {
        let mut world = World::new(seed * 0x9e37_79b9);
        let mut turns = 0;
        while world.made < CALLS {
            world.turn(true);
        }
        let settled = |world: &World| {
            let told =
                |number: &u64| world.told.contains_key(number) || world.given_up.contains(number);
            (1..=world.made).all(|number| told(&number))
                && world.cluster.open.is_empty()
                && world.cluster.stored.is_empty()
        };
        while !settled(&world) {
            world.turn(false);
            turns += 1;
            assert!(
                turns < 20_000,
                "seed {seed} does not come to an end: {:?} {:?} {:?}",
                world.cluster,
                world.core,
                world.told.len()
            );
        }
        world.check();
    }
}
