//! Some plants of each kind, looked for quickly; `gesmas-simulator --planted all` looks for every one.

use std::collections::BTreeSet;

use gesmas_machine::{Planted, PlantedBug};
use gesmas_simulator::{Options, Plant, Twin, notice, run_seed};

/// A bug is noticed within so many seeds by checkers that see only what clients see.
fn clients_notice(bug: PlantedBug, within: u64) {
    let noticed = notice(Some(Plant::Bug(bug)), true, within);
    assert!(noticed.is_some(), "no client noticed {bug:?} in {within} seeds");
}

#[test]
fn clients_notice_bugs_of_semaphores() {
    clients_notice(PlantedBug::VTwice, 20);
    clients_notice(PlantedBug::Barging, 20);
    clients_notice(PlantedBug::PermitLostOnUndo, 20);
}

#[test]
fn clients_notice_what_runs_twice_or_too_often() {
    clients_notice(PlantedBug::DoubleApply, 20);
    clients_notice(PlantedBug::TimerTwice, 20);
    clients_notice(PlantedBug::ReplyNotKept, 20);
}

#[test]
fn a_bug_that_no_client_sees_is_noticed_by_comparison() {
    let noticed = notice(Some(Plant::Bug(PlantedBug::HashMapOrder)), false, 50);
    assert_eq!(noticed.expect("somebody noticed").violation.checker, "one state");
}

/// The classes with wrong twins, and the names of their checkers.
const TWINS: [(&str, &str); 8] = [
    ("Election", "election"),
    ("Latch", "latch"),
    ("Lease", "lease"),
    ("Membership", "membership"),
    ("RateLimiter", "rate limiter"),
    ("Register", "register"),
    ("TupleSpace", "tuple space"),
    ("WorkQueue", "work queue"),
];

#[test]
fn wrong_twins_are_noticed_by_the_checkers_of_their_classes() {
    let classes: BTreeSet<_> = Twin::ALL.iter().map(|twin| twin.class()).collect();
    assert!(classes.iter().eq(TWINS.iter().map(|(class, _)| class)), "{classes:?}");
    for twin in Twin::ALL {
        let noticed = notice(Some(Plant::Twin(*twin)), true, 20);
        let checker = noticed.map(|notice| notice.violation.checker);
        let known = TWINS.iter().find(|(class, _)| *class == twin.class());
        assert_eq!(checker, known.map(|(_, checker)| *checker), "{twin:?}");
    }
}

/// Whoever is served out of turn is noticed by the limiter's own clients.
#[test]
fn calls_of_a_rate_limiter_that_overtake_are_noticed() {
    let plant = Some(Plant::Bug(PlantedBug::Barging));
    let class = Some("RateLimiter");
    let verdict = |seed| run_seed(Options { plant, class, outside: true, ..Options::new(seed) });
    let violations = (1..30).filter_map(|seed| verdict(seed).violation);
    let noticed = violations.into_iter().any(|violation| violation.checker == "rate limiter");
    assert!(noticed, "no client of a rate limiter noticed that others passed");
}

/// Without a choice nothing is planted, although the feature is on here.
#[test]
fn no_plant_is_in_effect_by_default() {
    assert_eq!(Options::new(1).plant, None);
    let config = gesmas::paxos::NodeConfig::new(1, 1, 1, vec![1, 2, 3]);
    for bug in PlantedBug::ALL {
        assert!(!Planted::default().has(*bug), "{bug:?}");
        assert!(!config.planted.has(*bug), "{bug:?}");
        assert!(Planted::new(*bug, 1).has(*bug), "{bug:?}");
    }
    assert_eq!(run_seed(Options::new(1)).violation, None);
}

/// Who judges changes nothing of what happens.
#[test]
fn a_seed_that_only_clients_judge_takes_the_same_course() {
    for seed in 1..6 {
        let all = run_seed(Options::new(seed));
        let outside = run_seed(Options { outside: true, ..Options::new(seed) });
        assert_eq!((all.violation, all.digest), (outside.violation, outside.digest), "{seed}");
    }
}
