//! The run that nobody interrupts, and what is recorded of it.
//!
//! Invariant: the state is sound after every entry, and the machine's views and the engine agree on
//! who waits where.

use std::collections::BTreeSet;

use gesmas_machine::{
    ClassName, CodeHash, Effect, Engine, InvocationView, LogEntry, Machine, MethodKind, MethodName,
    Progress, Settings, Statistics, Sum,
};

use crate::{
    kind::Kind,
    scripts::Script,
    watched::{Life, Point, Watched, field},
    writer::{Log, Writer},
};

/// Pieces of work between two looks at how far a machine came.
const SLICE: u32 = 100;
/// No limit on a list.
pub(crate) const ALL: usize = usize::MAX;

/// A machine whose engine is watched.
pub(crate) type Kernel<K> = Machine<Watched<<K as Kind>::Engine>>;

/// What can be seen of an entry, from outside of the machine and from its engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// What came out.
    pub effects: Vec<Effect>,
    /// The bodies that ended in it, each from its start, in order.
    pub lives: Vec<Life>,
    /// What operators are shown of blocked calls, objects and sessions after it, which is more than
    /// results depend on.
    pub views: String,
    /// Hash of the whole state after it.
    pub hash: Sum,
    /// Sum of the records of all objects and sessions after it.
    pub total: Sum,
    /// What it made the machine do: the difference of its counts, without those that depend on which
    /// bodies are kept, and with the calls that are blocked now.
    pub work: Statistics,
}

/// One entry of a log.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The entry.
    pub entry: LogEntry,
    /// What came of it.
    pub seen: Seen,
    /// Where calls wait after it.
    pub points: BTreeSet<Point>,
}

/// A run from the first entry to the last.
#[derive(Clone, Debug)]
pub struct Run {
    /// The log.
    pub entries: Vec<Recorded>,
    /// The image of the state after it.
    pub image: Vec<u8>,
    /// Every point at which a call asked for a permit and would have waited for it.
    pub asked: BTreeSet<Point>,
    /// Methods that the script called.
    pub called: BTreeSet<String>,
    /// Methods of the class that are ordered, and so could wait.
    pub updates: BTreeSet<String>,
}

impl Run {
    /// Every point at which a call waited between two entries.
    #[must_use]
    pub fn points(&self) -> BTreeSet<Point> {
        self.entries.iter().flat_map(|recorded| recorded.points.iter().cloned()).collect()
    }
}

/// Runs a script and records it.
pub fn run<K: Kind>(kind: &K, script: &Script) -> Run {
    let machine = Machine::new(Watched::new(kind.engine()), Settings::default());
    let class = ClassName::new(script.class).expect("standard classes have good names");
    let mut log = Uninterrupted { kind, machine, class, entries: Vec::new() };
    let mut writer = Writer::begin(&mut log, (script.limits)());
    (script.write)(&mut writer);
    let called = writer.finish();
    let class = log.machine.class(&log.class).expect("the writer loaded it");
    let methods = class.interface.methods.iter();
    let updates = methods
        .filter(|(_, method)| method.kind == MethodKind::Update)
        .map(|(name, _)| name.as_str().into())
        .collect();
    let (image, asked) = (log.machine.encode_image(), log.machine.engine().asked().clone());
    Run { entries: log.entries, image, asked, called, updates }
}

/// Applies an entry and gives what can be seen of it.
pub(crate) fn apply<K: Kind>(kind: &K, machine: &mut Kernel<K>, entry: &LogEntry) -> Seen {
    let before = machine.statistics();
    machine.handle_entry(entry.clone()).expect("the engine is the group's");
    loop {
        match machine.run(SLICE) {
            Progress::More => {}
            Progress::Paused(code) => install(kind, machine, code),
            Progress::Idle => break,
        }
    }
    machine.check_state().expect("the state is sound after every entry");
    Seen {
        effects: std::iter::from_fn(|| machine.poll_effect()).collect(),
        lives: machine.engine_mut().take_ended(),
        views: views(machine),
        hash: machine.state_hash(),
        total: machine.total(),
        work: difference(before, machine.statistics()),
    }
}

fn views<E>(machine: &Machine<E>) -> String {
    let objects = machine.objects(None, None, ALL);
    let objects: Vec<_> = objects.iter().map(|object| machine.object(&object.name, ALL)).collect();
    let (calls, sessions) = (machine.invocations(ALL), machine.session_views(ALL));
    format!("{calls:#?}\n{objects:#?}\n{sessions:#?}")
}

/// What a replica does when its machine pauses: it gets the compiled code.
pub(crate) fn install<K: Kind>(kind: &K, machine: &mut Kernel<K>, code: CodeHash) {
    assert_eq!(code, CodeHash::of(kind.module()), "there is one class");
    kind.install(machine.engine_mut().inner_mut());
    assert!(machine.engine().is_compiled(code), "it would pause for ever");
}

fn difference(before: Statistics, after: Statistics) -> Statistics {
    Statistics {
        batches: after.batches - before.batches,
        void_batches: after.void_batches - before.void_batches,
        steps: after.steps - before.steps,
        invocations: after.invocations - before.invocations,
        blocked_invocations: after.blocked_invocations - before.blocked_invocations,
        resumptions: after.resumptions - before.resumptions,
        cancellations: after.cancellations - before.cancellations,
        wakeups_in_vain: after.wakeups_in_vain - before.wakeups_in_vain,
        undone_segments: after.undone_segments - before.undone_segments,
        refusals: after.refusals - before.refusals,
        duplicates: after.duplicates - before.duplicates,
        reads: after.reads - before.reads,
        blocked_now: after.blocked_now,
        rebuilt: 0,
        parked: 0,
        live_activations: 0,
    }
}

/// The machine that a script drives.
struct Uninterrupted<'a, K: Kind> {
    kind: &'a K,
    machine: Kernel<K>,
    class: ClassName,
    entries: Vec<Recorded>,
}

impl<K: Kind> Log for Uninterrupted<'_, K> {
    fn class(&self) -> (ClassName, &[u8]) {
        (self.class.clone(), self.kind.module())
    }

    fn engine(&self) -> gesmas_machine::EngineIdentity {
        self.machine.engine().identity()
    }

    fn signature(&self, method: &str) -> u64 {
        let class = self.machine.class(&self.class).expect("the writer loads it first");
        let method = MethodName::new(method).expect("scripts use names");
        class.interface.methods[&method].signature
    }

    fn append(&mut self, entry: LogEntry) -> Vec<Effect> {
        let seen = apply(self.kind, &mut self.machine, &entry);
        let points = self.machine.engine().points();
        let by_engine: BTreeSet<_> =
            points.iter().map(|point| (point.method.clone(), point.semaphore.clone())).collect();
        let by_views: BTreeSet<_> = self.blocked().iter().map(place).collect();
        assert_eq!(by_engine, by_views, "engine and views tell the same places");
        let effects = seen.effects.clone();
        self.entries.push(Recorded { entry, seen, points });
        effects
    }

    fn blocked(&self) -> Vec<InvocationView> {
        self.machine.invocations(ALL)
    }
}

fn place(view: &InvocationView) -> (String, String) {
    (view.method.as_str().into(), field(&view.semaphore))
}
