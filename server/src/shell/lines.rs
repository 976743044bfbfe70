//! How many lines of the log guests can cause.
//!
//! A handler that fails, and a method that logs, writes a line on every replica. In a loop both would
//! fill the disk and take the time of the thread that everything waits for.
//! Invariant: at most so many lines a second; the first line after some that were left out is
//! preceded by one that counts them.
//! Not here: what a line says.

/// One second, nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// Lines of one kind.
#[derive(Debug)]
pub(super) struct Lines {
    per_second: u32,
    /// The second that is counted, and the lines that it has.
    second: u64,
    written: u32,
    left_out: u64,
}

impl Lines {
    pub(super) const fn new(per_second: u32) -> Self {
        Self { per_second, second: 0, written: 0, left_out: 0 }
    }

    /// Whether a line may be written at this monotonic time; and how many were left out before it,
    /// which are then reported.
    pub(super) fn next(&mut self, now: u64) -> Option<u64> {
        let second = now / SECOND;
        if self.second != second {
            (self.second, self.written) = (second, 0);
        }
        if self.written == self.per_second {
            self.left_out += 1;
            return None;
        }
        self.written += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bounded_in_each_second_and_those_left_out_are_counted() {
        let mut lines = Lines::new(2);
        let seen: Vec<_> = [5, 6, 7, 8].iter().map(|now| lines.next(*now)).collect();
        assert_eq!(seen, [Some(0), Some(0), None, None]);
        assert_eq!(lines.next(SECOND), Some(2));
        assert_eq!(lines.next(SECOND + 1), Some(0));
        assert_eq!(lines.next(SECOND + 2), None);
        assert_eq!(lines.next(9 * SECOND), Some(1));
    }
}
