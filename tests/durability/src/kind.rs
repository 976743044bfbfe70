//! The two kinds of engines, each as a process has it that has just started.
//!
//! Invariant: an engine of [`Kind::engine`] shares nothing with any other but compiled code, so that
//! no stack and no memory of a body outlives the machine that ran it.

use gesmas_coroutine::{Artifact, NativeEngine, Settings, WasmEngine, native_module};
use gesmas_machine::{CodeHash, Engine};
use gesmas_sdk::host::NativeClass;

/// Bodies that can be suspended at once: more than any script suspends.
const SLOTS: u32 = 32;
/// Memory of a body at most, bytes: what the limits of the scripts allow.
const MEMORY: usize = 4 << 20;

/// How one class is run.
pub trait Kind {
    /// The engine.
    type Engine: Engine;

    /// The class as it lies in the log.
    fn module(&self) -> &[u8];

    /// A new engine, without bodies and, where code is compiled, without code.
    fn engine(&self) -> Self::Engine;

    /// Hands an engine the compiled code of the class.
    fn install(&self, engine: &mut Self::Engine);
}

/// The class as Rust code.
#[derive(Debug)]
pub struct Native {
    class: NativeClass,
    module: Vec<u8>,
}

impl Native {
    /// A standard class by its name.
    ///
    /// # Panics
    /// When there is no such class.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let class = gesmas_classes::native().into_iter().find(|class| class.name == name);
        let class = class.unwrap_or_else(|| panic!("{name} is no standard class in Rust"));
        Self { class, module: native_module(&class) }
    }
}

impl Kind for Native {
    type Engine = NativeEngine;

    fn module(&self) -> &[u8] {
        &self.module
    }

    fn engine(&self) -> NativeEngine {
        NativeEngine::new([self.class])
    }

    fn install(&self, _engine: &mut NativeEngine) {
        panic!("native code is there from the start");
    }
}

/// The class as the module that the product embeds.
#[derive(Debug)]
pub struct Modules {
    module: &'static [u8],
    artifact: Artifact,
}

impl Modules {
    /// A standard class by its name. Compiles it.
    ///
    /// # Panics
    /// When there is no such class.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let standard = gesmas_classes::find(name);
        let module = standard.unwrap_or_else(|| panic!("{name} is no standard class")).module;
        let artifact = wasm().compiler().artifact(module).expect("standard classes compile");
        Self { module, artifact }
    }
}

/// A new engine, without bodies and without code.
pub(crate) fn wasm() -> WasmEngine {
    let settings = Settings { slots: SLOTS, memory_bytes: MEMORY };
    WasmEngine::new(settings).expect("the host can run it")
}

impl Kind for Modules {
    type Engine = WasmEngine;

    fn module(&self) -> &[u8] {
        self.module
    }

    fn engine(&self) -> WasmEngine {
        wasm()
    }

    fn install(&self, engine: &mut WasmEngine) {
        let compiled = engine.compiler().load(&self.artifact).expect("this version made it");
        engine.install(CodeHash::of(self.module), compiled);
    }
}
