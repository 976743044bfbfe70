//! What host and guest agree on: host calls, values, map keys, the interface section, versions.
//!
//! Invariants: `no_std`, depends on nothing, and every encoding here is fixed by tests with literal
//! bytes; `docs/abi.md` describes the same for authors in other languages. Decoders take bytes from
//! anybody: they check every length against the input that is left before they allocate, they
//! refuse trailing bytes, and their depth is bounded.
//! Not here: how bytes get from guest to host (the engines and the SDK), limits (the machine), JSON.

#![no_std]
extern crate alloc;

pub mod call;
mod hash;
pub mod interface;
pub mod key;
mod reader;
pub mod value;

pub use hash::fnv1a64;
pub use reader::{Malformed, Reader, Write};

/// Version of everything in this crate. A module states it in its interface section, and a host
/// that does not know it refuses the module when it is put, not when it is called.
pub const ABI_VERSION: u32 = 1;

/// Name of the module that a guest imports its two functions from. Carries the version, so that a
/// guest of another version does not link by accident.
pub const IMPORT_MODULE: &str = "gesmas1";

/// `call(op: i32, in: i32, in_len: i32, out: i32, out_cap: i32) -> i32`: makes a host call; the
/// result is the length of the response.
pub const IMPORT_CALL: &str = "call";

/// `fetch(out: i32, len: i32)`: copies the bytes that the host keeps for the guest, which are the
/// method's arguments at first and then the last response that did not fit.
pub const IMPORT_FETCH: &str = "fetch";

/// A method `NAME` is exported as `m_NAME(arguments_len: i32)`, without a result.
pub const METHOD_PREFIX: &str = "m_";

/// Name under which a guest exports its memory.
pub const EXPORT_MEMORY: &str = "memory";

/// Name of the custom section that holds the encoded interface.
pub const INTERFACE_SECTION: &str = "gesmas.interface";
