//! What a session has received and the server may forget.
//!
//! Numbers of replies ride on the next request that is sent for the first time and stay with it, so
//! that they arrive exactly when it is admitted. An idle session announces them by a message of
//! their own, which nobody confirms; therefore they also still ride on the next request.
//! Invariant: a number leaves this table only onto a request that will be sent until it is admitted.

use std::time::Duration;

use gesmas_protocol::Acknowledged;

use crate::clock::Moment;

/// How many ranges one message carries: a bound for its size; the rest rides on the next one.
const RANGES_PER_MESSAGE: usize = 256;
/// So many replies are announced at once rather than after a while, since the server stores them.
const AT_ONCE: u64 = 4_096;

/// Ranges of numbers, rising, apart.
#[derive(Debug, Default)]
pub(super) struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    /// Adds a number. Adding one twice is the same as once.
    fn insert(&mut self, number: u64) {
        let next = self.0.partition_point(|&(_, end)| end < number);
        if self.0.get(next).is_some_and(|&(start, _)| start <= number) {
            return;
        }
        let joins_before = next > 0 && self.0[next - 1].1 + 1 == number;
        let joins_after = self.0.get(next).is_some_and(|&(start, _)| number + 1 == start);
        match (joins_before, joins_after) {
            (true, true) => {
                let (_, end) = self.0.remove(next);
                self.0[next - 1].1 = end;
            }
            (true, false) => self.0[next - 1].1 = number,
            (false, true) => self.0[next].0 = number,
            (false, false) => self.0.insert(next, (number, number)),
        }
    }
}

/// The table.
#[derive(Debug)]
pub(super) struct Acknowledgements {
    replies: Ranges,
    unannounced: u64,
    events: u64,
    patience: Duration,
    due: Option<Moment>,
}

impl Acknowledgements {
    /// An empty table, which an idle session announces after `patience`.
    pub(super) const fn new(patience: Duration) -> Self {
        Self { replies: Ranges(Vec::new()), unannounced: 0, events: 0, patience, due: None }
    }

    /// A reply arrived.
    pub(super) fn add_reply(&mut self, now: Moment, number: u64) {
        self.replies.insert(number);
        self.unannounced += 1;
        self.note(now);
    }

    /// All events up to this one were consumed.
    pub(super) fn add_event(&mut self, now: Moment, number: u64) {
        if number > self.events {
            self.events = number;
            self.note(now);
        }
    }

    fn note(&mut self, now: Moment) {
        if self.unannounced >= AT_ONCE {
            self.due = Some(now);
        } else {
            self.due.get_or_insert(now + self.patience);
        }
    }

    /// Announce what is there now: the server has no room for more.
    pub(super) fn hurry(&mut self, now: Moment) {
        if !self.replies.0.is_empty() {
            self.due = Some(now);
        }
    }

    /// When an idle session announces.
    pub(super) const fn due(&self) -> Option<Moment> {
        self.due
    }

    /// Number of the last consumed event.
    pub(super) const fn events(&self) -> u64 {
        self.events
    }

    /// For a request that is sent for the first time and keeps what it gets.
    pub(super) fn take(&mut self) -> Acknowledged {
        let count = self.replies.0.len().min(RANGES_PER_MESSAGE);
        let replies = self.replies.0.drain(..count).collect();
        if self.replies.0.is_empty() {
            self.due = None;
            self.unannounced = 0;
        }
        Acknowledged { replies, events: self.events }
    }

    /// For a message that nobody confirms.
    pub(super) fn announce(&mut self) -> Acknowledged {
        self.due = None;
        self.unannounced = 0;
        let count = self.replies.0.len().min(RANGES_PER_MESSAGE);
        Acknowledged { replies: self.replies.0[..count].to_vec(), events: self.events }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_join_when_they_touch() {
        let mut ranges = Ranges::default();
        for number in [5, 1, 2, 9, 4, 3, 3, 7, 8] {
            ranges.insert(number);
        }
        assert_eq!(ranges.0, [(1, 5), (7, 9)]);
    }

    #[test]
    fn announced_numbers_still_ride_on_the_next_request() {
        let start = Moment::at(1 << 50);
        let mut table = Acknowledgements::new(Duration::from_millis(200));
        table.add_reply(start, 1);
        table.add_reply(start, 3);
        assert_eq!(table.due(), Some(start + Duration::from_millis(200)));
        assert_eq!(table.announce().replies, [(1, 1), (3, 3)]);
        assert_eq!(table.due(), None);
        assert_eq!(table.take().replies, [(1, 1), (3, 3)]);
        assert_eq!(table.take().replies, []);
    }

    #[test]
    fn many_ranges_ride_on_many_requests() {
        let start = Moment::at(1 << 50);
        let mut table = Acknowledgements::new(Duration::from_millis(200));
        for number in 0..300 {
            table.add_reply(start, 2 * number + 1);
        }
        assert_eq!(table.take().replies.len(), RANGES_PER_MESSAGE);
        assert!(table.due().is_some(), "the rest is still due");
        assert_eq!(table.take().replies.len(), 300 - RANGES_PER_MESSAGE);
    }
}
