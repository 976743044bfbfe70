//! Samples and what is said of them: median and range of rounds, percentiles of latencies.
//!
//! Invariant: every sample is kept until it is summed up, so percentiles are exact.

use serde::Serialize;

/// Median, least and greatest of some rounds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Spread {
    /// The middle one; of an even number, the lower of the two.
    pub median: f64,
    /// The least.
    pub least: f64,
    /// The greatest.
    pub greatest: f64,
}

impl Spread {
    /// Sums up rounds.
    ///
    /// # Panics
    /// When there is none.
    pub fn of(rounds: impl IntoIterator<Item = f64>) -> Self {
        let mut rounds: Vec<_> = rounds.into_iter().collect();
        assert!(!rounds.is_empty(), "there is at least one round");
        rounds.sort_unstable_by(f64::total_cmp);
        let middle = (rounds.len() - 1) / 2;
        Self { median: rounds[middle], least: rounds[0], greatest: rounds[rounds.len() - 1] }
    }
}

/// Percentiles of latencies, microseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Latencies {
    /// Half of the calls took no longer.
    pub p50: f64,
    /// All but one in a hundred took no longer.
    pub p99: f64,
    /// The longest.
    pub longest: f64,
}

impl Latencies {
    /// Sums up latencies, nanoseconds.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn of(mut nanoseconds: Vec<u64>) -> Self {
        assert!(!nanoseconds.is_empty(), "there is at least one call");
        nanoseconds.sort_unstable();
        let last = nanoseconds.len() - 1;
        // The nearest rank: the least value that so many calls do not exceed.
        let rank = |percent: usize| (nanoseconds.len() * percent).div_ceil(100) - 1;
        let microseconds = |at: usize| nanoseconds[at] as f64 / 1e3;
        Self {
            p50: microseconds(rank(50)),
            p99: microseconds(rank(99)),
            longest: microseconds(last),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_of_rounds_is_their_middle_and_their_ends() {
        let spread = Spread::of([3.0, 1.0, 2.0, 9.0]);
        assert_eq!((spread.median, spread.least, spread.greatest), (2.0, 1.0, 9.0));
    }

    #[test]
    fn percentiles_are_exact() {
        let latencies = Latencies::of((1..=1_000).rev().map(|number| number * 1_000).collect());
        assert_eq!((latencies.p50, latencies.p99, latencies.longest), (500.0, 990.0, 1_000.0));
        let one = Latencies::of(vec![7_000]);
        assert_eq!((one.p50, one.p99, one.longest), (7.0, 7.0, 7.0));
    }
}
