//! The WebAssembly engine: modules validated, compiled and run by wasmtime.
//!
//! A body runs on a fiber of wasmtime's own in an instance that is new, or like new, and is suspended at
//! each host call by a future that is pending once; the engine polls that future by hand, so there
//! is no runtime and no waker. What strangers can do is bounded in four places: `validate` before
//! anything is compiled, `child` while it is compiled, fuel, `depth` and the memory limit while it
//! runs, and the ABI's bounds checks in `host`.

mod artifact;
mod cache;
mod child;
mod compile;
pub(crate) mod depth;
mod effort;
mod engine;
mod fiber;
mod host;
mod instance;
mod pages;
mod renewal;
pub(crate) mod settings;
mod traps;
mod validate;

pub use self::{
    artifact::Artifact,
    cache::{Cache, CacheError},
    child::{ChildLimits, compile_child_main, compile_in_child},
    compile::{CompileError, Compiled, Compiler},
    engine::WasmEngine,
    settings::{EngineUnavailable, Settings},
};
