//! The queue: no item lost, none twice, in order, and never more than the capacity.
//!
//! Invariants checked: an acknowledged item is consumed exactly once by the end, unless a consumer
//! whose call is unknown may have taken it along; an item of an unknown call at most once; items of
//! one producer in the order in which they were brought, and all items in the order of real time.
//! Precondition: everything was drained at the end.

use std::collections::{BTreeMap, BTreeSet};

use super::{Findings, sweep};
use crate::history::{Entry, Outcome};

/// An item: who brought it, and its place among the items of that producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Item {
    /// The producer.
    pub(crate) producer: u64,
    /// Its place.
    pub(crate) place: u64,
}

/// A call that brings an item.
pub(crate) type Produced = Entry<Item, ()>;
/// A call of a consumer that takes one.
pub(crate) type Consumed = Entry<usize, Item>;

/// Checks the calls of a queue of that capacity.
pub(crate) fn check(produced: &[Produced], consumed: &[Consumed], capacity: u64) -> Findings {
    let mut findings = Findings::default();
    let taken: Vec<_> = consumed
        .iter()
        .filter_map(|entry| entry.done().map(|(item, ended)| (*item, entry.began, ended)))
        .collect();
    once(produced, consumed, &taken, &mut findings);
    let brought: BTreeMap<_, _> = produced.iter().map(|entry| (entry.what, entry)).collect();
    findings.out_of_order =
        real_time(&brought, &taken, &mut findings) + by_producer(&taken, &mut findings);
    bounded(produced, consumed, capacity, &mut findings);
    findings
}

/// An item that was taken, when the call that took it began and when it ended.
type Taken = (Item, u64, u64);

fn once(produced: &[Produced], consumed: &[Consumed], taken: &[Taken], findings: &mut Findings) {
    let mut times = BTreeMap::new();
    for (item, ..) in taken {
        *times.entry(*item).or_insert(0_u64) += 1;
    }
    let twice = times.iter().filter(|(_, count)| **count > 1);
    let told = twice.map(|(item, count)| format!("{item:?} was consumed {count} times")).collect();
    findings.duplicates = findings.tell("queue", told);

    // What was certainly not brought cannot be there.
    let may_exist: BTreeSet<_> = produced
        .iter()
        .filter(|entry| entry.outcome != Outcome::Nothing)
        .map(|entry| entry.what)
        .collect();
    let strange = times.keys().filter(|item| !may_exist.contains(item));
    let told =
        strange.map(|item| format!("{item:?} was consumed, and nobody brought it")).collect();
    findings.tell("queue", told);

    let unknown = consumed.iter().filter(|entry| entry.is_unknown()).count();
    let missing: Vec<_> = produced
        .iter()
        .filter(|entry| entry.done().is_some() && !times.contains_key(&entry.what))
        .map(|entry| format!("{:?} was acknowledged and never consumed", entry.what))
        .collect();
    if missing.len() > unknown {
        findings.lost = (missing.len() - unknown) as u64;
        findings.tell("queue", missing);
    }
}

/// If one item was in the queue before another was brought, it cannot come out after it.
fn real_time(brought: &BTreeMap<Item, &Produced>, taken: &[Taken], findings: &mut Findings) -> u64 {
    let mut begins = Vec::new();
    let mut ends = Vec::new();
    for (item, began, ended) in taken {
        let Some(entry) = brought.get(item) else { continue };
        if let Some((_, acknowledged)) = entry.done() {
            begins.push((*began, (*item, acknowledged)));
        }
        ends.push((*ended, (entry.began, *item)));
    }
    let mut told = Vec::new();
    sweep(begins, ends, |(item, acknowledged), before| {
        if let Some((later, other)) = before
            && later > *acknowledged
        {
            told.push(format!("{other:?} came out before {item:?}, which was there first"));
        }
    });
    findings.tell("queue", told)
}

/// A producer's items come out in the order in which it brought them, even if it brought several
/// without waiting.
fn by_producer(taken: &[Taken], findings: &mut Findings) -> u64 {
    let mut producers = BTreeMap::<u64, Vec<&Taken>>::new();
    for consumption in taken {
        producers.entry(consumption.0.producer).or_default().push(consumption);
    }
    let mut told = Vec::new();
    for (producer, taken) in producers {
        let begins = taken.iter().map(|(item, began, _)| (*began, item.place)).collect();
        let ends = taken.iter().map(|(item, _, ended)| (*ended, item.place)).collect();
        sweep(begins, ends, |place, before| {
            if let Some(before) = before
                && before > *place
            {
                told.push(format!("item {before} of producer {producer} came before {place}"));
            }
        });
    }
    findings.tell("queue", told)
}

/// What was acknowledged and what no consumer had even asked for was in the queue at that time.
fn bounded(produced: &[Produced], consumed: &[Consumed], capacity: u64, findings: &mut Findings) {
    // At equal times a consumer's asking comes first.
    let mut events: Vec<_> = produced
        .iter()
        .filter_map(|entry| entry.done().map(|(_, ended)| (ended, 1, 1_i64)))
        .chain(
            consumed
                .iter()
                .filter(|entry| entry.outcome != Outcome::Nothing)
                .map(|entry| (entry.began, 0, -1)),
        )
        .collect();
    events.sort_unstable();
    let mut inside = 0_i64;
    let mut greatest = 0;
    for (_, _, change) in events {
        inside += change;
        greatest = greatest.max(inside);
    }
    if u64::try_from(greatest).is_ok_and(|greatest| greatest > capacity) {
        let text = format!("{greatest} items were in a queue that holds {capacity}");
        findings.tell("queue", vec![text]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITY: u64 = 4;

    fn brought(producer: u64, place: u64, began: u64, ended: u64) -> Produced {
        let what = Item { producer, place };
        Entry { what, began, ended: Some(ended), outcome: Outcome::Done(()) }
    }

    fn taken(producer: u64, place: u64, began: u64, ended: u64) -> Consumed {
        let outcome = Outcome::Done(Item { producer, place });
        Entry { what: 0, began, ended: Some(ended), outcome }
    }

    fn check(produced: &[Produced], consumed: &[Consumed]) -> Findings {
        super::check(produced, consumed, CAPACITY)
    }

    #[test]
    fn a_good_history_passes() {
        let produced = [brought(1, 0, 0, 5), brought(2, 0, 4, 8), brought(1, 1, 6, 7)];
        let consumed = [taken(2, 0, 1, 9), taken(1, 0, 2, 9), taken(1, 1, 10, 11)];
        assert_eq!(check(&produced, &consumed), Findings::default());
    }

    #[test]
    fn a_lost_item_is_refused_unless_an_unknown_consumer_may_have_it() {
        let produced = [brought(1, 0, 0, 1)];
        assert_eq!(check(&produced, &[]).lost, 1);
        let unknown = Entry { what: 0, began: 2, ended: None, outcome: Outcome::Unknown };
        assert_eq!(check(&produced, &[unknown]), Findings::default());
        let nothing = Entry { what: 0, began: 2, ended: Some(3), outcome: Outcome::Nothing };
        assert_eq!(check(&produced, &[nothing]).lost, 1);
    }

    #[test]
    fn an_item_that_comes_twice_is_refused() {
        let consumed = [taken(1, 0, 2, 3), taken(1, 0, 2, 3)];
        assert_eq!(check(&[brought(1, 0, 0, 1)], &consumed).duplicates, 1);
    }

    #[test]
    fn an_item_of_an_unknown_call_may_come_at_most_once() {
        let unknown = Entry { outcome: Outcome::Unknown, ended: Some(1), ..brought(1, 0, 0, 1) };
        assert_eq!(check(std::slice::from_ref(&unknown), &[]), Findings::default());
        let once = [taken(1, 0, 2, 3)];
        assert_eq!(check(std::slice::from_ref(&unknown), &once), Findings::default());
        let twice = [taken(1, 0, 2, 3), taken(1, 0, 4, 5)];
        assert_eq!(check(&[unknown], &twice).duplicates, 1);
    }

    #[test]
    fn an_item_that_nobody_brought_is_refused() {
        let nothing = Entry { outcome: Outcome::Nothing, ..brought(1, 0, 0, 1) };
        let found = check(&[nothing], &[taken(1, 0, 2, 3)]);
        assert!(found.violations[0].contains("nobody brought it"), "{found:?}");
        assert!(!check(&[], &[taken(7, 7, 2, 3)]).violations.is_empty());
    }

    #[test]
    fn an_order_against_real_time_is_refused() {
        let produced = [brought(1, 0, 0, 1), brought(2, 0, 2, 3)];
        let consumed = [taken(2, 0, 4, 5), taken(1, 0, 6, 7)];
        assert_eq!(check(&produced, &consumed).out_of_order, 1);
    }

    #[test]
    fn a_producers_order_counts_even_among_calls_that_overlap() {
        let produced = [brought(1, 0, 0, 9), brought(1, 1, 0, 9)];
        let consumed = [taken(1, 1, 10, 11), taken(1, 0, 12, 13)];
        assert_eq!(check(&produced, &consumed).out_of_order, 1);
        let overlapping = [taken(1, 1, 10, 13), taken(1, 0, 12, 14)];
        assert_eq!(check(&produced, &overlapping), Findings::default());
    }

    #[test]
    fn more_items_than_the_queue_holds_are_refused() {
        let produced: Vec<_> = (0..5).map(|place| brought(1, place, place, place + 1)).collect();
        let consumed: Vec<_> =
            (0..5).map(|place| taken(1, place, 20 + 2 * place, 21 + 2 * place)).collect();
        let found = check(&produced, &consumed);
        assert_eq!(found.violations, ["queue: 5 items were in a queue that holds 4"]);
    }
}
