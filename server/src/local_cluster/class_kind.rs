//! The standard classes of a local cluster: as modules, or as native code of this program.
//!
//! Native ones show what the sandbox costs; nobody else loads them.

use gesmas_coroutine::native_module;

/// How the standard classes of a cluster run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassKind {
    /// As WebAssembly, in the sandbox.
    Wasm,
    /// As code of the server.
    Native,
}

impl ClassKind {
    /// The standard classes by their names, with what a client puts for each.
    #[must_use]
    pub fn modules(self) -> Vec<(&'static str, Vec<u8>)> {
        match self {
            Self::Wasm => {
                let all = gesmas_classes::ALL.iter();
                all.map(|class| (class.name, class.module.to_vec())).collect()
            }
            Self::Native => {
                let all = gesmas_classes::native().into_iter();
                all.map(|class| (class.name, native_module(&class))).collect()
            }
        }
    }
}
