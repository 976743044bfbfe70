//! The fuel table: what host calls and activations cost, beside the instructions of a body.
//!
//! Invariants: a charge depends on the call and the lengths of its request and response alone, so
//! it is equal on every replica; the table is part of the engine's identity (`identity.rs`), so a
//! change of a figure here is a change of replicated state.
//! One unit is about one WebAssembly instruction. wasmtime compares what was used with what there
//! is at calls and loops only, so the last few instructions of a method are not refused any more.

/// Creating an instance, or a native coroutine.
pub const ACTIVATION: u64 = 5_000;

/// Any host call, `fetch` too.
pub const CALL: u64 = 200;

/// Each byte of a request, a response, or a fetched copy.
pub const BYTE: u64 = 1;

/// The whole table in a fixed order, for the engine's identity.
pub(crate) const TABLE: [u64; 3] = [ACTIVATION, CALL, BYTE];

/// Cost of making a host call with a request of this length.
pub(crate) const fn request(length: usize) -> u64 {
    CALL + bytes(length)
}

/// Cost of moving this many bytes.
pub(crate) const fn bytes(length: usize) -> u64 {
    BYTE * length as u64
}
