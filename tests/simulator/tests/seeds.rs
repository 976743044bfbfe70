//! Seeds that every build runs: none fails, each replays exactly, and every planted fault is found.

use std::sync::Mutex;

use gesmas_simulator::{Options, Plant, Verdict, run_seed, run_seeds};

/// Seeds without a plant.
const SEEDS: u64 = 140;

/// The failing seeds of a range, with what failed.
fn failures(first: u64, number: u64, plant: Option<Plant>, stop: bool) -> Vec<(u64, String)> {
    let failed = Mutex::new(Vec::new());
    run_seeds(first, number, plant, &|verdict: &Verdict| {
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

/// A planted fault is found within so many seeds, by any checker.
fn is_found(plant: Plant, within: u64) {
    let failed = failures(1, within, Some(plant), true);
    assert!(!failed.is_empty(), "nobody noticed {plant:?} in {within} seeds");
}

macro_rules! plants {
    ($($name:ident: $plant:ident within $seeds:literal;)*) => {
        $(#[test]
        fn $name() {
            is_found(Plant::$plant, $seeds);
        })*

        #[test]
        fn every_plant_has_a_test() {
            let tested = [$(Plant::$plant),*];
            assert!(Plant::ALL.iter().all(|plant| tested.contains(plant)));
        }
    };
}

plants! {
    an_fsync_that_lies_is_found: LyingSync within 50;
    a_disk_that_forgets_is_found: ForgetfulDisk within 50;
    a_frame_that_vanishes_is_found: SilentLoss within 50;
    frames_that_overtake_are_found: Overtaking within 150;
    the_lost_workaround_is_found: NoDrain within 300;
    stale_reads_are_found: StaleReads within 100;
    keep_alives_that_are_not_passed_on_are_found: SwallowedKeepAlives within 50;
    an_extra_entry_is_found: ExtraEntry within 50;
    early_acknowledgements_are_found: EarlyAcknowledgement within 50;
    requests_under_new_numbers_are_found: Renumbering within 50;
}
