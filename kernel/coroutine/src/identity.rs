//! What makes two engines equal for the machine.
//!
//! Invariant: everything that can change a result, a refusal's text or a fuel count goes into the
//! hash: versions, target, features, stack and table bounds, the fuel table. What an embedder may
//! set does not.

use gesmas_machine::EngineIdentity;

use crate::{
    charge,
    wasm::{
        depth::{DEPTH, FRAME},
        settings::{FEATURES, TABLE_ELEMENTS, TARGET, WASM_STACK, WASMPARSER, WASMTIME},
    },
};

/// Raised by hand when this crate changes in a way that the parts below do not show: how requests
/// are translated, how memory is bounded, what modules are refused.
const REVISION: u32 = 2;

/// Of the WebAssembly engine.
pub(crate) fn wasm() -> EngineIdentity {
    let parts = format!(
        "revision {REVISION}, wasmparser {WASMPARSER}, features {:x}, stack {WASM_STACK}, \
         depth {DEPTH} less {FRAME} a frame, table {TABLE_ELEMENTS}, charges {:?}",
        FEATURES.bits(),
        charge::TABLE
    );
    identity(format!("wasm (wasmtime {WASMTIME}, {TARGET})"), &parts)
}

/// Of the native engine. Native classes are named with their version by the state that uses them,
/// so what a binary embeds is not part of it.
pub(crate) fn native() -> EngineIdentity {
    let parts = format!("revision {REVISION}, charges {:?}", charge::TABLE);
    identity("native".into(), &parts)
}

/// Of an engine that dispatches between the two.
pub(crate) fn both() -> EngineIdentity {
    let (native, wasm) = (native(), wasm());
    let hashes = [native.hash, wasm.hash].concat();
    EngineIdentity {
        description: format!("{} and {}", native.description, wasm.description),
        hash: *blake3::hash(&hashes).as_bytes(),
    }
}

fn identity(kind: String, parts: &str) -> EngineIdentity {
    let hash = *blake3::hash(format!("{kind}\n{parts}").as_bytes()).as_bytes();
    EngineIdentity { description: format!("{kind}, {parts}"), hash }
}
