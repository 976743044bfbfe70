//! A laboratory: scenarios as lines of text, run on several machines at once.
//!
//! ```text
//! open ann                                ann is a session
//! ann calls Queue/jobs consume            a request, in a batch of its own
//! +50 tick                                an empty batch, 50 nanoseconds later
//! try Door@3                              a replacement, on a copy
//! ann cancels 1; bob calls Lock/l take    two commands in one batch
//! ```
//! Every batch goes to four machines: one that keeps all bodies and runs in the smallest slices,
//! one that keeps one, one that keeps none, and one that is made anew from its image before every
//! batch. After every batch all have put out
//! the same effects, have the same hash, and are sound.
//! Not here: what is expected. The trace of a scenario says what happened.

use std::{collections::BTreeMap, fmt::Write as _};

use gesmas_machine::{
    Acknowledged, AlarmId, Ballot, Batch, CallError, ClassName, CodeHash, Command, Effect,
    Engine as _, Genesis, InvocationId, Limits, LogEntry, Machine, MethodName, ObjectName,
    OnBehalf, Outcome, Override, Place, Progress, Read, Replace, Request, RequestBody,
    STATE_MACHINE_VERSION, SessionEnd, SessionId, Settings, Time, scripted::ScriptedEngine,
};

pub(crate) type Scripted = Machine<ScriptedEngine>;

/// A machine and how it is treated.
struct Replica {
    machine: Scripted,
    slice: u32,
    reborn: bool,
}

/// The laboratory.
pub(crate) struct Lab {
    replicas: Vec<Replica>,
    classes: BTreeMap<String, String>,
    sessions: BTreeMap<String, SessionId>,
    sent: BTreeMap<(String, u64), Request>,
    numbers: BTreeMap<String, u64>,
    pub(crate) ballot: Ballot,
    overrides: Vec<Override>,
    trace: String,
}

impl Lab {
    /// Machines on which these classes are ready.
    pub(crate) fn new(classes: &[&str]) -> Self {
        Self::with_limits(classes, |_| {})
    }

    pub(crate) fn with_limits(classes: &[&str], change: impl FnOnce(&mut Limits)) -> Self {
        // Its clocks count single nanoseconds.
        let mut limits = Limits { least_delay: 1, ..Limits::default() };
        change(&mut limits);
        let mut lab = Self::empty(classes, genesis(limits));
        lab.play("open root");
        let first = lab.classes.keys().filter(|name| !name.contains('@'));
        for class in first.cloned().collect::<Vec<_>>() {
            lab.play(&format!("root puts {class}"));
            lab.play(&format!("replica 1 compiled {class}; replica 2 compiled {class}"));
        }
        lab.trace.clear();
        lab
    }

    /// Machines that have seen the first entry and a leader.
    pub(crate) fn empty(classes: &[&str], genesis: Genesis) -> Self {
        let name = |text: &str| {
            let words: Vec<_> = text.lines().find(|line| !line.is_empty()).into_iter().collect();
            let words: Vec<_> = words.iter().flat_map(|line| line.split_whitespace()).collect();
            match words.as_slice() {
                [_, class, "version", number, ..] => format!("{class}@{number}"),
                [_, class, ..] => (*class).to_owned(),
                _ => panic!("a class is named"),
            }
        };
        let classes: BTreeMap<_, _> =
            classes.iter().map(|text| (name(text), text.trim().to_owned())).collect();
        let replica = |live_activations, slice, reborn| Replica {
            machine: Machine::new(engine(&classes), Settings { live_activations }),
            slice,
            reborn,
        };
        let replicas = vec![
            replica(1_000, 1, false),
            replica(1, 1_000, false),
            replica(0, 1_000, false),
            replica(1_000, 1_000, true),
        ];
        let ballot = Ballot { number: 1, replica: 1, ..Ballot::default() };
        let mut lab = Self {
            replicas,
            classes,
            sessions: BTreeMap::new(),
            sent: BTreeMap::new(),
            numbers: BTreeMap::new(),
            ballot,
            overrides: Vec::new(),
            trace: String::new(),
        };
        lab.apply(&LogEntry::Genesis(Box::new(genesis)));
        lab.apply(&LogEntry::LeaderStart { ballot, now: Time(1_000) });
        lab.trace.clear();
        lab
    }

    /// Runs lines and returns their trace.
    pub(crate) fn play(&mut self, script: &str) -> String {
        let start = self.trace.len();
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            writeln!(self.trace, "> {line}").expect("a string takes text");
            self.line(line);
        }
        self.trace[start..].to_owned()
    }

    /// What happened since it was last asked.
    pub(crate) fn take_trace(&mut self) -> String {
        std::mem::take(&mut self.trace)
    }

    fn line(&mut self, line: &str) {
        if let Some(read) = line.strip_prefix("read ") {
            return self.read(read);
        }
        if let Some(version) = line.strip_prefix("try ") {
            return self.try_replacement(version);
        }
        let (advance, line) = match line.strip_prefix('+').and_then(|rest| rest.split_once(' ')) {
            Some((time, rest)) => (time.parse().expect("a time"), rest),
            None => (1, line),
        };
        let commands = line.split(';').map(str::trim).filter(|command| *command != "tick");
        let commands: Vec<_> = commands.filter_map(|command| self.command(command)).collect();
        let stamp = self.machine().now().after(advance);
        self.batch(stamp, commands);
    }

    /// Another leader begins.
    pub(crate) fn lead(&mut self, now: Time) {
        self.ballot.number += 1;
        self.apply(&LogEntry::LeaderStart { ballot: self.ballot, now });
    }

    /// Orders a batch by the current leader.
    pub(crate) fn batch(&mut self, stamp: Time, commands: Vec<Command>) -> Vec<Effect> {
        self.apply(&LogEntry::Batch(Batch { ballot: self.ballot, stamp, commands }))
    }

    /// Applies an entry to all machines; returns its effects and notes them in the trace.
    pub(crate) fn apply(&mut self, entry: &LogEntry) -> Vec<Effect> {
        let entry = LogEntry::decode(&entry.encode()).expect("an entry has one encoding");
        let mut all = Vec::new();
        for replica in &mut self.replicas {
            if replica.reborn {
                let image = replica.machine.encode_image();
                replica.machine = restore(&self.classes, &image);
                replica.machine.set_overrides(self.overrides.clone());
                assert_eq!(image, replica.machine.encode_image(), "an image has one encoding");
            }
            replica.machine.handle_entry(entry.clone()).expect("the engine is the group's");
            while replica.machine.run(replica.slice) != Progress::Idle {}
            assert!(replica.machine.is_idle(), "there is no more to do");
            all.push(std::iter::from_fn(|| replica.machine.poll_effect()).collect::<Vec<_>>());
            replica.machine.check_state().expect("the state is sound");
        }
        let hashes: Vec<_> =
            self.replicas.iter().map(|replica| replica.machine.state_hash()).collect();
        let effects = all.swap_remove(0);
        assert!(all.iter().all(|other| *other == effects), "all machines do the same: {all:#?}");
        assert!(hashes.iter().all(|hash| *hash == hashes[0]), "all machines have the same hash");
        for effect in &effects {
            self.note(effect);
        }
        effects
    }

    /// Gives all machines their overrides.
    pub(crate) fn set_overrides(&mut self, overrides: Vec<Override>) {
        for replica in &mut self.replicas {
            replica.machine.set_overrides(overrides.clone());
        }
        self.overrides = overrides;
    }

    /// The machine that keeps all bodies.
    pub(crate) fn machine(&self) -> &Scripted {
        &self.replicas[0].machine
    }

    /// The machine that keeps no bodies.
    pub(crate) fn parking_machine(&self) -> &Scripted {
        &self.replicas[2].machine
    }

    pub(crate) fn session(&self, name: &str) -> SessionId {
        self.sessions[name]
    }

    /// A machine of its own, made from the image of the first.
    pub(crate) fn copy(&self) -> Scripted {
        restore(&self.classes, &self.machine().encode_image())
    }

    fn read(&mut self, read: &str) {
        let words: Vec<_> = read.split(' ').collect();
        let after = self.numbers.get(words[0]).map(|number| (self.sessions[words[0]], *number));
        let object = object(words[1]);
        let read = Read {
            after,
            principal: words[0].into(),
            signature: self.signature(&object, words[2]),
            object,
            method: MethodName::new(words[2]).expect("a method"),
            arguments: words[3..].join(" ").into_bytes(),
        };
        let mut answers = Vec::new();
        for replica in &mut self.replicas {
            let before = (replica.machine.encode_image(), replica.machine.state_hash());
            answers.push(replica.machine.read(read.clone()));
            let after = (replica.machine.encode_image(), replica.machine.state_hash());
            assert!(before == after, "a read leaves no trace");
            assert!(replica.machine.poll_effect().is_none(), "a read has no effect");
        }
        assert!(answers.iter().all(|answer| *answer == answers[0]), "reads are equal everywhere");
        let text = match &answers[0] {
            Ok(outcome) => outcome_text(outcome),
            Err(refusal) => format!("refused: {refusal}"),
        };
        writeln!(self.trace, "  {text}").expect("a string takes text");
    }

    /// Tries to replace a class on all machines: `Door@3 cancelling within 1000` for what a replacement
    /// with `cancelling` would do, for so much fuel. Says what a trial reports.
    fn try_replacement(&mut self, line: &str) {
        let words: Vec<_> = line.split(' ').collect();
        let module = self.classes[words[0]].as_bytes();
        let class = words[0].split('@').next().expect("a text has a first part");
        let name = ClassName::new(class).expect("a class");
        let replace = Replace { cancel_pinned: words.contains(&"cancelling") };
        let fuel = words.iter().position(|word| *word == "within");
        let fuel = fuel.map_or(1 << 40, |at| words[at + 1].parse().expect("fuel"));
        let mut reports = Vec::new();
        for replica in &mut self.replicas {
            let machine = &mut replica.machine;
            let rules = STATE_MACHINE_VERSION;
            let interface =
                machine.engine().inspect(class, module, rules, &machine.limits().module);
            let interface = interface.expect("the classes of a test are scripts");
            let seen = |machine: &Scripted| {
                (machine.encode_image(), machine.state_hash(), machine.statistics())
            };
            let before = seen(machine);
            let live = machine.engine().activations();
            let code = CodeHash::of(module);
            let begun = machine.begin_trial(&name, code, &interface, replace, fuel);
            let report = begun.and_then(|mut trial| {
                loop {
                    // Other machines work in other slices.
                    let slice = u64::from(replica.slice);
                    if let Some(report) = machine.go_on_with_trial(&mut trial, slice) {
                        break report;
                    }
                    assert!(machine.is_idle(), "between two slices all is as it was");
                }
            });
            assert!(before == seen(machine), "a trial leaves no trace");
            assert_eq!(machine.engine().activations(), live, "and no body");
            assert!(machine.poll_effect().is_none(), "and has no effect");
            machine.check_state().expect("the state is sound");
            reports.push(match report {
                Err(error) => format!("would be refused: {error}"),
                Ok(report) => {
                    let failures: Vec<_> = report.failures.iter().collect();
                    let more = if report.more { ", and there are more" } else { "" };
                    format!("tried: {} migrated, failed: {failures:?}{more}", report.migrated)
                }
            });
        }
        if fuel == 1 << 40 {
            assert!(reports.iter().all(|report| *report == reports[0]), "{reports:#?}");
        }
        writeln!(self.trace, "  {}", reports[0]).expect("a string takes text");
    }

    /// What a line orders; none for what was lost on its way.
    fn command(&mut self, command: &str) -> Option<Command> {
        let words: Vec<_> = command.split(' ').collect();
        Some(match words.as_slice() {
            ["open", name, rest @ ..] => Command::OpenSession {
                nonce: nonce(name),
                principal: (*rest.first().unwrap_or(name)).into(),
                timeout: 1_000,
            },
            ["close", name] => Command::CloseSession { session: self.sessions[*name] },
            ["expire", name] => Command::ExpireSession { session: self.sessions[*name] },
            ["replica", replica, "compiled", class] => self.compiled(replica, class, None),
            ["migrate", target] => Command::Migrate { object: object(target) },
            ["replica", replica, "failed", class, why @ ..] => {
                self.compiled(replica, class, Some(why.join(" ")))
            }
            [name, "cancels", number] => {
                let number = number.parse().expect("a number");
                Command::Cancel {
                    place: Place { session: self.sessions[*name], number, previous: number - 1 },
                    acknowledged: Acknowledged::default(),
                }
            }
            [name, "acks", ranges @ ..] => Command::Acknowledge {
                session: self.sessions[*name],
                acknowledged: acknowledged(ranges),
            },
            [name, "repeats", number] => {
                let number = number.parse().expect("a number");
                Command::Request(self.sent[&((*name).to_owned(), number)].clone())
            }
            [name, "loses", rest @ ..] => {
                self.request(name, None, rest);
                return None;
            }
            [name, "within", time, rest @ ..] => {
                Command::Request(self.request(name, time.parse().ok(), rest))
            }
            [name, rest @ ..] => Command::Request(self.request(name, None, rest)),
            [] => panic!("an empty command"),
        })
    }

    fn compiled(&self, replica: &str, class: &str, failure: Option<String>) -> Command {
        let code = CodeHash::of(self.classes[class].as_bytes());
        Command::Compiled { replica: replica.parse().expect("a replica"), code, failure }
    }

    fn request(&mut self, name: &str, time_left: Option<u64>, words: &[&str]) -> Request {
        let body = match words {
            ["calls", ..] => self.call(OnBehalf::Requester, &words[1..]),
            ["calls-for", "nobody", ..] => self.call(OnBehalf::Nobody, &words[2..]),
            ["calls-for", other, ..] => {
                self.call(OnBehalf::Session(self.sessions[*other]), &words[2..])
            }
            ["creates", target, arguments @ ..] => {
                let object = object(target);
                let signature = self.signature(&object, "create");
                let arguments = arguments.join(" ").into_bytes();
                RequestBody::CreateObject { object, signature, arguments }
            }
            ["removes", target] => RequestBody::RemoveObject { object: object(target) },
            ["puts", class, change @ ..] => {
                let mut module = self.classes[*class].clone();
                if !change.is_empty() {
                    write!(module, "\n {}", change.join(" ")).expect("a string takes text");
                }
                let class = ClassName::new(class).expect("a class");
                RequestBody::PutClass { class, module: module.into_bytes(), replace: None }
            }
            ["replaces", version, how @ ..] => {
                let module = self.classes[*version].clone().into_bytes();
                let class = version.split('@').next().expect("a text has a first part");
                let class = ClassName::new(class).expect("a class");
                let cancel_pinned = how.contains(&"cancelling");
                RequestBody::PutClass { class, module, replace: Some(Replace { cancel_pinned }) }
            }
            ["limits", name, value] => RequestBody::SetLimit {
                name: (*name).into(),
                value: value.parse().expect("a number"),
            },
            ["removes-class", class] => {
                RequestBody::RemoveClass { class: ClassName::new(class).expect("a class") }
            }
            ["kills-session", name] => RequestBody::KillSession { session: self.sessions[*name] },
            [how @ ("retries" | "drops"), fault, "of", target] => RequestBody::EndFault {
                object: object(target),
                fault: AlarmId(fault.parse().expect("an id")),
                retry: *how == "retries",
            },
            ["kills", id] => {
                RequestBody::Kill { invocation: InvocationId(id.parse().expect("an id")) }
            }
            other => panic!("{other:?} is no request"),
        };
        let number = self.numbers.entry(name.to_owned()).or_default();
        *number += 1;
        let place = Place { session: self.sessions[name], number: *number, previous: *number - 1 };
        let request = Request { place, acknowledged: Acknowledged::default(), time_left, body };
        self.sent.insert((name.to_owned(), *number), request.clone());
        request
    }

    fn call(&self, on_behalf: OnBehalf, words: &[&str]) -> RequestBody {
        let [target, method, arguments @ ..] = words else { panic!("a call names a method") };
        let object = object(target);
        let signature = self.signature(&object, method);
        let method = MethodName::new(method).expect("a method");
        let arguments = arguments.join(" ").into_bytes();
        RequestBody::Call { object, method, signature, arguments, on_behalf }
    }

    fn signature(&self, object: &ObjectName, method: &str) -> u64 {
        let class = self.machine().class(&object.class);
        let method = MethodName::new(method).expect("a method");
        class
            .and_then(|class| class.interface.methods.get(&method).map(|it| it.signature))
            .unwrap_or(0)
    }

    fn name(&self, session: SessionId) -> String {
        let found = self.sessions.iter().find(|(_, id)| **id == session);
        found.map_or_else(|| format!("session {session}"), |(name, _)| name.clone())
    }

    fn note(&mut self, effect: &Effect) {
        let text = match effect {
            Effect::SessionOpened { nonce: opened, session: Ok(session) } => {
                let name = String::from_utf8(opened.to_le_bytes().to_vec()).expect("a name");
                let name = name.trim_end_matches('\0').to_owned();
                let text = format!("{name} is session {session}");
                self.sessions.insert(name, *session);
                text
            }
            Effect::SessionOpened { session: Err(refusal), .. } => format!("refused: {refusal}"),
            Effect::SessionOver { session, reason } => {
                let how = match reason {
                    SessionEnd::Closed => "closed",
                    SessionEnd::Expired => "expired",
                    SessionEnd::Killed => "killed",
                };
                format!("{} is {how}", self.name(*session))
            }
            Effect::Reply { session, number, outcome, .. } => {
                format!("{}#{number} {}", self.name(*session), outcome_text(outcome))
            }
            Effect::Refused { session, number, refusal } => {
                format!("{}#{number} refused: {refusal}", self.name(*session))
            }
            Effect::Event { session, number, payload, .. } => {
                format!("{} event {number}: {}", self.name(*session), show(payload))
            }
            Effect::Compile { class, .. } => format!("compile {class}"),
            Effect::BatchVoid => "void".into(),
            Effect::Checkpoint { step, .. } => format!("checkpoint after step {step}"),
            Effect::Agreed { step, .. } => format!("agreed on step {step}"),
            Effect::VotedOtherwise { step, replica } => {
                format!("replica {replica} voted otherwise on step {step}")
            }
            Effect::NoAgreement { step } => format!("no agreement on step {step}"),
            Effect::Log { object, text, .. } => format!("log of {object}: {text}"),
            Effect::HandlerFailed { object, text } => format!("fault of {object}: {text}"),
        };
        writeln!(self.trace, "  {text}").expect("a string takes text");
    }
}

/// What the group of the laboratory is.
pub(crate) fn genesis(limits: Limits) -> Genesis {
    Genesis {
        cluster: 7,
        state_machine_version: STATE_MACHINE_VERSION,
        seed: [3; 32],
        replicas: vec![1, 2, 3],
        engine: ScriptedEngine::own_identity(),
        limits,
        reserved: BTreeMap::new(),
    }
}

fn engine(classes: &BTreeMap<String, String>) -> ScriptedEngine {
    let mut engine = ScriptedEngine::new();
    for text in classes.values() {
        engine.compile(text.as_bytes()).expect("the classes of a test are scripts");
    }
    engine
}

fn restore(classes: &BTreeMap<String, String>, image: &[u8]) -> Scripted {
    Machine::from_image(image, engine(classes), Settings::default()).expect("an image is sound")
}

fn acknowledged(words: &[&str]) -> Acknowledged {
    let mut acknowledged = Acknowledged::default();
    for word in words {
        if let Some(events) = word.strip_prefix("events=") {
            acknowledged.events = events.parse().expect("a number");
        } else {
            let (from, to) = word.split_once('-').unwrap_or((word, word));
            let range = (from.parse().expect("a number"), to.parse().expect("a number"));
            acknowledged.replies.push(range);
        }
    }
    acknowledged
}

fn nonce(name: &str) -> u128 {
    let mut bytes = [0; 16];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    u128::from_le_bytes(bytes)
}

fn object(text: &str) -> ObjectName {
    let (class, name) = text.split_once('/').expect("an object is Class/name");
    ObjectName::new(class, name).expect("a name of a test is a name")
}

/// An outcome as a word and its text.
pub(crate) fn outcome_text(outcome: &Outcome) -> String {
    match outcome {
        Ok(result) => format!("ok {}", show(result)).trim_end().to_owned(),
        Err(CallError::Failed(error)) => format!("failed: {}", show(error)),
        Err(CallError::Aborted(error)) => format!("aborted: {}", show(error)),
        Err(CallError::InitRefused(error)) => format!("init refused: {}", show(error)),
        Err(error) => format!("error: {error}"),
    }
}

fn show(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.replace('\0', "\\0"),
        Err(_) => format!("{} bytes", bytes.len()),
    }
}
