//! The engines that run the bodies of methods: WebAssembly and native.
//!
//! Both implement [`gesmas_machine::Engine`] over the one ABI of `objects/abi`: a body runs until it
//! makes a host call, and waits there for the machine's answer. Equal classes give equal host calls
//! and ends on both; fuel alone differs.
//! Not here: scheduling, semaphores, journals and undo, which are the machine's.

mod both;
mod charge;
mod identity;
mod interface;
mod native;
mod suspended;
mod translate;
mod wasm;

pub use crate::{
    both::BothEngines,
    charge::{ACTIVATION, BYTE, CALL},
    native::{NativeEngine, native_module},
    wasm::{
        Artifact, Cache, CacheError, ChildLimits, CompileError, Compiled, Compiler,
        EngineUnavailable, Settings, WasmEngine, compile_child_main, compile_in_child,
    },
};
