//! The engines of the simulated replicas: all classes native, or the standard ones as WebAssembly,
//! and scripts beside them.
//!
//! Which of the two is drawn for a whole cluster. Compiling takes virtual time; the code itself is
//! compiled once for all runs of the process and loaded by every engine that is told of it.
//! Invariant: equal seeds have equal engines, and neither draws anything.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::OnceLock,
};

use gesmas_coroutine::{Artifact, BothEngines, NativeEngine, Settings, WasmEngine};
use gesmas_machine::{
    ActivationId, Answer, ClassInterface, CodeHash, Engine, EngineIdentity, Entry, ModuleError,
    ModuleLimits, Turn, scripted::ScriptedEngine,
};
use gesmas_sdk::host::NativeClass;

use crate::vessel;

/// How every script begins.
const SCRIPT: &[u8] = b"class ";

/// The greatest memory of an instance, bytes: that of the machine's limits.
const MEMORY_BYTES: usize = 4 << 20;

/// See the file's head.
pub(crate) struct SimulatedEngine {
    classes: Classes,
    scripted: ScriptedEngine,
    /// Activations of scripts.
    of_scripts: BTreeSet<ActivationId>,
}

/// The engine of classes that are no scripts.
enum Classes {
    /// Every class is native.
    Native(Box<NativeEngine>),
    /// Standard classes are WebAssembly, those of the simulator native.
    Mixed(Box<BothEngines>),
}

impl SimulatedEngine {
    fn with(classes: Classes) -> Self {
        Self { classes, scripted: ScriptedEngine::new(), of_scripts: BTreeSet::new() }
    }

    /// All of them native.
    pub(crate) fn native(classes: impl IntoIterator<Item = NativeClass>) -> Self {
        Self::with(Classes::Native(Box::new(NativeEngine::new(classes))))
    }

    /// These native, the standard classes as WebAssembly, with so many live activations.
    pub(crate) fn mixed(classes: impl IntoIterator<Item = NativeClass>, live: usize) -> Self {
        // One runs, one may be parked while its successor is started, and a read may run.
        let slots = u32::try_from(live).unwrap_or(u32::MAX).saturating_add(8);
        let wasm = WasmEngine::new(Settings { slots, memory_bytes: MEMORY_BYTES });
        let wasm = wasm.expect("this host runs WebAssembly");
        let both = BothEngines { native: NativeEngine::new(classes), wasm };
        Self::with(Classes::Mixed(Box::new(both)))
    }

    /// The time of compiling is over: code can be run from now on.
    pub(crate) fn install(&mut self, code: CodeHash) {
        let scripts = [vessel::FIRST, vessel::SECOND].into_iter();
        for script in scripts.filter(|script| CodeHash::of(script.as_bytes()) == code) {
            self.scripted.compile(script.as_bytes()).expect("it is a script");
        }
        if let Classes::Mixed(engines) = &mut self.classes
            && let Some(artifact) = artifacts().get(&code)
        {
            let compiled = engines.wasm.compiler().load(artifact);
            engines.wasm.install(code, compiled.expect("it was compiled by this process"));
        }
    }

    /// A script that made a host call is suspended.
    fn note(&mut self, id: ActivationId, turn: Turn) -> Turn {
        if matches!(turn, Turn::Call(..)) {
            self.of_scripts.insert(id);
        }
        turn
    }

    fn engine(&self) -> &dyn Engine {
        match &self.classes {
            Classes::Native(engine) => engine.as_ref(),
            Classes::Mixed(engine) => engine.as_ref(),
        }
    }

    fn engine_mut(&mut self) -> &mut dyn Engine {
        match &mut self.classes {
            Classes::Native(engine) => engine.as_mut(),
            Classes::Mixed(engine) => engine.as_mut(),
        }
    }
}

/// The standard classes, compiled.
fn artifacts() -> &'static BTreeMap<CodeHash, Artifact> {
    static ARTIFACTS: OnceLock<BTreeMap<CodeHash, Artifact>> = OnceLock::new();
    ARTIFACTS.get_or_init(|| {
        let engine = WasmEngine::new(Settings { slots: 1, memory_bytes: MEMORY_BYTES });
        let compiler = engine.expect("this host runs WebAssembly").compiler();
        let compile = |standard: gesmas_classes::Standard| {
            let artifact = compiler.artifact(standard.module);
            (CodeHash::of(standard.module), artifact.expect("a standard class compiles"))
        };
        gesmas_classes::ALL.into_iter().map(compile).collect()
    })
}

impl Engine for SimulatedEngine {
    fn identity(&self) -> EngineIdentity {
        self.engine().identity()
    }

    fn inspect(
        &self,
        class: &str,
        module: &[u8],
        rules: u32,
        limits: &ModuleLimits,
    ) -> Result<ClassInterface, ModuleError> {
        if module.starts_with(SCRIPT) {
            return self.scripted.inspect(class, module, rules, limits);
        }
        self.engine().inspect(class, module, rules, limits)
    }

    fn is_compiled(&self, code: CodeHash) -> bool {
        self.scripted.is_compiled(code) || self.engine().is_compiled(code)
    }

    fn start(&mut self, id: ActivationId, entry: Entry<'_>, fuel: u64) -> Turn {
        if self.scripted.is_compiled(entry.code) {
            let turn = self.scripted.start(id, entry, fuel);
            return self.note(id, turn);
        }
        self.engine_mut().start(id, entry, fuel)
    }

    fn resume(&mut self, id: ActivationId, answer: &Answer, fuel: u64) -> Turn {
        if self.of_scripts.remove(&id) {
            let turn = self.scripted.resume(id, answer, fuel);
            return self.note(id, turn);
        }
        self.engine_mut().resume(id, answer, fuel)
    }

    fn discard(&mut self, id: ActivationId) {
        if self.of_scripts.remove(&id) {
            return self.scripted.discard(id);
        }
        self.engine_mut().discard(id);
    }
}
