//! Golden files: logs that an older version wrote, with the modules of that time, and what came out.
//!
//! For each standard class there are three: the log, the image of the first moment at which the most
//! calls were suspended, and a text with the state's hash and the replies after each entry.
//! Invariants: the log has the module in it, so that no later change of a class changes the files;
//! whoever reads them claims to be the engine that wrote them, since a group runs one engine and here
//! a later one has to do what that one did.
//! Not here: requests, answers and journals byte by byte (`objects/abi`, `kernel/machine`).

use std::{fmt::Write as _, fs, io, path::Path};

use gesmas_coroutine::WasmEngine;
use gesmas_machine::{
    ActivationId, Answer, ClassInterface, CodeHash, Command, Effect, Engine, EngineIdentity, Entry,
    LogEntry, Machine, ModuleError, ModuleLimits, Progress, RequestBody, Settings, Turn,
};

use crate::{
    kind::{self, Modules},
    run,
    scripts::Standard,
};

/// Pieces of work between two looks at how far a machine came.
const SLICE: u32 = 100;

/// The files of one class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Golden {
    /// Entries, each after its length.
    log: Vec<u8>,
    /// The state after some of them.
    image: Vec<u8>,
    /// A line for each entry, after one that says after how many the image was taken.
    course: String,
}

impl Golden {
    /// Writes the log of a class with what this version does.
    ///
    /// # Panics
    /// When the class and its script do not fit together.
    #[must_use]
    pub fn record(standard: &Standard) -> Self {
        let run = run(&Modules::new(standard.name), &standard.scripts[0]);
        let mut log = Vec::new();
        for recorded in &run.entries {
            let entry = recorded.entry.encode();
            let length = u32::try_from(entry.len()).expect("entries are short");
            log.extend_from_slice(&length.to_le_bytes());
            log.extend_from_slice(&entry);
        }
        Self::of_log(log)
    }

    /// What this version makes of a log that an older one wrote: for when hashes or images have changed
    /// and what calls do has not.
    #[must_use]
    pub fn of_log(log: Vec<u8>) -> Self {
        let entries = entries(&log);
        let mut machine = Old::new(&log);
        let mut blocked = Vec::new();
        for entry in &entries {
            machine.apply(entry);
            blocked.push(machine.machine.statistics().blocked_now);
        }
        // The first of them, since calls that wait last may end without going on.
        let fullest = (0..entries.len()).rev().max_by_key(|at| blocked[*at]);
        let fullest = fullest.expect("it has entries");
        let mut machine = Old::new(&log);
        let mut course = format!("image after {}\n", fullest + 1);
        let mut image = Vec::new();
        for (at, entry) in entries.iter().enumerate() {
            course += &machine.apply(entry);
            if at == fullest {
                image = machine.machine.encode_image();
            }
        }
        Self { log, image, course }
    }

    /// Reads the log of a class.
    ///
    /// # Errors
    /// When it is missing.
    pub fn read_log(folder: &Path, class: &str) -> io::Result<Vec<u8>> {
        fs::read(folder.join(format!("{class}.log")))
    }

    /// Reads the files of a class.
    ///
    /// # Errors
    /// When one is missing.
    pub fn read(folder: &Path, class: &str) -> io::Result<Self> {
        let file = |kind: &str| folder.join(format!("{class}.{kind}"));
        Ok(Self {
            log: fs::read(file("log"))?,
            image: fs::read(file("image"))?,
            course: fs::read_to_string(file("txt"))?,
        })
    }

    /// Writes the files of a class.
    ///
    /// # Errors
    /// When one cannot be written.
    pub fn write(&self, folder: &Path, class: &str) -> io::Result<()> {
        let file = |kind: &str| folder.join(format!("{class}.{kind}"));
        fs::write(file("log"), &self.log)?;
        fs::write(file("image"), &self.image)?;
        fs::write(file("txt"), &self.course)
    }

    /// Demands that this version does what the files say, from the first entry and from the image.
    /// Returns how many bodies were rebuilt from journals of the image.
    ///
    /// # Panics
    /// When it does not.
    #[must_use]
    pub fn check(&self) -> u64 {
        let entries = entries(&self.log);
        let (head, course) = self.course.split_once('\n').expect("it has lines");
        let course: Vec<_> = course.lines().collect();
        assert_eq!(course.len(), entries.len(), "a line for each entry");
        let applied = head.strip_prefix("image after ").expect("the first line says so");
        let applied: usize = applied.parse().expect("it is a number");
        let mut machine = Old::new(&self.log);
        for (at, entry) in entries.iter().enumerate() {
            assert_eq!(machine.apply(entry).trim_end(), course[at], "entry {at}: {entry:?}");
            if at + 1 == applied {
                assert!(machine.machine.encode_image() == self.image, "the image is another");
            }
        }
        let mut machine = Old::restored(&self.log, &self.image);
        for (at, entry) in entries.iter().enumerate().skip(applied) {
            let line = machine.apply(entry);
            assert_eq!(line.trim_end(), course[at], "entry {at} after the image: {entry:?}");
        }
        machine.machine.statistics().rebuilt
    }
}

/// The entries of a log, which this version must write as they were written.
fn entries(mut log: &[u8]) -> Vec<LogEntry> {
    let mut entries = Vec::new();
    while let Some((length, rest)) = log.split_first_chunk() {
        let (entry, rest) = rest.split_at(u32::from_le_bytes(*length) as usize);
        let decoded = LogEntry::decode(entry).expect("it is an entry");
        assert_eq!(decoded.encode(), entry, "it is encoded otherwise now");
        entries.push(decoded);
        log = rest;
    }
    entries
}

/// A machine that goes on with what an older one began.
struct Old {
    machine: Machine<Claiming>,
    /// Modules that are in the log.
    modules: Vec<Vec<u8>>,
}

impl Old {
    fn engine(log: &[u8]) -> (Claiming, Vec<Vec<u8>>) {
        let entries = entries(log);
        let LogEntry::Genesis(genesis) = &entries[0] else { panic!("a log begins with a group") };
        let modules = entries.iter().flat_map(modules).cloned().collect();
        (Claiming { engine: kind::wasm(), identity: genesis.engine.clone() }, modules)
    }

    fn new(log: &[u8]) -> Self {
        let (engine, modules) = Self::engine(log);
        Self { machine: Machine::new(engine, Settings::default()), modules }
    }

    fn restored(log: &[u8], image: &[u8]) -> Self {
        let (engine, modules) = Self::engine(log);
        let machine = Machine::from_image(image, engine, Settings::default());
        Self { machine: machine.expect("this version reads the image"), modules }
    }

    /// Applies an entry; says what came of it.
    fn apply(&mut self, entry: &LogEntry) -> String {
        self.machine.handle_entry(entry.clone()).expect("it claims to be the group's engine");
        loop {
            match self.machine.run(SLICE) {
                Progress::More => {}
                Progress::Paused(code) => self.install(code),
                Progress::Idle => break,
            }
        }
        let mut line = format!("{}", self.machine.state_hash());
        while let Some(effect) = self.machine.poll_effect() {
            if let Effect::Reply { session, number, outcome, .. } = effect {
                let outcome = match outcome {
                    Ok(bytes) => bytes.iter().fold("ok ".to_owned(), |mut text, byte| {
                        write!(text, "{byte:02x}").expect("a text takes everything");
                        text
                    }),
                    // Which error it is, the state's hash tells.
                    Err(_) => "error".into(),
                };
                write!(line, ", {}/{number} {}", session.0, outcome.trim_end())
                    .expect("a text takes everything");
            }
        }
        line + "\n"
    }

    fn install(&mut self, code: CodeHash) {
        let of_code = |module: &&Vec<u8>| CodeHash::of(module) == code;
        let module = self.modules.iter().find(of_code).expect("the log has the module");
        let engine = &mut self.machine.engine_mut().engine;
        let artifact = engine.compiler().artifact(module).expect("it compiled then");
        let compiled = engine.compiler().load(&artifact).expect("this version made it");
        engine.install(code, compiled);
    }
}

/// Modules that an entry loads.
fn modules(entry: &LogEntry) -> Vec<&Vec<u8>> {
    let LogEntry::Batch(batch) = entry else { return Vec::new() };
    let loaded = batch.commands.iter().filter_map(|command| match command {
        Command::Request(request) => match &request.body {
            RequestBody::PutClass { module, .. } => Some(module),
            _ => None,
        },
        _ => None,
    });
    loaded.collect()
}

/// This version's engine under another's identity.
struct Claiming {
    engine: WasmEngine,
    identity: EngineIdentity,
}

impl Engine for Claiming {
    fn identity(&self) -> EngineIdentity {
        self.identity.clone()
    }

    fn inspect(
        &self,
        class: &str,
        module: &[u8],
        rules: u32,
        limits: &ModuleLimits,
    ) -> Result<ClassInterface, ModuleError> {
        self.engine.inspect(class, module, rules, limits)
    }

    fn is_compiled(&self, code: CodeHash) -> bool {
        self.engine.is_compiled(code)
    }

    fn start(&mut self, id: ActivationId, entry: Entry<'_>, fuel: u64) -> Turn {
        self.engine.start(id, entry, fuel)
    }

    fn resume(&mut self, id: ActivationId, answer: &Answer, fuel: u64) -> Turn {
        self.engine.resume(id, answer, fuel)
    }

    fn discard(&mut self, id: ActivationId) {
        self.engine.discard(id);
    }
}
