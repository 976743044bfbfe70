//! Machines that run one history and are compared after every entry of it.

use std::{collections::BTreeMap, fmt::Debug};

use gesmas_coroutine::WasmEngine;
use gesmas_machine::{
    Ballot, Batch, ClassName, CodeHash, Command, Effect, Engine, Genesis, Limits, LogEntry,
    Machine, Progress, Read, STATE_MACHINE_VERSION, Settings, Time,
};

use crate::code::{Twin, modules, wasm};

/// The ballot of the one leader.
pub(crate) const BALLOT: Ballot = Ballot { configuration: 0, number: 1, priority: 0, replica: 1 };

/// Bodies that can be suspended at once in a machine of a group.
const SLOTS: u32 = 600;

/// The machines, with the history that they have run.
pub(crate) struct Group {
    wasm: Vec<Machine<WasmEngine>>,
    native: Machine<Twin>,
    history: Vec<(LogEntry, String)>,
    image: Vec<u8>,
}

/// What every history begins with, but for the classes.
pub(crate) fn entries() -> impl Iterator<Item = LogEntry> {
    let genesis = Genesis {
        cluster: 7,
        state_machine_version: STATE_MACHINE_VERSION,
        seed: [5; 32],
        replicas: vec![1],
        engine: wasm(1).identity(),
        // Workloads count single nanoseconds.
        limits: Limits { least_delay: 1, ..Limits::default() },
        reserved: BTreeMap::new(),
    };
    let opened =
        Command::OpenSession { nonce: 0, principal: "operator".into(), timeout: 1_000_000 };
    [
        LogEntry::Genesis(Box::new(genesis)),
        LogEntry::LeaderStart { ballot: BALLOT, now: Time(1_000) },
        LogEntry::Batch(Batch { ballot: BALLOT, stamp: Time(1_001), commands: vec![opened] }),
    ]
    .into_iter()
}

/// Applies an entry and gives its effects.
pub(crate) fn apply<E: Engine>(machine: &mut Machine<E>, entry: &LogEntry) -> Vec<Effect> {
    machine.handle_entry(entry.clone()).expect("the engine is the group's");
    while match machine.run(1_000) {
        Progress::More => true,
        Progress::Idle => false,
        Progress::Paused(code) => panic!("code {code} is not compiled"),
    } {}
    std::iter::from_fn(|| machine.poll_effect()).collect()
}

/// What can be seen of a machine after an entry.
pub(crate) fn seen<E: Engine>(machine: &Machine<E>, effects: &[Effect]) -> String {
    format!("{effects:?}\n{:?}", machine.state_hash())
}

/// Applies an entry of a history and checks that it does what it did.
pub(crate) fn step<E: Engine>(machine: &mut Machine<E>, (entry, expected): &(LogEntry, String)) {
    let effects = apply(machine, entry);
    assert_same(&seen(machine, &effects), expected, "a machine made anew");
}

pub(crate) fn assert_same<T: PartialEq + Debug + ?Sized>(left: &T, right: &T, what: &str) {
    assert!(left == right, "{what} differs:\n{left:#?}\n{right:#?}");
}

impl Group {
    /// Machines with all classes.
    pub(crate) fn new() -> Self {
        let machine = |live_activations| Machine::new(wasm(SLOTS), Settings { live_activations });
        let mut group = Self {
            wasm: [1_000, 1, 0].map(machine).into(),
            native: Machine::new(Twin::new(1), Settings { live_activations: 2 }),
            history: Vec::new(),
            image: Vec::new(),
        };
        for entry in entries() {
            group.apply(entry);
        }
        group.load_classes();
        group
    }

    fn load_classes(&mut self) {
        let session = self.machine().sessions().next().expect("the operator has one").0;
        for (module, number) in modules().iter().zip(1..) {
            let class = ClassName::new(module.native.name).expect("a name");
            let put = gesmas_machine::RequestBody::PutClass {
                class,
                module: module.bytes.clone(),
                replace: None,
            };
            let place = gesmas_machine::Place { session, number, previous: number - 1 };
            let acknowledged = gesmas_machine::Acknowledged::default();
            let request =
                gesmas_machine::Request { place, acknowledged, time_left: None, body: put };
            let code = CodeHash::of(&module.bytes);
            let compiled = Command::Compiled { replica: 1, code, failure: None };
            let effects = self.batch(1, vec![Command::Request(request), compiled]);
            let replied = |effect: &Effect| matches!(effect, Effect::Reply { outcome: Ok(_), .. });
            assert!(effects.iter().any(replied), "{effects:?}");
        }
    }

    /// Orders commands that much later.
    pub(crate) fn batch(&mut self, later: u64, commands: Vec<Command>) -> Vec<Effect> {
        let stamp = self.machine().now().after(later);
        self.apply(LogEntry::Batch(Batch { ballot: BALLOT, stamp, commands }))
    }

    fn apply(&mut self, entry: LogEntry) -> Vec<Effect> {
        let effects = apply(&mut self.native, &entry);
        let expected = seen(&self.native, &effects);
        for machine in &mut self.wasm {
            let others = apply(machine, &entry);
            assert_same(&others, &effects, "what comes out of an entry");
            assert_same(&seen(machine, &others), &expected, "the state after an entry");
        }
        self.history.push((entry, expected));
        effects
    }

    /// Runs a read on all machines.
    pub(crate) fn read(&mut self, read: &Read) {
        let expected = self.native.read(read.clone());
        for machine in &mut self.wasm {
            assert_same(&machine.read(read.clone()), &expected, "a read");
        }
    }

    /// Compares the whole states and keeps one.
    pub(crate) fn compare_images(&mut self) {
        self.image = self.native.encode_image();
        for machine in &self.wasm {
            assert!(machine.encode_image() == self.image, "the images differ");
        }
    }

    /// A machine, to look at.
    pub(crate) fn machine(&self) -> &Machine<Twin> {
        &self.native
    }

    /// Entries, and what was seen after each.
    pub(crate) fn history(&self) -> &[(LogEntry, String)] {
        &self.history
    }

    /// The image of the last comparison.
    pub(crate) fn image(&self) -> &[u8] {
        &self.image
    }

    /// How often a module's body was rebuilt from its journal.
    pub(crate) fn rebuilt(&self) -> u64 {
        self.wasm.iter().map(|machine| machine.statistics().rebuilt).sum()
    }
}
