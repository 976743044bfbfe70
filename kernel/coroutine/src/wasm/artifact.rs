//! Compiled code as bytes, and the one place where such bytes become code again.
//!
//! Invariant: an [`Artifact`] is made only from the compiler's output in this process, from the
//! output of a child process that this process started, or from a cache file whose tag verified.
//! Nothing else can make one: the constructor is private to the engine.

#![allow(unsafe_code, reason = "wasmtime cannot check that an artifact is its own")]

use wasmtime::{Engine, Module};

/// Compiled code that this server made.
#[derive(Clone)]
pub struct Artifact(Vec<u8>);

impl std::fmt::Debug for Artifact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Artifact({} bytes)", self.0.len())
    }
}

impl Artifact {
    /// Vouches that the bytes are the compiler's: see the file's head for who may say so.
    pub(super) fn trusted(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The code.
    pub(super) fn module(&self, engine: &Engine) -> wasmtime::Result<Module> {
        // SAFETY: the bytes are the unchanged output of `precompile_module` of this version, made
        // by this process or its child, or authenticated by a key that only this server knows. A
        // mismatch of version or settings is found by wasmtime itself.
        unsafe { Module::deserialize(engine, &self.0) }
    }
}
