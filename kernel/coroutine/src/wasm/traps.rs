//! From wasmtime's errors to the end of a body.
//!
//! Invariant: whatever a guest can bring about becomes an [`End`], with text that is equal on every
//! replica; everything else is exhaustion or a fault of the host, and a panic.

use gesmas_machine::{End, Trap};

/// The end of a body as an error: it unwinds the guest's frames.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the body ended: {0:?}")]
pub(super) struct Stop(pub(super) End);

impl Stop {
    /// The body failed.
    pub(super) fn trap(trap: Trap) -> wasmtime::Error {
        Self(End::Trapped(trap)).into()
    }

    /// The body broke the ABI.
    pub(super) fn malformed(what: impl Into<String>) -> wasmtime::Error {
        Self::trap(Trap::HostCallMalformed(what.into()))
    }
}

/// How a body ended that did not come back. `fuel` is what it was last given.
///
/// # Panics
/// When the host failed, not the guest.
pub(super) fn end(error: wasmtime::Error, fuel: u64) -> End {
    let error = match error.downcast::<Stop>() {
        Ok(Stop(end)) => return end,
        Err(error) => error,
    };
    let Some(trap) = error.downcast_ref::<wasmtime::Trap>() else {
        panic!("the WebAssembly engine failed on this host: {error:?}");
    };
    End::Trapped(match trap {
        wasmtime::Trap::OutOfFuel => Trap::OutOfFuel(fuel),
        wasmtime::Trap::StackOverflow => Trap::StackOverflow,
        fault => {
            let text = fault.to_string();
            Trap::Fault(text.strip_prefix("wasm trap: ").unwrap_or(&text).into())
        }
    })
}
