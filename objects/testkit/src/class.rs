//! The class under test, and the engine that runs it.
//!
//! Invariant: a module is compiled to machine code once in a process, however many worlds run it.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use gesmas_coroutine::{Artifact, BothEngines, NativeEngine, Settings, WasmEngine, native_module};
use gesmas_machine::CodeHash;
use gesmas_sdk::host::NativeClass;

/// Bodies that can be kept suspended at once; those of calls beyond it are parked.
pub(crate) const LIVE: usize = 24;
/// What else may need a place in the engine: the call that runs, one that is being parked, a read.
const SPARE: u32 = 8;
/// Memory of a body at most, bytes: that of the machine's limits.
const MEMORY: usize = 4 << 20;

/// A class, natively and as a module.
#[derive(Clone, Debug)]
pub struct Class {
    pub(crate) native: NativeClass,
    pub(crate) module: Arc<[u8]>,
}

impl Class {
    /// A class and its module.
    #[must_use]
    pub fn new(native: NativeClass, module: &[u8]) -> Self {
        Self { native, module: module.into() }
    }

    /// The class of a crate, by the folder of its manifest: `env!("CARGO_MANIFEST_DIR")`. Compiles it
    /// to WebAssembly as it is shipped.
    ///
    /// # Panics
    /// When it does not compile, with what to do about it.
    #[must_use]
    pub fn of_crate(native: NativeClass, manifest_dir: impl AsRef<Path>) -> Self {
        static MODULES: Mutex<BTreeMap<PathBuf, Arc<[u8]>>> = Mutex::new(BTreeMap::new());
        let mut modules = MODULES.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = manifest_dir.as_ref();
        let module = modules.entry(folder.into()).or_insert_with(|| {
            let module = gesmas_build::compile(folder);
            module.unwrap_or_else(|error| panic!("{error}")).into()
        });
        Self { native, module: module.clone() }
    }
}

/// How a world runs its class.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Native(NativeClass),
    Wasm { module: Arc<[u8]>, artifact: Arc<Artifact> },
}

impl Kind {
    pub(crate) fn wasm(module: Arc<[u8]>) -> Self {
        let artifact = artifact(&module);
        Self::Wasm { module, artifact }
    }

    /// Another class, run in the same way.
    pub(crate) fn with(&self, class: &Class) -> Self {
        match self {
            Self::Native(_) => Self::Native(class.native),
            Self::Wasm { .. } => Self::wasm(class.module.clone()),
        }
    }

    /// What a client ships.
    pub(crate) fn module(&self) -> Vec<u8> {
        match self {
            Self::Native(class) => native_module(class),
            Self::Wasm { module, .. } => module.to_vec(),
        }
    }

    /// An engine for these that has run nothing.
    pub(crate) fn engine(kinds: &[Self]) -> BothEngines {
        let native: Vec<_> = kinds.iter().filter_map(Self::native).collect();
        let slots = u32::try_from(LIVE).expect("it is small") + SPARE;
        let slots = if native.is_empty() { slots } else { 1 };
        BothEngines { native: NativeEngine::new(native), wasm: wasm_engine(slots) }
    }

    const fn native(&self) -> Option<NativeClass> {
        match self {
            Self::Native(class) => Some(*class),
            Self::Wasm { .. } => None,
        }
    }

    /// Hands an engine the code of the class, if it is compiled.
    pub(crate) fn install(&self, engine: &mut BothEngines) {
        if let Self::Wasm { module, artifact } = self {
            let compiled = engine.wasm.compiler().load(artifact).expect("this process made it");
            engine.wasm.install(CodeHash::of(module), compiled);
        }
    }
}

fn wasm_engine(slots: u32) -> WasmEngine {
    let settings = Settings { slots, memory_bytes: MEMORY };
    WasmEngine::new(settings).unwrap_or_else(|error| panic!("this host runs no modules: {error}"))
}

/// The compiled code of a module. An invalid one is found by the validator of the world, so what
/// does not compile here is not valid either.
fn artifact(module: &[u8]) -> Arc<Artifact> {
    static ARTIFACTS: Mutex<BTreeMap<CodeHash, Arc<Artifact>>> = Mutex::new(BTreeMap::new());
    let mut artifacts = ARTIFACTS.lock().unwrap_or_else(PoisonError::into_inner);
    let artifact = artifacts.entry(CodeHash::of(module)).or_insert_with(|| {
        let artifact = wasm_engine(1).compiler().artifact(module);
        Arc::new(artifact.unwrap_or_else(|error| panic!("the module does not compile: {error}")))
    });
    artifact.clone()
}
