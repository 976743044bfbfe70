//! Proves the checkers: plants one thing after the other, and says who notices it and how soon.
//!
//! Each plant is looked for twice: by all checkers, and by those alone that see what clients see
//! (`Options::outside`), where a panic or another alarm of the product's own does not count.
//! Invariant: the number of seeds needed is that of the first seed that fails, however many threads
//! run them.

use std::sync::Mutex;

use crate::{
    options::{Options, Plant},
    run::run_seeds,
    verdict::{Verdict, Violation},
};

/// Who noticed a plant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The checker, and what it saw.
    pub violation: Violation,
    /// Seeds that it took.
    pub seeds: u64,
}

/// The first of so many seeds that notices a plant, if one does; without a plant, the first that
/// raises an alarm.
#[must_use]
pub fn notice(plant: Option<Plant>, outside: bool, within: u64) -> Option<Notice> {
    let first = Mutex::new(None::<Notice>);
    let common = Options { plant, outside, ..Options::new(1) };
    run_seeds(1, within, common, &|verdict: &Verdict| {
        let noticed = verdict.violation.as_ref();
        let Some(violation) = noticed.filter(|seen| !outside || seen.is_seen_by_clients()) else {
            return true;
        };
        let mut first = first.lock().expect("no report panics");
        if first.as_ref().is_none_or(|known| verdict.seed < known.seeds) {
            *first = Some(Notice { violation: violation.clone(), seeds: verdict.seed });
        }
        false
    });
    first.into_inner().expect("no report panics")
}
