//! Virtual time: what happens next.
//!
//! Invariants: time never goes back; events of one moment happen in the order in which they were
//! scheduled.

use std::collections::BTreeMap;

/// One microsecond in nanoseconds.
pub(crate) const MICROSECOND: u64 = 1_000;
/// One millisecond in nanoseconds.
pub(crate) const MILLISECOND: u64 = 1_000_000;
/// One second in nanoseconds.
pub(crate) const SECOND: u64 = 1_000_000_000;

/// The events to come.
#[derive(Debug)]
pub(crate) struct Schedule<E> {
    now: u64,
    next: u64,
    events: BTreeMap<(u64, u64), E>,
}

impl<E> Schedule<E> {
    /// Nothing is to come, and it is time 0.
    pub(crate) fn new() -> Self {
        Self { now: 0, next: 0, events: BTreeMap::new() }
    }

    /// The time now.
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// Something happens then, or now if that is past.
    pub(crate) fn at(&mut self, time: u64, event: E) {
        self.next += 1;
        self.events.insert((time.max(self.now), self.next), event);
    }

    /// Something happens after a while.
    pub(crate) fn after(&mut self, delay: u64, event: E) {
        self.at(self.now + delay, event);
    }

    /// Goes on to the next event.
    pub(crate) fn pop(&mut self) -> Option<E> {
        let ((time, _), event) = self.events.pop_first()?;
        self.now = time;
        Some(event)
    }
}
