//! What clients did and saw: one entry a call, in the time of this process.
//!
//! All clients live in one process and read one monotonic clock, so "before" in a history is before
//! in real time.
//! Invariants: a call is entered before it is made and closed after its end was heard; a call that
//! was never closed counts as unknown.
//! Not here: what a good history is (`checkers/`).

use std::{
    sync::{Mutex, PoisonError},
    time::Instant,
};

/// Real time, nanoseconds since the run began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    /// Begins at 0.
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// The time.
    pub(crate) fn now(self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).expect("no run takes centuries")
    }
}

/// What a client knows of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome<R> {
    /// It was done, with this result.
    Done(R),
    /// It certainly did nothing: refused, cancelled, never sent.
    Nothing,
    /// Nobody can tell. It may also take effect after the client was told so.
    Unknown,
}

/// One call.
#[derive(Clone, Debug)]
pub(crate) struct Entry<W, R> {
    /// What was asked.
    pub(crate) what: W,
    /// Before it was asked.
    pub(crate) began: u64,
    /// After its end was heard; none of a call that is open.
    pub(crate) ended: Option<u64>,
    /// How it ended.
    pub(crate) outcome: Outcome<R>,
}

impl<W, R> Entry<W, R> {
    /// The result and the end of a call that was acknowledged.
    pub(crate) const fn done(&self) -> Option<(&R, u64)> {
        match (&self.outcome, self.ended) {
            (Outcome::Done(result), Some(ended)) => Some((result, ended)),
            _ => None,
        }
    }

    /// Whether nobody can tell what it did.
    pub(crate) const fn is_unknown(&self) -> bool {
        matches!(self.outcome, Outcome::Unknown)
    }
}

/// The calls of one workload.
#[derive(Debug)]
pub(crate) struct Book<W, R>(Mutex<Vec<Entry<W, R>>>);

impl<W, R> Default for Book<W, R> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<W: Clone, R: Clone> Book<W, R> {
    /// Enters a call that is about to be made, and gives its place.
    pub(crate) fn open(&self, what: W, began: u64) -> usize {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.push(Entry { what, began, ended: None, outcome: Outcome::Unknown });
        entries.len() - 1
    }

    /// Closes a call.
    pub(crate) fn close(&self, place: usize, ended: u64, outcome: Outcome<R>) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = &mut entries[place];
        assert!(entry.ended.is_none(), "a call ends once");
        entry.ended = Some(ended);
        entry.outcome = outcome;
    }

    /// All calls so far.
    pub(crate) fn entries(&self) -> Vec<Entry<W, R>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A book as the checks of all books see it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// Calls that were acknowledged.
    pub(crate) acknowledged: u64,
    /// Calls that certainly did nothing.
    pub(crate) nothing: u64,
    /// Calls of which nobody can tell.
    pub(crate) unknown: u64,
    /// When calls were acknowledged.
    pub(crate) times: Vec<u64>,
}

impl Tally {
    /// Adds a book.
    pub(crate) fn add<W, R>(&mut self, entries: &[Entry<W, R>]) {
        for entry in entries {
            match &entry.outcome {
                Outcome::Done(_) => self.acknowledged += 1,
                Outcome::Nothing => self.nothing += 1,
                Outcome::Unknown => self.unknown += 1,
            }
            self.times.extend(entry.done().map(|(_, ended)| ended));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_never_ends_is_unknown() {
        let book = Book::<&str, u64>::default();
        let first = book.open("first", 1);
        book.open("second", 2);
        book.close(first, 3, Outcome::Done(7));
        let entries = book.entries();
        assert_eq!(entries[0].done(), Some((&7, 3)));
        assert!(entries[1].is_unknown());
        let mut tally = Tally::default();
        tally.add(&entries);
        assert_eq!((tally.acknowledged, tally.unknown, tally.times), (1, 1, vec![3]));
    }
}
