//! The standard classes of gesmas, compiled to WebAssembly and embedded; and as code of the program,
//! for tests, and for whoever wants to see what the sandbox costs.
//!
//! Invariant: what is embedded is what a user of the same sources and toolchain would compile, byte
//! for byte; the standard classes have no privileges besides their reserved names.

use gesmas_sdk::host::NativeClass;

include!(concat!(env!("OUT_DIR"), "/classes.rs"));

/// A standard class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standard {
    /// Its name.
    pub name: &'static str,
    /// Its module.
    pub module: &'static [u8],
}

/// All standard classes, by name.
pub const ALL: [Standard; MODULES.len()] = {
    let mut all = [Standard { name: "", module: &[] }; MODULES.len()];
    let mut index = 0;
    while index < MODULES.len() {
        all[index] = Standard { name: MODULES[index].0, module: MODULES[index].1 };
        index += 1;
    }
    all
};

/// The standard class of this name.
#[must_use]
pub fn find(name: &str) -> Option<Standard> {
    ALL.into_iter().find(|standard| standard.name == name)
}

/// The standard classes as code of this program, by name.
#[must_use]
pub fn native() -> [NativeClass; MODULES.len()] {
    [
        gesmas_barrier::Barrier::native(),
        gesmas_counter::Counter::native(),
        gesmas_delay_queue::DelayQueue::native(),
        gesmas_election::Election::native(),
        gesmas_latch::Latch::native(),
        gesmas_lease::Lease::native(),
        gesmas_lock::Lock::native(),
        gesmas_membership::Membership::native(),
        gesmas_priority_queue::PriorityQueue::native(),
        gesmas_queue::Queue::native(),
        gesmas_rate_limiter::RateLimiter::native(),
        gesmas_register::Register::native(),
        gesmas_rw_lock::RwLock::native(),
        gesmas_semaphore::Semaphore::native(),
        gesmas_tuple_space::TupleSpace::native(),
        gesmas_work_queue::WorkQueue::native(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_small_and_have_the_interface_of_their_class() {
        let mut names = Vec::new();
        for Standard { name, module } in ALL {
            let interface = gesmas_build::interface_of(module).expect("the section decodes");
            assert_eq!(interface.class, name);
            assert!(module.len() < 84_000, "{name} has {} bytes", module.len());
            names.push(name);
        }
        assert!(names.is_sorted(), "{names:?}");
        assert_eq!(names.len(), 16);
    }

    #[test]
    fn modules_do_not_tell_where_they_were_built() {
        let folder = env!("CARGO_MANIFEST_DIR").as_bytes();
        let root = &folder[..folder.len() - "/objects/classes/standard".len()];
        for Standard { name, module } in ALL {
            let told = module.windows(root.len()).any(|window| window == root);
            assert!(!told, "{name} names the folder of its sources");
        }
    }

    #[test]
    fn classes_are_found_by_name() {
        assert_eq!(find("Queue").map(|standard| standard.name), Some("Queue"));
        assert_eq!(find("Nothing"), None);
    }

    #[test]
    fn the_same_classes_are_there_in_both_kinds() {
        assert_eq!(native().map(|class| class.name), ALL.map(|standard| standard.name));
    }
}
