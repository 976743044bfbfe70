//! The barrier: nobody leaves a generation before all parties have arrived at it.
//!
//! Invariants checked: a party is told each generation at most once, and later ones later; of a
//! generation that somebody left, all parties had arrived: as many as the barrier needs, unknown
//! calls included, and the last of them before the first left.

use std::collections::BTreeMap;

use super::Findings;
use crate::history::Entry;

/// Which party waits.
pub(crate) type Party = usize;

/// Checks the calls of a barrier of that many parties.
pub(crate) fn check(entries: &[Entry<Party, u64>], parties: usize) -> Findings {
    let mut findings = Findings::default();
    let mut generations = BTreeMap::<u64, Vec<&Entry<Party, u64>>>::new();
    for entry in entries {
        if let Some((generation, _)) = entry.done() {
            generations.entry(*generation).or_default().push(entry);
        }
    }
    let unknown = entries.iter().filter(|entry| entry.is_unknown()).count();
    let (mut early, mut wrong, mut missing) = (Vec::new(), Vec::new(), 0);
    for (generation, calls) in &generations {
        let arrived = calls.iter().map(|call| call.began).max();
        let left = calls.iter().filter_map(|call| call.ended).min();
        if left < arrived {
            early.push(format!("a party left generation {generation} before all had arrived"));
        }
        if calls.len() > parties {
            wrong.push(format!("{} calls passed generation {generation}", calls.len()));
        }
        missing += parties.saturating_sub(calls.len());
    }
    if missing > unknown {
        wrong.push(format!("{missing} arrivals are missing, with {unknown} unknown calls"));
    }
    let skipped = generations.keys().last().map_or(0, |last| last + 1) - generations.len() as u64;
    if skipped * parties as u64 > (unknown - missing.min(unknown)) as u64 {
        wrong.push(format!("{skipped} generations passed without anybody"));
    }
    findings.tell("barrier", early);
    findings.tell("barrier", wrong);
    findings.out_of_order = rising(entries, &mut findings);
    findings
}

/// A party waits in one call after the other.
fn rising(entries: &[Entry<Party, u64>], findings: &mut Findings) -> u64 {
    let mut done: Vec<_> =
        entries.iter().filter_map(|entry| Some((entry, *entry.done()?.0))).collect();
    done.sort_by_key(|(entry, _)| (entry.what, entry.began));
    let pairs = done.windows(2).filter(|pair| pair[0].0.what == pair[1].0.what);
    let falling = pairs.filter(|pair| pair[0].1 >= pair[1].1);
    let told = falling
        .map(|pair| format!("party {} was told {} after {}", pair[0].0.what, pair[1].1, pair[0].1));
    let told = told.collect();
    findings.tell("barrier", told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Outcome;

    fn call(party: Party, began: u64, ended: u64, generation: u64) -> Entry<Party, u64> {
        Entry { what: party, began, ended: Some(ended), outcome: Outcome::Done(generation) }
    }

    fn unknown(party: Party, began: u64) -> Entry<Party, u64> {
        Entry { what: party, began, ended: None, outcome: Outcome::Unknown }
    }

    #[test]
    fn a_good_history_passes() {
        let entries = [call(0, 0, 10, 0), call(1, 5, 9, 0), call(0, 11, 20, 1), unknown(1, 12)];
        assert_eq!(check(&entries, 2), Findings::default());
    }

    #[test]
    fn a_party_that_leaves_early_is_refused() {
        let found = check(&[call(0, 0, 4, 0), call(1, 5, 9, 0)], 2);
        assert!(found.violations[0].contains("left generation 0 before"), "{found:?}");
    }

    #[test]
    fn a_generation_without_all_parties_is_refused() {
        assert_eq!(check(&[call(0, 0, 4, 0)], 2).violations.len(), 1);
        assert_eq!(check(&[call(0, 0, 4, 0), unknown(1, 1)], 2), Findings::default());
    }

    #[test]
    fn too_many_parties_are_refused() {
        let entries = [call(0, 0, 10, 0), call(1, 1, 10, 0), call(2, 2, 10, 0)];
        assert_eq!(check(&entries, 2).violations.len(), 1);
    }

    #[test]
    fn a_generation_that_is_told_twice_or_skipped_is_refused() {
        let entries = [call(0, 0, 10, 0), call(1, 1, 10, 0), call(0, 11, 20, 0)];
        assert_eq!(check(&entries, 2).out_of_order, 1);
        let entries = [call(0, 0, 10, 1), call(1, 1, 10, 1)];
        assert!(check(&entries, 2).violations[0].contains("without anybody"));
    }
}
