//! A kill at every suspension point of every standard class: what goes on from the image does what
//! the machine would have done that nobody killed.
//!
//! Both engines, since the native one serves tests and the one of modules production. A class whose
//! points are not all reached, or that has an ordered method which no script calls, fails here, and so does a
//! standard class without a script.
//! Not here: kills in the middle of an entry. They leave no other image: a replica goes on from one
//! that was taken between entries, and from the log after it, which is what each run here does.

use std::collections::BTreeSet;

use gesmas_durability::{
    Kills, Kind, Modules, Native, Point, Run, kill_after_every_entry, kill_where_suspended, run,
    scripts::{ALL, Standard},
};

/// Runs all scripts of a class, checks that they reach what there is, and hands each to `kill`.
fn trial<K: Kind>(standard: &Standard, kind: &K, kill: impl Fn(&K, &Run) -> Kills) {
    eprintln!("class {}:", standard.name);
    let runs: Vec<_> = standard.scripts.iter().map(|script| run(kind, script)).collect();
    let reached: BTreeSet<_> = runs.iter().flat_map(Run::points).collect();
    let points = standard.points.iter();
    let expected = points.map(|(method, nth, semaphore)| Point::new(method, *nth, semaphore));
    assert_eq!(reached, expected.collect(), "where calls of {} wait", standard.name);
    let asked: BTreeSet<_> = runs.iter().flat_map(|run| run.asked.iter().cloned()).collect();
    assert_eq!(reached, asked, "where calls of {} would wait if they had to", standard.name);
    let called: BTreeSet<_> = runs.iter().flat_map(|run| &run.called).collect();
    let updates: BTreeSet<_> = runs.iter().flat_map(|run| &run.updates).collect();
    assert_eq!(called, updates, "the methods of {} that are called", standard.name);
    let mut all = Kills::default();
    for run in &runs {
        let kills = kill(kind, run);
        all.kills += kills.kills;
        all.entries += kills.entries;
        all.suspended += kills.suspended;
        all.rebuilt += kills.rebuilt;
    }
    let waits = !standard.points.is_empty();
    assert_eq!(all.rebuilt > 0, waits, "whether bodies are rebuilt: {all:?}");
    eprintln!("{} entries, {all:?}", runs.iter().map(|run| run.entries.len()).sum::<usize>());
}

#[test]
fn a_native_machine_that_is_killed_at_any_suspension_has_the_same_future() {
    for standard in &ALL {
        trial(standard, &Native::new(standard.name), kill_where_suspended);
    }
}

#[test]
fn a_machine_of_modules_that_is_killed_at_any_suspension_has_the_same_future() {
    for standard in &ALL {
        trial(standard, &Modules::new(standard.name), kill_where_suspended);
    }
}

#[test]
fn a_native_machine_that_is_killed_after_every_entry_has_the_same_future() {
    for standard in &ALL {
        trial(standard, &Native::new(standard.name), kill_after_every_entry);
    }
}

#[test]
fn a_machine_of_modules_that_is_killed_after_every_entry_has_the_same_future() {
    for standard in &ALL {
        trial(standard, &Modules::new(standard.name), kill_after_every_entry);
    }
}

#[test]
fn every_standard_class_has_a_script() {
    let scripted = ALL.map(|standard| standard.name);
    let embedded = gesmas_classes::ALL.map(|standard| standard.name);
    assert_eq!(scripted, embedded);
}
