//! How much of many things one step, or one answer, takes.

/// Entries of a portion at most.
const ENTRIES: u32 = 1_000;
/// Bytes of a portion at most, unless its first entry alone has more.
const BYTES: usize = 256 << 10;

/// A bound on how much is taken at once: in number and in bytes, since a thousand small entries fit into
/// an answer and into a step, and a thousand large ones do not. The first entry always has room, so that
/// who takes portion after portion comes to the end.
///
/// ```
/// use gesmas_sdk::state::Portion;
///
/// let mut portion = Portion::of(10);
/// let sizes = [100_000, 100_000, 100_000];
/// let taken = sizes.iter().take_while(|size| portion.takes(**size)).count();
/// assert_eq!(taken, 2);
/// assert!(Portion::of(10).takes(1_000_000));
/// ```
#[derive(Clone, Debug)]
pub struct Portion {
    entries: u32,
    bytes: usize,
    first: bool,
}

impl Portion {
    /// A portion of at most so many entries, and at most 1,000, with at most 256 KiB.
    #[must_use]
    pub const fn of(entries: u32) -> Self {
        let entries = if entries < ENTRIES { entries } else { ENTRIES };
        Self { entries, bytes: BYTES, first: true }
    }

    /// A portion of any number of entries with at most so many bytes.
    #[must_use]
    pub const fn of_bytes(bytes: usize) -> Self {
        Self { entries: u32::MAX, bytes, first: true }
    }

    /// Takes an entry of so many bytes if there is room for it, and tells whether there was. After the
    /// first one that has no room, none has.
    pub fn takes(&mut self, bytes: usize) -> bool {
        let room = self.entries > 0 && (bytes <= self.bytes || self.first);
        self.first = false;
        self.entries = if room { self.entries - 1 } else { 0 };
        self.bytes = self.bytes.saturating_sub(bytes);
        room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_portion_is_bounded_in_number_and_in_bytes() {
        for (limit, size, taken) in [
            (0, 1, 0),
            (1, 1, 1),
            (7, 0, 7),
            (u32::MAX, 0, 1_000),
            (u32::MAX, BYTES, 1),
            (u32::MAX, BYTES + 1, 1),
            (u32::MAX, BYTES / 2, 2),
            (u32::MAX, usize::MAX, 1),
        ] {
            let mut portion = Portion::of(limit);
            let count = (0..2_000).filter(|_| portion.takes(size)).count();
            assert_eq!(count, taken, "{limit} of {size} bytes");
        }
    }

    #[test]
    fn what_has_no_room_is_not_passed() {
        let mut portion = Portion::of(10);
        let taken = [1, BYTES, 1].map(|size| portion.takes(size));
        assert_eq!(taken, [true, false, false]);
    }
}
