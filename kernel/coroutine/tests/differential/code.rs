//! The classes of the test, and the engines that run them.
//!
//! Invariant: a [`Twin`] runs native classes under the names of their modules, and says that it is
//! the engine of modules, so that its machine's state can be compared with another's byte by byte.

use std::{collections::BTreeMap, path::Path, sync::OnceLock};

use gesmas_coroutine::{Artifact, NativeEngine, Settings, WasmEngine, native_module};
use gesmas_machine::{
    ActivationId, Answer, ClassInterface, CodeHash, Engine, EngineIdentity, Entry, ModuleError,
    ModuleLimits, Turn,
};
use gesmas_sdk::host::NativeClass;

/// A class as a module, compiled, and as native code.
pub(crate) struct Module {
    pub(crate) bytes: Vec<u8>,
    artifact: Artifact,
    pub(crate) native: NativeClass,
}

/// All classes of the test, compiled once.
pub(crate) fn modules() -> &'static [Module] {
    static MODULES: OnceLock<Vec<Module>> = OnceLock::new();
    MODULES.get_or_init(|| {
        let compiler = new(1).compiler();
        let standard = gesmas_classes::native().into_iter();
        let natives = standard.chain([gesmas_specimen::Specimen::native()]);
        let module = |native: NativeClass| {
            let bytes = match gesmas_classes::find(native.name) {
                Some(standard) => standard.module.to_vec(),
                None => specimen(),
            };
            let artifact = compiler.artifact(&bytes).expect("the classes of the test compile");
            Module { bytes, artifact, native }
        };
        natives.map(module).collect()
    })
}

/// The class of the test's own, compiled as a class author would.
fn specimen() -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differential/specimen");
    gesmas_build::compile(folder).unwrap_or_else(|error| panic!("{error}"))
}

fn new(slots: u32) -> WasmEngine {
    let settings = Settings { slots, memory_bytes: 4 << 20 };
    WasmEngine::new(settings).expect("the host can run it")
}

/// An engine of modules, with all classes.
pub(crate) fn wasm(slots: u32) -> WasmEngine {
    let mut engine = new(slots);
    for module in modules() {
        let compiled = engine.compiler().load(&module.artifact).expect("this version made it");
        engine.install(CodeHash::of(&module.bytes), compiled);
    }
    engine
}

/// Runs native classes in the place of modules.
pub(crate) struct Twin {
    wasm: WasmEngine,
    native: NativeEngine,
    native_code: BTreeMap<CodeHash, CodeHash>,
}

impl Twin {
    pub(crate) fn new(slots: u32) -> Self {
        let code = |module: &Module| {
            (CodeHash::of(&module.bytes), CodeHash::of(&native_module(&module.native)))
        };
        Self {
            wasm: new(slots),
            native: NativeEngine::new(modules().iter().map(|module| module.native)),
            native_code: modules().iter().map(code).collect(),
        }
    }
}

impl Engine for Twin {
    fn identity(&self) -> EngineIdentity {
        self.wasm.identity()
    }

    fn inspect(
        &self,
        class: &str,
        module: &[u8],
        rules: u32,
        limits: &ModuleLimits,
    ) -> Result<ClassInterface, ModuleError> {
        self.wasm.inspect(class, module, rules, limits)
    }

    fn is_compiled(&self, code: CodeHash) -> bool {
        self.native_code.contains_key(&code)
    }

    fn start(&mut self, id: ActivationId, entry: Entry<'_>, fuel: u64) -> Turn {
        let code = self.native_code[&entry.code];
        self.native.start(id, Entry { code, ..entry }, fuel)
    }

    fn resume(&mut self, id: ActivationId, answer: &Answer, fuel: u64) -> Turn {
        self.native.resume(id, answer, fuel)
    }

    fn discard(&mut self, id: ActivationId) {
        self.native.discard(id);
    }
}
