//! One engine of two: embedded classes run natively, all others as WebAssembly.
//!
//! For servers that embed classes they trust. Invariant: which engine runs a body depends on its
//! code's hash alone; a module that begins with `native/` is never taken for WebAssembly.

use gesmas_machine::{
    ActivationId, Answer, ClassInterface, CodeHash, Engine, EngineIdentity, Entry, ModuleError,
    ModuleLimits, Turn,
};

use crate::{NativeEngine, WasmEngine, identity};

/// A native and a WebAssembly engine as one.
pub struct BothEngines {
    /// Runs the embedded classes.
    pub native: NativeEngine,
    /// Runs all others.
    pub wasm: WasmEngine,
}

impl BothEngines {
    fn of_code(&mut self, code: CodeHash) -> &mut dyn Engine {
        if self.native.is_compiled(code) { &mut self.native } else { &mut self.wasm }
    }

    fn of_body(&mut self, id: ActivationId) -> &mut dyn Engine {
        if self.native.holds(id) { &mut self.native } else { &mut self.wasm }
    }
}

impl Engine for BothEngines {
    fn identity(&self) -> EngineIdentity {
        // A server that embeds none is one like all others.
        if self.native.classes().next().is_none() { identity::wasm() } else { identity::both() }
    }

    fn inspect(
        &self,
        class: &str,
        module: &[u8],
        rules: u32,
        limits: &ModuleLimits,
    ) -> Result<ClassInterface, ModuleError> {
        if module.starts_with(b"native/") {
            self.native.inspect(class, module, rules, limits)
        } else {
            self.wasm.inspect(class, module, rules, limits)
        }
    }

    fn is_compiled(&self, code: CodeHash) -> bool {
        self.native.is_compiled(code) || self.wasm.is_compiled(code)
    }

    fn start(&mut self, id: ActivationId, entry: Entry<'_>, fuel: u64) -> Turn {
        self.of_code(entry.code).start(id, entry, fuel)
    }

    fn resume(&mut self, id: ActivationId, answer: &Answer, fuel: u64) -> Turn {
        self.of_body(id).resume(id, answer, fuel)
    }

    fn discard(&mut self, id: ActivationId) {
        self.of_body(id).discard(id);
    }
}
