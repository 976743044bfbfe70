//! The book of one key of a register: what calls saw and left there, in the order of their steps.
//!
//! Each call that was answered took effect at its step, so what it saw must be what the one before it left,
//! or come from calls of which nothing is known: each of those took effect once at most, and after
//! everything that its client had heard of when it asked.
//! Invariant: nothing is held against a register that some order of the unknown calls explains.
//! Not here: that versions rise, which holds for all keys together (`registers.rs`).

use std::collections::{BTreeMap, BTreeSet};

use gesmas_machine::Step;

/// What a call saw under its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Saw {
    /// It did not look.
    Unseen,
    Nothing,
    Something,
    Version(u64),
    AnotherThan(u64),
}

/// What it left there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    AsItWas,
    Nothing,
    Version(u64),
}

/// A call of which nothing is known.
#[derive(Clone, Copy, Debug)]
struct Maybe {
    /// What its client had heard of when it asked.
    after: Step,
    /// The value that it may have written; none if it removes.
    value: Option<u64>,
}

/// What is there between two calls, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum There {
    Nothing,
    Version(u64),
    Unknown,
}

#[derive(Debug, Default)]
pub(super) struct Cell {
    acts: BTreeMap<Step, (Saw, Left)>,
    maybe: Vec<Maybe>,
}

impl Cell {
    /// A call was answered.
    pub(super) fn act(&mut self, step: Step, saw: Saw, left: Left) {
        self.acts.insert(step, (saw, left));
    }

    /// A call was not, and writes this value or removes what is there.
    pub(super) fn may_have_acted(&mut self, after: Step, value: Option<u64>) {
        self.maybe.push(Maybe { after, value });
    }

    /// Goes through all calls; `values` are those of the versions that somebody saw. The error says what
    /// nothing explains.
    pub(super) fn verify(&self, values: &BTreeMap<u64, u64>) -> Result<(), String> {
        let left = |(_, left): &(Saw, Left)| match left {
            Left::Version(version) => Some(*version),
            _ => None,
        };
        let written: BTreeSet<u64> = self.acts.values().filter_map(left).collect();
        let (mut there, mut surprises) = (There::Nothing, 0);
        for (step, (saw, left)) in &self.acts {
            let before = there;
            let told = || format!("a call at {step} saw {saw:?}, and there was {before:?}");
            if !fits(*saw, there) {
                surprises += 1;
                let explained = self.maybe.iter().filter(|maybe| maybe.after < *step).count();
                if surprises > explained {
                    return Err(format!("{}; only {explained} calls are unknown", told()));
                }
            }
            if !self.is_possible(*saw, *step, there, (values, &written)) {
                return Err(format!("{}, which no unknown call explains", told()));
            }
            there = after(*saw, *left, there);
        }
        Ok(())
    }

    /// Whether calls of which nothing is known can have left what was seen.
    fn is_possible(
        &self,
        saw: Saw,
        step: Step,
        there: There,
        (values, written): (&BTreeMap<u64, u64>, &BTreeSet<u64>),
    ) -> bool {
        let removed = || self.maybe.iter().any(|maybe| maybe.value.is_none());
        match saw {
            _ if fits(saw, there) && there != There::Unknown => true,
            Saw::Nothing => removed(),
            // A version that is known to be of another place in this order has no second one.
            Saw::Version(version) if written.contains(&version) => false,
            Saw::Version(version) => self.maybe.iter().any(|maybe| {
                let value = values.get(&version);
                maybe.after < step
                    && maybe.value.is_some()
                    && value.is_none_or(|value| maybe.value == Some(*value))
            }),
            Saw::Unseen | Saw::Something | Saw::AnotherThan(_) => true,
        }
    }
}

/// Whether a call may have seen this without anything unknown in between.
fn fits(saw: Saw, there: There) -> bool {
    match (saw, there) {
        (_, There::Unknown) | (Saw::Unseen, _) => true,
        (Saw::Nothing, there) => there == There::Nothing,
        (Saw::Something, there) => there != There::Nothing,
        (Saw::Version(version), there) => there == There::Version(version),
        (Saw::AnotherThan(version), there) => there != There::Version(version),
    }
}

/// What is there after a call.
fn after(saw: Saw, left: Left, there: There) -> There {
    match (left, saw) {
        (Left::Version(version), _) | (Left::AsItWas, Saw::Version(version)) => {
            There::Version(version)
        }
        (Left::Nothing, _) | (Left::AsItWas, Saw::Nothing) => There::Nothing,
        (Left::AsItWas, saw) if fits(saw, there) => there,
        (Left::AsItWas, _) => There::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call that writes version 1 at step 10 and another that takes it for granted at step 20.
    fn cell(saw: Saw, left: Left) -> Cell {
        let mut cell = Cell::default();
        cell.act(Step(10), Saw::Unseen, Left::Version(1));
        cell.act(Step(20), saw, left);
        cell
    }

    #[test]
    fn what_the_call_before_left_is_seen() {
        let values = BTreeMap::new();
        assert_eq!(cell(Saw::Version(1), Left::Version(2)).verify(&values), Ok(()));
        assert_eq!(cell(Saw::AnotherThan(7), Left::AsItWas).verify(&values), Ok(()));
        for saw in [Saw::Nothing, Saw::Version(7), Saw::AnotherThan(1)] {
            assert!(cell(saw, Left::AsItWas).verify(&values).is_err(), "{saw:?}");
        }
    }

    #[test]
    fn an_unknown_call_explains_one_surprise_after_it_was_asked() {
        let values = BTreeMap::from([(5, 50)]);
        let mut lost = cell(Saw::Version(5), Left::Version(6));
        assert!(lost.verify(&values).is_err());
        lost.may_have_acted(Step(20), Some(50));
        assert!(lost.verify(&values).is_err(), "it was asked later");
        lost.may_have_acted(Step(12), Some(51));
        assert!(lost.verify(&values).is_err(), "it writes something else");
        lost.may_have_acted(Step(12), Some(50));
        assert_eq!(lost.verify(&values), Ok(()));
        lost.act(Step(30), Saw::Version(1), Left::AsItWas);
        assert!(lost.verify(&values).is_err(), "a version does not come back");
    }
}
