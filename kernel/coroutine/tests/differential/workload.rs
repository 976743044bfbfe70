//! Random workloads: sessions that come and go, and calls of all methods of all classes.
//!
//! Invariant: a workload is a function of its seed and of what the machines answer, which is equal
//! on all of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use gesmas_abi::value::{Bytes, Value, to_bytes};
use gesmas_machine::{
    Acknowledged, CallError, Command, Effect, MethodName, ObjectName, OnBehalf, Place, Read,
    Request, RequestBody, SessionId,
};
use gesmas_register::Expected;

use crate::group::Group;

/// Sessions that are open at once.
const SESSIONS: usize = 5;

/// Draws of a seed (SplitMix64).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    fn bytes(&mut self) -> Bytes {
        let length = if self.below(8) == 0 { 300 + self.below(700) } else { self.below(12) };
        Bytes((0..length).map(|_| b'a' + self.below(26) as u8).collect())
    }
}

/// A call of a workload: class, method, arguments.
type Call = (&'static str, &'static str, Vec<u8>);

fn call(class: &'static str, method: &'static str, arguments: impl Value) -> Call {
    (class, method, to_bytes(&arguments))
}

/// A workload on its way.
pub(crate) struct Workload {
    dice: Dice,
    /// Sessions with the number of their last request.
    sessions: BTreeMap<SessionId, u64>,
    opened: u128,
    /// Methods that returned, and how other calls ended.
    seen: BTreeSet<String>,
    sent: BTreeMap<(SessionId, u64), &'static str>,
}

impl Workload {
    pub(crate) fn new(seed: u64) -> Self {
        let (sessions, seen, sent) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        Self { dice: Dice(seed), sessions, opened: 0, seen, sent }
    }

    /// Orders that many batches of random commands, with reads in between, and compares the images.
    pub(crate) fn run(&mut self, group: &mut Group, batches: u32) {
        self.batch(group, 1, Vec::new());
        let creations = [("Queue", to_bytes(&3_u32)), ("Barrier", to_bytes(&3_u32))];
        for (class, arguments) in creations {
            let object = ObjectName::new(class, "one").expect("a name");
            let signature = signature(group, class, "init");
            let body = RequestBody::CreateObject { object, signature, arguments };
            let session = *self.sessions.keys().next().expect("some are open");
            let request = self.request(session, None, body, "create");
            self.batch(group, 1, vec![request]);
        }
        for _ in 0..batches {
            let commands = (0..1 + self.dice.below(4)).map(|_| self.command(group)).collect();
            let later = if self.dice.below(3) == 0 { 1 + self.dice.below(60) } else { 1 };
            self.batch(group, later, commands);
            if self.dice.below(4) == 0 {
                self.read(group);
            }
        }
        group.compare_images();
    }

    /// Orders commands, after as many openings as sessions are missing.
    fn batch(&mut self, group: &mut Group, later: u64, commands: Vec<Command>) {
        let mut all = Vec::new();
        for _ in self.sessions.len()..SESSIONS {
            self.opened += 1;
            let principal = format!("client {}", self.opened);
            all.push(Command::OpenSession { nonce: self.opened, principal, timeout: 1_000 });
        }
        all.extend(commands);
        for effect in group.batch(later, all) {
            self.note(effect);
        }
    }

    fn note(&mut self, effect: Effect) {
        match effect {
            Effect::SessionOpened { session: Ok(session), .. } => {
                self.sessions.insert(session, 0);
            }
            Effect::SessionOver { session, .. } => {
                self.sessions.remove(&session);
            }
            Effect::Reply { session, number, outcome, .. } => {
                let how = match outcome {
                    Ok(_) => self.sent.get(&(session, number)).copied().unwrap_or("put"),
                    Err(CallError::Failed(_)) => "failed",
                    Err(CallError::Aborted(_)) => "aborted",
                    Err(CallError::Cancelled(_)) => "cancelled",
                    Err(CallError::Trapped(_)) => "trapped",
                    Err(CallError::CleanupFailed { .. }) => "clean-up failed",
                    Err(CallError::ObjectRemoved) => "object removed",
                    Err(_) => "other error",
                };
                self.seen.insert(how.into());
            }
            Effect::Event { .. } => drop(self.seen.insert("event".into())),
            Effect::HandlerFailed { .. } => drop(self.seen.insert("handler failed".into())),
            Effect::Log { .. } => drop(self.seen.insert("log".into())),
            _ => {}
        }
    }

    fn session(&mut self) -> SessionId {
        let place = self.dice.below(self.sessions.len() as u64);
        *self.sessions.keys().nth(place as usize).expect("some are open")
    }

    fn command(&mut self, group: &Group) -> Command {
        let session = self.session();
        let last = self.sessions[&session];
        match self.dice.below(40) {
            0 => Command::ExpireSession { session },
            1 => Command::CloseSession { session },
            2 | 3 if last > 0 => {
                let acknowledged = Acknowledged { replies: vec![(1, last)], events: 0 };
                Command::Acknowledge { session, acknowledged }
            }
            4..=7 if last > 0 => {
                let number = last - self.dice.below(last.min(4));
                let place = Place { session, number, previous: number - 1 };
                Command::Cancel { place, acknowledged: Acknowledged::default() }
            }
            8 if self.dice.below(4) == 0 => {
                let object = ObjectName::new("Specimen", "one").expect("a name");
                self.request(session, None, RequestBody::RemoveObject { object }, "remove")
            }
            _ => self.call(group, session),
        }
    }

    fn call(&mut self, group: &Group, session: SessionId) -> Command {
        let (class, method, mut arguments) = self.pick(session);
        if self.dice.below(40) == 0 {
            arguments.push(0);
        }
        let body = RequestBody::Call {
            object: ObjectName::new(class, "one").expect("a name"),
            method: MethodName::new(method).expect("a name"),
            signature: signature(group, class, method),
            arguments,
            on_behalf: OnBehalf::Requester,
        };
        let time_left = (self.dice.below(5) == 0).then(|| self.dice.below(100));
        self.request(session, time_left, body, method)
    }

    fn request(
        &mut self,
        session: SessionId,
        time_left: Option<u64>,
        body: RequestBody,
        method: &'static str,
    ) -> Command {
        let last = self.sessions.get_mut(&session).expect("it is open");
        let place = Place { session, number: *last + 1, previous: *last };
        *last += 1;
        self.sent.insert((session, place.number), method);
        let acknowledged = Acknowledged::default();
        Command::Request(Request { place, acknowledged, time_left, body })
    }

    fn read(&mut self, group: &mut Group) {
        let (class, method, arguments) = match self.dice.below(9) {
            6 => call("Election", "leader", ()),
            7 => call("Register", "get", (Bytes(vec![self.dice.below(4) as u8]),)),
            8 => call("Register", "keys", (Bytes(Vec::new()), self.dice.below(5) as u32)),
            0 => call("Queue", "length", ()),
            1 => call("Barrier", "waiting", ()),
            2 => call("Lock", "holder", ()),
            3 => call("Counter", "get", ()),
            4 => call("Specimen", "look", (self.dice.below(6), 7_u8)),
            _ => call("Specimen", "look", (self.dice.below(6),)),
        };
        group.read(&Read {
            after: None,
            principal: "reader".into(),
            object: ObjectName::new(class, "one").expect("a name"),
            method: MethodName::new(method).expect("a name"),
            signature: signature(group, class, method),
            arguments,
        });
    }

    /// A call of any class.
    fn pick(&mut self, session: SessionId) -> Call {
        match self.dice.below(12) {
            0 | 1 => {
                let item = self.dice.bytes();
                if self.dice.below(2) == 0 {
                    call("Queue", "produce", (item,))
                } else {
                    call("Queue", "consume", ())
                }
            }
            2 => call("Barrier", "wait", ()),
            3 => self.lock(),
            4 => self.counter(),
            5 | 6 => self.waiting(),
            7 => self.collections(),
            8 => self.election(),
            9 => self.register(),
            _ => self.context(session),
        }
    }

    fn election(&mut self) -> Call {
        match self.dice.below(5) {
            0 => call("Election", "campaign", (self.dice.bytes(),)),
            1 => call("Election", "try_campaign", (self.dice.bytes(),)),
            2 => call("Election", "observe", (self.dice.below(3),)),
            _ => call("Election", "resign", (1 + self.dice.below(60),)),
        }
    }

    fn register(&mut self) -> Call {
        let (key, value) = (Bytes(vec![self.dice.below(4) as u8]), self.dice.bytes());
        let expected = match self.dice.below(3) {
            0 => Expected::Nothing,
            _ => Expected::Version(1 + self.dice.below(60)),
        };
        match self.dice.below(4) {
            0 => call("Register", "set", (key, value)),
            1 => call("Register", "compare_and_set", (key, expected, value)),
            2 => call("Register", "compare_and_remove", (key, expected)),
            _ => call("Register", "remove", (key,)),
        }
    }

    fn lock(&mut self) -> Call {
        match self.dice.below(4) {
            0 => call("Lock", "lock", (self.dice.below(2),)),
            1 => call("Lock", "try_lock", (self.dice.below(2),)),
            2 => call("Lock", "lock_for", (self.dice.below(2), self.duration())),
            _ => call("Lock", "unlock", (1 + self.dice.below(60),)),
        }
    }

    fn counter(&mut self) -> Call {
        match self.dice.below(4) {
            0 => call("Counter", "increment", ()),
            1 => call("Counter", "reset", ()),
            2 => call("Counter", "add", (if self.dice.below(4) == 0 { i64::MAX } else { -3 },)),
            _ => call("Counter", "compare_and_set", (0_i64, 5_i64)),
        }
    }

    fn duration(&mut self) -> Duration {
        Duration::from_nanos(self.dice.below(40))
    }

    /// The methods of the specimen that block.
    fn waiting(&mut self) -> Call {
        let door = self.dice.below(3);
        let way = self.dice.below(4);
        match self.dice.below(12) {
            0..=2 => call("Specimen", "open", (door, 1 + way as u32)),
            3 => call("Specimen", "pass", (door,)),
            4 => call("Specimen", "hurry", (door, self.duration())),
            5 => call("Specimen", "own", (door,)),
            6 => call("Specimen", "keep", (way * 9,)),
            7 => call("Specimen", "abort", (door, way)),
            8 => call("Specimen", "fall", (door, way)),
            9 => call("Specimen", "rounds", (door, way)),
            10 => call("Specimen", "stay", (door,)),
            _ => call("Specimen", "leave", (door, way)),
        }
    }

    /// The methods of the specimen on collections.
    fn collections(&mut self) -> Call {
        let (key, front, item) = (self.dice.below(6), self.dice.below(2) == 0, self.dice.bytes());
        match self.dice.below(7) {
            0 | 1 => call("Specimen", "shelve", (key, item)),
            2 => call("Specimen", "unshelve", (key,)),
            3 => call("Specimen", "browse", (key,)),
            4 => call("Specimen", "flip", (format!("name {key}"),)),
            5 => call("Specimen", "join", (item, front)),
            _ => call("Specimen", "part", (key, front)),
        }
    }

    /// The methods of the specimen on everything else.
    fn context(&mut self, session: SessionId) -> Call {
        match self.dice.below(9) {
            0 => call("Specimen", "facts", ()),
            1 => call("Specimen", "forget", ()),
            2 => call("Specimen", "give", ()),
            3 => call("Specimen", "census", (self.dice.below(3),)),
            4 => call("Specimen", "later", (self.duration(), self.dice.below(4) > 0)),
            5 => call("Specimen", "unset", ()),
            6 => call("Specimen", "mourn", (session.0.saturating_sub(self.dice.below(3)),)),
            7 => {
                let receiver = session.0.saturating_sub(self.dice.below(3));
                call("Specimen", "tell", (receiver, self.dice.bytes()))
            }
            _ => call("Specimen", "fail", (self.dice.below(9),)),
        }
    }

    /// Methods that have returned, and how other calls have ended.
    pub(crate) fn seen(self) -> BTreeSet<String> {
        self.seen
    }
}

/// Checks that every method that can return has, and that every kind of end and effect was seen.
pub(crate) fn check_coverage(seen: &BTreeSet<String>) {
    let methods = "produce consume wait lock try_lock lock_for unlock increment reset add \
        compare_and_set open pass hurry own keep rounds stay leave shelve unshelve browse flip \
        campaign try_campaign observe resign set compare_and_remove remove join part facts forget give census later unset mourn tell create remove";
    let ends = ["failed", "aborted", "cancelled", "trapped", "clean-up failed", "object removed"];
    let others = ["event", "handler failed", "log"];
    let wanted = methods.split_whitespace().chain(ends).chain(others);
    let missing: Vec<_> = wanted.filter(|name| !seen.contains(*name)).collect();
    assert!(missing.is_empty(), "the workloads never saw {missing:?}");
}

fn signature(group: &Group, class: &str, method: &str) -> u64 {
    let class = gesmas_machine::ClassName::new(class).expect("a name");
    let method = MethodName::new(method).expect("a name");
    group.machine().class(&class).expect("it is loaded").interface.methods[&method].signature
}
