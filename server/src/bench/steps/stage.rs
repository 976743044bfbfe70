//! A machine with one class, and clients that call its objects, each call an entry of its own.

use std::{collections::BTreeMap, mem, time::Duration};

use gesmas_abi::value::{Value, from_bytes, to_bytes};
use gesmas_coroutine::{Artifact, WasmEngine};
use gesmas_machine::{
    Acknowledged, Ballot, Batch, ClassName, CodeHash, Command, Effect, Engine, Genesis, Limits,
    LogEntry, Machine, MethodName, ObjectName, OnBehalf, Outcome, Place, Progress, Read, Request,
    RequestBody, STATE_MACHINE_VERSION, SessionId, Settings, Time,
};

use rustix::time::{ClockId, clock_gettime};

use super::StepsBenchError;

/// Bodies that are kept, as in a replica.
const LIVE: usize = 1_000;
/// The object of each scene.
const OBJECT: &str = "bench";
/// Blocked calls of one session.
const CALLS: u64 = 10_000;
/// How long what timers do is waited for, nanoseconds.
const LATER: u64 = 1_000_000_000;

/// What this thread has used of a processor: what else the host does counts for no step.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("a thread's time is not negative")
}

/// The classes, compiled once.
pub(super) struct Theatre(BTreeMap<&'static str, (CodeHash, Artifact)>);

impl Theatre {
    /// Compiles these classes.
    pub(super) fn open(
        classes: impl IntoIterator<Item = &'static str>,
    ) -> Result<Self, StepsBenchError> {
        let compiler = engine()?;
        let mut compiled = BTreeMap::new();
        for class in classes {
            let module = gesmas_classes::find(class).expect("it is a standard class").module;
            let artifact = compiler.compiler().artifact(module);
            let artifact = artifact.map_err(|error| StepsBenchError::Compile(class, error))?;
            compiled.insert(class, (CodeHash::of(module), artifact));
        }
        Ok(Self(compiled))
    }

    /// A machine with a class.
    pub(super) fn stage(&self, class: &'static str) -> Result<Stage, StepsBenchError> {
        let (code, artifact) = &self.0[class];
        let mut engine = engine()?;
        let compiled = engine.compiler().load(artifact);
        engine.install(*code, compiled.map_err(|error| StepsBenchError::Compile(class, error))?);
        Ok(Stage::new(class, engine))
    }
}

fn engine() -> Result<WasmEngine, StepsBenchError> {
    let slots = u32::try_from(LIVE).expect("it is small") + 24;
    let settings = gesmas_coroutine::Settings { slots, ..Default::default() };
    Ok(WasmEngine::new(settings)?)
}

/// See the file's head.
pub(super) struct Stage {
    class: &'static str,
    machine: Machine<WasmEngine>,
    ballot: Ballot,
    /// The number of the last request of each session.
    last: BTreeMap<SessionId, u64>,
    opened: u128,
    /// How long each step took since the last part began.
    steps: Vec<Duration>,
    parts: Vec<Part>,
}

/// A part of a scene that is measured.
pub(super) struct Part {
    /// The words for it.
    pub(super) what: String,
    /// How long each step of it took.
    pub(super) steps: Vec<Duration>,
}

impl Stage {
    fn new(class: &'static str, engine: WasmEngine) -> Self {
        let ballot = Ballot { number: 1, ..Ballot::default() };
        let identity = engine.identity();
        let mut stage = Self {
            class,
            machine: Machine::new(engine, Settings { live_activations: LIVE }),
            ballot,
            last: BTreeMap::new(),
            opened: 0,
            steps: Vec::new(),
            parts: Vec::new(),
        };
        stage.apply(LogEntry::Genesis(Box::new(Genesis {
            cluster: 1,
            state_machine_version: STATE_MACHINE_VERSION,
            seed: [0; 32],
            replicas: vec![1],
            engine: identity,
            limits: Limits::default(),
            reserved: [].into(),
        })));
        stage.apply(LogEntry::LeaderStart { ballot, now: Time(1) });
        let operator = stage.open();
        let name = ClassName::new(class).expect("a class has a good name");
        let module = gesmas_classes::find(class).expect("it is a standard class").module.to_vec();
        let code = CodeHash::of(&module);
        stage.request(operator, RequestBody::PutClass { class: name, module, replace: None });
        stage.order(Command::Compiled { replica: 1, code, failure: None });
        stage
    }

    /// Checks the state, so that no figure is of a broken machine, and gives the figures.
    pub(super) fn close(self) -> Vec<Part> {
        self.machine.check_state().expect("the state is sound");
        self.parts
    }

    /// Measures what `work` does, and what timers do after it.
    pub(super) fn measure<T>(
        &mut self,
        what: impl Into<String>,
        work: impl FnOnce(&mut Self) -> T,
    ) -> T {
        self.steps.clear();
        let done = work(self);
        self.pass(LATER);
        self.parts.push(Part { what: what.into(), steps: mem::take(&mut self.steps) });
        done
    }

    /// A client.
    pub(super) fn open(&mut self) -> SessionId {
        self.opened += 1;
        let (nonce, principal) = (self.opened, "bench".into());
        let open = Command::OpenSession { nonce, principal, timeout: 3_600_000_000_000 };
        let opened = self.order(open).into_iter().find_map(|effect| match effect {
            Effect::SessionOpened { session, .. } => session.ok(),
            _ => None,
        });
        let session = opened.expect("there is room for a session");
        self.last.insert(session, 0);
        session
    }

    /// The session of a client is over.
    pub(super) fn expire(&mut self, session: SessionId) {
        self.last.remove(&session);
        self.order(Command::ExpireSession { session });
    }

    /// Creates the object.
    pub(super) fn create(&mut self, arguments: &impl Value) {
        let by = self.open();
        let (object, signature) = (self.object(OBJECT), self.signature("init"));
        let arguments = to_bytes(arguments);
        let created = self.request(by, RequestBody::CreateObject { object, signature, arguments });
        assert_eq!(created, Some(Ok(Vec::new())), "the object is created");
    }

    /// Removes the object.
    pub(super) fn remove(&mut self) {
        let by = self.open();
        let object = self.object(OBJECT);
        let removed = self.request(by, RequestBody::RemoveObject { object });
        assert_eq!(removed, Some(Ok(Vec::new())), "the object is removed");
    }

    /// A call, and how it ended if it does not wait.
    pub(super) fn call(
        &mut self,
        by: SessionId,
        method: &str,
        arguments: &impl Value,
    ) -> Option<Outcome> {
        self.call_of(by, OBJECT, method, arguments)
    }

    /// A call of another object.
    pub(super) fn call_of(
        &mut self,
        by: SessionId,
        object: &str,
        method: &str,
        arguments: &impl Value,
    ) -> Option<Outcome> {
        let body = RequestBody::Call {
            object: self.object(object),
            method: MethodName::new(method).expect("scenes use names"),
            signature: self.signature(method),
            arguments: to_bytes(arguments),
            on_behalf: OnBehalf::Requester,
        };
        self.request(by, body)
    }

    /// What a call returns that does not wait.
    pub(super) fn ok<T: Value>(
        &mut self,
        by: SessionId,
        method: &str,
        arguments: &impl Value,
    ) -> T {
        let outcome = self.call(by, method, arguments);
        match &outcome {
            Some(Ok(bytes)) => from_bytes(bytes).expect("it is of this type"),
            _ => panic!("{}/{method} ended with {outcome:?}", self.class),
        }
    }

    /// A call that waits.
    pub(super) fn waits(&mut self, by: SessionId, method: &str, arguments: &impl Value) {
        let outcome = self.call(by, method, arguments);
        assert!(outcome.is_none(), "{}/{method} ended with {outcome:?}", self.class);
    }

    /// Many calls that wait, of as many sessions as they need, which are given.
    pub(super) fn crowd<A: Value>(
        &mut self,
        calls: u64,
        method: &str,
        arguments: impl Fn(u64) -> A,
    ) -> Vec<SessionId> {
        let mut sessions = Vec::new();
        for call in 0..calls {
            if call % CALLS == 0 {
                sessions.push(self.open());
            }
            let by = *sessions.last().expect("one was opened");
            self.waits(by, method, &arguments(call));
        }
        sessions
    }

    /// The last call of a client that waits is given up.
    pub(super) fn cancel(&mut self, by: SessionId) {
        let number = self.last[&by];
        let place = Place { session: by, number, previous: number - 1 };
        self.order(Command::Cancel { place, acknowledged: Acknowledged::default() });
    }

    /// A read.
    pub(super) fn read(&mut self, method: &str, arguments: &impl Value) {
        let read = Read {
            after: None,
            principal: "bench".into(),
            object: self.object(OBJECT),
            method: MethodName::new(method).expect("scenes use names"),
            signature: self.signature(method),
            arguments: to_bytes(arguments),
        };
        let begin = processor_time();
        let outcome = self.machine.read(read);
        self.steps.push(processor_time().saturating_sub(begin));
        assert!(matches!(outcome, Ok(Ok(_))), "{}/{method} ended with {outcome:?}", self.class);
    }

    /// Time passes, nanoseconds; what becomes due does so at its time.
    pub(super) fn pass(&mut self, nanoseconds: u64) {
        let end = self.machine.now().after(nanoseconds);
        while let Some(due) = self.machine.next_due().filter(|due| *due <= end) {
            let stamp = due.max(self.machine.now().after(1));
            self.apply(LogEntry::Batch(Batch { ballot: self.ballot, stamp, commands: vec![] }));
        }
        let (ballot, stamp) = (self.ballot, end.max(self.machine.now().after(1)));
        self.apply(LogEntry::Batch(Batch { ballot, stamp, commands: vec![] }));
    }

    fn object(&self, name: &str) -> ObjectName {
        ObjectName::new(self.class, name).expect("scenes use good names")
    }

    fn signature(&self, method: &str) -> u64 {
        let class = ClassName::new(self.class).expect("a class has a good name");
        let class = self.machine.class(&class).expect("it is loaded");
        class.interface.methods[&MethodName::new(method).expect("scenes use names")].signature
    }

    fn request(&mut self, by: SessionId, body: RequestBody) -> Option<Outcome> {
        let last = self.last.get_mut(&by).expect("it is open");
        let previous = *last;
        *last += 1;
        let place = Place { session: by, number: *last, previous };
        let replies = if previous == 0 { vec![] } else { vec![(1, previous)] };
        let acknowledged = Acknowledged { replies, events: u64::MAX };
        let request = Request { place, acknowledged, time_left: None, body };
        let effects = self.order(Command::Request(request));
        effects.into_iter().find_map(|effect| match effect {
            Effect::Reply { session, number, outcome, .. } => {
                ((session, number) == (by, place.number)).then_some(outcome)
            }
            Effect::Refused { refusal, .. } => panic!("scenes keep to the order: {refusal}"),
            _ => None,
        })
    }

    fn order(&mut self, command: Command) -> Vec<Effect> {
        let stamp = self.machine.now().after(1);
        self.apply(LogEntry::Batch(Batch { ballot: self.ballot, stamp, commands: vec![command] }))
    }

    /// Applies an entry, piece of work by piece, and notes how long each step takes.
    fn apply(&mut self, entry: LogEntry) -> Vec<Effect> {
        self.machine.handle_entry(entry).expect("the machine runs its own group");
        let (mut step, mut length) = (self.machine.step(), Duration::ZERO);
        loop {
            let begin = processor_time();
            let progress = self.machine.run(1);
            let piece = processor_time().saturating_sub(begin);
            if self.machine.step() != step {
                self.steps.push(length);
                (step, length) = (self.machine.step(), Duration::ZERO);
            }
            length += piece;
            match progress {
                Progress::More => {}
                Progress::Idle => break,
                Progress::Paused(code) => panic!("the code {code} is not there"),
            }
        }
        self.steps.push(length);
        let effects = std::iter::from_fn(|| self.machine.poll_effect());
        let effects: Vec<_> = effects.collect();
        for effect in &effects {
            if let Effect::HandlerFailed { object, text } = effect {
                panic!("a handler of {object} failed: {text}");
            }
        }
        effects
    }
}
