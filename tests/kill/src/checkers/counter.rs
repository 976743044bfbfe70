//! The counter: every acknowledged increment got a number of its own, in real-time order.
//!
//! Invariants checked: numbers are unique; whoever began after another had ended got a greater
//! number, a read at least as great a one; in the end the count is the acknowledged increments and
//! at most the unknown ones besides, and no number that nobody got is left without an unknown call.

use std::collections::BTreeMap;

use super::{Findings, sweep};
use crate::history::Entry;

/// What is asked of the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CounterCall {
    /// Adds 1 and gives the new count.
    Increment,
    /// Gives the count.
    Read,
}

/// Checks the calls, given the count in the end.
pub(crate) fn check(entries: &[Entry<CounterCall, i64>], end: Option<i64>) -> Findings {
    let mut findings = Findings::default();
    findings.duplicates = unique(entries, &mut findings);
    findings.out_of_order = real_time(entries, &mut findings);
    if let Some(end) = end {
        findings.lost = count(entries, end, &mut findings);
    }
    findings
}

fn increments(
    entries: &[Entry<CounterCall, i64>],
) -> impl Iterator<Item = &Entry<CounterCall, i64>> {
    entries.iter().filter(|entry| entry.what == CounterCall::Increment)
}

fn unique(entries: &[Entry<CounterCall, i64>], findings: &mut Findings) -> u64 {
    let mut given = BTreeMap::new();
    for (value, _) in increments(entries).filter_map(Entry::done) {
        *given.entry(*value).or_insert(0_u64) += 1;
    }
    let twice = given.iter().filter(|(_, times)| **times > 1);
    let told = twice.map(|(value, times)| format!("{value} was given out {times} times"));
    let told = told.collect();
    findings.tell("counter", told)
}

fn real_time(entries: &[Entry<CounterCall, i64>], findings: &mut Findings) -> u64 {
    let done = entries.iter().filter_map(|entry| Some((entry, entry.done()?)));
    let begins = done.clone().map(|(entry, (value, _))| (entry.began, (entry.what, *value)));
    let ends = done.map(|(_, (value, ended))| (ended, *value));
    let mut told = Vec::new();
    sweep(begins.collect(), ends.collect(), |(what, value), before| {
        let good = match what {
            CounterCall::Increment => before.is_none_or(|before| *value > before),
            CounterCall::Read => before.is_none_or(|before| *value >= before),
        };
        if !good {
            let before = before.expect("nothing is wrong without it");
            told.push(format!("{what:?} gave {value} after {before} had been given"));
        }
    });
    findings.tell("counter", told)
}

/// Says how many acknowledged increments are missing.
fn count(entries: &[Entry<CounterCall, i64>], end: i64, findings: &mut Findings) -> u64 {
    let signed = |count: usize| i64::try_from(count).expect("no history is that long");
    let unknown = signed(increments(entries).filter(|entry| entry.is_unknown()).count());
    let mut values: Vec<_> =
        increments(entries).filter_map(Entry::done).map(|(value, _)| *value).collect();
    let acknowledged = signed(values.len());
    values.sort_unstable();
    values.dedup();
    let mut told = Vec::new();
    if end < acknowledged {
        told.push(format!("{acknowledged} increments were acknowledged, and the count is {end}"));
    }
    if end > acknowledged + unknown {
        told.push(format!(
            "the count is {end}, after {acknowledged} acknowledged and {unknown} unknown increments"
        ));
    }
    let greatest = values.last().copied().unwrap_or(0);
    if greatest > end {
        told.push(format!("{greatest} was given out, and the count is {end}"));
    }
    if values.first().is_some_and(|least| *least < 1) {
        told.push("a number below 1 was given out".into());
    }
    let gaps = greatest - signed(values.len());
    if gaps > unknown {
        told.push(format!("{gaps} numbers were given to nobody, with {unknown} unknown calls"));
    }
    findings.tell("counter", told);
    u64::try_from(acknowledged - end).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Outcome;

    fn entry(
        what: CounterCall,
        began: u64,
        ended: u64,
        outcome: Outcome<i64>,
    ) -> Entry<CounterCall, i64> {
        Entry { what, began, ended: Some(ended), outcome }
    }

    fn increment(began: u64, ended: u64, value: i64) -> Entry<CounterCall, i64> {
        entry(CounterCall::Increment, began, ended, Outcome::Done(value))
    }

    fn read(began: u64, ended: u64, value: i64) -> Entry<CounterCall, i64> {
        entry(CounterCall::Read, began, ended, Outcome::Done(value))
    }

    fn unknown(began: u64) -> Entry<CounterCall, i64> {
        entry(CounterCall::Increment, began, began + 1, Outcome::Unknown)
    }

    #[test]
    fn a_good_history_passes() {
        // Two overlap and come in either order; an unknown one took 3; another had no effect.
        let entries = [
            increment(0, 9, 2),
            increment(1, 8, 1),
            unknown(10),
            increment(20, 30, 4),
            read(31, 32, 4),
            unknown(40),
        ];
        assert_eq!(check(&entries, Some(4)), Findings::default());
        assert_eq!(check(&entries, Some(5)), Findings::default());
    }

    #[test]
    fn a_number_given_out_twice_is_refused() {
        let found = check(&[increment(0, 9, 1), increment(1, 8, 1)], Some(2));
        assert_eq!(found.duplicates, 1);
        assert!(found.violations[0].contains("given out 2 times"), "{found:?}");
    }

    #[test]
    fn an_order_against_real_time_is_refused() {
        let found = check(&[increment(0, 1, 2), increment(2, 3, 1)], Some(2));
        assert_eq!(found.out_of_order, 1);
        let found = check(&[increment(0, 1, 1), increment(2, 3, 2), read(4, 5, 1)], Some(2));
        assert_eq!(found.out_of_order, 1, "a stale read");
        let found = check(&[read(0, 1, 1), increment(2, 3, 1)], Some(1));
        assert_eq!(found.out_of_order, 1, "a read that saw what had not begun");
    }

    #[test]
    fn a_lost_increment_is_refused() {
        let found = check(&[increment(0, 1, 1), increment(2, 3, 2)], Some(1));
        assert_eq!(found.lost, 1);
        assert_eq!(found.violations.len(), 2, "{found:?}");
    }

    #[test]
    fn an_increment_that_nobody_made_is_refused() {
        assert!(!check(&[increment(0, 1, 1)], Some(2)).violations.is_empty());
        assert!(check(&[increment(0, 1, 1), unknown(0)], Some(2)).violations.is_empty());
        let nothing = entry(CounterCall::Increment, 0, 1, Outcome::Nothing);
        assert!(!check(&[increment(0, 1, 1), nothing], Some(2)).violations.is_empty());
    }

    #[test]
    fn a_gap_without_an_unknown_call_is_refused() {
        let found = check(&[increment(0, 1, 1), increment(2, 3, 3)], Some(3));
        assert!(found.violations.iter().any(|text| text.contains("given to nobody")), "{found:?}");
        let found = check(&[increment(0, 1, 1), increment(2, 3, 3), unknown(2)], Some(3));
        assert_eq!(found, Findings::default());
    }
}
