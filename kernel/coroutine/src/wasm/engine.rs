//! The engine: compiled code by its hash, activations by their number.
//!
//! Invariants: an activation is in the map exactly while it is suspended; slots of the pool are
//! counted here, so that their exhaustion is a clear message before wasmtime is asked; instances
//! that are kept for later give way before that.

use std::{collections::BTreeMap, sync::Arc};

use gesmas_machine::{
    ActivationId, Answer, ClassInterface, CodeHash, Engine, EngineIdentity, Entry, ModuleError,
    ModuleLimits, Turn,
};

use super::{
    Compiled, Compiler, EngineUnavailable, Settings,
    fiber::{Fiber, Stopped},
    host,
    instance::Kept,
    settings, validate,
};
use crate::{identity, suspended::Suspended};

/// Runs classes that are WebAssembly modules.
pub struct WasmEngine {
    engine: wasmtime::Engine,
    compiler: Compiler,
    settings: Settings,
    code: BTreeMap<CodeHash, Arc<Compiled>>,
    suspended: Suspended<Fiber>,
    kept: Kept,
}

impl WasmEngine {
    /// Reserves the pool.
    ///
    /// # Errors
    /// [`EngineUnavailable`] when the host has not enough address space, or its processor is not
    /// supported.
    pub fn new(settings: Settings) -> Result<Self, EngineUnavailable> {
        let engine = settings::running(settings)?;
        let linker = host::linker(&engine)?;
        let compiler = Compiler::new(engine.clone(), linker);
        let (code, suspended) = (BTreeMap::new(), Suspended::default());
        let kept = Kept::default();
        Ok(Self { engine, compiler, settings, code, suspended, kept })
    }

    /// A handle that compiles on any thread.
    #[must_use]
    pub fn compiler(&self) -> Compiler {
        self.compiler.clone()
    }

    /// Makes code available under the hash of the module it was compiled from. Code that is there
    /// already stays: instances of it may be kept or suspended.
    pub fn install(&mut self, code: CodeHash, compiled: Compiled) {
        self.code.entry(code).or_insert_with(|| Arc::new(compiled));
    }

    /// How many bodies are suspended.
    #[must_use]
    pub fn suspended(&self) -> usize {
        self.suspended.len()
    }

    fn slots(&self) -> usize {
        self.settings.slots as usize
    }

    /// Runs a body to its next stop, and keeps it if that is not its end.
    fn turn(&mut self, id: ActivationId, mut fiber: Fiber) -> Turn {
        match fiber.run() {
            Stopped::AtCall(turn) => {
                self.suspended.add(id, fiber);
                turn
            }
            Stopped::AtEnd(turn, kept) => {
                if let Some((code, idle)) = kept {
                    self.kept.add(code, idle);
                }
                turn
            }
        }
    }
}

impl Engine for WasmEngine {
    fn identity(&self) -> EngineIdentity {
        identity::wasm()
    }

    fn inspect(
        &self,
        class: &str,
        module: &[u8],
        rules: u32,
        limits: &ModuleLimits,
    ) -> Result<ClassInterface, ModuleError> {
        validate::inspect(class, module, rules, limits)
    }

    fn is_compiled(&self, code: CodeHash) -> bool {
        self.code.contains_key(&code)
    }

    fn start(&mut self, id: ActivationId, entry: Entry<'_>, fuel: u64) -> Turn {
        assert!(!self.suspended.contains(id), "activation {} is in use", id.0);
        assert!(
            self.suspended.len() < self.slots(),
            "all {} slots for WebAssembly instances are in use: raise the setting",
            self.settings.slots
        );
        assert!(
            entry.memory <= self.settings.memory_bytes as u64,
            "the memory limit of {} bytes is above this engine's {}: raise the setting",
            entry.memory,
            self.settings.memory_bytes
        );
        let code = self.code.get(&entry.code).expect("only compiled code is started");
        let renewed = self.kept.take(entry.code, code, entry.memory);
        if renewed.is_none() && self.suspended.len() + self.kept.len() >= self.slots() {
            self.kept.clear();
        }
        let fiber = Fiber::new(&self.engine, code, entry, fuel, renewed);
        self.turn(id, fiber)
    }

    fn resume(&mut self, id: ActivationId, answer: &Answer, fuel: u64) -> Turn {
        let mut fiber = self.suspended.take(id).expect("only suspended bodies are resumed");
        fiber.answer(answer, fuel);
        self.turn(id, fiber)
    }

    fn discard(&mut self, id: ActivationId) {
        let body = self.suspended.take(id);
        drop(body.expect("only suspended bodies are discarded"));
    }
}
