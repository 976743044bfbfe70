//! The semantics of the machine as scenarios: one file for each part of them.
//!
//! A scenario is played in the laboratory (`lab.rs`), which also checks, for every batch of every
//! scenario, that parked bodies, images and slices change nothing.

mod budgets;
mod cancellation;
mod classes;
mod collections;
mod deadlock;
mod divergence;
mod examples;
mod faults;
mod frames;
mod images;
mod lab;
mod limits;
mod model;
mod objects;
mod once;
mod random;
mod replacement;
mod scheduling;
mod segments;
mod sessions;
mod standard;
mod time;
mod trials;
mod weights;

use expect_test::Expect;

use crate::lab::Lab;

/// Plays a scenario on machines that have these classes.
fn check(classes: &[&str], script: &str, expected: &Expect) {
    expected.assert_eq(&Lab::new(classes).play(script));
}
