//! What a client has received, as ranges.
//!
//! Invariant: ranges are sorted, do not touch each other, and hold exactly what was added.

use std::collections::BTreeSet;

use gesmas_machine::Acknowledged;

/// Numbers that were received.
#[derive(Debug, Default)]
pub(super) struct Received {
    /// Everything up to here.
    all_to: u64,
    /// And these.
    more: BTreeSet<u64>,
    /// Number of the last event.
    pub(super) events: u64,
}

impl Received {
    /// A number was received.
    pub(super) fn add(&mut self, number: u64) {
        if number <= self.all_to {
            return;
        }
        self.more.insert(number);
        while self.more.remove(&(self.all_to + 1)) {
            self.all_to += 1;
        }
    }

    /// The ranges.
    pub(super) fn ranges(&self) -> Acknowledged {
        let mut replies = Vec::new();
        if self.all_to > 0 {
            replies.push((1, self.all_to));
        }
        for &number in &self.more {
            match replies.last_mut() {
                Some((_, last)) if *last + 1 == number => *last = number,
                _ => replies.push((number, number)),
            }
        }
        Acknowledged { replies, events: self.events }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_what_was_added() {
        let mut received = Received::default();
        for number in [1, 2, 5, 6, 9] {
            received.add(number);
        }
        assert_eq!(received.ranges().replies, [(1, 2), (5, 6), (9, 9)]);
        received.add(4);
        received.add(3);
        assert_eq!(received.ranges().replies, [(1, 6), (9, 9)]);
    }
}
