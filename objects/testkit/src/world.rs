//! The world: a kernel of one replica, its clients, and their time.
//!
//! Invariant: whenever the test has the world, nothing is left that could go on without it: every call
//! that was started has ended or is blocked.

use std::{
    collections::{BTreeMap, VecDeque},
    future::Future,
    sync::{Arc, Mutex},
    time::Duration,
};

use gesmas_coroutine::BothEngines;
use gesmas_machine::{
    Acknowledged, Ballot, Batch, CallError, ClassName, CodeHash, Command, Effect, Engine as _,
    Genesis, Limits, LogEntry, Machine, MethodName, ObjectName, ObjectView, OnBehalf, Outcome,
    Place, Progress, Read, Replace, Request, RequestBody, STATE_MACHINE_VERSION, SessionId,
    Settings, Time,
};
use gesmas_sdk::{
    abi::value::nanoseconds,
    stub::{CallMode, InvokeError, StubCall},
};

use crate::{
    class::{Class, Kind, LIVE},
    client::{Answer, Client, Ended, Post, Sent, open},
    order::Order,
    tasks::{Pending, Tasks},
};

/// The one replica.
const REPLICA: u64 = 1;
/// The ballot under which it leads.
const BALLOT: Ballot = Ballot { configuration: 0, number: 1, priority: 0, replica: REPLICA };
/// Silence after which sessions would expire, nanoseconds; here the test says when they do.
const TIMEOUT: u64 = 1_000_000_000;
/// When the world begins, nanoseconds.
const BEGINNING: Time = Time(1_000_000_000);
/// Pieces of work between two looks at how far the machine came.
const SLICE: u32 = 1_000;
/// Blocked calls and parts of objects that are listed; no test has more.
const ALL: usize = 1_000_000;

/// A call that has been admitted and has not ended.
#[derive(Clone, Copy, Debug)]
struct Admitted {
    ticket: u64,
    task: u64,
}

/// See the file's head.
pub struct World {
    /// The code that the class has, last, and before it what it had.
    kinds: Vec<Kind>,
    class: ClassName,
    machine: Machine<BothEngines>,
    now: Time,
    order: Order,
    post: Arc<Mutex<Post>>,
    tasks: Tasks,
    /// Sessions, with the number of the last request of each.
    sessions: BTreeMap<SessionId, u64>,
    admitted: BTreeMap<(SessionId, u64), Admitted>,
    opened: u128,
    events: BTreeMap<SessionId, VecDeque<Vec<u8>>>,
    faults: Vec<String>,
}

impl World {
    /// A world in which the class runs natively.
    #[must_use]
    pub fn native(class: &Class) -> Self {
        Self::new(class.native.name, Kind::Native(class.native))
    }

    /// A world in which the class runs as its module, on the engine of production.
    #[must_use]
    pub fn wasm(class: &Class) -> Self {
        Self::new(class.native.name, Kind::wasm(class.module.clone()))
    }

    /// A world of a class in any language, as its module with the interface in it. The class has the
    /// name that the interface gives it; a stub of a class with the same methods can call it, whatever
    /// that one is called.
    ///
    /// # Panics
    /// When the module has no interface, or breaks a rule.
    #[must_use]
    pub fn of_module(module: &[u8]) -> Self {
        let interface = gesmas_build::interface_of(module);
        let interface = interface.unwrap_or_else(|error| panic!("{error}"));
        Self::new(&interface.class, Kind::wasm(module.into()))
    }

    fn new(name: &str, kind: Kind) -> Self {
        let kinds = vec![kind];
        let engine = Kind::engine(&kinds);
        let genesis = Genesis {
            cluster: 7,
            state_machine_version: STATE_MACHINE_VERSION,
            seed: [5; 32],
            replicas: vec![REPLICA],
            engine: engine.identity(),
            limits: Limits::default(),
            reserved: BTreeMap::new(),
        };
        let name = ClassName::new(name).expect("the name of the class is one of a class");
        let mut world = Self {
            kinds,
            class: name.clone(),
            machine: Machine::new(engine, Settings { live_activations: LIVE }),
            now: BEGINNING,
            order: Order::Made,
            post: Arc::default(),
            tasks: Tasks::default(),
            sessions: BTreeMap::new(),
            admitted: BTreeMap::new(),
            opened: 0,
            events: BTreeMap::new(),
            faults: Vec::new(),
        };
        world.apply(LogEntry::Genesis(Box::new(genesis)));
        world.apply(LogEntry::LeaderStart { ballot: BALLOT, now: BEGINNING });
        if let Err(error) = world.put(None) {
            panic!("the class is refused: {error}");
        }
        assert!(world.machine.class(&world.class).is_some_and(|class| class.ready), "it is loaded");
        world
    }

    /// Puts the newest code.
    fn put(&mut self, replace: Option<Replace>) -> Result<(), CallError> {
        let author = self.client().session;
        let kind = self.kinds.last().expect("a world has a class").clone();
        let (class, module) = (self.class.clone(), kind.module());
        let code = CodeHash::of(&module);
        let mut effects = self.request(author, RequestBody::PutClass { class, module, replace });
        kind.install(self.machine.engine_mut());
        effects.extend(self.order(Command::Compiled { replica: REPLICA, code, failure: None }));
        let replies = effects.into_iter().filter_map(|effect| match effect {
            Effect::Reply { session, outcome, .. } if session == author => Some(outcome),
            _ => None,
        });
        let outcome = replies.last().expect("a put is answered once its code is compiled");
        outcome.map(|_| ())
    }

    /// Puts other code in the place of the class's, as `gesmas class put --replace` does: calls that are
    /// blocked go on in theirs, and objects are migrated when they are next needed. In a native world the
    /// crates of the two have different versions.
    ///
    /// # Errors
    /// What an operator is told: blocked calls are in the way of another layout, `migrate` is missing, …
    ///
    /// # Panics
    /// When the class has another name.
    pub fn replace(&mut self, class: &Class, replace: Replace) -> Result<(), Ended> {
        assert_eq!(class.native.name, self.class.as_str(), "code replaces code of its own name");
        let kind = self.kinds.last().expect("a world has a class").with(class);
        // Code that comes back is there once.
        let before = self.kinds.clone();
        self.kinds.retain(|other| other.module() != kind.module());
        self.kinds.push(kind);
        // An engine is made for the native classes that there are.
        self.restart();
        let put = self.put(Some(replace));
        if put.is_err() {
            self.kinds = before;
        }
        self.settle();
        put.map_err(Ended::Failed)
    }

    /// A client with a new session.
    pub fn client(&mut self) -> Client {
        self.opened += 1;
        let (nonce, principal) = (self.opened, format!("client {}", self.opened));
        let effects = self.order(Command::OpenSession { nonce, principal, timeout: TIMEOUT });
        let session = effects.into_iter().find_map(|effect| match effect {
            Effect::SessionOpened { session, .. } => session.ok(),
            _ => None,
        });
        let session = session.expect("there is room for a session");
        self.sessions.insert(session, 0);
        Client { session, post: Arc::clone(&self.post) }
    }

    /// From here on the order in which calls of different sessions arrive is drawn from this seed.
    pub fn shuffle(&mut self, seed: u64) {
        self.order = Order::Drawn(seed);
    }

    /// Begins a task without letting any of its calls arrive; [`settle`](Self::settle) does.
    pub fn spawn<T: 'static>(&mut self, task: impl Future<Output = T> + 'static) -> Pending<T> {
        let pending = self.tasks.add(task);
        self.poll(pending.task);
        pending
    }

    /// Begins a task, and goes on until everything has ended or is blocked.
    pub fn start<T: 'static>(&mut self, task: impl Future<Output = T> + 'static) -> Pending<T> {
        let pending = self.spawn(task);
        self.settle();
        pending
    }

    /// Runs a task that does not stay blocked.
    ///
    /// # Panics
    /// When it is blocked.
    pub fn run<T: 'static>(&mut self, task: impl Future<Output = T> + 'static) -> T {
        let pending = self.start(task);
        assert!(!pending.is_open(), "the task is blocked: {:?}", self.blocked());
        pending.result()
    }

    /// Lets everything arrive that is on its way, and all tasks go on as far as they come.
    pub fn settle(&mut self) {
        loop {
            let next = self.order.take(&mut open(&self.post).outbox);
            let Some(sent) = next else { break };
            self.deliver(sent);
        }
    }

    /// Time passes. Whatever becomes due does so at its time.
    pub fn advance(&mut self, duration: Duration) {
        let end = self.now.after(nanoseconds(duration));
        while let Some(due) = self.machine.next_due().filter(|due| *due <= end) {
            self.now = due.max(self.now.after(1));
            self.batch(Vec::new());
            self.settle();
        }
        if self.now < end {
            self.now = end;
            self.batch(Vec::new());
        }
        self.settle();
    }

    /// Calls that are blocked, the one that began first first: `method at semaphore`.
    #[must_use]
    pub fn blocked(&self) -> Vec<String> {
        let views = self.machine.invocations(ALL);
        let blocked = views.iter().map(|view| {
            // A semaphore that is named at run time has the name of its field before a zero byte.
            let field = view.semaphore.split(|byte| *byte == 0).next().unwrap_or_default();
            format!("{} at {}", view.method, String::from_utf8_lossy(field))
        });
        blocked.collect()
    }

    /// The caller of a task gives up the calls that it waits for.
    pub fn cancel<T>(&mut self, pending: &Pending<T>) {
        let of_task = self.admitted.iter().filter(|(_, call)| call.task == pending.task);
        let calls: Vec<_> = of_task.map(|(place, _)| *place).collect();
        for (session, number) in calls {
            let place = Place { session, number, previous: number - 1 };
            self.order(Command::Cancel { place, acknowledged: Acknowledged::default() });
        }
        self.settle();
    }

    /// A client has not been heard of for too long: its session is over.
    pub fn expire(&mut self, client: &Client) {
        self.order(Command::ExpireSession { session: client.session });
        self.settle();
    }

    /// The process ends and another goes on from a snapshot: of blocked calls it has their journals,
    /// and everything must go on as it would have.
    pub fn restart(&mut self) {
        let image = self.machine.encode_image();
        let settings = Settings { live_activations: LIVE };
        let machine = Machine::from_image(&image, Kind::engine(&self.kinds), settings);
        self.machine = machine.expect("a machine reads its own image");
        for kind in &self.kinds {
            kind.install(self.machine.engine_mut());
        }
        self.machine.check_state().expect("a state is sound after a restart");
    }

    /// The events that a client has received since this was last asked.
    pub fn events(&mut self, client: &Client) -> Vec<Vec<u8>> {
        self.events.remove(&client.session).unwrap_or_default().into()
    }

    /// What came of handlers that failed since this was last asked. A world that ends with any that
    /// nobody asked for fails its test.
    pub fn faults(&mut self) -> Vec<String> {
        std::mem::take(&mut self.faults)
    }

    /// An operator has every handler called once more whose fault an object keeps. Tells how many there were.
    ///
    /// # Panics
    /// When the name is not one of an object, or the class has no such handler any more.
    pub fn retry_faults(&mut self, name: &str) -> usize {
        let faults = self.object(name).map(|object| object.faults).unwrap_or_default();
        for fault in &faults {
            let (object, fault) = (self.name(name), fault.alarm);
            self.operate(RequestBody::EndFault { object, fault, retry: true });
        }
        self.advance(Duration::from_millis(1));
        faults.len()
    }

    /// An operator removes an object of the class, if there is one of this name.
    ///
    /// # Panics
    /// When the name is not one of an object.
    pub fn remove(&mut self, name: &str) {
        if self.object(name).is_some() {
            let object = self.name(name);
            self.operate(RequestBody::RemoveObject { object });
            self.settle();
        }
    }

    /// An operator changes a limit of the cluster.
    ///
    /// # Panics
    /// When there is none of this name, or it cannot have this value.
    pub fn set_limit(&mut self, name: &str, value: u64) {
        self.operate(RequestBody::SetLimit { name: name.into(), value });
        self.settle();
    }

    /// An operator's request, in a session of its own.
    fn operate(&mut self, body: RequestBody) {
        let operator = self.client().session;
        let effects = self.request(operator, body);
        let outcome = effects.into_iter().find_map(|effect| match effect {
            Effect::Reply { session, outcome, .. } if session == operator => Some(outcome),
            _ => None,
        });
        let outcome = outcome.expect("what operators ask for is answered at once");
        outcome.unwrap_or_else(|error| panic!("the operator is refused: {error}"));
    }

    /// An object of the class as operators see it; none if there is no such object.
    ///
    /// # Panics
    /// When the name is not one of an object.
    #[must_use]
    pub fn object(&self, name: &str) -> Option<ObjectView> {
        self.machine.object(&self.name(name), ALL)
    }

    /// How often calls that were blocked went on since the last restart: who is woken in vain shows here.
    #[must_use]
    pub fn resumptions(&self) -> u64 {
        self.machine.statistics().resumptions
    }

    /// The time, as methods see it.
    #[must_use]
    pub fn now(&self) -> gesmas_sdk::abi::value::Time {
        gesmas_sdk::abi::value::Time(self.machine.now().0)
    }

    fn name(&self, name: &str) -> ObjectName {
        ObjectName::new(self.class.as_str(), name).expect("a test uses good names")
    }

    fn poll(&mut self, task: u64) {
        open(&self.post).task = task;
        self.tasks.poll(task);
    }

    /// A call arrives: it is ordered, or read.
    fn deliver(&mut self, sent: Sent) {
        let Sent { ticket, task, session, call } = sent;
        if !self.sessions.contains_key(&session) {
            self.answer(Admitted { ticket, task }, Err(InvokeError::Other(Ended::SessionOver)));
            return;
        }
        if call.mode == CallMode::Read {
            let answer = self.read(session, call);
            self.answer(Admitted { ticket, task }, answer);
            return;
        }
        let (object, signature, arguments) =
            (self.name(&call.object), call.signature, call.arguments);
        let body = match call.mode {
            CallMode::Create => RequestBody::CreateObject { object, signature, arguments },
            CallMode::Update | CallMode::Read => {
                let method = MethodName::new(call.method).expect("the macro checks names");
                RequestBody::Call {
                    object,
                    method,
                    signature,
                    arguments,
                    on_behalf: OnBehalf::Requester,
                }
            }
        };
        let number = self.sessions[&session] + 1;
        self.admitted.insert((session, number), Admitted { ticket, task });
        self.request(session, body);
    }

    fn request(&mut self, session: SessionId, body: RequestBody) -> Vec<Effect> {
        let last = self.sessions.get_mut(&session).expect("it is open");
        *last += 1;
        let place = Place { session, number: *last, previous: *last - 1 };
        let acknowledged = Acknowledged::default();
        self.order(Command::Request(Request { place, acknowledged, time_left: None, body }))
    }

    fn read(&mut self, session: SessionId, call: StubCall) -> Answer {
        let read = Read {
            after: Some((session, self.sessions[&session])),
            principal: format!("session {session}"),
            object: self.name(&call.object),
            method: MethodName::new(call.method).expect("the macro checks names"),
            signature: call.signature,
            arguments: call.arguments,
        };
        match self.machine.read(read) {
            Ok(outcome) => answer(outcome),
            Err(refusal) => Err(InvokeError::Other(Ended::Refused(refusal))),
        }
    }

    fn answer(&mut self, call: Admitted, answer: Answer) {
        open(&self.post).mail.insert(call.ticket, answer);
        self.poll(call.task);
    }

    /// Orders a command of its own, a moment later.
    fn order(&mut self, command: Command) -> Vec<Effect> {
        self.now = self.now.after(1);
        self.batch(vec![command])
    }

    fn batch(&mut self, commands: Vec<Command>) -> Vec<Effect> {
        let effects =
            self.apply(LogEntry::Batch(Batch { ballot: BALLOT, stamp: self.now, commands }));
        for effect in &effects {
            self.see(effect);
        }
        effects
    }

    fn apply(&mut self, entry: LogEntry) -> Vec<Effect> {
        self.machine.handle_entry(entry).expect("the engine is that of the group");
        loop {
            match self.machine.run(SLICE) {
                Progress::More => {}
                Progress::Idle => break,
                Progress::Paused(code) => panic!("the code {code} of the class is not there"),
            }
        }
        std::iter::from_fn(|| self.machine.poll_effect()).collect()
    }

    fn see(&mut self, effect: &Effect) {
        match effect {
            Effect::Reply { session, number, outcome, .. } => {
                if let Some(call) = self.admitted.remove(&(*session, *number)) {
                    self.answer(call, answer(outcome.clone()));
                }
            }
            Effect::Refused { session, number, refusal } => {
                if let Some(call) = self.admitted.remove(&(*session, *number)) {
                    // It used up nothing, its number neither.
                    self.sessions.entry(*session).and_modify(|last| *last = number - 1);
                    self.answer(call, Err(InvokeError::Other(Ended::Refused(refusal.clone()))));
                }
            }
            Effect::SessionOver { session, .. } => self.session_over(*session),
            Effect::Event { session, payload, .. } => {
                self.events.entry(*session).or_default().push_back(payload.clone());
            }
            Effect::HandlerFailed { object, text } => self.faults.push(format!("{object}: {text}")),
            _ => {}
        }
    }

    fn session_over(&mut self, session: SessionId) {
        self.sessions.remove(&session);
        let open = self.admitted.range((session, 0)..=(session, u64::MAX));
        let open: Vec<_> = open.map(|(place, call)| (*place, *call)).collect();
        for (place, call) in open {
            self.admitted.remove(&place);
            self.answer(call, Err(InvokeError::Other(Ended::SessionOver)));
        }
    }
}

/// An outcome as a stub takes it.
fn answer(outcome: Outcome) -> Answer {
    outcome.map_err(|error| match error {
        CallError::Failed(payload) | CallError::InitRefused(payload) => {
            InvokeError::Failed(payload)
        }
        CallError::Aborted(payload) => InvokeError::Aborted(payload),
        error => InvokeError::Other(Ended::Failed(error)),
    })
}

impl Drop for World {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.machine.check_state().expect("the state is sound in the end");
            assert!(self.faults.is_empty(), "handlers failed: {:?}", self.faults);
        }
    }
}
