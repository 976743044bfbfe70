//! Compiling, off the thread that runs bodies.
//!
//! A [`Compiler`] can be sent to any thread; what it makes is handed to the engine by
//! [`super::WasmEngine::install`], which costs nothing. It does not validate: whoever compiles a
//! stranger's module has it inspected first, and compiles it in a bounded child (`child.rs`).

use std::sync::{Arc, OnceLock};

use gesmas_abi::{EXPORT_MEMORY, METHOD_PREFIX};
use gesmas_machine::MethodName;
use wasmtime::{Engine, InstancePre, Linker, Module, ModuleExport};

use super::{
    Artifact,
    depth::{self, DEPTH_EXPORT},
    host::Guest,
    instance::{Image, RENEWED_BYTES},
    renewal::{self, RENEWED},
};

/// Why a module has no code.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The compiler refused the module.
    #[error("the compiler refused the module: {0}")]
    Refused(String),
    /// The code does not fit this engine: another version, other settings, other imports.
    #[error("the compiled code does not fit this engine: {0}")]
    Unfit(String),
    /// The compiler took too long and was killed.
    #[error("compiling took longer than {} ms", .0.as_millis())]
    TimedOut(std::time::Duration),
    /// The compiler died before it was done; most often, it had used up its memory.
    #[error("the compiler died ({status}); its memory was limited to {memory_bytes} bytes")]
    Died {
        /// How the process ended.
        status: String,
        /// What its memory was limited to.
        memory_bytes: u64,
    },
    /// The compiled code is larger than allowed.
    #[error("the compiled code has more than {0} bytes")]
    TooLarge(u64),
    /// The child process is not this version of this program.
    #[error("the compiler is another version of this program")]
    OtherVersion,
    /// The child process could not be run.
    #[error("the compiler could not be run: {0}")]
    Io(#[from] std::io::Error),
}

/// Compiles modules. Cheap to clone, may be used on any thread.
#[derive(Clone)]
pub struct Compiler {
    engine: Engine,
    linker: Arc<Linker<Guest>>,
}

/// Code that is ready to run.
#[derive(Clone)]
pub struct Compiled {
    pub(super) pre: InstancePre<Guest>,
    pub(super) memory: ModuleExport,
    pub(super) depth: ModuleExport,
    /// Ordered by name.
    pub(super) methods: Arc<[(MethodName, ModuleExport)]>,
    /// The mutable globals; none when no instance can be renewed.
    pub(super) renewed: Arc<[ModuleExport]>,
    /// The memory as it is at first, once an instance was made.
    pub(super) image: Arc<OnceLock<Image>>,
}

impl Compiled {
    /// Whether an instance can be made like new.
    pub(super) fn is_renewable(&self) -> bool {
        !self.renewed.is_empty()
    }
}

impl Compiler {
    pub(super) fn new(engine: Engine, linker: Linker<Guest>) -> Self {
        Self { engine, linker: Arc::new(linker) }
    }

    /// Compiles a module in this process, without bounds on time and memory: for modules that are
    /// this program's own, and for tests.
    ///
    /// # Errors
    /// [`CompileError::Refused`] or [`CompileError::Unfit`].
    pub fn compile(&self, module: &[u8]) -> Result<Compiled, CompileError> {
        self.load(&precompile(&self.engine, module)?)
    }

    /// Compiles a module in this process to bytes that a cache can keep.
    ///
    /// # Errors
    /// [`CompileError::Refused`].
    pub fn artifact(&self, module: &[u8]) -> Result<Artifact, CompileError> {
        precompile(&self.engine, module)
    }

    /// Makes compiled code ready to run.
    ///
    /// # Errors
    /// [`CompileError::Unfit`] when another version made it, or when it is not a class.
    pub fn load(&self, artifact: &Artifact) -> Result<Compiled, CompileError> {
        let unfit = |error: wasmtime::Error| CompileError::Unfit(format!("{error:#}"));
        let module = artifact.module(&self.engine).map_err(unfit)?;
        let pre = self.linker.instantiate_pre(&module).map_err(unfit)?;
        let export = |name: &str| {
            let index = module.get_export_index(name);
            index.ok_or_else(|| CompileError::Unfit(format!("it does not export {name}")))
        };
        let (memory, depth) = (export(EXPORT_MEMORY)?, export(DEPTH_EXPORT)?);
        let (methods, renewed) = (methods(&module), renewed(&module));
        Ok(Compiled { pre, memory, depth, methods, renewed, image: Arc::default() })
    }
}

/// The exports that are methods.
fn methods(module: &Module) -> Arc<[(MethodName, ModuleExport)]> {
    let named = |export: wasmtime::ExportType<'_>| {
        let name = export.name().strip_prefix(METHOD_PREFIX)?;
        let name = MethodName::new(name).ok()?;
        Some((name, module.get_export_index(export.name())?))
    };
    let mut methods: Vec<_> = module.exports().filter_map(named).collect();
    methods.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    methods.into()
}

/// The globals that make an instance like new, beside its memory; none if that is not enough, or too
/// much to copy.
fn renewed(module: &Module) -> Arc<[ModuleExport]> {
    let memory = module.get_export(EXPORT_MEMORY).and_then(|memory| memory.memory().cloned());
    let bytes = memory.map_or(u64::MAX, |memory| memory.minimum().saturating_mul(64 << 10));
    if bytes > RENEWED_BYTES as u64 {
        return Arc::default();
    }
    let names =
        module.exports().map(|export| export.name()).filter(|name| name.starts_with(RENEWED));
    names.filter_map(|name| module.get_export_index(name)).collect()
}

/// The module's code as bytes.
pub(super) fn precompile(engine: &Engine, module: &[u8]) -> Result<Artifact, CompileError> {
    let prepared = renewal::mutable_globals(module)
        .and_then(|globals| depth::bounded(module, globals.as_deref()))
        .map_err(|error| CompileError::Refused(error.to_string()))?;
    let bytes = engine
        .precompile_module(&prepared)
        .map_err(|error| CompileError::Refused(format!("{error:#}")))?;
    Ok(Artifact::trusted(bytes))
}
