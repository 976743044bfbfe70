//! Seeded pseudo-random numbers (splitmix64), for the rounds and for the pace of the load.
//!
//! Invariant: equal seeds and equal calls give equal numbers for ever.
//! Not here: repeatable runs. Real processes keep their own time, so a seed repeats the rounds, and
//! not what comes of them.

use std::time::Duration;

/// The generator.
#[derive(Clone, Debug)]
pub(crate) struct Prng(u64);

impl Prng {
    /// A generator of a seed and of a stream of it.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut prng = Self(seed ^ stream.wrapping_mul(0xd134_2543_de82_ef95));
        prng.next();
        prng
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let value = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    /// A number below `end`, which must not be 0. The bias of the remainder is of no account here.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// An index below `end`.
    pub(crate) fn index(&mut self, end: usize) -> usize {
        usize::try_from(self.below(end as u64)).expect("it is below a usize")
    }

    /// True in so many of a hundred cases.
    pub(crate) fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    /// A time between two numbers of milliseconds, both included.
    pub(crate) fn milliseconds(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from + 1))
    }

    /// So many different indices below `end`.
    pub(crate) fn choose(&mut self, count: usize, end: usize) -> Vec<usize> {
        let mut left: Vec<_> = (0..end).collect();
        (0..count.min(end)).map(|_| left.swap_remove(self.index(left.len()))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_means_the_same_and_streams_differ() {
        let numbers = |seed, stream| {
            let mut prng = Prng::new(seed, stream);
            [prng.below(1_000_000), prng.below(1_000_000)]
        };
        assert_eq!(numbers(7, 1), numbers(7, 1));
        assert_ne!(numbers(7, 1), numbers(7, 2));
        assert_ne!(numbers(7, 1), numbers(8, 1));
    }

    #[test]
    fn chosen_indices_differ() {
        let mut chosen = Prng::new(1, 1).choose(3, 3);
        chosen.sort_unstable();
        assert_eq!(chosen, [0, 1, 2]);
    }
}
