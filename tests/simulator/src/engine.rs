//! The engines of the simulated replicas: all classes native, or the standard ones as WebAssembly.
//!
//! Which of the two is drawn for a whole cluster. Compiling takes virtual time; the code itself is
//! compiled once for all runs of the process and loaded by every engine that is told of it.
//! Invariant: equal seeds have equal engines, and neither draws anything.

use std::{collections::BTreeMap, sync::OnceLock};

use gesmas_coroutine::{Artifact, BothEngines, NativeEngine, Settings, WasmEngine};
use gesmas_machine::{
    ActivationId, Answer, ClassInterface, CodeHash, Engine, EngineIdentity, Entry, ModuleError,
    ModuleLimits, Turn,
};
use gesmas_sdk::host::NativeClass;

/// The greatest memory of an instance, bytes: that of the machine's limits.
const MEMORY_BYTES: usize = 4 << 20;

/// See the file's head.
pub(crate) enum SimulatedEngine {
    /// Every class is native.
    Native(Box<NativeEngine>),
    /// Standard classes are WebAssembly, those of the simulator native.
    Mixed(Box<BothEngines>),
}

impl SimulatedEngine {
    /// All of them native.
    pub(crate) fn native(classes: impl IntoIterator<Item = NativeClass>) -> Self {
        Self::Native(Box::new(NativeEngine::new(classes)))
    }

    /// These native, the standard classes as WebAssembly, with so many live activations.
    pub(crate) fn mixed(classes: impl IntoIterator<Item = NativeClass>, live: usize) -> Self {
        // One runs, one may be parked while its successor is started, and a read may run.
        let slots = u32::try_from(live).unwrap_or(u32::MAX).saturating_add(8);
        let wasm = WasmEngine::new(Settings { slots, memory_bytes: MEMORY_BYTES });
        let wasm = wasm.expect("this host runs WebAssembly");
        Self::Mixed(Box::new(BothEngines { native: NativeEngine::new(classes), wasm }))
    }

    /// The time of compiling is over: code can be run from now on.
    pub(crate) fn install(&mut self, code: CodeHash) {
        if let Self::Mixed(engines) = self
            && let Some(artifact) = artifacts().get(&code)
        {
            let compiled = engines.wasm.compiler().load(artifact);
            engines.wasm.install(code, compiled.expect("it was compiled by this process"));
        }
    }

    fn engine(&self) -> &dyn Engine {
        match self {
            Self::Native(engine) => engine.as_ref(),
            Self::Mixed(engine) => engine.as_ref(),
        }
    }

    fn engine_mut(&mut self) -> &mut dyn Engine {
        match self {
            Self::Native(engine) => engine.as_mut(),
            Self::Mixed(engine) => engine.as_mut(),
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
        self.engine().inspect(class, module, rules, limits)
    }

    fn is_compiled(&self, code: CodeHash) -> bool {
        self.engine().is_compiled(code)
    }

    fn start(&mut self, id: ActivationId, entry: Entry<'_>, fuel: u64) -> Turn {
        self.engine_mut().start(id, entry, fuel)
    }

    fn resume(&mut self, id: ActivationId, answer: &Answer, fuel: u64) -> Turn {
        self.engine_mut().resume(id, answer, fuel)
    }

    fn discard(&mut self, id: ActivationId) {
        self.engine_mut().discard(id);
    }
}
