//! Seeds that every build runs: none fails, each replays exactly, and every planted fault is found.

use std::sync::Mutex;

use gesmas_simulator::{Options, Plant, Verdict, run_seed, run_seeds};

/// Seeds without a plant. `.ci/run` runs more, others for each commit.
const SEEDS: u64 = 300;

/// The failing seeds of a range, with what failed.
fn failures(first: u64, number: u64, plant: Option<Plant>, stop: bool) -> Vec<(u64, String)> {
    let failed = Mutex::new(Vec::new());
    run_seeds(first, number, Options { plant, ..Options::new(first) }, &|verdict: &Verdict| {
        if let Some(violation) = &verdict.violation {
            let words = format!("{violation}");
            failed.lock().expect("no report panics").push((verdict.seed, words));
        }
        !(stop && verdict.violation.is_some())
    });
    failed.into_inner().expect("no report panics")
}

#[test]
fn no_seed_fails() {
    let failed = failures(1, SEEDS, None, false);
    assert!(
        failed.is_empty(),
        "cargo run --release -p gesmas-simulator -- --seeds 1 --seed N: {failed:#?}"
    );
}

#[test]
fn a_seed_replays_exactly() {
    let digests: Vec<_> = (7..27).map(|seed| run_seed(Options::new(seed))).collect();
    for first in &digests {
        let again = run_seed(Options { in_words: true, ..Options::new(first.seed) });
        assert_eq!((first.digest, first.counts), (again.digest, again.counts), "{}", first.seed);
    }
    assert_ne!(digests[0].digest, digests[1].digest, "seeds differ");
}

/// A planted fault is found within so many seeds from `first` on, by one of the named checkers; by
/// any if none is named.
fn is_found(plant: Plant, first: u64, within: u64, checkers: &[&str]) {
    let failed = failures(first, within, Some(plant), true);
    assert!(!failed.is_empty(), "nobody noticed {plant:?} in {within} seeds");
    for (seed, words) in failed {
        let expected = checkers.is_empty()
            || checkers.iter().any(|checker| words.starts_with(&format!("{checker}: ")));
        assert!(expected, "{plant:?} was noticed in seed {seed} by another checker: {words}");
    }
}

macro_rules! plants {
    ($($name:ident: $plant:ident from $first:literal within $seeds:literal by $checkers:expr;)*) => {
        $(#[test]
        fn $name() {
            is_found(Plant::$plant, $first, $seeds, &$checkers);
        })*

        #[test]
        fn every_fault_has_a_test() {
            let tested = [$(Plant::$plant),*];
            assert!(Plant::FAULTS.iter().all(|plant| tested.contains(plant)));
        }
    };
}

plants! {
    an_fsync_that_lies_is_found: LyingSync from 1 within 50
        by ["one log", "one state", "one reply", "availability", "recovery"];
    a_disk_that_forgets_is_found: ForgetfulDisk from 1 within 50
        by ["one log", "one state", "one reply", "availability", "recovery"];
    a_frame_that_vanishes_is_found: SilentLoss from 1 within 50 by ["liveness", "overdue", "queue"];
    frames_that_overtake_are_found: Overtaking from 1 within 50 by ["liveness", "overdue"];
    a_replica_that_stays_outside_is_found: NoReturn from 1 within 50 by ["liveness", "overdue"];
    stale_reads_are_found: StaleReads from 1 within 50 by ["counter", "queue", "reads"];
    keep_alives_that_are_not_passed_on_are_found: SwallowedKeepAlives from 1 within 50
        by ["sessions"];
    an_extra_entry_is_found: ExtraEntry from 1 within 50 by ["one state"];
    early_acknowledgements_are_found: EarlyAcknowledgement from 1 within 50 by ["exactly once"];
    requests_under_new_numbers_are_found: Renumbering from 1 within 50 by [];
}
