//! How wasmtime is configured: once for compiling, once more for running.
//!
//! Invariants: everything that can change a result or a fuel count is a constant of this file and
//! goes into the engine's identity; what a caller may set (slots, the greatest memory) cannot
//! change a result. The features that are on here are exactly those that `validate` accepts: both
//! read [`FEATURES`]. The target is named, so that the features of the host's processor do not leak
//! into the code.

use wasmparser::WasmFeatures;
use wasmtime::{
    Config, Enabled, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig, Strategy,
};

use super::depth::{DEPTH, NATIVE_BYTES};

/// The features of WebAssembly that modules may use: what rustc emits by default. No threads, no
/// SIMD, no memory64, no second memory, no tail calls, no exceptions, no garbage collection.
pub(crate) const FEATURES: WasmFeatures = WasmFeatures::MUTABLE_GLOBAL
    .union(WasmFeatures::SATURATING_FLOAT_TO_INT)
    .union(WasmFeatures::SIGN_EXTENSION)
    .union(WasmFeatures::REFERENCE_TYPES)
    .union(WasmFeatures::MULTI_VALUE)
    .union(WasmFeatures::BULK_MEMORY)
    .union(WasmFeatures::FLOATS)
    .union(WasmFeatures::EXTENDED_CONST);

/// The version that fuel counts belong to; the workspace pins the dependency to it.
pub(crate) const WASMTIME: &str = "48.0.8";

/// The parser whose messages refusals quote; the workspace pins the dependency to it.
pub(crate) const WASMPARSER: &str = "0.254.2";

/// The target that code is compiled for, without any optional feature of its processors.
#[cfg(target_arch = "x86_64")]
pub(crate) const TARGET: &str = "x86_64-unknown-linux-gnu";
/// The target that code is compiled for, without any optional feature of its processors.
#[cfg(target_arch = "aarch64")]
pub(crate) const TARGET: &str = "aarch64-unknown-linux-gnu";

/// Native stack that a body may use, bytes: what the bound on recursion can come to, one more frame
/// of the largest function, and some slack. Only the pages that are touched are used.
pub(crate) const WASM_STACK: usize = NATIVE_BYTES * (DEPTH as usize + (128 << 10)) + (64 << 10);

/// Native stack of a fiber, bytes: what is above [`WASM_STACK`] serves the host calls.
const FIBER_STACK: usize = WASM_STACK + (256 << 10);

/// Elements that a table may grow to.
pub(crate) const TABLE_ELEMENTS: usize = 10_000;

/// Bytes of a memory or table that stay mapped between two uses of a slot; they are zeroed instead.
const KEEP_RESIDENT: usize = 2 << 20;

/// What the embedder decides. None of it can change a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Activations that can exist at once, suspended ones included. One more is a panic.
    pub slots: u32,
    /// The greatest memory limit that an [`gesmas_machine::Entry`] may carry, bytes.
    pub memory_bytes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { slots: 1_000, memory_bytes: 256 << 20 }
    }
}

/// Why an engine cannot be made on this host.
#[derive(Debug, thiserror::Error)]
#[error("the WebAssembly engine cannot start: {0}")]
pub struct EngineUnavailable(pub(crate) String);

impl From<wasmtime::Error> for EngineUnavailable {
    fn from(error: wasmtime::Error) -> Self {
        Self(format!("{error:#}"))
    }
}

/// The configuration that decides what code is made and what it does.
fn base() -> Result<Config, EngineUnavailable> {
    let mut config = Config::new();
    config.target(TARGET)?;
    config.strategy(Strategy::Cranelift);
    config.cranelift_opt_level(OptLevel::Speed);
    config.cranelift_nan_canonicalization(true);
    config.consume_fuel(true);
    config.wasm_features(WasmFeatures::all(), false);
    config.wasm_features(FEATURES, true);
    config.shared_memory(false);
    config.concurrency_support(false);
    config.wasm_backtrace_max_frames(None);
    config.generate_address_map(false);
    config.native_unwind_info(false);
    config.memory_init_cow(true);
    config.max_wasm_stack(WASM_STACK);
    config.async_stack_size(FIBER_STACK);
    Ok(config)
}

/// An engine that only compiles: it reserves no pool.
pub(crate) fn compiling() -> Result<wasmtime::Engine, EngineUnavailable> {
    Ok(wasmtime::Engine::new(&base()?)?)
}

/// An engine that runs. A kernel without `PAGEMAP_SCAN` gets slower slots, not other results.
pub(crate) fn running(settings: Settings) -> Result<wasmtime::Engine, EngineUnavailable> {
    let scan = PoolingAllocationConfig::is_pagemap_scan_available();
    let mut pool = PoolingAllocationConfig::new();
    pool.pagemap_scan(if scan { Enabled::Yes } else { Enabled::No });
    pool.linear_memory_keep_resident(if scan { KEEP_RESIDENT } else { 64 << 10 });
    pool.table_keep_resident(KEEP_RESIDENT);
    pool.async_stack_keep_resident(0);
    pool.total_core_instances(settings.slots);
    pool.total_memories(settings.slots);
    pool.total_tables(settings.slots);
    pool.total_stacks(settings.slots);
    pool.max_memories_per_module(1);
    pool.max_tables_per_module(1);
    pool.table_elements(TABLE_ELEMENTS);
    pool.max_memory_size(settings.memory_bytes);
    let mut config = base()?;
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    Ok(wasmtime::Engine::new(&config)?)
}
