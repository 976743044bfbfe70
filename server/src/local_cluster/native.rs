//! The standard classes of a local cluster: as modules, or as native code of this program.
//!
//! Native ones show what the sandbox costs; nobody else loads them.

use gesmas_coroutine::native_module;
use gesmas_sdk::host::NativeClass;

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
                let all = native_classes().into_iter();
                all.map(|class| (class.name, native_module(&class))).collect()
            }
        }
    }
}

/// The standard classes as code of this program.
#[must_use]
pub fn native_classes() -> Vec<NativeClass> {
    vec![
        gesmas_barrier::Barrier::native(),
        gesmas_counter::Counter::native(),
        gesmas_election::Election::native(),
        gesmas_lock::Lock::native(),
        gesmas_queue::Queue::native(),
        gesmas_register::Register::native(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_classes_are_there_in_both_kinds() {
        let names =
            |kind: ClassKind| kind.modules().into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(ClassKind::Native), names(ClassKind::Wasm));
    }
}
