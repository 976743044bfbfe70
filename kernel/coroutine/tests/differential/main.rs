//! The differential test: one history on several machines, which differ in nothing that shows.
//!
//! Random workloads of classes written in Rust run on the real machine, over the WebAssembly engine
//! with all, one and none of the suspended bodies kept, and over the native engine; after every
//! entry of the log all have the same effects and state hash, at the end the same image, byte for
//! byte. A seed that fails is named.
//! Not here: fuel, which differs between the engines; the limits are so wide that nothing runs out.

mod code;
mod group;
mod limits;
mod workload;

use std::collections::BTreeSet;

use code::{Twin, wasm};
use gesmas_machine::{LogEntry, Machine, Settings};
use group::{Group, entries, step};
use workload::Workload;

/// A workload's name in a failure.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the seed of the workload is {}", self.0);
        }
    }
}

#[test]
fn both_engines_and_all_ways_of_keeping_bodies_do_the_same() {
    let (mut rebuilt, mut seen) = (0, BTreeSet::new());
    for seed in 0..60 {
        let _named = Seed(seed);
        let mut group = Group::new();
        let mut workload = Workload::new(seed);
        workload.run(&mut group, 250);
        group.compare_images();
        rebuilt += group.rebuilt();
        seen.extend(workload.seen());
    }
    workload::check_coverage(&seen);
    assert!(rebuilt > 10_000, "machines that keep no bodies rebuild them: {rebuilt}");
}

#[test]
fn a_machine_made_anew_at_any_suspension_has_the_same_future() {
    for seed in 100..106 {
        let _named = Seed(seed);
        let mut group = Group::new();
        Workload::new(seed).run(&mut group, 40);
        let history = group.history();
        let mut machine = Machine::new(wasm(60), Settings::default());
        for place in 0..history.len() {
            if machine.statistics().blocked_now > 0 {
                goes_on(&machine.encode_image(), &history[place..], group.image());
            }
            step(&mut machine, &history[place]);
        }
        assert_eq!(machine.encode_image(), group.image());
    }
}

/// Runs the rest of a history from an image of its middle.
fn goes_on(image: &[u8], rest: &[(LogEntry, String)], end: &[u8]) {
    let settings = Settings { live_activations: 3 };
    let mut machine =
        Machine::from_image(image, wasm(60), settings).expect("an image of a machine is sound");
    for entry in rest {
        step(&mut machine, entry);
    }
    assert!(machine.encode_image() == end, "the future differs");
}

#[test]
fn a_twin_names_code_by_its_module_and_has_the_engine_of_modules() {
    use gesmas_machine::Engine;
    let (twin, wasm) = (Twin::new(1), wasm(1));
    assert_eq!(twin.identity(), wasm.identity());
    assert!(entries().count() >= 3);
    for module in code::modules() {
        let code = gesmas_machine::CodeHash::of(&module.bytes);
        assert!(twin.is_compiled(code) && wasm.is_compiled(code));
    }
}
